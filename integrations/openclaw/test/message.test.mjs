// A message that is asked for twice, because whoever asked gave up waiting and asked again: sent once.
//
// OpenClaw's own `message` tool and its own Telegram channel, with a receiving end of ours on loopback.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { after, before, describe, test } from "node:test";
import { textOf } from "./rig/model.mjs";
import { TOKEN, turn } from "./rig/openclaw.mjs";
import { loading, startSession, told } from "./rig/session.mjs";

const CHAT = "424242";

/** Telegram's end: notes what arrives, and keeps its answers to what is held back until it is let go. */
async function startReceiver() {
  const received = [];
  const holds = new Map();
  const refused = new Set();
  const server = createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const method = request.url.split("/").at(-1).split("?")[0];
    const answer = (result) => {
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ ok: true, result }));
    };
    if (method === "getMe") return answer({ id: 1, is_bot: true, first_name: "Rig", username: "rig_bot" });
    if (method === "getUpdates") return setTimeout(() => answer([]), 1000).unref();
    if (method !== "sendMessage") return answer(true);
    const { chat_id, text } = JSON.parse(Buffer.concat(chunks).toString());
    if ([...refused].some((word) => text.includes(word))) {
      response.statusCode = 400;
      response.setHeader("content-type", "application/json");
      return response.end(JSON.stringify({ ok: false, error_code: 400, description: "Bad Request: TOPIC_CLOSED" }));
    }
    received.push(text);
    const number = received.length;
    holds.get(text)?.arrived();
    await holds.get(text)?.over;
    return answer({ message_id: number, date: 1, chat: { id: chat_id, type: "private" }, text });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    /** How often a text came. */
    count: (text) => received.filter((one) => one === text).length,
    /** How often a text came with such a word in it. */
    having: (word) => received.filter((one) => one.includes(word)).length,
    /** Says no to texts with such a word in them. */
    refuse: (word) => refused.add(word),
    /** Holds the answers to a text back; `first` is when it has come. */
    hold(text) {
      let arrived, letGo;
      const first = new Promise((resolve) => (arrived = resolve));
      const over = new Promise((resolve) => (letGo = resolve));
      holds.set(text, { arrived, over });
      return { first, letGo };
    },
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** Sends the text that it is asked for, and is content when there is a result. */
function script({ messages }) {
  const asked = messages.findLastIndex((message) => message.role === "user" && textOf(message).includes("[[script:"));
  if (messages.slice(asked).some((message) => message.role === "tool")) return { text: "sent" };
  const [, message] = /tell them: ([^.]*\.)/.exec(textOf(messages[asked]));
  const args = { action: "send", channel: "telegram", target: CHAT, message };
  return { calls: [{ name: "tool_call", arguments: { id: "message", args } }] };
}

/** Sends the same text for ever, whatever it is told. */
function forEver() {
  return { calls: [{ name: "tool_call", arguments: { id: "message", args: { action: "send", channel: "telegram", target: CHAT, message: WORDS.ever } } }] };
}

/** A gateway with the channel, and which tools are made once. */
async function start(onceTools) {
  const receiver = await startReceiver();
  const plugins = loading("tool-guard");
  plugins.entries["tool-guard"].config = { onceTools };
  plugins.allow.push("telegram");
  plugins.entries.telegram = { enabled: true };
  const channels = { telegram: { enabled: true, botToken: "1:rig", apiRoot: receiver.url, dmPolicy: "open", allowFrom: ["*"] } };
  const session = await startSession({ send: script, ever: forEver }, { plugins, channels }).catch(async (error) => {
    await receiver.stop();
    throw error;
  });
  return {
    receiver,
    session,
    /** Has the agent send a text; the answer, and what the model was shown last. */
    async ask(text, signal) {
      const { text: answer } = await turn(session.gateway(), `[[script:send]] tell them: ${text}`, { session: `agent:main:${text.length}`, signal });
      return { answer, shown: told(session.model.requests("send").at(-1)).join("\n") };
    },
    /** Sends a text over HTTP: the status, and what is wrong. */
    async invoke(text, idempotencyKey, signal) {
      const response = await fetch(`${session.gateway().url}/tools/invoke`, {
        method: "POST",
        headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
        body: JSON.stringify({ tool: "message", args: { action: "send", channel: "telegram", target: CHAT, message: text }, idempotencyKey }),
        signal,
      });
      const { error } = await response.json();
      return { status: response.status, why: error?.message };
    },
    async stop() {
      await session.stop();
      await receiver.stop();
    },
  };
}

/** Asks, gives up as soon as the message is out, and asks again, before or after the other side has answered. */
async function askTwice({ receiver }, text, ask, { answered }) {
  const { first, letGo } = receiver.hold(text);
  try {
    const impatient = new AbortController();
    const lost = ask(impatient.signal).catch(() => "gave up");
    await first;
    impatient.abort();
    assert.equal(await lost, "gave up");
    // A message to a chat waits for the one before it.
    if (answered) letGo();
    return await ask();
  } finally {
    letGo();
  }
}

const WORDS = { run: "The invoice is paid.", done: "The parcel has arrived.", http: "The train is late.", keyless: "The door is open.", ever: "Are you there?" };
/** Longer than a message of the channel's may be, so that it is sent in two. */
const STORY = `Once upon a time ${"there was a long road and somebody on it ".repeat(150)} and they lived happily ever after.`;
/** A run has to end by itself within this many requests. */
const REQUESTS_ALLOWED = 7;

describe("without the record", () => {
  let gateway;
  before(async () => (gateway = await start([])));
  after(() => gateway?.stop());

  test("a message that is asked for again after a timeout arrives twice", async () => {
    await askTwice(gateway, WORDS.run, (signal) => gateway.ask(WORDS.run, signal), { answered: true });
    assert.equal(gateway.receiver.count(WORDS.run), 2);
  });

  test("over HTTP too, with the same key", async () => {
    const again = await askTwice(gateway, WORDS.http, (signal) => gateway.invoke(WORDS.http, "k1", signal), { answered: true });
    assert.equal(again.status, 200);
    assert.equal(gateway.receiver.count(WORDS.http), 2);
  });
});

describe("with it", () => {
  let gateway;
  before(async () => (gateway = await start(["message"])));
  after(() => gateway?.stop());

  test("a message that is asked for again after a timeout arrives once, and the model is told that nobody knows", async () => {
    const { answer, shown } = await askTwice(gateway, WORDS.run, (signal) => gateway.ask(WORDS.run, signal), { answered: false });
    assert.equal(gateway.receiver.count(WORDS.run), 1);
    assert.match(shown, /\[OUTCOME UNKNOWN\] This same call of \\*"message\\*" was made \d+ s ago and nobody knows whether it took effect \(Aborted\)/);
    assert.equal(answer, "sent");
  });

  test("one that has arrived is not sent again, and the model is told so", async () => {
    const first = await gateway.ask(WORDS.done);
    assert.doesNotMatch(first.shown, /ALREADY|UNKNOWN/);
    const { shown } = await gateway.ask(WORDS.done);
    assert.equal(gateway.receiver.count(WORDS.done), 1);
    assert.match(shown, /\[ALREADY DONE\] This same call of \\*"message\\*" was made \d+ s ago and worked/);
  });

  test("one of which a part has arrived is not sent again", async () => {
    gateway.receiver.refuse("happily ever after");
    const first = await gateway.ask(STORY);
    assert.match(first.shown, /TOPIC_CLOSED/);
    assert.equal(gateway.receiver.having("Once upon a time"), 1, "the first part arrived");
    const { shown } = await gateway.ask(STORY);
    assert.equal(gateway.receiver.having("Once upon a time"), 1, "and did not arrive again");
    assert.match(shown, /\[OUTCOME UNKNOWN\]/);
  });

  test("a model that sends the same for ever is told so, and its run is ended", async () => {
    await gateway.session.say("ever");
    const requests = gateway.session.model.requests("ever");
    assert.equal(gateway.receiver.count(WORDS.ever), 1);
    assert.ok(requests.length <= REQUESTS_ALLOWED, `${requests.length} requests`);
    assert.match(told(requests[3]).join("\n"), /\[ALREADY DONE\][^]*\[LOOP DETECTED\] Tool \\*"message\\*" failed 2 times/);
    // It worked, and a model that reads of failures only would say it in other words.
    assert.match(told(requests.at(-1)).join("\n"), /Only the repetition of this call is refused\. [^]*\[LOOP DETECTED\]/);
  });

  test("over HTTP a key sends once, and another key sends again", async () => {
    const { invoke, receiver } = gateway;
    const again = await askTwice(gateway, WORDS.http, (signal) => invoke(WORDS.http, "k1", signal), { answered: false });
    assert.equal(again.status, 403);
    assert.match(again.why, /^\[ALREADY MADE\] A call of "message" with this idempotency key was let through before/);
    assert.equal(receiver.count(WORDS.http), 1);
    assert.deepEqual(await invoke(WORDS.http, "k2"), { status: 200, why: undefined }, "whoever takes another key means another message");
    assert.match((await invoke(WORDS.http, "k2")).why, /^\[ALREADY MADE\]/);
    assert.match((await invoke(WORDS.keyless, "k2")).why, /^\[KEY IN USE\]/);
    assert.equal(receiver.count(WORDS.http), 2);
  });

  test("over HTTP without a key a message is sent as often as it is asked for", async () => {
    for (const n of [1, 2, 3]) {
      assert.deepEqual(await gateway.invoke(WORDS.keyless), { status: 200, why: undefined });
      assert.equal(gateway.receiver.count(WORDS.keyless), n);
    }
  });
});
