// Loops, played to the real OpenClaw with and without the plugin.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { REQUESTS_MAX, resultsOf } from "./rig/model.mjs";
import { findings, loading, startSession, told } from "./rig/session.mjs";

/** A run has to end by itself within this many requests. */
const REQUESTS_ALLOWED = 7;
/** And within this time; where the machine is so busy that a turn of one request takes long, in so much more of it. */
const ENDED_WITHIN_MS = 10_000;
const LOOP = /\[LOOP DETECTED\]/;

const again = (name, args) => () => ({ calls: [{ name, arguments: args }] });
const ranInto = (file) => `echo ran >> ${file}; echo no; exit 3`;

/** Each loop: what the model says for ever, and in which of its requests the second answer can be seen. */
const loops = {
  "read-empty": { script: again("read", {}), second: 3 },
  "unknown-tool": { script: again("raed", { path: "x" }), second: 3 },
  "null-arguments": { script: again("read", "null"), second: 3 },
  "wrong-types": { script: again("read", { path: { a: 1 } }), second: 3 },
  "malformed-json": { script: again("read", '{"path": "x'), second: 3 },
  "failing-exec": { script: again("exec", { command: ranInto("failing") }), second: 3, ran: ["failing"] },
  "nested-call": { script: again("tool_call", { id: "web_fetch", args: {} }), second: 3 },
  "missing-file": { script: again("read", { path: "nowhere.txt" }), second: 3 },
  "key-order": {
    script: ({ number }) => ({
      calls: [{ name: "read", arguments: number % 2 ? '{"limit":3,"path":"no"}' : '{"path":"no","limit":3}' }],
    }),
    second: 3,
  },
  "ping-pong": {
    script: ({ number }) => ({ calls: [{ name: "read", arguments: { path: number % 2 ? "ping" : "pong" } }] }),
    second: 4,
  },
  "ping-pong-exec": {
    script: ({ number }) => ({
      calls: [{ name: "exec", arguments: { command: ranInto(number % 2 ? "ping" : "pong") } }],
    }),
    second: 4,
    // A command that says no is no failure of the turn, and the first text comes a request later.
    requests: 8,
    ran: ["ping", "pong"],
  },
  "two-at-once": {
    script: () => ({ calls: [{ name: "read", arguments: {} }, { name: "read", arguments: { path: "no" } }] }),
    second: 3,
  },
};
const missing = (count) => Array.from({ length: count }, (_, n) => ({ name: "read", arguments: { path: `missing-${n}` } }));
const fine = { name: "exec", arguments: { command: "echo fine" } };
/** Calls of one request: more failures than a turn has, before the model could read a word of it. */
const atOnce = {
  "six-at-once": missing(6),
  "five-at-once-and-one-that-works": [...missing(5), fine],
  "the-same-six-times-at-once": Array.from({ length: 6 }, () => ({ name: "read", arguments: {} })),
};
const scripts = {
  ...Object.fromEntries(Object.entries(loops).map(([name, loop]) => [name, loop.script])),
  ...Object.fromEntries(
    Object.entries(atOnce).map(([name, calls]) => [name, ({ number }) => (number === 1 ? { calls } : { text: `read ${name}` })]),
  ),
  "six-for-ever": () => ({ calls: missing(6) }),
  "next-turn": ({ number }) => (number === 1 ? { calls: [{ name: "read", arguments: {} }] } : { text: "enough" }),
};
/** What a request showed the model last, shortened; behind it OpenClaw puts a message of its own. */
const heard = (request) => {
  const text = told(request).at(-1).includes("<<<BEGIN_OPENCLAW") ? told(request).at(-2) : told(request).at(-1);
  return JSON.stringify(text.length > 160 ? `${text.slice(0, 60)} … ${text.slice(-100)}` : text);
};
const lines = async (file) => (await readFile(file, "utf8").catch(() => "")).split("\n").length - 1;

/** What is wrong with a store, without where: what OpenClaw itself stores askew is the same with and without us. */
const faults = async (home) => new Set((await findings(home)).map((found) => found.type));

describe("without the plugin", () => {
  let session;
  before(async () => {
    session = await startSession(scripts);
  });
  after(() => session?.stop());

  for (const name of ["read-empty", "failing-exec", "ping-pong", "wrong-types", "key-order"]) {
    test(`${name} goes on until the rig ends it`, async () => {
      const { tookMs } = await session.say(name);
      const requests = session.model.requests(name);
      assert.ok(requests.length > REQUESTS_MAX, `${requests.length} requests`);
      console.log(`${name}: ${requests.length} requests (then the rig ended it), ${tookMs} ms`);
    });
  }

  // What OpenClaw has of its own.
  for (const [name, count] of [["unknown-tool", 11], ["null-arguments", 4], ["malformed-json", 4]]) {
    test(`${name} is ended by OpenClaw after ${count} requests`, async () => {
      const { tookMs } = await session.say(name);
      const requests = session.model.requests(name);
      console.log(`${name}: ${requests.length} requests, ${tookMs} ms`);
      assert.equal(requests.length, count);
      assert.doesNotMatch(told(requests.at(-1)).join("\n"), LOOP);
    });
  }

  test("OpenClaw itself stores the results of unknown tools without their calls", async () => {
    assert.deepEqual(await faults(session.home), new Set(["orphaned_tool_result"]));
  });
});

describe("with the plugin where it may not hear what is said", () => {
  let session;
  before(async () => {
    const plugins = loading("tool-guard");
    delete plugins.entries["tool-guard"].hooks;
    session = await startSession(scripts, { plugins });
  });
  after(() => session?.stop());

  test("calls that are no JSON are counted and logged, and no model is told", async () => {
    await session.say("malformed-json");
    const requests = session.model.requests("malformed-json");
    assert.equal(requests.length, 4, "OpenClaw ends it as it does without");
    assert.doesNotMatch(told(requests.at(-1)).join("\n"), LOOP);
    const log = await readFile(join(session.home.home, ".openclaw/tool-guard.log"), "utf8");
    const entries = log.trim().split("\n").map((line) => JSON.parse(line));
    assert.deepEqual(entries.map(({ modelId, action }) => [modelId, action]), [
      ["rig/scripted", "continue"],
      ...Array.from({ length: requests.length - 1 }, () => ["rig/scripted", "loop-detected"]),
    ]);
  });

  test("a loop ends by itself", async () => {
    await session.say("read-empty");
    assert.ok(session.model.requests("read-empty").length <= REQUESTS_ALLOWED);
  });
});

describe("with the plugin", () => {
  let session;
  before(async () => {
    session = await startSession(scripts, { plugins: loading("tool-guard") });
  });
  after(() => session?.stop());

  for (const [name, loop] of Object.entries(loops)) {
    test(`${name} ends by itself`, async () => {
      const pace = await session.say("warm");
      const { tookMs } = await session.say(name);
      const requests = session.model.requests(name);
      console.log(`${name}: ${requests.length} requests, ${tookMs} ms\n${requests.map((request, at) => `  ${at + 1}. ${heard(request)}`).join("\n")}`);
      assert.ok(requests.length <= (loop.requests ?? REQUESTS_ALLOWED), `${requests.length} requests`);
      const allowedMs = Math.max(ENDED_WITHIN_MS, 2 * REQUESTS_ALLOWED * pace.tookMs);
      if (allowedMs > ENDED_WITHIN_MS) console.log(`${name}: this machine is slow (one turn: ${pace.tookMs} ms), so that ${allowedMs} ms are allowed`);
      assert.ok(tookMs < allowedMs, `${tookMs} ms, ${allowedMs} allowed`);
      const seen = told(requests[loop.second - 1]).join("\n");
      assert.match(seen, LOOP, "the second answer says that it is a loop");
      assert.doesNotMatch(told(requests[loop.second - 2]).join("\n"), LOOP, "the first answer does not");
      for (const file of loop.ran ?? []) assert.equal(await lines(join(session.home.workspace, file)), 2, "executed twice, then never");
    });
  }

  for (const [name, calls] of Object.entries(atOnce)) {
    test(`${name}: the model reads what came of it and has the last word`, async () => {
      const answer = await session.say(name);
      const requests = session.model.requests(name);
      assert.equal(requests.length, 2);
      assert.equal(resultsOf(requests[1].messages).length, calls.length);
      const heardOf = told(requests[1]).join("\n");
      if (name === "the-same-six-times-at-once") assert.match(heardOf, LOOP);
      else assert.doesNotMatch(heardOf, /\[TOOL ERROR LIMIT\]/, "what one response sent together counts once");
      assert.equal(answer.text, `read ${name}`);
    });
  }

  test("six at once again and again end by themselves", async () => {
    const { tookMs } = await session.say("six-for-ever");
    const requests = session.model.requests("six-for-ever");
    console.log(`six-for-ever: ${requests.length} requests, ${tookMs} ms`);
    assert.ok(requests.length >= 2, "the model reads the guard's words once");
    assert.ok(requests.length <= REQUESTS_ALLOWED, `${requests.length} requests`);
  });

  test("the model reads what the specification says, word for word", () => {
    const [first, second] = resultsOf(session.model.requests("read-empty")[2].messages);
    const error = 'Validation failed for tool "read":\n  - path: must have required properties path\n\nReceived arguments:\n{}';
    assert.equal(first, `${error} [NON-RETRYABLE]`);
    assert.equal(
      second,
      `${error} [NON-RETRYABLE]\n[LOOP DETECTED] Tool "read" failed 2 times with identical arguments.\n` +
        "This is a non-retryable error. Do NOT retry this call.\nTry a different approach or report the issue.",
    );
  });

  test("counts end with the turn: the same call fails for the first time in the next one", async () => {
    const answer = await session.say("next-turn", "agent:main:read-empty");
    const last = resultsOf(session.model.requests("next-turn")[1].messages).at(-1);
    assert.match(last, /\[NON-RETRYABLE\]$/);
    assert.equal(answer.text, "enough");
  });

  test("the fifth failure of a turn is the last", () => {
    const last = resultsOf(session.model.requests("ping-pong").at(-1).messages).at(-1);
    assert.match(last, /\[TOOL ERROR LIMIT\] 5 tool failures in this turn\.\nStopping tool execution\./);
  });

  test("every run that was ended left a valid transcript", async () => {
    await session.stopGateway();
    // The orphans of unknown tools are OpenClaw's own doing; see above.
    assert.deepEqual(await faults(session.home), new Set(["orphaned_tool_result"]));
    const orphans = (await findings(session.home)).map((found) => found.id);
    assert.ok(orphans.every((id) => id.startsWith("call_unknown-tool_")), String(orphans));
  });

  test("the log says which model made which malformed call", async () => {
    const log = await readFile(join(session.home.home, ".openclaw/tool-guard.log"), "utf8");
    const entries = log.trim().split("\n").map((line) => JSON.parse(line));
    const first = entries.find((entry) => entry.toolCallId === "call_read-empty_1_0");
    assert.equal(first.modelId, "rig/scripted");
    assert.equal(first.tool, "read");
    assert.deepEqual(first.args, {});
    assert.equal(first.errorType, "invalid_arguments");
    assert.equal(first.action, "continue");
    assert.equal(entries.find((entry) => entry.toolCallId === "call_read-empty_2_0").action, "loop-detected");
    assert.ok(!Number.isNaN(Date.parse(first.timestamp)));
  });
});
