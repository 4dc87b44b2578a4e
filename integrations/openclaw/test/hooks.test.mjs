// What the plugins do at their hooks, with a host that only notes what it is told.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { cp, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { hostIn } from "./rig/host.mjs";
import { lines } from "./rig/log.mjs";

const packages = join(process.env.HOLDFAST_OPENCLAW_CACHE, "packages");
const addon = createRequire(import.meta.url)(join(packages, "tool-guard/native/holdfast.linux-x64-gnu.node"));
const MADE = undefined;
const WINDOWS = { unknownMs: 600_000, echoMs: 30_000 };
/** Arguments of 360 MB in all, and what the heap may grow by for them. */
const CALLS = 1_500;
const CALL_CHARS = 240_000;
const GROWTH_BYTES_MAX = 60_000_000;

let scratch, hooksOf, guardPlugin, l0Plugin;
before(async () => {
  scratch = await mkdtemp(join(tmpdir(), "holdfast-hooks-"));
  hooksOf = hostIn(scratch);
  [guardPlugin, l0Plugin] = await Promise.all([load("tool-guard"), load("clawos-l0")]);
});
after(() => rm(scratch, { recursive: true, force: true }));

/** What ends a run in the host, and what it was asked for. */
const harness = (globalThis.harness = { aborted: [], answer: () => undefined });

/** What is stored of the session at hand, and how it was read. */
const stored = (globalThis.stored = { entries: [], pages: [], whole: 0 });

/** A plugin from a folder where it finds what stands in for the host's modules. */
async function load(id) {
  const folder = join(scratch, id);
  await cp(join(packages, id), folder, { recursive: true });
  await cp(join(import.meta.dirname, "rig/stand-in"), join(folder, "node_modules/openclaw"), { recursive: true });
  return (await import(pathToFileURL(join(folder, `dist/${id}/index.js`)))).default;
}
/** The plugin as a host has it that registered it more than once. */
const twice = (plugin, how) => [hooksOf(plugin, how), hooksOf(plugin, how)];
const onceIn = (name) => ({ config: { onceTools: ["message"], statePath: join(scratch, name) } });

describe(`on Node ${process.version}`, () => {
  describe("a message that no run asks for", () => {
    let hosts;
    before(() => (hosts = twice(guardPlugin, onceIn("invoked"))));
    /** As the host tells of it: each registration gets a copy of the event and the same context, until one refuses. */
    const invoke = async (toolCallId, text, session = "agent:main:main") => {
      const context = { sessionKey: session, toolCallId, toolName: "message" };
      for (const { hook } of hosts) {
        const answer = await hook("before_tool_call", { toolName: "message", toolCallId, params: { action: "send", text } }, context);
        if (answer?.block) return answer.blockReason;
      }
      return MADE;
    };

    test("is made once by its key, and again by another one", async () => {
      assert.equal(await invoke("http-direct-operator-k1", "hello"), MADE);
      assert.match(await invoke("http-direct-operator-k1", "hello"), /^\[ALREADY MADE\] .*"message".*key/);
      assert.equal(await invoke("http-direct-operator-k2", "hello"), MADE, "how the first one ended nobody knows, and nobody is refused for it");
      assert.match(await invoke("http-direct-operator-k2", "hello"), /^\[ALREADY MADE\]/);
      const long = `http-direct-operator-${"k".repeat(5_000)}`;
      for (const id of ["rpc-delegated-k1", `${long}1`, `${long}2`]) {
        assert.equal(await invoke(id, "hello"), MADE);
        assert.match(await invoke(id, "hello"), /^\[ALREADY MADE\]/);
      }
    });

    test("is made by one of many that come at once", async () => {
      const answers = await Promise.all(Array.from({ length: 8 }, () => invoke("http-direct-operator-k3", "hello")));
      assert.equal(answers.filter((answer) => answer === MADE).length, 1, answers.join("\n"));
    });

    test("is not made by a key that another one had", async () => {
      assert.equal(await invoke("http-direct-operator-k4", "hello"), MADE);
      assert.match(await invoke("http-direct-operator-k4", "good bye"), /^\[KEY IN USE\]/);
      assert.equal(await invoke("http-direct-operator-k4", "good bye", "agent:main:other"), MADE, "a session has keys of its own");
    });

    test("is made as often as it is asked for without a key, for which the host takes the time", async () => {
      const now = Date.now();
      for (const [at, text] of [[now, "one"], [now, "two"], [now + 1, "one"], [now + 2, "one"]]) {
        assert.equal(await invoke(`http-direct-operator-${at}`, text), MADE, `${at} ${text}`);
      }
      // Also somebody's own key may be the time.
      assert.match(await invoke(`http-direct-operator-${now}`, "one"), /^\[ALREADY MADE\]/);
    });

    test("is known by what it says where the host tells how it ends", async () => {
      assert.equal(await invoke("mcp-1", "over MCP"), MADE);
      assert.match(await invoke("mcp-2", "over MCP"), /^\[ALREADY UNDER WAY\]/);
      const context = { sessionKey: "agent:main:main" };
      hosts[0].hook("after_tool_call", { toolName: "message", toolCallId: "mcp-1", result: { content: [{ type: "text", text: "sent as 7" }] } }, context);
      let answer;
      // The record is written by another thread.
      for (let n = 3; !/^\[ALREADY DONE\]/.test(answer); n++) {
        answer = await invoke(`mcp-${n}`, "over MCP");
        assert.ok(answer?.startsWith("[ALREADY"), answer);
      }
    });
  });

  test("what says or makes something is made once, what only looks or sets is not held up", async () => {
    const { hook } = hooksOf(guardPlugin, onceIn("actions"));
    const ask = async (action, toolCallId) => {
      const event = { toolName: "message", params: { action, target: "1" }, toolCallId, runId: "actions" };
      return (await hook("before_tool_call", event, { sessionKey: "actions", runId: "actions" }))?.blockReason;
    };
    const says = ["send", "reply", "thread-reply", "broadcast", "sendAttachment", "sendWithEffect", "upload-file", "poll", "sticker"];
    const makes = ["thread-create", "topic-create", "channel-create", "category-create", "event-create", "emoji-upload", "sticker-upload"];
    for (const action of [...says, ...makes, "nobody-knows", undefined]) {
      assert.equal(await ask(action, `${action} 1`), MADE, action);
      assert.match((await ask(action, `${action} 2`)) ?? "it was made again", /^\[ALREADY UNDER WAY\]/, action);
    }
    for (const action of ["read", "search", "permissions", "download-file", "list-pins", "pin", "unpin", "pin", "react", "edit", "delete", "set-presence"]) {
      assert.equal(await ask(action, `${action} 1`), MADE, action);
      assert.equal(await ask(action, `${action} 2`), MADE, action);
    }
  });

  test("a ledger is opened by its first claim, and not on the event loop", async () => {
    const dir = join(scratch, "lazily/ledger");
    const call = (callId) => ({ session: "s", turn: "t", tool: "message", args: "{}", callId });
    const ledger = new addon.OnceLedger(dir);
    assert.ok(!existsSync(dir), "nothing is on the disk yet");
    // In the way of the folder.
    await writeFile(join(scratch, "lazily"), "");
    const ledgers = [ledger, ledger, new addon.OnceLedger(dir)];
    for (const one of ledgers) await assert.rejects(one.claim(call("a"), WINDOWS), /holdfast: /);
    await rm(join(scratch, "lazily"));
    const kinds = await Promise.all(ledgers.map(async (one, n) => JSON.parse(await one.claim(call(`${n}`), WINDOWS)).kind));
    assert.deepEqual(kinds.sort(), ["granted", "inFlight", "inFlight"]);
  });

  test("calls that never end hold little memory, however long they are", () => {
    setFlagsFromString("--expose-gc");
    const collect = runInNewContext("gc");
    const { hook } = hooksOf(guardPlugin);
    const used = () => (collect(), process.memoryUsage().heapUsed);
    for (const [name, place] of [["no run", {}], ["a run", { runId: "endless" }]]) {
      const begun = used();
      for (let n = 0; n < CALLS; n++) {
        const params = { path: `${n}`, content: `${n} ${"x".repeat(CALL_CHARS)}` };
        const event = { toolName: "write", params, toolCallId: `http-direct-operator-${n}`, ...place };
        assert.equal(hook("before_tool_call", event, { sessionKey: `endless ${name}`, ...place }), undefined);
      }
      const grown = used() - begun;
      assert.ok(grown < GROWTH_BYTES_MAX, `${name}: ${grown} bytes`);
    }
  });

  test("an older host's calls are their own session's model's", async () => {
    const logPath = join(scratch, "old.log");
    const hosts = twice(guardPlugin, { version: "2026.2.26", config: { logPath } });
    // Such a host hands all registrations the same objects.
    const hook = (...args) => hosts.map((host) => host.hook(...args));
    const begin = (session, model) => hook("llm_input", { runId: `run ${session}`, provider: "rig", model }, { sessionKey: session });
    const fail = (session, ...ids) => {
      const context = { sessionKey: session };
      const content = ids.map((id) => ({ type: "toolCall", id, name: "read", arguments: {} }));
      hook("before_message_write", { message: { role: "assistant", content } }, context);
      for (const id of ids) {
        hook("before_tool_call", { toolName: "read", params: {} }, context);
        const message = { role: "toolResult", toolCallId: id, toolName: "read", isError: true, content: [{ type: "text", text: "no such file" }] };
        hook("tool_result_persist", { toolCallId: id, message }, context);
      }
    };
    begin("first", "one");
    begin("second", "two");
    fail("first", "call_1");
    fail("second", "call_2", "call_3");
    fail("first", "call_4");
    const entries = await lines(logPath, 4);
    const told = entries.map(({ sessionKey, modelId, toolCallId, action }) => [sessionKey, modelId, toolCallId, action]);
    assert.deepEqual(told, [
      ["first", "rig/one", "call_1", "continue"],
      ["second", "rig/two", "call_2", "continue"],
      ["second", "rig/two", "call_3", "loop-detected"],
      ["first", "rig/one", "call_4", "loop-detected"],
    ]);
  });

  test("an answer that could not be read counts once, however many registrations hear of it", () => {
    const hosts = twice(guardPlugin, { hears: true });
    const context = { sessionKey: "unreadable", runId: "unreadable" };
    for (const { hook } of hosts) hook("model_call_started", { ...context, provider: "rig", model: "m" });
    const prompts = [1, 2].map(() => {
      const message = { role: "assistant", stopReason: "error", errorMessage: "malformed tool call" };
      for (const { hook } of hosts) hook("before_message_write", { message }, context);
      return hosts.map(({ hook }) => hook("before_prompt_build", {}, context)?.prependContext ?? "").join("");
    });
    assert.doesNotMatch(prompts[0], /LOOP DETECTED/);
    assert.match(prompts[1], /\[LOOP DETECTED\].* failed 2 times/s);
  });

  test("an answer that could not be read is counted and logged also where the guard may not speak", async () => {
    const logPath = join(scratch, "unheard.log");
    const hosts = twice(guardPlugin, { config: { logPath } });
    const context = { sessionKey: "unheard", runId: "unheard" };
    for (const { hook } of hosts) hook("model_call_started", { ...context, provider: "rig", model: "m" });
    for (const n of [1, 2]) {
      const message = { role: "assistant", stopReason: "error", errorMessage: `malformed tool call ${n}` };
      for (const { hook } of hosts) hook("before_message_write", { message }, context);
    }
    assert.ok(!hosts[0].registered.includes("before_prompt_build"), "the host would refuse it");
    const entries = await lines(logPath, 2);
    assert.deepEqual(entries.map(({ modelId, action }) => [modelId, action]), [["rig/m", "continue"], ["rig/m", "loop-detected"]]);
  });

  test("wrong arguments, each time others, are told to be handed back from maxValidationAttempts on", () => {
    for (const [maxValidationAttempts, told] of [[3, [false, false, true, true]], [2, [false, true, true, true]]]) {
      const { hook } = hooksOf(guardPlugin, { config: { maxValidationAttempts } });
      const runId = `wrong ${maxValidationAttempts}`;
      const shown = [1, 2, 3, 4].map((n) => {
        const toolCallId = `${runId} ${n}`;
        hook("after_tool_call", { toolName: "read", params: { n }, toolCallId, runId }, { sessionKey: "wrong", runId });
        const message = { role: "toolResult", toolCallId, toolName: "read", isError: true, content: [{ type: "text", text: `Missing required parameter: ${n}` }] };
        hook("tool_result_persist", { toolCallId, message }, { sessionKey: "wrong" });
        return message.content[0].text;
      });
      assert.deepEqual(shown.map((text) => /wrong too often\. Do not try others: .*parent session/.test(text)), told, shown.join("\n"));
    }
  });

  test("a plugin that is switched off in its settings does nothing, and is on again with the next ones", async () => {
    const logPath = join(scratch, "off.log");
    const config = { enabled: false, logPath, onceTools: ["message"], statePath: join(scratch, "off") };
    const off = hooksOf(guardPlugin, { hears: true, config });
    const context = { sessionKey: "off", sessionId: "off", runId: "off" };
    const fail = ({ hook }, n) => {
      const toolCallId = `off ${n}`;
      hook("model_call_started", { ...context, model: "m" });
      const refused = hook("before_tool_call", { toolName: "read", params: {}, toolCallId, runId: "off" }, context);
      hook("after_tool_call", { toolName: "read", params: {}, toolCallId, runId: "off" }, context);
      const message = { role: "toolResult", toolCallId, toolName: "read", isError: true, content: [{ type: "text", text: "Missing required parameter: path" }] };
      hook("tool_result_persist", { toolCallId, message }, context);
      return [refused, message.content[0].text];
    };
    for (const n of [1, 2, 3, 4, 5, 6]) assert.deepEqual(fail(off, n), [undefined, "Missing required parameter: path"]);
    off.hook("before_message_write", { message: { role: "assistant", stopReason: "error", errorMessage: "malformed tool call" } }, context);
    assert.equal(off.hook("before_prompt_build", {}, context), undefined);
    for (const toolCallId of ["m1", "m2"]) {
      assert.equal(await off.hook("before_tool_call", { toolName: "message", params: { text: "x" }, toolCallId, runId: "off" }, context), undefined);
    }
    assert.deepEqual(hooksOf(guardPlugin, { config }).said, [], "nor does it say what it misses");
    const on = hooksOf(guardPlugin, { hears: true, config: { ...config, enabled: true } });
    assert.match(fail(on, 7)[1], /\[NON-RETRYABLE\]$/, "nothing was counted");
    assert.equal((await lines(logPath, 1)).length, 1, "and nothing logged");
    assert.ok(!existsSync(join(scratch, "off")), "and nothing recorded");
  });

  describe("a run that goes on after the guard's texts", () => {
    let host;
    before(() => (host = hooksOf(guardPlugin, { config: { endRunAfterIgnored: 2 } })));
    const began = (session, runId) => host.hook("model_call_started", { runId, sessionKey: session, model: "m" });
    let heard;
    /** The same failing call in five requests, after which the run is to be ended; says what was. */
    const goOn = async (session, { meanwhile = () => undefined, answer = () => undefined, begin = began } = {}) => {
      harness.answer = answer;
      const runId = `run of ${session}`;
      const context = { sessionKey: session, sessionId: `id of ${session}`, runId };
      heard = [];
      for (const n of [1, 2, 3, 4, 5]) {
        begin(session, runId);
        const toolCallId = `${session} ${n}`;
        host.hook("after_tool_call", { toolName: "read", params: {}, toolCallId, runId }, context);
        const message = { role: "toolResult", toolCallId, toolName: "read", isError: true, content: [{ type: "text", text: "Missing required parameter: path" }] };
        host.hook("tool_result_persist", { toolCallId, message }, context);
        heard.push(message.content.at(-1).text);
      }
      meanwhile();
      for (let rounds = 0; rounds < 5; rounds++) await setImmediate();
      return harness.aborted.filter((id) => id === `id of ${session}`).length;
    };

    test("is ended", async () => {
      assert.equal(await goOn("deaf"), 1);
      const told = heard.map((text) => /Answer now, with what you have/.test(text));
      assert.deepEqual(told, [false, false, false, true, false], "it is told once that it has to answer");
      assert.match(host.said.at(-1), /the run run of deaf went on after the guard's texts in 4 requests and is ended$/);
    });

    test("is ended also where the host says nothing of the requests that begin", async () => {
      const begin = (sessionKey) => {
        const message = { role: "assistant", content: [{ type: "toolCall", id: "x", name: "read", arguments: {} }] };
        host.hook("before_message_write", { message }, { sessionKey });
      };
      assert.equal(await goOn("unannounced", { begin }), 1);
      began("dropped", "an earlier run");
      assert.equal(await goOn("dropped", { begin }), 1, "not even of the run, and only of the one before");
      const once = (begun) => (sessionKey) => begun.has(sessionKey) || (begun.add(sessionKey), begin(sessionKey));
      assert.equal(await goOn("all at once", { begin: once(new Set()) }), 0, "of the calls of one answer none goes on after another");
    });

    test("and was not ended by the host is not said to be", async () => {
      assert.equal(await goOn("gone", { answer: () => false }), 1);
      assert.match(host.said.at(-1), /in 4 requests; OpenClaw did not end it/);
    });

    test("is left alone when it has ended by itself and another one is under way", async () => {
      assert.equal(await goOn("over", { meanwhile: () => began("over", "the next run") }), 0);
    });

    test("and can not be ended is no end of the host", async () => {
      const rejects = () => Promise.reject(new Error("no such run"));
      const throws = () => {
        throw new Error("no such run");
      };
      for (const answer of [rejects, throws]) {
        assert.equal(await goOn(answer.name, { answer }), 1);
        assert.match(host.said.at(-1), /in 4 requests; it could not be ended: no such run$/);
      }
    });
  });

  describe("a session that is broken before its runs", () => {
    const orphan = (toolCallId) => ({ role: "toolResult", toolCallId, toolName: "exec", content: [] });
    const messages = (...ids) => [{ role: "user", content: "go on" }, ...ids.map(orphan)];
    let hosts, state;
    before(() => {
      state = join(scratch, "state");
      process.env.OPENCLAW_STATE_DIR = state;
      hosts = twice(l0Plugin, { hears: true, config: { scanOnStart: false } });
    });
    const files = async () => (await readdir(join(state, "logs")).catch(() => [])).filter((name) => name.startsWith("l0-runtime-incident-"));
    const warnings = () => hosts.flatMap(({ said }) => said).filter((text) => text.includes("issues before a run")).length;
    /** What the model of a run is told. */
    const run = async (sessionKey, runId, ...ids) => {
      const event = { messages: messages(...ids) };
      const told = [];
      for (const { hook } of hosts) told.push(await hook("before_prompt_build", event, { sessionKey, ...(runId && { runId }) }));
      return told.flatMap((answer) => answer?.prependContext ?? []);
    };

    test("is told of once a run, and is an incident once until something else is broken", async () => {
      for (const n of [1, 2, 3]) assert.equal((await run("broken", `run ${n}`, "toolu_x")).length, 1, `run ${n}`);
      assert.deepEqual([(await files()).length, warnings()], [1, 1]);
      assert.equal((await run("broken", "run 4", "toolu_x", "toolu_y")).length, 1);
      assert.equal((await run("other", "run 5", "toolu_x")).length, 1);
      assert.deepEqual([(await files()).length, warnings()], [3, 3]);
      assert.deepEqual(await run("broken", "run 6"), [], "mended");
      assert.equal((await run("broken", "run 7", "toolu_x")).length, 1, "and broken again");
      assert.equal((await files()).length, 4);
    });

    test("is told of once also by a host that names no run", async () => {
      for (const n of [1, 2]) assert.equal((await run("unnamed", undefined, "toolu_x")).length, 1, `run ${n}`);
    });

    test("is told of also where no file can be written", async () => {
      await rm(join(state, "logs"), { recursive: true });
      await writeFile(join(state, "logs"), "in the way");
      const told = await run("unwritten", "run 8", "toolu_x");
      await rm(join(state, "logs"));
      assert.equal(told.length, 1);
      assert.match(hosts[0].said.join("\n"), /1 issues before a run of unwritten; no incident file could be written/);
    });

    test("is read in pages with rounds of the event loop between them, once a run, and not at all when it is too long", async () => {
      const entry = (n, message) => ({ type: "message", id: `e${n}`, parentId: n > 0 ? `e${n - 1}` : null, message });
      const words = (n) => entry(n, { role: "user", content: "x".repeat(2_000) });
      const session = (sessionKey, runId) => ({ sessionKey, sessionId: sessionKey, runId });
      const check = async (context) => {
        Object.assign(stored, { pages: [], whole: 0 });
        let [rounds, isOver] = [0, false];
        const round = () => isOver || (rounds++, setImmediate().then(round));
        setImmediate().then(round);
        const told = [];
        for (const { hook } of hosts) told.push(await hook("before_prompt_build", { messages: [] }, context));
        isOver = true;
        return { told: told.flatMap((answer) => answer?.prependContext ?? []), rounds };
      };
      stored.entries = [...Array.from({ length: 1_000 }, (_, n) => words(n)), entry(1_000, { role: "user", content: "y".repeat(1_000_000) }), entry(1_001, orphan("toolu_z"))];
      const { told, rounds } = await check(session("long", "long 1"));
      assert.equal(told.length, 1, "the last entry is looked at too");
      assert.equal(stored.whole, 0, "nothing is read whole");
      assert.equal(stored.pages.reduce((sum, { events }) => sum + events, 0), 1_002, "read once by two registrations");
      assert.ok(stored.pages.every(({ events, bytes }) => events <= 1 || (events <= 100 && bytes <= 131_072)), JSON.stringify(stored.pages));
      assert.ok(rounds >= stored.pages.length / 2, `${rounds} rounds, ${stored.pages.length} pages`);

      stored.entries = Array.from({ length: 6_000 }, (_, n) => words(n));
      assert.deepEqual((await check(session("too long", "long 2"))).told, []);
      const read = stored.pages.reduce((sum, { events }) => sum + events, 0);
      assert.ok(read > 5_000 && read < 5_200, `${read} entries`);
      await check(session("too long", "long 3"));
      assert.deepEqual(stored.pages, [], "it stays too long");
    });

    test("does not begin a scan where none is wanted", () => {
      assert.deepEqual(hosts.flatMap(({ said }) => said).filter((text) => /\d+ sessions, /.test(text)), []);
    });

    test("leaves a file for each of many that are found at once", async () => {
      const begun = (await files()).length;
      const text = JSON.stringify(messages("toolu_x"));
      const paths = await Promise.all(Array.from({ length: 40 }, (_, n) => addon.writeIncident(state, `at once ${n}`, text)));
      assert.equal(new Set(paths).size, 40);
      assert.equal((await files()).length, begun + 40);
      for (const path of paths) JSON.parse(await readFile(JSON.parse(path), "utf8"));
    });
  });
});
