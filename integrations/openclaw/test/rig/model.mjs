// A model server of our own: OpenAI's streaming format on a free loopback port, and answers from a
// script instead of a model. It keeps every request, so that a test can say what the model was shown.

import { createServer } from "node:http";
import { once } from "node:events";

/** Requests answered to one script before the server says something final by itself. */
export const REQUESTS_MAX = 40;

/**
 * Starts the server. `scripts` maps a name to `(turn) => reply`; a reply is `{text}` or `{calls}` with
 * `calls` a list of `{name, arguments}` (a string is sent as it is, also when it is not JSON). Which
 * script answers is said by the marker `[[script:NAME]]` in what the user wrote.
 */
export async function startModel(scripts, requestsMax = REQUESTS_MAX) {
  const seen = new Map();
  const server = createServer((request, response) => {
    answer(request, response, { scripts, seen, requestsMax }).catch((error) => {
      response.statusCode = 500;
      response.end(JSON.stringify({ error: { message: String(error?.stack ?? error) } }));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${server.address().port}/v1`,
    /** The requests that a script answered, oldest first. */
    requests: (name) => seen.get(name) ?? [],
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

async function answer(request, response, { scripts, seen, requestsMax }) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = chunks.length ? JSON.parse(Buffer.concat(chunks).toString()) : {};
  if (!request.url.endsWith("/chat/completions")) {
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ object: "list", data: [{ id: "scripted", object: "model" }] }));
    return;
  }
  const name = scriptOf(body.messages);
  const turns = seen.get(name) ?? [];
  seen.set(name, turns);
  turns.push({ messages: body.messages, tools: body.tools, atMs: Date.now() });
  const script = scripts[name];
  const over = turns.length > requestsMax;
  const reply =
    !script || over
      ? { text: over ? "The rig has seen enough." : "ok" }
      : await script({ number: turns.length, messages: body.messages, results: resultsOf(body.messages) });
  if (body.stream) stream(response, body, reply, `${name}_${turns.length}`);
  else whole(response, body, reply, `${name}_${turns.length}`);
}

const USAGE = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };

/** A text in one piece, for clients that do not stream. */
function whole(response, body, reply, id) {
  const choice = { index: 0, message: { role: "assistant", content: reply.text }, finish_reason: "stop" };
  const completion = { id: `chatcmpl-${id}`, object: "chat.completion", created: 1, model: body.model };
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify({ ...completion, choices: [choice], usage: USAGE }));
}

/** The last marker counts: a session may hold turns of several scripts. */
function scriptOf(messages) {
  let name = "none";
  for (const message of messages ?? []) {
    if (message.role !== "user") continue;
    for (const found of textOf(message).matchAll(/\[\[script:([a-z0-9-]+)\]\]/g)) name = found[1];
  }
  return name;
}

/** The text of a message, whichever way its content is written. */
export function textOf(message) {
  if (typeof message.content === "string") return message.content;
  return (message.content ?? []).map((part) => part.text ?? "").join("");
}

/** The texts of all tool results in some messages, oldest first. */
export function resultsOf(messages) {
  return messages.filter((message) => message.role === "tool").map(textOf);
}

function stream(response, body, reply, id) {
  const base = { id: `chatcmpl-${id}`, object: "chat.completion.chunk", created: 1, model: body.model };
  const send = (delta, finish) =>
    response.write(
      `data: ${JSON.stringify({ ...base, choices: [{ index: 0, delta, finish_reason: finish ?? null }] })}\n\n`,
    );
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
  send({ role: "assistant", content: reply.calls ? null : "" });
  if (reply.calls) {
    reply.calls.forEach((call, index) => {
      const text = typeof call.arguments === "string" ? call.arguments : JSON.stringify(call.arguments);
      const head = { index, id: `call_${id}_${index}`, type: "function" };
      send({ tool_calls: [{ ...head, function: { name: call.name, arguments: "" } }] });
      send({ tool_calls: [{ index, function: { arguments: text } }] });
    });
  } else {
    send({ content: reply.text });
  }
  send({}, reply.calls ? "tool_calls" : "stop");
  response.write(`data: ${JSON.stringify({ ...base, choices: [], usage: USAGE })}\n\n`);
  response.end("data: [DONE]\n\n");
}
