// An OpenClaw of February 2026: sessions in JSONL files, `before_agent_start`, hooks that name neither run nor call.

import assert from "node:assert/strict";
import { readdir, readFile, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { OLD } from "./rig/openclaw.mjs";
import { resultsOf } from "./rig/model.mjs";
import { addon, PACKAGES, startSession } from "./rig/session.mjs";

const IDS = ["tool-guard", "clawos-l0"];
const HOUR_MS = 3_600_000;
const step = (number, ...calls) => (calls[number - 1] ? { calls: [calls[number - 1]] } : { text: "done" });
const exec = (command) => ({ name: "exec", arguments: { command } });
let session;

before(async () => {
  const scripts = {
    loop: ({ number }) => (number > 8 ? { text: "enough" } : { calls: [{ name: "read", arguments: {} }] }),
    work: ({ number }) => step(number, exec("echo 1"), exec("echo 2"), exec("false"), exec("echo 3")),
    "after-work": () => ({ text: "went on" }),
    reset: ({ number }) => step(number, { name: "read", arguments: {} }, exec("echo again")),
  };
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

test("an orphan in a session's file is mended before the gateway starts, with a backup, and the session goes on", async () => {
  const file = await fileOf("[[script:work]]");
  await session.stopGateway();
  const lines = (await readFile(file, "utf8")).trim().split("\n");
  const last = JSON.parse(lines.at(-1));
  const result = lines.map((line) => JSON.parse(line)).find((entry) => entry.message?.role === "toolResult");
  const orphan = { ...result, id: "0rphan00", parentId: last.id, message: { ...result.message, toolCallId: "call_gone" } };
  await writeFile(file, `${[...lines, JSON.stringify(orphan)].join("\n")}\n`);
  const hourAgo = new Date(Date.now() - HOUR_MS);
  await utimes(file, hourAgo, hourAgo);
  const found = async () => JSON.parse(await addon.scanSessions([file], "report", "remove_orphans")).flatMap((report) => report.findings);
  assert.deepEqual((await found()).map(({ type, id }) => [type, id]), [["orphaned_tool_result", "call_gone"]]);
  await session.start({ wrapper: join(PACKAGES, "clawos-l0/start") });
  assert.deepEqual(await found(), []);
  assert.ok((await readdir(sessions())).some((name) => name.includes("holdfast-backup")));
  assert.equal((await session.say("after-work", "agent:main:work")).text, "went on");
  const [request] = session.model.requests("after-work");
  assert.deepEqual(JSON.parse(await addon.checkMessages(JSON.stringify(request.messages))), []);
});
