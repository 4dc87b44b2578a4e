// Calls that are made once: how they end, which keys and settings count, and what the guard makes of an answer.

import assert from "node:assert/strict";
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { inspect } from "node:util";
import { hostIn } from "./rig/host.mjs";
import { lines } from "./rig/log.mjs";

const packages = join(process.env.HOLDFAST_OPENCLAW_CACHE, "packages");
const addon = createRequire(import.meta.url)(join(packages, "tool-guard/native/holdfast.linux-x64-gnu.node"));
const named = (tool, args) => ({ session: "s", turn: "t", tool, args: JSON.stringify(args), callId: "call_1" });
const MADE = undefined;
const LOOP = /\[LOOP DETECTED\] Tool "message" failed 2 times/;
/** What ends a run in the host, and which were. */
const harness = (globalThis.harness = { aborted: [] });

let scratch, hooksOf, plugin, readSettings;
before(async () => {
  scratch = await mkdtemp(join(tmpdir(), "holdfast-once-"));
  hooksOf = hostIn(scratch);
  const folder = join(scratch, "tool-guard");
  await cp(join(packages, "tool-guard"), folder, { recursive: true });
  await cp(join(import.meta.dirname, "rig/stand-in"), join(folder, "node_modules/openclaw"), { recursive: true });
  plugin = (await import(pathToFileURL(join(folder, "dist/tool-guard/index.js")))).default;
  ({ readSettings } = await import(pathToFileURL(join(folder, "dist/tool-guard/settings.js"))));
});
after(() => rm(scratch, { recursive: true, force: true }));

describe(`on Node ${process.version}`, () => {
  test("a call is made again only when it is certain that nothing was sent", async () => {
    const { Once } = await import(pathToFileURL(join(packages, "tool-guard/dist/tool-guard/once.js")));
    const ledger = new Once(addon);
    const settings = { unknownMs: 600_000, echoMs: 30_000, dir: join(scratch, "endings") };
    for (const [n, [ended, expected]] of endings.entries()) {
      const said = inspect(ended);
      const params = { action: "send", text: String(n), ...ended.params };
      const ask = (id) => ledger.before(id, "run/1", { ...named("message", params), callId: id }, settings);
      assert.equal(await ask(`a${n}`), undefined, said);
      await ledger.after(`a${n}`, { toolName: "message", ...ended, params });
      const answer = await ask(`b${n}`);
      if (expected === MADE_AGAIN) assert.equal(answer, undefined, said);
      else assert.match(answer ?? "it was made again", expected, said);
    }
  });

  describe("what is answered from the record", () => {
    let hosts, number = 0;
    const config = (more) => ({ onceTools: ["message"], statePath: join(scratch, "answered"), ...more });
    before(() => (hosts = [hooksOf(plugin, { config: config() }), hooksOf(plugin, { config: config() })]));
    /** One request of a run's model with such calls in it, as the host tells of it; what the model reads of each. */
    const request = async (runId, ...texts) => {
      const context = { sessionKey: "answered", sessionId: `id of ${runId}`, runId };
      for (const { hook } of hosts) hook("model_call_started", { ...context, provider: "rig", model: "m" });
      const shown = [];
      for (const text of texts) {
        const toolCallId = `call ${++number}`;
        const event = { toolName: "message", params: { action: "send", text }, toolCallId, runId };
        let refused;
        for (const { hook } of hosts) refused ??= (await hook("before_tool_call", event, context))?.blockReason;
        const content = [{ type: "text", text: refused ?? `sent as ${number}` }];
        const details = refused === undefined ? { ok: true } : { status: "blocked", deniedReason: "plugin-before-tool-call" };
        for (const { hook } of hosts) hook("after_tool_call", { ...event, result: { content, details } }, context);
        const message = { role: "toolResult", toolCallId, toolName: "message", isError: refused !== undefined, details, content };
        for (const { hook } of hosts) hook("tool_result_persist", { toolCallId, message }, { sessionKey: "answered" });
        shown.push(content[0].text);
        // The record is written by another thread.
        if (refused === undefined) while (!/^\[ALREADY DONE\]/.test(await peek(text)));
      }
      return shown;
    };
    const peek = async (text) => {
      const event = { toolName: "message", params: { action: "send", text }, toolCallId: `mcp-${++number}` };
      return (await hosts[0].hook("before_tool_call", event, { sessionKey: "answered" }))?.blockReason;
    };
    const ended = async (runId) => {
      for (let rounds = 0; rounds < 5; rounds++) await setImmediate();
      return harness.aborted.includes(`id of ${runId}`);
    };

    test("ends a run that asks for it for ever", async () => {
      assert.deepEqual(await request("ever", "again"), ["sent as 1"]);
      const seen = [];
      while (seen.length < 10 && !(await ended("ever"))) seen.push(...(await request("ever", "again")));
      assert.match(seen[0], /^\[ALREADY DONE\]/);
      assert.doesNotMatch(seen[0], LOOP);
      assert.match(seen[1], LOOP, "the second answer");
      assert.ok(seen.length <= 5, `${seen.length} more requests`);
    });

    test("is nothing to a run that does another one's work again", async () => {
      const texts = Array.from({ length: 8 }, (_, n) => `work ${n}`);
      for (const text of texts) await request("first", text);
      for (const text of texts) {
        const [shown] = await request("second", text);
        assert.match(shown, /^\[ALREADY DONE\]/);
        assert.doesNotMatch(shown, /LOOP DETECTED|TOOL ERROR LIMIT/);
      }
      assert.equal((await request("second", "something new"))[0].slice(0, 7), "sent as");
      assert.equal(await ended("second"), false);
    });

    test("and could not be recorded is a failure each time", async () => {
      await writeFile(join(scratch, "in the way"), "");
      const logPath = join(scratch, "not-made.log");
      hosts = [hooksOf(plugin, { config: config({ statePath: join(scratch, "in the way/ledger"), logPath }) })];
      const seen = [];
      for (const text of ["a", "b", "c", "d", "e"]) seen.push(...(await request("no ledger", text)));
      assert.ok(seen.every((text) => text.startsWith("[NOT MADE]")), seen.join("\n"));
      assert.match(seen[4], /\[TOOL ERROR LIMIT\] 5 tool failures/);
      assert.equal((await lines(logPath, 5))[0].error, "[NOT MADE]");
    });
  });

  const ask = async (host, id, params, context) =>
    (await host.hook("before_tool_call", { toolName: "message", params, toolCallId: id, ...(context.runId && { runId: context.runId }) }, context))?.blockReason;

  test("a call that the guard can not read is not made without its record", async () => {
    const host = hooksOf(plugin, { config: { onceTools: ["message"], statePath: join(scratch, "deep") } });
    let deep = "x";
    for (let n = 0; n < 50_000; n++) deep = [deep];
    const answer = await ask(host, "deep 1", { action: "send", text: deep }, { sessionKey: "deep", runId: "deep" });
    assert.match(answer ?? "it was made", /^\[NOT MADE\]/);
    const reading = { toolName: "read", params: { path: deep }, toolCallId: "deep 2", runId: "deep" };
    assert.equal(await host.hook("before_tool_call", reading, { sessionKey: "deep", runId: "deep" }), undefined, "what has no effect is let through");
  });

  test("a run without a session's key is guarded too", async () => {
    const { hook } = hooksOf(plugin);
    const shown = [1, 2].map((n) => {
      const toolCallId = `keyless ${n}`;
      hook("after_tool_call", { toolName: "read", params: {}, toolCallId, runId: "keyless" }, { sessionId: "keyless", runId: "keyless" });
      const message = { role: "toolResult", toolCallId, toolName: "read", isError: true, content: [{ type: "text", text: "Missing required parameter: path" }] };
      hook("tool_result_persist", { toolCallId, message }, {});
      return message.content[0].text;
    });
    assert.match(shown[1], /\[LOOP DETECTED\]/);
  });

  test("a key that somebody made of a time is theirs, and one that the host makes up is none", async () => {
    const host = hooksOf(plugin, { config: { onceTools: ["message"], statePath: join(scratch, "times") } });
    const invoke = (id, text) => ask(host, `http-direct-operator-${id}`, { action: "send", text }, { sessionKey: "times", toolCallId: `${id} ${text}` });
    const now = Date.now();
    for (const text of ["one", "two"]) assert.equal(await invoke(`${now}`, text), MADE, "two calls of one millisecond");
    // However long ago: what a key stands for must not depend on when it is asked with.
    for (const order of [now, now - 86_400_000]) {
      assert.equal(await invoke(`order-${order}`, "one"), MADE);
      assert.match((await invoke(`order-${order}`, "two")) ?? "it was made", /^\[KEY IN USE\]/);
    }
  });

  test("a record that is kept elsewhere from now on is looked for there, and what was begun ends where it began", async () => {
    const at = (name) => hooksOf(plugin, { config: { onceTools: [" message "], statePath: join(scratch, name) } });
    const send = (host, id) => ask(host, id, { action: "send", text: "moved" }, { sessionKey: "moved", runId: "moved" });
    const first = at("here");
    assert.equal(await send(first, "m1"), MADE);
    assert.match(await send(first, "m2"), /^\[ALREADY UNDER WAY\]/);
    const moved = at("there");
    assert.equal(await send(moved, "m3"), MADE);
    moved.hook("after_tool_call", { toolName: "message", toolCallId: "m1", runId: "moved", result: { content: worded("sent as 1") } }, { sessionKey: "moved", runId: "moved" });
    const back = at("here");
    let answer;
    for (let n = 4; !/^\[ALREADY DONE\]/.test(answer); n++) {
      answer = await send(back, `m${n}`);
      assert.ok(answer?.startsWith("[ALREADY"), answer);
    }
  });

  test("whatever the schema lets pass for the windows holds, and what it does not is a day", async () => {
    const { configSchema } = JSON.parse(await readFile(join(packages, "tool-guard/openclaw.plugin.json"), "utf8"));
    for (const name of ["onceUnknownMs", "onceEchoMs"]) {
      const { minimum, maximum } = configSchema.properties[name];
      for (const [n, [given, isAnswered]] of [[minimum, false], [maximum, true], [2 ** 32, true], [31_536_000_000, true]].entries()) {
        const { once } = readSettings({ [name]: given, statePath: join(scratch, "windows") }, {});
        const ledger = new addon.OnceLedger(once.dir);
        const claim = async (callId) => JSON.parse(await ledger.claim({ ...named("message", { text: `${name} ${n}` }), callId }, once));
        const first = await claim("a");
        assert.equal(first.kind, "granted");
        await ledger.finish(JSON.stringify(first.claim), name === "onceEchoMs" ? "done" : "unknown", "?");
        assert.equal((await claim("b")).kind, isAnswered ? "ended" : "granted", `${name} ${given}`);
      }
    }
  });
});

/** What a host may say when a call of `message` has ended, and what becomes of the same call when it is asked again. */
const SENT = /^\[ALREADY DONE\]/;
const DOUBT = /^\[OUTCOME UNKNOWN\]/;
const MADE_AGAIN = undefined;
const REFUSED = "Call to 'sendMessage' failed! (429: Too Many Requests: retry after 5)";
const worded = (text) => [{ type: "text", text }];
const endings = [
  [{ result: { content: worded("sent as 7") } }, SENT],
  [{ result: { content: worded("sent as 7"), details: { ok: true, status: "sent" } } }, SENT],
  // The host keeps it, and may send it or not.
  [{ result: { content: worded('{"status":"delivery_queued","delivered":false,"message":"Delivery is pending"}') } }, DOUBT],
  [{ result: { content: worded("pending"), details: { status: "delivery_queued", delivered: false } } }, DOUBT],
  [{ result: { content: worded('{"delivered":true,"messageId":7}') } }, SENT],
  // Something may have left.
  [{ error: "invalid json response body at https://api.telegram.org/bot1:x/sendMessage reason: Unexpected end" }, DOUBT],
  [{ error: "502 Bad Gateway: invalid response from upstream" }, DOUBT],
  [{ error: "timeout of 400 ms exceeded" }, DOUBT],
  [{ error: "Request timed out while status 404 was read" }, DOUBT],
  [{ error: "socket hang up" }, DOUBT],
  [{ error: "read ECONNRESET" }, DOUBT],
  [{ error: "write EPIPE" }, DOUBT],
  [{ error: "This operation was aborted" }, DOUBT],
  [{ error: "HTTP 503" }, DOUBT],
  [{ error: "the required field was not found in the answer" }, DOUBT],
  [{ error: "message 404 of 429 failed" }, DOUBT],
  [{ error: "something else" }, DOUBT],
  // Only the result tells.
  [{ result: { isError: true, content: worded("something else") } }, DOUBT],
  [{ result: { content: worded("?"), details: { status: "error" } } }, DOUBT],
  [{ result: { content: worded("?"), details: { status: "timeout", error: "HTTP 404" } } }, DOUBT],
  [{ result: { content: worded("?"), details: { ok: false } } }, DOUBT],
  [{ error: "HTTP 404", result: { content: worded("?"), details: { timedOut: true } } }, DOUBT],
  [{ error: "HTTP 429", params: { action: "broadcast" } }, DOUBT],
  // A part has arrived; the error is only that of the next one.
  [{ result: { content: worded(REFUSED), details: { status: "error", error: REFUSED, gatewayCode: "CHANNEL_PARTIAL_DELIVERY" } } }, DOUBT],
  [{ error: REFUSED, result: { content: worded("?"), details: { ok: false, deliveryStatus: "partial_failed", sentBeforeError: true, error: REFUSED } } }, DOUBT],
  [{ result: { content: worded(JSON.stringify({ ok: false, deliveryStatus: "partial_failed", error: REFUSED })), details: { status: "error", error: REFUSED } } }, DOUBT],
  [{ result: { content: worded("?"), details: { ok: false, sentBeforeError: true, error: REFUSED } } }, DOUBT],
  [{ result: { content: worded("?"), details: { ok: true, status: "partial_failed" } } }, DOUBT],
  [{ error: Object.assign(new Error(REFUSED), { code: "CHANNEL_PARTIAL_DELIVERY", visibleReplySent: true }) }, DOUBT],
  // It may have been sent in several parts, of which nobody says a word.
  [{ error: REFUSED, params: { message: "x".repeat(301) } }, DOUBT],
  [{ error: REFUSED, params: { message: "one\n\ntwo" } }, DOUBT],
  [{ error: REFUSED, params: { message: "hello", media: "./photo.jpg" } }, DOUBT],
  [{ error: REFUSED, params: { message: "hello", attachments: [{ media: "a" }] } }, DOUBT],
  [{ error: "connect ECONNREFUSED 127.0.0.1:443", params: { message: "hello", buffer: "aGVsbG8=" } }, DOUBT],
  [{ error: REFUSED, params: { message: "hello", media: "", attachments: [], silent: true, replyTo: "7" } }, MADE_AGAIN],
  // The tool's own words: it ran.
  [{ result: { content: worded("?"), details: { status: "blocked" } } }, DOUBT],
  // The host, or whom it asked, did not let it run.
  [{ result: { content: worded("Approval timed out"), details: { status: "blocked", deniedReason: "plugin-approval" } } }, MADE_AGAIN],
  [{ result: { content: worded("not today"), details: { status: "blocked", deniedReason: "plugin-before-tool-call" } } }, MADE_AGAIN],
  [{ result: { isError: true, content: worded("Skipped"), details: { status: "skipped", deniedReason: "steering" } } }, MADE_AGAIN],
  [{ result: { content: [], details: { status: "skipped", deniedReason: "internal-dispose" } } }, MADE_AGAIN],
  [{ error: "Denied by user", result: { content: worded("Denied by user"), details: { status: "blocked", deniedReason: "plugin-approval" } } }, MADE_AGAIN],
  // Nothing has left.
  [{ error: 'Invalid arguments for tool "message": text is required' }, MADE_AGAIN],
  [{ error: 'Validation failed for tool "message":\n{"timeout": 1}' }, MADE_AGAIN],
  [{ error: "connect ECONNREFUSED 127.0.0.1:443" }, MADE_AGAIN],
  [{ error: new Error("getaddrinfo ENOTFOUND api.telegram.org") }, MADE_AGAIN],
  [{ error: "getaddrinfo EAI_AGAIN api.telegram.org" }, MADE_AGAIN],
  [{ error: "HTTP 401" }, MADE_AGAIN],
  [{ error: "Request failed with status code 403" }, MADE_AGAIN],
  [{ error: "Call to 'sendMessage' failed! (400: Bad Request: chat not found)" }, MADE_AGAIN],
  [{ result: { isError: true, content: worded("refused"), details: { status: "error", error: "status: 429" } } }, MADE_AGAIN],
];
