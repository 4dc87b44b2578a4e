// Sessions, broken on purpose: found exactly, left alone while they are in use, mended, and continued.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, mkdir, readdir, readFile, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { HOLDFAST, slashCommand } from "./rig/openclaw.mjs";
import { addon, findings, loading, PACKAGES, startSession } from "./rig/session.mjs";
import { plant, read, rewrite } from "./rig/store.mjs";

const FAULTS = ["orphan", "missing", "duplicate", "misplaced"];
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

/** Sessions as older versions keep them, with the same faults, of an agent that is not in use. */
async function plantLegacy(home) {
  const folder = join(home.state, "agents/old/sessions");
  await mkdir(folder, { recursive: true });
  for (const fault of FAULTS) {
    const events = read(home, `agent:main:${fault}`);
    await writeFile(join(folder, `${fault}.jsonl`), events.map((event) => `${JSON.stringify(event)}\n`).join(""));
  }
  await age(folder);
  return folder;
}

/** Makes the files look as if nobody had written them for an hour: one that was just written is left alone. */
async function age(folder) {
  const hourAgo = new Date(Date.now() - 3_600_000);
  for (const fault of FAULTS) await utimes(join(folder, `${fault}.jsonl`), hourAgo, hourAgo);
}

/** A slash command, as a person would type it. */
const slash = (text) => slashCommand(session.home, text);

const kinds = (found) => found.map((finding) => `${finding.type} ${finding.id}`).sort();
const expected = (...faults) => faults.map((fault) => planted[fault].join(" ")).sort();
/** What is left of each fault after `remove_orphans`: a result whose call is there stays where it is. */
const AFTER_REMOVAL = { orphan: [], duplicate: [], missing: expected("missing"), misplaced: expected("misplaced") };
/** What is left of all of them: those of a store in use, and those of the files. */
const LEFT = [...expected(...FAULTS, "orphan"), ...Object.values(AFTER_REMOVAL).flat()].sort();

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
  assert.deepEqual(shown, expected(...FAULTS, "orphan", ...FAULTS));
  assert.match(text, /9 issues found, 2 repaired/);
  assert.match(text, /left alone/);
  const now = FAULTS.map((fault) => JSON.stringify(read(session.home, `agent:main:${fault}`)));
  assert.deepEqual(now, before, "the store of a running gateway is not touched");
});

test("sessions of older versions were mended as the strategy says, with a backup beside each that was", async () => {
  const names = await readdir(legacy);
  for (const fault of FAULTS) {
    const isChanged = !["missing", "misplaced"].includes(fault);
    assert.equal(names.some((name) => name.startsWith(`${fault}.jsonl.holdfast-backup-`)), isChanged, String(names));
    const reports = JSON.parse(await addon.scanSessions([join(legacy, `${fault}.jsonl`)], "report", "remove_orphans"));
    assert.deepEqual(kinds(reports.flatMap((report) => report.findings)), AFTER_REMOVAL[fault]);
  }
});

test("/l0-status says what the last scan found", async () => {
  assert.match(await slash("/l0-status"), /^Last scan 20\S+: \d+ sessions, 9 issues found, 2 repaired/);
});

/** The command that the guide names; it ends with 0 when nothing is wrong any more. */
function holdfastScan(...args) {
  const general = ["--state", join(session.home.home, "holdfast-state")];
  return new Promise((resolve) => {
    execFile(HOLDFAST, [...general, "scan", ...args], { env: { HOME: session.home.home } }, (error, out, said) => resolve({ code: error?.code ?? 0, out: out + said }));
  });
}

test("`holdfast scan --repair` leaves the store of a running gateway alone too, and mends one that nobody has open", async () => {
  const agents = join(session.home.state, "agents/main");
  const before = FAULTS.map((fault) => JSON.stringify(read(session.home, `agent:main:${fault}`)));
  const running = await holdfastScan(agents, "--repair", "--strategy", "reconstruct");
  assert.equal(running.code, 1, running.out);
  assert.match(running.out, /a process has the store open/);
  assert.deepEqual(FAULTS.map((fault) => JSON.stringify(read(session.home, `agent:main:${fault}`))), before);
  await session.stopGateway();
  // Of a copy: the next tests need the store as it is.
  const copy = join(session.home.home, "copy");
  await cp(join(session.home.state, "agents"), join(copy, "agents"), { recursive: true });
  await age(join(copy, "agents/old/sessions"));
  assert.deepEqual(kinds(await findings({ state: copy })), LEFT);
  const stopped = await holdfastScan(join(copy, "agents"), "--repair", "--strategy", "reconstruct");
  assert.equal(stopped.code, 0, stopped.out);
  assert.deepEqual(await findings({ state: copy }), []);
});

test("the start wrapper starts the gateway also when it could mend nothing", async () => {
  await session.stopGateway();
  await session.start({ wrapper: join(PACKAGES, "clawos-l0/start"), env: { HOLDFAST_L0_STRATEGY: "unheard of" } });
  assert.match(session.gateway().log(), /no repair strategy[^]*clawos-l0: sessions were not mended/);
  assert.deepEqual(kinds(await findings(session.home)), LEFT);
});

test("the start wrapper mends the stores while nothing runs, and OpenClaw goes on with every session", async () => {
  await session.stopGateway();
  assert.deepEqual(kinds(await findings(session.home)), LEFT);
  await age(legacy);
  await session.start({ wrapper: join(PACKAGES, "clawos-l0/start"), env: { HOLDFAST_L0_STRATEGY: "reconstruct" } });
  assert.deepEqual(await findings(session.home), []);
  assert.match(session.gateway().log(), /^clawos-l0: \d+ sessions, \d+ issues found, \d+ repaired/m);
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
