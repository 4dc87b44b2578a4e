// Drives the plugin's hooks as OpenClaw does, and times each call from its first hook to its last.
//
//   node bench.mjs PACKAGE CALLS COMMIT OUTPUT
//
// Ends with an error when an aim is missed. The plugin is registered twice, as the host does, and each of its hooks
// is called for both.
//
// After every call come two others that show the machine: hooks that do nothing (the floor), and a loop that
// reads the clock for as long as the middle one of our calls takes (the control). What the control's 99th
// percentile is above its median, the machine did and not the plugin. Calls in the middle of which the kernel gave
// the processor to nobody else ("alone") are counted by themselves too.

import { mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate, setTimeout } from "node:timers/promises";
import { pathToFileURL } from "node:url";

/** What a call may cost at the 99th percentile; one with a text of a megabyte may hold the event loop so long. */
const AIM_MS = 0.2;
const LONG_AIM_MS = 1;
const WARM = 2_000;
/** How often OpenClaw registers a plugin at least. */
const REGISTRATIONS = 2;
/** Of calls with a long text there are so many times fewer. */
const LONG_SHARE = 20;
/** Calls of one run, so that turns come and go as they do; after each the event loop has a round. */
const CALLS_A_RUN = 40;
/** How long nothing is said at most. */
const PROGRESS_MS = 10_000;
/** The log is written when it has not grown for so long. */
const QUIET_MS = 1_000;

const [folder, count, described, output] = process.argv.slice(2);
const calls = Number(count);
const plugin = (await import(pathToFileURL(join(folder, "dist/tool-guard/index.js")))).default;
const scratch = await mkdtemp(join(tmpdir(), "holdfast-bench-"));
const logPath = join(scratch, "guard.log");

function register(made) {
  const handlers = { model_call_started: [], before_message_write: [], before_tool_call: [], after_tool_call: [], tool_result_persist: [] };
  for (let n = 0; n < REGISTRATIONS; n++) registerOnce(made, handlers);
  /** Calls a hook of every registration. */
  return (name, event, context) => {
    for (const handler of handlers[name]) handler(event, context);
  };
}

function registerOnce(made, handlers) {
  const quiet = () => undefined;
  made.register({
    id: "tool-guard",
    config: {},
    pluginConfig: { logPath },
    runtime: { version: "2026.9.6" },
    logger: { info: quiet, warn: quiet, error: quiet },
    on: (name, handler) => handlers[name]?.push(handler),
  });
}

/** The floor: a plugin whose hooks do nothing. */
const nothing = {
  register(api) {
    for (const hook of ["model_call_started", "before_message_write", "before_tool_call", "after_tool_call", "tool_result_persist"]) api.on(hook, () => undefined);
  },
};

/** A text in one piece, as it comes from a socket; one that was put together would be copied inside the timing. */
const flat = (text) => Buffer.from(text).toString("latin1");
const line = "fn main() { println!(\"{}\", 1 + 1); }\n";
const lines = (bytes) => line.repeat(Math.ceil(bytes / line.length));
const [kilobyte, page, file, megabyte] = [lines(1_000), lines(100_000), lines(50_000), lines(1_000_000)];
const passed = (n) => `test case_${n} ... ok (${n % 50} ms)\n`;
const tests = Array.from({ length: 700 }, (_, n) => passed(n)).join("");
const kinds = {
  "a command that works": (n) => ({ tool: "exec", params: { command: `echo ${n}` }, text: flat(`${n}\n${kilobyte}`) }),
  "a file of 100 KB read": (n) => ({ tool: "read", params: { path: `src/${n}.rs` }, text: flat(`${n} ${page}`) }),
  "a 50 KB file written": (n) => ({ tool: "write", params: { path: `src/${n}.rs`, content: flat(`${n} ${file}`) }, text: "ok" }),
  "a test run of 20 KB that fails": (n) => ({ tool: "exec", params: { command: `cargo test ${n}` }, text: flat(`${n} ${tests}`), exitCode: 1 }),
  "a call that fails its schema": () => ({ tool: "read", params: {}, text: "Missing required parameter: path", isError: true }),
  "a 50 KB file not written": (n) => ({ tool: "write", params: { content: flat(`${n} ${file}`) }, text: "Missing required parameter: path", isError: true }),
};
const longKinds = {
  "a file of 1 MB read": (n) => ({ tool: "read", params: { path: `src/${n}.rs` }, text: flat(`${n} ${megabyte}`) }),
  "a 1 MB file written": (n) => ({ tool: "write", params: { path: `src/${n}.rs`, content: flat(`${n} ${megabyte}`) }, text: "ok" }),
};

/** The hooks of one call, as a function that is timed. */
function hooks(call, { tool, params, text, isError, exitCode = 0 }, n) {
  const context = { sessionKey: "agent:main:main", runId: `run-${Math.floor(n / CALLS_A_RUN)}`, toolCallId: `call_${n}` };
  const event = { toolName: tool, params, toolCallId: context.toolCallId, runId: context.runId };
  const message = { role: "toolResult", toolCallId: context.toolCallId, toolName: tool, isError: isError === true, details: { exitCode }, content: [{ type: "text", text }] };
  const answer = { role: "assistant", content: [{ type: "toolCall", id: context.toolCallId, name: tool, arguments: params }] };
  return () => {
    call("model_call_started", { runId: context.runId, sessionKey: context.sessionKey, provider: "bench", model: "m" }, context);
    call("before_message_write", { message: answer }, context);
    if (!isError) call("before_tool_call", event, context);
    call("after_tool_call", event, context);
    call("tool_result_persist", { toolCallId: context.toolCallId, message }, context);
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

async function measure(kind, amount, controlMs, progress = () => undefined) {
  const [ours, floor, control] = [new Times(), new Times(), new Times()];
  const length = spin(controlMs);
  for (let n = 0; n < amount; n++) {
    const call = kind(n);
    ours.time(hooks(guarded, call, n));
    floor.time(hooks(empty, call, n));
    control.time(length);
    if (n % CALLS_A_RUN === 0) {
      progress(n);
      await setImmediate();
    }
  }
  return { guard: ours.figures, floor: floor.figures, control: control.figures };
}

/** Says on standard error how far a kind is, now and then: a whole run takes minutes. */
function progressOf(name) {
  let saidMs = performance.now();
  return (n) => {
    if (performance.now() - saidMs < PROGRESS_MS) return;
    saidMs = performance.now();
    console.error(`${name}: ${n} calls of at most ${calls}`);
  };
}

const guarded = register(plugin);
const empty = register(nothing);
const results = {};
const row = (...cells) => console.log(cells[0].padEnd(32), ...cells.slice(1).map((cell) => String(cell).padStart(11)));
row("ms a call", "p50", "p99", "p99.9", "p99 alone", "floor p99", "control p50", "control p99", "aim");
async function report(name, kind, amount, aimMs) {
  const warm = await measure(kind, Math.min(WARM, amount), 0);
  const { guard, floor, control } = await measure(kind, amount, warm.guard.p50, progressOf(name));
  results[name] = { aimMs, guard, floor, control };
  const met = guard.p99 < aimMs ? "met" : control.p99 < aimMs ? "missed" : "busy";
  if (met === "missed") process.exitCode = 1;
  const times = [guard.p50, guard.p99, guard.p999, guard.alone.p99, floor.p99, control.p50, control.p99];
  row(name, ...times.map((value) => value.toFixed(4)), met);
}
for (const [name, kind] of Object.entries(kinds)) await report(name, kind, calls, AIM_MS);
for (const [name, kind] of Object.entries(longKinds)) await report(name, kind, Math.ceil(calls / LONG_SHARE), LONG_AIM_MS);
console.log(`aim: p99 under ${AIM_MS} ms, and ${LONG_AIM_MS} ms with a megabyte; "busy": missed, and by a loop of the same length that does nothing too`);
const machine = JSON.parse(described);
const rssBytes = process.memoryUsage.rss();
console.log(`memory at the end: ${Math.round(rssBytes / 1e6)} MB; load average ${machine.loadAverage}`);
await writeFile(output, `${JSON.stringify({ machine, calls, aimMs: AIM_MS, rssBytes, results }, null, 2)}\n`);
await logWritten();
await rm(scratch, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });

/** Waits for the thread that writes the log: a line after the folder is gone would make it anew. */
async function logWritten() {
  const sizeOf = () => stat(logPath).then(({ size, ino }) => `${ino} ${size}`, () => "none");
  let [last, sinceMs] = [undefined, 0];
  while (performance.now() - sinceMs < QUIET_MS) {
    const size = await sizeOf();
    if (size !== last) [last, sinceMs] = [size, performance.now()];
    await setTimeout(QUIET_MS / 10);
  }
}
