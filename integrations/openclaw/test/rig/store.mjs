// OpenClaw's store, broken on purpose while nothing has it open.

import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

/** The store of the agent `main`. */
export const storeOf = (home) => join(home.state, "agents/main/agent/openclaw-agent.sqlite");

/** Rewrites the events of a session: `change` gets them and gives back what is stored instead. */
export function rewrite(home, sessionKey, change) {
  const db = new DatabaseSync(storeOf(home));
  try {
    db.exec("PRAGMA foreign_keys = OFF; BEGIN");
    const id = sessionId(db, sessionKey);
    const events = change(eventsOf(db, id));
    for (const table of ["session_transcript_active_events", "transcript_event_identities", "transcript_events"]) {
      db.prepare(`DELETE FROM ${table} WHERE session_id = ?`).run(id);
    }
    const insert = db.prepare("INSERT INTO transcript_events (session_id, seq, event_json, created_at) VALUES (?, ?, ?, ?)");
    const identify = db.prepare(
      "INSERT INTO transcript_event_identities (session_id, event_id, seq, event_type, parent_id, created_at) VALUES (?, ?, ?, ?, ?, ?)",
    );
    chained(events).forEach((event, seq) => {
      insert.run(id, seq, JSON.stringify(event), Date.now());
      if (event.type !== "session") identify.run(id, event.id, seq, event.type, event.parentId ?? null, Date.now());
    });
    db.prepare("UPDATE session_transcript_index_state SET needs_rebuild = 1 WHERE session_id = ?").run(id);
    db.exec("COMMIT");
  } finally {
    db.close();
  }
}

/** The events of a session, from a store that nothing has open. */
export function read(home, sessionKey) {
  const db = new DatabaseSync(storeOf(home), { readOnly: true });
  try {
    return eventsOf(db, sessionId(db, sessionKey));
  } finally {
    db.close();
  }
}

function sessionId(db, sessionKey) {
  const row = db.prepare("SELECT session_id FROM session_windows WHERE session_key = ?").get(sessionKey);
  if (!row) throw new Error(`there is no session ${sessionKey}`);
  return row.session_id;
}

function eventsOf(db, id) {
  const rows = db.prepare("SELECT event_json FROM transcript_events WHERE session_id = ? ORDER BY seq").all(id);
  // These sessions are short: nothing in them is long enough to be compressed.
  return rows.map((row) => JSON.parse(row.event_json));
}

/** Every event continues the one before it, so that nothing but what was planted is wrong. */
export function chained(events) {
  let last = null;
  return events.map((event) => {
    if (event.type === "session") return event;
    const made = { ...event, parentId: last };
    last = event.id;
    return made;
  });
}

const resultOf = (events, call) => events.find((event) => event.message?.toolCallId === call);
const renewed = (event) => ({ ...event, id: `${event.id.slice(0, -4)}ffff` });

/** Makes a session long: so many exchanges of words come before everything else. */
export const talkative = (exchanges, change) => (events) => {
  const made = change(events);
  const begin = made.findIndex((event) => event.type === "message");
  const answer = made.findLast((event) => event.message?.role === "assistant");
  const said = (n, { message, ...event }, content) => {
    const { idempotencyKey: _, ...rest } = message;
    return { ...event, id: (0x1000000 + n).toString(16), message: { ...rest, content } };
  };
  const talk = Array.from({ length: exchanges }, (_, n) => [
    said(2 * n, made[begin], `question ${n} ${"x".repeat(400)}`),
    said(2 * n + 1, answer, [{ type: "text", text: `answer ${n} ${"y".repeat(400)}` }]),
  ]);
  return [...made.slice(0, begin), ...talk.flat(), ...made.slice(begin)];
};

/** The four faults, each planted at the first call of a session. */
export const plant = {
  orphan: (call) => (events) => {
    const result = renewed(resultOf(events, call));
    return [...events, { ...result, message: { ...result.message, toolCallId: "call_gone" } }];
  },
  missing: (call) => (events) => events.filter((event) => event !== resultOf(events, call)),
  duplicate: (call) => (events) => {
    const result = resultOf(events, call);
    return events.flatMap((event) => (event === result ? [event, renewed(event)] : [event]));
  },
  misplaced: (call) => (events) => {
    const result = resultOf(events, call);
    return [...events.filter((event) => event !== result), result];
  },
};
