// Drives the plugin's hooks as OpenClaw does, and times each call from its first hook to its last.
//
//   node bench.mjs PACKAGE CALLS COMMIT OUTPUT

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { readFileSync } from "node:fs";
import { cpus, loadavg, release, tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

/** What a call may cost at the 99th percentile. */
const AIM_MS = 0.2;
const WARM = 2_000;
/** Calls of one run, so that turns come and go as they do. */
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
};

function time(handlers, kind, amount) {
  const took = new Float64Array(amount);
  const alone = [];
  for (let n = 0; n < amount; n++) {
    const { tool, params, text, isError } = kind(n);
    const context = { sessionKey: "agent:main:main", runId: `run-${Math.floor(n / CALLS_A_RUN)}`, toolCallId: `call_${n}` };
    const event = { toolName: tool, params, toolCallId: context.toolCallId, runId: context.runId };
    const message = { role: "toolResult", toolCallId: context.toolCallId, toolName: tool, isError: isError === true, content: [{ type: "text", text }] };
    const interrupted = interruptions();
    const begun = performance.now();
    if (!isError) handlers.get("before_tool_call")(event, context);
    handlers.get("after_tool_call")(event, context);
    handlers.get("tool_result_persist")({ toolCallId: context.toolCallId, message }, context);
    took[n] = performance.now() - begun;
    if (interruptions() === interrupted) alone.push(took[n]);
  }
  return { took: took.sort(), alone: Float64Array.from(alone).sort() };
}

/** How often the kernel has taken the processor away from this process. */
const interruptions = () => process.resourceUsage().involuntaryContextSwitches;

const at = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
const shares = (sorted) => ({ p50: at(sorted, 0.5), p99: at(sorted, 0.99), p999: at(sorted, 0.999), max: sorted.at(-1) });
/** All calls, and those that nobody else's work was in the middle of: on a busy machine the first are mostly others' time. */
const figures = ({ took, alone }) => ({ ...shares(took), uninterrupted: { calls: alone.length, ...shares(alone) } });

const guard = register(plugin);
const floor = register(nothing);
const results = {};
const row = (...cells) => console.log(cells[0].padEnd(32), ...cells.slice(1).map((cell) => cell.padStart(12)));
row("ms a call", "p50", "p99", "p99.9", "p99 alone", "floor p99", "aim");
for (const [name, kind] of Object.entries(kinds)) {
  time(guard, kind, WARM);
  time(floor, kind, WARM);
  const [ours, least] = [figures(time(guard, kind, calls)), figures(time(floor, kind, calls))];
  results[name] = { guard: ours, floor: least };
  const met = ours.p99 < AIM_MS ? "met" : "missed";
  row(name, ...[ours.p50, ours.p99, ours.p999, ours.uninterrupted.p99, least.p99].map((value) => value.toFixed(4)), met);
}
const cpu = /model name\s*: (.*)/.exec(readFileSync("/proc/cpuinfo", "utf8"))?.[1] ?? cpus()[0]?.model;
const machine = { cpu, cores: cpus().length, kernel: release(), node: process.version, commit, date: new Date().toISOString(), loadAverage: loadavg() };
await writeFile(output, `${JSON.stringify({ machine, calls, aimMs: AIM_MS, results }, null, 2)}\n`);
await rm(scratch, { recursive: true, force: true });
