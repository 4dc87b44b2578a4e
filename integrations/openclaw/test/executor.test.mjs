// OpenClaw asks Holdfast for an answer, Holdfast asks the model, runs its calls, and streams the answer back.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { startModel } from "./rig/model.mjs";
import { freePort, makeHome, start, startGateway, turn } from "./rig/openclaw.mjs";

const root = join(dirname(fileURLToPath(import.meta.url)), "../../..");
const HOLDFAST = join(process.env.CARGO_TARGET_DIR ?? join(root, "target"), "debug/holdfast");
/** Longest that the server may take to say where it listens. */
const START_MS_MAX = 60_000;
let scratch, model, server, home, gateway;

/** What the model writes: a call in words, then an answer. */
const script = ({ number }) =>
  number === 1
    ? { text: 'Thought: I write it down.\nAction: write\nAction Input: {"path": "note.txt", "content": "from the model"}' }
    : { text: "Final Answer: it is written down." };

before(async () => {
  scratch = await mkdtemp(join(tmpdir(), "holdfast-executor-"));
  const workspace = join(scratch, "workspace");
  await mkdir(workspace);
  model = await startModel({ note: script });
  const config = join(scratch, "holdfast.yaml");
  await writeFile(config, `server:\n  listen: 127.0.0.1:${await freePort()}\n`);
  const general = ["--config", config, "--state", join(scratch, "state")];
  const env = { ...process.env, HOME: scratch };
  const printed = await promisify(execFile)(HOLDFAST, [...general, "openclaw", "config"], { env });
  const block = JSON.parse(printed.stdout);
  server = start(HOLDFAST, [...general, "serve", "--json", "--log", "off", "--workspace", workspace, "--model-url", model.url.replace(/\/v1$/, "")], {
    env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  await once(createInterface(server.stdout), "line", { signal: AbortSignal.timeout(START_MS_MAX) });
  home = await makeHome(model.url, { models: block.models, primary: block.agents.defaults.model.primary });
  gateway = await startGateway(home);
});
after(async () => {
  await gateway?.stop();
  if (server && server.exitCode === null) {
    const gone = once(server, "close");
    server.kill("SIGTERM");
    await gone;
  }
  await model?.stop();
  await home?.remove();
  if (scratch) await rm(scratch, { recursive: true, force: true });
});

test("OpenClaw's answer is the model's, and Holdfast ran its call", async () => {
  const answer = await turn(gateway, "[[script:note]] Write it down.", { session: "agent:main:note" });
  assert.equal(answer.text, "it is written down.");
  assert.equal(await readFile(join(scratch, "workspace/note.txt"), "utf8"), "from the model");
  const requests = model.requests("note");
  assert.equal(requests.length, 2);
  assert.equal(requests[1].messages.filter((message) => JSON.stringify(message).includes("note.txt")).length > 0, true);
});
