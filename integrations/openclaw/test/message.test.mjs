// A message that is asked for twice, because whoever asked gave up waiting and asked again: sent once.
//
// OpenClaw's own `message` tool and its own Telegram channel, with a receiving end of ours on loopback.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { before, describe, test } from "node:test";
import { textOf } from "./rig/model.mjs";
import { turn } from "./rig/openclaw.mjs";
import { loading, startSession, told } from "./rig/session.mjs";

const CHAT = "424242";
const TEXT = "The invoice is paid.";
const SESSION = "agent:main:send";
const ASKED = "[[script:send]] Tell them.";

/** Telegram's end: counts what arrives, and keeps its answer to the first message back until it is let go. */
async function startReceiver() {
  const received = [];
  let arrived, letGo;
  const first = new Promise((resolve) => (arrived = resolve));
  const held = new Promise((resolve) => (letGo = resolve));
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
    received.push(text);
    const number = received.length;
    arrived();
    if (number === 1) await held;
    return answer({ message_id: number, date: 1, chat: { id: chat_id, type: "private" }, text });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    received,
    first,
    letGo,
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** Sends the message when it is asked to, and is content when there is a result. */
function script({ messages }) {
  const asked = messages.findLastIndex((message) => message.role === "user" && textOf(message).includes("[[script:"));
  if (messages.slice(asked).some((message) => message.role === "tool")) return { text: "sent" };
  const args = { action: "send", channel: "telegram", target: CHAT, message: TEXT };
  return { calls: [{ name: "tool_call", arguments: { id: "message", args } }] };
}

/** Asks, gives up as soon as the message is out, and asks again. */
async function play(onceTools) {
  const receiver = await startReceiver();
  const plugins = loading("tool-guard");
  plugins.entries["tool-guard"].config = { onceTools };
  plugins.allow.push("telegram");
  plugins.entries.telegram = { enabled: true };
  const channels = { telegram: { enabled: true, botToken: "1:rig", apiRoot: receiver.url, dmPolicy: "open", allowFrom: ["*"] } };
  let session;
  try {
    session = await startSession({ send: script }, { plugins, channels });
    const impatient = new AbortController();
    const lost = turn(session.gateway(), ASKED, { session: SESSION, signal: impatient.signal }).catch(() => "gave up");
    await receiver.first;
    impatient.abort();
    assert.equal(await lost, "gave up");
    const again = turn(session.gateway(), ASKED, { session: SESSION });
    receiver.letGo();
    const answer = await again;
    return { received: receiver.received, answer, shown: told(session.model.requests("send").at(-1)).join("\n") };
  } finally {
    receiver.letGo();
    await session?.stop();
    await receiver.stop();
  }
}

describe("a message that is asked for again after a timeout", () => {
  let without, withIt;
  before(async () => {
    without = await play([]);
    withIt = await play(["message"]);
  });

  test("arrives twice without the record", () => {
    assert.deepEqual(without.received, [TEXT, TEXT]);
  });

  test("arrives once with it, and the model is told", () => {
    assert.deepEqual(withIt.received, [TEXT]);
    assert.match(withIt.shown, /\[(ALREADY DONE|ALREADY UNDER WAY|OUTCOME UNKNOWN)\] This same call of \\*"message\\*"/);
    assert.equal(withIt.answer.text, "sent");
  });
});
