// An OpenClaw of February 2026: sessions in JSONL files, `before_agent_start`, hooks that name neither run nor call.

import assert from "node:assert/strict";
import { readdir, readFile, utimes, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { after, before, test } from "node:test";
import { OLD } from "./rig/openclaw.mjs";
import { resultsOf } from "./rig/model.mjs";
import { addon, PACKAGES, startSession } from "./rig/session.mjs";
import { chained, plant } from "./rig/store.mjs";

const IDS = ["tool-guard", "clawos-l0"];
const HOUR_MS = 3_600_000;
/** What is planted in a session's file, and what it is called. */
const FAULTS = {
  orphan: "orphaned_tool_result",
  missing: "missing_tool_result",
  duplicate: "duplicate_tool_result",
  misplaced: "misplaced_tool_result",
};
const step = (number, ...calls) => (calls[number - 1] ? { calls: [calls[number - 1]] } : { text: "done" });
const exec = (command) => ({ name: "exec", arguments: { command } });
let session;

before(async () => {
  const scripts = {
    loop: ({ number }) => (number > 8 ? { text: "enough" } : { calls: [{ name: "read", arguments: {} }] }),
    work: ({ number }) => step(number, exec("echo 1"), exec("echo 2"), exec("false"), exec("echo 3")),
    reset: ({ number }) => step(number, { name: "read", arguments: {} }, exec("echo again")),
  };
  for (const fault of Object.keys(FAULTS)) {
    scripts[fault] = ({ number }) => step(number, exec("echo 1"), exec("echo 2"));
    scripts[`after-${fault}`] = () => ({ text: `went on after ${fault}` });
  }
  // It knows no `hooks` in an entry: whoever loads a plugin lets it hear.
  const plugins = {
    load: { paths: IDS.map((id) => join(PACKAGES, id)) },
    allow: IDS,
    entries: Object.fromEntries(IDS.map((id) => [id, { enabled: true }])),
  };
  session = await startSession(scripts, { plugins, install: OLD });
});
after(() => session?.stop());

const sessions = () => join(session.home.state, "agents/main/sessions");

/** The file of the session in which something was said. */
async function fileOf(text) {
  for (const name of await readdir(sessions())) {
    const file = join(sessions(), name);
    if (name.endsWith(".jsonl") && (await readFile(file, "utf8")).includes(text)) return file;
  }
  throw new Error(`no session has ${text}`);
}

test("a version that nobody tried is warned about once a plugin, and both work", () => {
  const log = session.gateway().log();
  for (const id of IDS) {
    const said = log.match(new RegExp(`${id}: OpenClaw of an unknown version was not tried with this plugin`, "g"));
    assert.equal(said?.length, 1, log.slice(0, 3000));
  }
});

test("the third call is not made, and the model is told so at once", async () => {
  await session.say("loop");
  const requests = session.model.requests("loop");
  const results = resultsOf(requests.at(-1).messages);
  assert.match(results[0], /Missing required parameter: path[^]*\[NON-RETRYABLE\]/);
  assert.match(results[1], /\[LOOP DETECTED\] Tool "read" failed 2 times/);
  // This host sends a result before it stores it: what is written into one is there a request later. A refusal is not.
  assert.match(resultsOf(requests[3].messages)[1], /\[LOOP DETECTED\]/);
  assert.match(resultsOf(requests[3].messages)[2], /\[LOOP DETECTED\]/);
  assert.match(results.at(-1), /\[TOOL ERROR LIMIT\]/);
  const executed = session.gateway().log().match(/\[tools\] read failed: Missing required parameter/g);
  assert.equal(executed?.length, 2);
});

test("counts end with the turn, and each call is one line of the log with its model", async () => {
  await session.say("reset", "agent:main:loop");
  const [result] = resultsOf(session.model.requests("reset").at(-1).messages).slice(-2);
  assert.match(result, /\[NON-RETRYABLE\]/);
  assert.doesNotMatch(result, /\[LOOP DETECTED\]/);
  const log = await readFile(join(session.home.home, ".openclaw/tool-guard.log"), "utf8");
  const lines = log.trim().split("\n").map((line) => JSON.parse(line));
  assert.equal(new Set(lines.map((line) => line.toolCallId)).size, lines.length);
  assert.deepEqual([...new Set(lines.map((line) => line.modelId))], ["rig/scripted"]);
});

test("work is left alone", async () => {
  assert.equal((await session.say("work")).text, "done");
  const texts = resultsOf(session.model.requests("work").at(-1).messages).join("\n");
  assert.doesNotMatch(texts, /\[(?:LOOP DETECTED|TOOL ERROR LIMIT|NON-RETRYABLE)\]/);
});

/** Breaks a session's file as if it had been written so an hour ago; gives back what a scan has to find. */
async function breakFile(file, fault) {
  const events = (await readFile(file, "utf8")).trim().split("\n").map((line) => JSON.parse(line));
  const { toolCallId } = events.find((event) => event.message?.role === "toolResult").message;
  const broken = chained(plant[fault](toolCallId)(events));
  await writeFile(file, broken.map((event) => `${JSON.stringify(event)}\n`).join(""));
  const hourAgo = new Date(Date.now() - HOUR_MS);
  await utimes(file, hourAgo, hourAgo);
  return [FAULTS[fault], fault === "orphan" ? "call_gone" : toolCallId];
}

test("files with an orphaned, a missing, a duplicate and a misplaced result are mended before the gateway starts, and the sessions go on", async () => {
  const files = {};
  for (const fault of Object.keys(FAULTS)) {
    assert.equal((await session.say(fault)).text, "done");
    files[fault] = await fileOf(`[[script:${fault}]]`);
  }
  await session.stopGateway();
  const found = async (fault) => {
    const reports = JSON.parse(await addon.scanSessions([files[fault]], "report", "remove_orphans"));
    return reports.flatMap((report) => report.findings).map(({ type, id }) => [type, id]);
  };
  for (const fault of Object.keys(FAULTS)) {
    const planted = await breakFile(files[fault], fault);
    assert.deepEqual(await found(fault), [planted], "exactly what was planted");
  }
  await session.start({ wrapper: join(PACKAGES, "clawos-l0/start"), env: { HOLDFAST_L0_STRATEGY: "reconstruct" } });
  const names = await readdir(sessions());
  for (const fault of Object.keys(FAULTS)) {
    assert.deepEqual(await found(fault), []);
    assert.ok(names.some((name) => name.startsWith(`${basename(files[fault])}.holdfast-backup-`)), String(names));
    assert.equal((await session.say(`after-${fault}`, `agent:main:${fault}`)).text, `went on after ${fault}`);
    const [request] = session.model.requests(`after-${fault}`);
    assert.deepEqual(JSON.parse(await addon.checkMessages(JSON.stringify(request.messages))), []);
    assert.equal(resultsOf(request.messages).length, 2, `the model is shown both results of ${fault}`);
  }
});
