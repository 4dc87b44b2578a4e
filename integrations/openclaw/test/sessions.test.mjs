// Sessions, broken on purpose: found exactly, left alone while they are in use, mended, and continued.

import assert from "node:assert/strict";
import { mkdir, readdir, readFile, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { command } from "./rig/openclaw.mjs";
import { addon, findings, loading, PACKAGES, startSession } from "./rig/session.mjs";
import { plant, read, rewrite } from "./rig/store.mjs";

const FAULTS = ["orphan", "missing", "duplicate", "misplaced"];
/** Longest that a command's answer is waited for. */
const ANSWER_MS_MAX = 60_000;
const call = (fault) => `call_${fault}_1_0`;
const planted = {
  orphan: ["orphaned_tool_result", "call_gone"],
  missing: ["missing_tool_result", call("missing")],
  duplicate: ["duplicate_tool_result", call("duplicate")],
  misplaced: ["misplaced_tool_result", call("misplaced")],
};

const twice = ({ number }) => {
  return number <= 2 ? { calls: [{ name: "exec", arguments: { command: `echo ${number}` } }] } : { text: "done" };
};
let session;
let legacy;

before(async () => {
  const scripts = Object.fromEntries(FAULTS.map((fault) => [fault, twice]));
  for (const fault of [...FAULTS, "incident"]) scripts[`after-${fault}`] = () => ({ text: `went on after ${fault}` });
  scripts.incident = twice;
  session = await startSession(scripts, { plugins: loading("clawos-l0") });
  for (const script of [...FAULTS, "incident"]) await session.say(script);
  await session.stopGateway();
  rewrite(session.home, "agent:main:incident", plant.orphan(call("incident")));
  for (const fault of FAULTS) rewrite(session.home, `agent:main:${fault}`, plant[fault](call(fault)));
  legacy = await plantLegacy(session.home);
  await session.start();
});
after(() => session?.stop());

/** A session as older versions keep them, with an orphan, of an agent that is not in use. */
async function plantLegacy(home) {
  const folder = join(home.state, "agents/old/sessions");
  await mkdir(folder, { recursive: true });
  const file = join(folder, "legacy.jsonl");
  const events = read(home, "agent:main:orphan");
  await writeFile(file, events.map((event) => `${JSON.stringify(event)}\n`).join(""));
  const hourAgo = new Date(Date.now() - 3_600_000);
  await utimes(file, hourAgo, hourAgo);
  return { file, folder };
}

/** Sends a slash command as a person would, and waits for its answer. */
async function slash(text) {
  const sessionKey = "agent:main:main";
  const idempotencyKey = `${text}-${Math.random()}`;
  const params = (value) => ["--params", JSON.stringify(value), "--json"];
  await command(session.home, "gateway", "call", "chat.send", ...params({ sessionKey, message: text, idempotencyKey }));
  const until = Date.now() + ANSWER_MS_MAX;
  while (Date.now() < until) {
    const said = await command(session.home, "gateway", "call", "chat.history", ...params({ sessionKey, limit: 10 }));
    const answer = JSON.parse(said.out).messages?.find(
      (message) => message.role === "assistant" && message.idempotencyKey === idempotencyKey,
    );
    if (answer) return answer.content[0].text;
  }
  throw new Error(`no answer to ${text}`);
}

const kinds = (found) => found.map((finding) => `${finding.type} ${finding.id}`).sort();
const expected = (...faults) => faults.map((fault) => planted[fault].join(" ")).sort();

test("a run with a broken history leaves an incident file", async () => {
  await session.say("after-incident", "agent:main:incident");
  const logs = join(session.home.state, "logs");
  const names = (await readdir(logs)).filter((name) => name.startsWith("l0-runtime-incident-"));
  assert.equal(names.length, 1, String(names));
  const incident = JSON.parse(await readFile(join(logs, names[0]), "utf8"));
  assert.equal(incident.sessionKey, "agent:main:incident");
  assert.equal(incident.action, "detected_at_runtime");
  assert.deepEqual(incident.issues.map((issue) => [issue.type, issue.toolUseId]), [planted.orphan]);
});

test("/l0-scan reports exactly what was planted, mends what nobody uses, and leaves the live store alone", async () => {
  const before = FAULTS.map((fault) => JSON.stringify(read(session.home, `agent:main:${fault}`)));
  const text = await slash("/l0-scan");
  console.log(text);
  const shown = [...text.matchAll(/^- (\S+) (\S+) in /gm)].map((found) => `${found[1]} ${found[2]}`).sort();
  assert.deepEqual(shown, expected(...FAULTS, "orphan", "orphan"));
  assert.match(text, /6 issues found, 1 repaired/);
  assert.match(text, /left alone/);
  const now = FAULTS.map((fault) => JSON.stringify(read(session.home, `agent:main:${fault}`)));
  assert.deepEqual(now, before, "the store of a running gateway is not touched");
});

test("a session of older versions was mended, with a backup beside it", async () => {
  const names = await readdir(legacy.folder);
  assert.ok(names.some((name) => name !== "legacy.jsonl" && name.includes("legacy.jsonl")), String(names));
  const reports = JSON.parse(await addon.scanSessions([legacy.file], "report", "remove_orphans"));
  assert.deepEqual(reports.flatMap((report) => report.findings), []);
});

test("/l0-status says what the last scan found", async () => {
  assert.match(await slash("/l0-status"), /^Last scan 20\S+: \d+ sessions, 6 issues found, 1 repaired/);
});

test("the start wrapper starts the gateway also when it could mend nothing", async () => {
  await session.stopGateway();
  await session.start({ wrapper: join(PACKAGES, "clawos-l0/start"), env: { HOLDFAST_L0_STRATEGY: "unheard of" } });
  assert.match(session.gateway().log(), /no repair strategy[^]*clawos-l0: sessions were not mended/);
  assert.deepEqual(kinds(await findings(session.home)), expected(...FAULTS, "orphan"));
});

test("the start wrapper mends the store while nothing runs, and OpenClaw goes on with every session", async () => {
  await session.stopGateway();
  assert.deepEqual(kinds(await findings(session.home)), expected(...FAULTS, "orphan"));
  await session.start({ wrapper: join(PACKAGES, "clawos-l0/start"), env: { HOLDFAST_L0_STRATEGY: "reconstruct" } });
  assert.deepEqual(await findings(session.home), []);
  assert.match(session.gateway().log(), /^clawos-l0: \d+ sessions, \d+ issues found, \d+ repaired$/m);
  for (const fault of FAULTS) {
    const answer = await session.say(`after-${fault}`, `agent:main:${fault}`);
    assert.equal(answer.text, `went on after ${fault}`);
    const [request] = session.model.requests(`after-${fault}`);
    assert.deepEqual(JSON.parse(await addon.checkMessages(JSON.stringify(request.messages))), []);
    const results = request.messages.filter((message) => message.role === "tool");
    assert.equal(results.length, 2, `the model is shown both results of ${fault}`);
  }
});

test("the log of the gateway says what the first scan found", () => {
  assert.match(session.gateway().log(), /clawos-l0: \d+ sessions, 0 issues found, 0 repaired/);
});
