// Drives the plugin's hooks as OpenClaw does, and times each call from its first hook to its last.
//
//   node bench.mjs PACKAGE CALLS COMMIT OUTPUT
//
// After every call come two others that show the machine: hooks that do nothing (the floor), and a loop that
// reads the clock for as long as the middle one of our calls takes (the control). What the control's 99th
// percentile is above its median, the machine did and not the plugin. Calls in the middle of which the kernel gave
// the processor to nobody else ("alone") are counted by themselves too.

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { readFileSync } from "node:fs";
import { cpus, loadavg, release, tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { pathToFileURL } from "node:url";

/** What a call may cost at the 99th percentile. */
const AIM_MS = 0.2;
const WARM = 2_000;
/** Calls of one run, so that turns come and go as they do; after each the event loop has a round. */
const CALLS_A_RUN = 40;

const [folder, count, commit, output] = process.argv.slice(2);
const calls = Number(count);
const plugin = (await import(pathToFileURL(join(folder, "dist/tool-guard/index.js")))).default;
const scratch = await mkdtemp(join(tmpdir(), "holdfast-bench-"));

function register(made) {
  const handlers = new Map();
  const quiet = () => undefined;
  made.register({
    id: "tool-guard",
    config: {},
    pluginConfig: { logPath: join(scratch, "guard.log") },
    runtime: { version: "2026.9.6" },
    logger: { info: quiet, warn: quiet, error: quiet },
    on: (name, handler) => handlers.set(name, handler),
  });
  return handlers;
}

/** The floor: a plugin whose hooks do nothing. */
const nothing = {
  register(api) {
    for (const hook of ["before_tool_call", "after_tool_call", "tool_result_persist"]) api.on(hook, () => undefined);
  },
};

/** A text in one piece, as it comes from a socket; one that was put together would be copied inside the timing. */
const flat = (text) => Buffer.from(text).toString("latin1");
const line = "fn main() { println!(\"{}\", 1 + 1); }\n";
const lines = (bytes) => line.repeat(Math.ceil(bytes / line.length));
const [kilobyte, page, file] = [lines(1_000), lines(100_000), lines(50_000)];
const kinds = {
  "a command that works": (n) => ({ tool: "exec", params: { command: `echo ${n}` }, text: flat(`${n}\n${kilobyte}`) }),
  "a file of 100 KB read": (n) => ({ tool: "read", params: { path: `src/${n}.rs` }, text: flat(`${n} ${page}`) }),
  "a 50 KB file written": (n) => ({ tool: "write", params: { path: `src/${n}.rs`, content: flat(`${n} ${file}`) }, text: "ok" }),
  "a call that fails its schema": () => ({ tool: "read", params: {}, text: "Missing required parameter: path", isError: true }),
  "a 50 KB file not written": (n) => ({ tool: "write", params: { content: flat(`${n} ${file}`) }, text: "Missing required parameter: path", isError: true }),
};

/** The three hooks of one call, as a function that is timed. */
function hooks(handlers, { tool, params, text, isError }, n) {
  const context = { sessionKey: "agent:main:main", runId: `run-${Math.floor(n / CALLS_A_RUN)}`, toolCallId: `call_${n}` };
  const event = { toolName: tool, params, toolCallId: context.toolCallId, runId: context.runId };
  const message = { role: "toolResult", toolCallId: context.toolCallId, toolName: tool, isError: isError === true, content: [{ type: "text", text }] };
  return () => {
    if (!isError) handlers.get("before_tool_call")(event, context);
    handlers.get("after_tool_call")(event, context);
    handlers.get("tool_result_persist")({ toolCallId: context.toolCallId, message }, context);
  };
}

/** The control: as long as it is told, and nothing else. */
const spin = (lengthMs) => () => {
  const until = performance.now() + lengthMs;
  while (performance.now() < until);
};

class Times {
  all = [];
  alone = [];

  time(work) {
    const interrupted = interruptions();
    const begun = performance.now();
    work();
    const took = performance.now() - begun;
    this.all.push(took);
    if (interruptions() === interrupted) this.alone.push(took);
  }

  get figures() {
    return { ...shares(this.all), alone: { calls: this.alone.length, ...shares(this.alone) } };
  }
}

/** How often the kernel has taken the processor away from this process. */
const interruptions = () => process.resourceUsage().involuntaryContextSwitches;

function shares(values) {
  const sorted = Float64Array.from(values).sort();
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
  return { p50: at(0.5), p99: at(0.99), p999: at(0.999), max: sorted.at(-1) };
}

async function measure(kind, amount, controlMs) {
  const [ours, floor, control] = [new Times(), new Times(), new Times()];
  const length = spin(controlMs);
  for (let n = 0; n < amount; n++) {
    ours.time(hooks(guarded, kind(n), n));
    floor.time(hooks(empty, kind(n), n));
    control.time(length);
    if (n % CALLS_A_RUN === 0) await setImmediate();
  }
  return { guard: ours.figures, floor: floor.figures, control: control.figures };
}

const guarded = register(plugin);
const empty = register(nothing);
const results = {};
const row = (...cells) => console.log(cells[0].padEnd(30), ...cells.slice(1).map((cell) => String(cell).padStart(11)));
row("ms a call", "p50", "p99", "p99.9", "p99 alone", "floor p99", "control p50", "control p99", "aim");
for (const [name, kind] of Object.entries(kinds)) {
  const warm = await measure(kind, WARM, 0);
  const { guard, floor, control } = await measure(kind, calls, warm.guard.p50);
  results[name] = { guard, floor, control };
  const met = guard.p99 < AIM_MS ? "met" : control.p99 < AIM_MS ? "missed" : "busy";
  const times = [guard.p50, guard.p99, guard.p999, guard.alone.p99, floor.p99, control.p50, control.p99];
  row(name, ...times.map((value) => value.toFixed(4)), met);
}
console.log(`aim: p99 under ${AIM_MS} ms; "busy": missed, and by a loop of the same length that does nothing too`);
const cpu = /model name\s*: (.*)/.exec(readFileSync("/proc/cpuinfo", "utf8"))?.[1] ?? cpus()[0]?.model;
const machine = { cpu, cores: cpus().length, kernel: release(), node: process.version, commit, date: new Date().toISOString(), loadAverage: loadavg() };
const rssBytes = process.memoryUsage.rss();
console.log(`memory at the end: ${Math.round(rssBytes / 1e6)} MB; load average ${machine.loadAverage.map((load) => load.toFixed(1)).join(" ")}`);
await writeFile(output, `${JSON.stringify({ machine, calls, aimMs: AIM_MS, rssBytes, results }, null, 2)}\n`);
// The log is still being written.
await rm(scratch, { recursive: true, force: true, maxRetries: 10 });
