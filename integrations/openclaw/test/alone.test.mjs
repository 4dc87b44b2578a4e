// The plugins by themselves, without OpenClaw: which settings they take, and what they say.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, utimes, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";

const packages = join(process.env.HOLDFAST_OPENCLAW_CACHE, "packages");
/** Longest that a line of the log, or its loss, is waited for. */
const LOG_MS_MAX = 60_000;
const addon = createRequire(import.meta.url)(join(packages, "tool-guard/native/holdfast.linux-x64-gnu.node"));

let scratch;
before(async () => {
  scratch = await mkdtemp(join(tmpdir(), "holdfast-settings-"));
});
after(() => rm(scratch, { recursive: true, force: true }));

/** The least and the most that a schema lets pass, and for a list or an object one with such things in it. */
function edges(schema) {
  if (schema.enum) return schema.enum;
  if (schema.type === "boolean") return [true, false];
  if (schema.type === "string") return [schema.pattern?.startsWith("^(fs|") ? `sys:${"a".repeat(64)}` : "x"];
  if (schema.type === "array") return [[], edges(schema.items)];
  if (schema.type === "object") {
    const each = Object.entries(schema.properties ?? {}).flatMap(([name, one]) => edges(one).map((value) => ({ [name]: value })));
    const any = schema.additionalProperties ? edges(schema.additionalProperties).map((value) => ({ x: value })) : [];
    return [{}, ...each, ...any];
  }
  assert.ok(schema.minimum !== undefined && schema.maximum !== undefined, "a number has bounds");
  return [schema.minimum, schema.maximum];
}

const run = promisify(execFile);
const GUARD = pathToFileURL(join(packages, "tool-guard/dist/tool-guard/index.js")).href;

/**
 * Registers the guard once with each of some configurations, in a process of its own, has a call fail if asked to,
 * and tells what the guard said and which hooks it took.
 */
async function registered(configs, { hears = false, fails = false } = {}) {
  const code = `const { default: plugin } = await import(${JSON.stringify(GUARD)});
    const said = { errors: [], warnings: [], hooks: [] };
    const logger = { info() {}, warn: (text) => said.warnings.push(text), error: (text) => said.errors.push(text) };
    const config = { plugins: { entries: { "tool-guard": { hooks: { allowConversationAccess: ${hears} } } } } };
    const resolvePath = (path) => path.replace("~", ${JSON.stringify(scratch)});
    let hooks;
    for (const pluginConfig of ${JSON.stringify(configs)}) {
      hooks = {};
      plugin.register({ id: "tool-guard", config, pluginConfig, runtime: { version: "2026.9.6" }, resolvePath, logger, on: (hook, take) => (hooks[hook] = take) });
      said.hooks.push(Object.keys(hooks));
    }
    if (${fails}) {
      const [toolCallId, context] = ["call_1", { sessionKey: "s", runId: "r" }];
      hooks.after_tool_call({ toolName: "read", params: {}, toolCallId, runId: "r" }, context);
      const content = [{ type: "text", text: "Missing required parameter: path" }];
      hooks.tool_result_persist({ toolCallId, message: { role: "toolResult", toolCallId, toolName: "read", content, isError: true } }, context);
      for (const until = Date.now() + ${LOG_MS_MAX}; Date.now() < until && said.errors.length === 0; ) await new Promise((done) => setTimeout(done, 50));
    }
    console.log(JSON.stringify(said));
    process.exit(0);`;
  const { stdout } = await run(process.execPath, ["--input-type=module", "--eval", code]);
  return JSON.parse(stdout);
}

test("whatever the schema of a plugin lets pass, the addon takes", async () => {
  const takes = { "tool-guard": (given) => new addon.ToolGuard(given), "clawos-trust": (given) => new addon.TrustDesk(given) };
  // Settings that do not cross: the plugins read them themselves (the suite `once` has the two windows).
  const own = new Set(["readOnlyTools", "endRunAfterIgnored", "onceTools", "onceUnknownMs", "onceEchoMs", "statePath", "approvalMs"]);
  for (const [plugin, take] of Object.entries(takes)) {
    const { configSchema } = JSON.parse(await readFile(join(packages, plugin, "openclaw.plugin.json"), "utf8"));
    for (const [name, schema] of Object.entries(configSchema.properties)) {
      for (const value of edges(schema)) if (!own.has(name)) take(JSON.stringify({ [name]: value }));
    }
  }
});

test("a setting that can not be used leaves the guard on, with its name in the log", async () => {
  const bad = [{ maxIdenticalFailures: -1 }, { maxIdenticalFailures: 0 }, { maxFailuresPerTurn: 1.5 }, { maxFailuresPerTurn: 1e12 }, { logPath: "" }];
  for (const config of bad) {
    const [name] = Object.keys(config);
    const said = await registered([config, config, { maxIdenticalFailures: 3 }, { ...config, pollingTools: ["x"] }]);
    assert.equal(said.errors.length, 2, said.errors.join("\n"));
    assert.match(said.errors[0], new RegExp(`^tool-guard: holdfast: ${name}: .*; the other settings apply$`));
    assert.match(said.errors[1], new RegExp(`^tool-guard: holdfast: ${name}: .*; the last good settings stay$`));
    assert.ok(said.hooks.every((hooks) => hooks.includes("before_tool_call")), `${name}: on every time`);
  }
  const together = await registered([{ cutIdenticalSuccesses: 8 }, { adviseIdenticalSuccesses: 30, cutIdenticalSuccesses: 5 }]);
  assert.deepEqual(together.errors, []);
});

test("a guard that may not hear says what it misses, once", async () => {
  const said = await registered([{}, {}]);
  assert.equal(said.warnings.length, 1, said.warnings.join("\n"));
  assert.match(said.warnings[0], /arguments are no JSON are counted and logged, but no model is told.*allowConversationAccess: true/);
  assert.deepEqual((await registered([{}], { hears: true })).warnings, []);
});

test("a log that can not be written is said", async () => {
  const { errors } = await registered([{ logPath: "/dev/null/guard.log" }], { hears: true, fails: true });
  assert.deepEqual(errors, ["tool-guard: log: lines of /dev/null/guard.log could not be written; is its directory writable, and the file itself no link?"]);
});

test("a command that returns non-zero is a line of the log once it is a loop, and no failure of the turn", async () => {
  const file = join(scratch, "commands.log");
  const guard = new addon.ToolGuard("{}", file);
  const play = (command) => {
    const told = { session: "s", turn: "t", tool: "exec", args: JSON.stringify({ command }), callId: "call_1" };
    return guard.observe(new addon.GuardedCall(told), { ending: "exitedNonZero" }, Buffer.alloc(0), 0);
  };
  for (let n = 0; n < 40; n++) assert.deepEqual({ ...play(`false ${n}`) }, { action: "continue", stopTurn: false, handBack: false });
  const again = play("false 39");
  assert.equal(again.action, "loop-detected");
  assert.match(again.append, /let time pass first, for example with sleep\.$/);
  guard.writeLog();
  let lines = [];
  for (const until = Date.now() + LOG_MS_MAX; lines.length === 0 && Date.now() < until; ) {
    lines = (await readFile(file, "utf8").catch(() => "")).split("\n").filter(Boolean).map((line) => JSON.parse(line));
  }
  assert.deepEqual(lines.map(({ errorType, args, action }) => [errorType, args.command, action]), [["non_zero_exit", "false 39", "loop-detected"]]);
});

test("what the start script says of the sessions is for people", async () => {
  const state = join(scratch, "state");
  const worker = join(packages, "clawos-l0/dist/clawos-l0/worker.js");
  const mend = async () => (await run(process.execPath, [worker, "repair", "remove_orphans", "--words"], { env: { ...process.env, OPENCLAW_STATE_DIR: state } })).stdout;
  assert.equal(await mend(), "clawos-l0: no sessions yet\n");
  assert.equal((await run(process.execPath, [worker, "report", "remove_orphans", join(state, "agents")])).stdout, "[]\n");
  const folder = join(state, "agents/main/sessions");
  await mkdir(folder, { recursive: true });
  const message = { role: "toolResult", toolCallId: "call_gone", toolName: "exec", content: [] };
  const lines = [{ type: "session", version: 4, id: "s", cwd: "/" }, { type: "message", id: "a", parentId: null, message: { role: "user", content: "go" } }, { type: "message", id: "b", parentId: "a", message }];
  const file = join(folder, "s.jsonl");
  await writeFile(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  await utimes(file, 1, 1);
  assert.match(await mend(), /^clawos-l0: 1 sessions, 1 issues found, 1 repaired\n- orphaned_tool_result call_gone in agents\/main\/sessions\/s\.jsonl, entry 2\nAs it was: /);
});

test("the sessions are looked for where the host keeps them", async () => {
  const { stateDir, startedStateDir } = await import(pathToFileURL(join(packages, "clawos-l0/dist/shared/state-dir.js")));
  const home = join(scratch, "home");
  await mkdir(join(home, "first/.clawdbot"), { recursive: true });
  for (const [env, folder] of [
    [{}, ".openclaw"],
    [{ OPENCLAW_STATE_DIR: "" }, ".openclaw"],
    [{ OPENCLAW_STATE_DIR: " \t" }, ".openclaw"],
    [{ OPENCLAW_STATE_DIR: "~/x" }, "x"],
    [{ OPENCLAW_STATE_DIR: ` ${home}/y ` }, "y"],
    [{ OPENCLAW_HOME: "" }, ".openclaw"],
    [{ OPENCLAW_HOME: "undefined" }, ".openclaw"],
    [{ OPENCLAW_HOME: "~/other" }, "other/.openclaw"],
    [{ OPENCLAW_HOME: "~/other", OPENCLAW_STATE_DIR: "~/x" }, "other/x"],
    [{ HOME: join(home, "first") }, "first/.clawdbot"],
  ]) {
    assert.equal(stateDir({ HOME: home, ...env }), join(home, folder), JSON.stringify(env));
  }
  assert.equal(stateDir({ HOME: home, OPENCLAW_STATE_DIR: "here" }), join(process.cwd(), "here"));
  for (const [args, env, folder] of [
    [["run"], {}, ".openclaw"],
    [["run", "--profile", "work"], {}, ".openclaw-work"],
    [["--profile=work", "run"], {}, ".openclaw-work"],
    [["run", "--profile", "default"], {}, ".openclaw"],
    [["run", "--profile", "../x"], {}, ".openclaw"],
    [["run", "--", "--profile", "work"], {}, ".openclaw"],
    [["run", "--profile", "work"], { OPENCLAW_STATE_DIR: "~/x" }, "x"],
    [["run", "--profile", "work"], { OPENCLAW_STATE_DIR: "~/.openclaw" }, ".openclaw-work"],
    [["run"], { OPENCLAW_PROFILE: "work" }, ".openclaw"],
  ]) {
    assert.equal(startedStateDir(args, { HOME: home, ...env }), join(home, folder), `${args} ${JSON.stringify(env)}`);
  }
  const worker = join(packages, "clawos-l0/dist/clawos-l0/worker.js");
  await mkdir(join(scratch, "elsewhere/agents"), { recursive: true });
  await writeFile(join(scratch, "elsewhere/agents/s.jsonl"), '{"type":"session","version":4,"id":"s","cwd":"/"}\n');
  const { stdout } = await run(process.execPath, [worker, "repair", "remove_orphans", "--words"], {
    cwd: join(scratch, "elsewhere"),
    env: { PATH: process.env.PATH, HOME: home, OPENCLAW_STATE_DIR: "" },
  });
  assert.equal(stdout, "clawos-l0: no sessions yet\n", "not those below where it happens to be started");
});

test("each package says how it is installed, configured, mended and removed", async () => {
  for (const [plugin, own] of [["tool-guard", "Made once"], ["clawos-l0", "Sessions"], ["clawos-trust", "Whose words"]]) {
    const text = await readFile(join(packages, plugin, "README.md"), "utf8");
    for (const title of ["Install", "Configure", own, "When something is wrong", "Uninstall"]) assert.ok(text.includes(`\n## ${title}\n`), `${plugin}: ${title}`);
    assert.doesNotMatch(text, /\]\([a-z-]+\.md/, "no link leads out of the package");
  }
});

test("a call id that a server uses again is no fault of a session", async () => {
  const entry = (id, parentId, message) => ({ type: "message", id, parentId, message });
  const call = { role: "assistant", content: [{ type: "toolCall", id: "call_1", name: "exec", arguments: {} }] };
  const result = { role: "toolResult", toolCallId: "call_1", toolName: "exec", content: [] };
  const events = [entry("a", null, { role: "user", content: "go" }), entry("b", "a", call), entry("c", "b", result), entry("d", "c", call), entry("e", "d", result)];
  assert.deepEqual(JSON.parse(await addon.checkMessages(JSON.stringify(events))), []);
  assert.deepEqual(JSON.parse(await addon.resultsToExclude(JSON.stringify(events))), []);
});
