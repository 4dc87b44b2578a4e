// Legitimate work: a long turn that fails, retries, polls and repeats itself, as real ones do.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { loading, startSession, told } from "./rig/session.mjs";

const GUARD_TEXT = /\[LOOP DETECTED\]|\[TOOL ERROR LIMIT\]|\[NON-RETRYABLE\]|\[NO PROGRESS\]/;
/** How often the tests fail before the last edit makes them pass. */
const ROUNDS = 9;
const CALLS_MIN = 40;
/** How often something is asked for until it is ready. */
const PROBES = 6;

const exec = (command, more) => ({ name: "exec", arguments: { command, ...more } });
const write = (path, content) => ({ name: "write", arguments: { path, content } });
const read = (path) => ({ name: "read", arguments: { path } });

/** The calls of the turn; one that needs an earlier answer is a function of all answers so far. */
function work() {
  const check = 'n=$(cat level); [ "$n" -ge 8 ] && echo "all 12 tests passed" && exit 0; echo "FAILED at $((n / 2))"; exit 1';
  const calls = [write("check.sh", check), write("level", "0"), read("check.sh")];
  // Edit, test, edit, test: every other edit changes nothing of what the tests say.
  for (let round = 0; round < ROUNDS; round++) {
    calls.push(write("level", String(round)), exec("sh check.sh"));
  }
  // Something that runs out of time and is simply asked again.
  calls.push(exec("sleep 30", { timeoutSeconds: 1 }), exec("sleep 30", { timeoutSeconds: 1 }), exec("sleep 30", { timeoutSeconds: 1 }));
  // A background command that is asked about until it is done.
  calls.push(exec("sleep 2; echo ready", { background: true }));
  const poll = (answers) => {
    const started = answers.findLast((answer) => /session/i.test(answer) && /running|background/i.test(answer));
    const [, sessionId] = /session:?\s*([a-z0-9][\w-]+)/i.exec(started ?? "") ?? [];
    return { name: "process", arguments: { action: "poll", sessionId: sessionId ?? "none" } };
  };
  for (let times = 0; times < 8; times++) calls.push(poll);
  // Something that is not ready yet, asked again with a wait in the same words.
  for (let times = 0; times < PROBES; times++) calls.push(exec(`sleep 2; echo . >> asked; test $(wc -l < asked) -ge ${PROBES}`));
  // The same file read again and again, unchanged and changed.
  for (let times = 0; times < 6; times++) calls.push(read("level"));
  calls.push(write("level", "99"), read("level"), exec("sh check.sh"), read("check.sh"));
  return calls;
}

let session;
const calls = work();
before(async () => {
  const script = ({ number, results }) => {
    const call = calls[number - 1];
    if (!call) return { text: "all done" };
    return { calls: [typeof call === "function" ? call(results) : call] };
  };
  session = await startSession({ work: script }, { plugins: loading("tool-guard"), requestsMax: calls.length + 1 });
});
after(() => session?.stop());

test("forty calls of real work get no word from the guard", async () => {
  const answer = await session.say("work");
  const requests = session.model.requests("work");
  const results = requests.at(-1).messages.filter((message) => message.role === "tool");
  const texts = told(requests.at(-1));
  if (process.env.HOLDFAST_RIG_SHOW) for (const text of texts) console.log(JSON.stringify(text).slice(0, 200));
  for (const [at, text] of texts.entries()) assert.doesNotMatch(text, GUARD_TEXT, `message ${at}`);
  assert.ok(calls.length >= CALLS_MIN, `${calls.length} calls`);
  assert.equal(results.length, calls.length, "every call was made");
  assert.equal(answer.status, 200);
  assert.equal(answer.text, "all done");
  const all = texts.join("\n");
  assert.match(all, /FAILED at 3/);
  assert.match(all, /all 12 tests passed/);
});
