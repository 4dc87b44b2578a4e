// A person at the gateway: a client of its WebSocket, as OpenClaw's own interfaces are, who speaks to a session
// and is asked for approvals.

import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { TOKEN } from "./openclaw.mjs";

/** Longest that an answer of the gateway is waited for. */
const ANSWER_MS_MAX = 60_000;
/** The version of the gateway's protocol that the pinned OpenClaw speaks. */
const PROTOCOL = 4;
/** What the last event of a run says of it. */
const ENDED = new Set(["final", "error", "aborted"]);
/** An owner's: others are asked about nothing but what they began themselves. */
const SCOPES = ["operator.read", "operator.write", "operator.approvals", "operator.admin"];

/** Connects; `stop` ends the connection. */
export async function connectOperator(gateway) {
  const socket = new WebSocket(gateway.url.replace(/^http/, "ws"));
  const events = [];
  const answers = new Map();
  const waiting = new Set();
  socket.onmessage = ({ data }) => {
    const frame = JSON.parse(data);
    if (frame.type === "event") events.push(frame);
    else answers.get(frame.id)?.(frame);
    waiting.forEach((look) => look());
  };
  await once(socket, "open");

  const call = async (method, params) => {
    const id = randomUUID();
    const answer = new Promise((resolve) => answers.set(id, resolve));
    socket.send(JSON.stringify({ type: "req", id, method, params }));
    const { ok, payload, error } = await within(answer, method);
    answers.delete(id);
    if (!ok) throw new Error(`${method}: ${JSON.stringify(error)}`);
    return payload;
  };
  /** The first event of a name that fits, also one that came before it was asked for. */
  const event = (name, fits = () => true) =>
    within(
      new Promise((resolve) => {
        const look = () => {
          const found = events.find((frame) => frame.event === name && fits(frame.payload));
          if (!found) return;
          waiting.delete(look);
          resolve(found.payload);
        };
        waiting.add(look);
        look();
      }),
      name,
    );

  await event("connect.challenge");
  await call("connect", {
    minProtocol: PROTOCOL,
    maxProtocol: PROTOCOL,
    client: { id: "gateway-client", version: "1.0.0", platform: "linux", mode: "backend" },
    role: "operator",
    scopes: SCOPES,
    caps: ["plugin-approvals"],
    auth: { token: TOKEN },
  });
  return {
    call,
    event,
    /** Sends a message to a session; the promise is the run's last event. */
    async say(sessionKey, message) {
      const { runId } = await call("chat.send", { sessionKey, message, idempotencyKey: randomUUID() });
      return event("chat", (payload) => payload.runId === runId && ENDED.has(payload.state));
    },
    stop: () => socket.close(),
  };
}

async function within(promise, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} did not come`)), ANSWER_MS_MAX);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
