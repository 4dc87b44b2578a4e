// OpenClaw asks Holdfast for an answer, Holdfast asks the model, runs its calls, and streams the answer back.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { startModel, textOf } from "./rig/model.mjs";
import { freePort, HOLDFAST, makeHome, start, startGateway, turn } from "./rig/openclaw.mjs";
import { startProxy } from "./rig/proxy.mjs";

/** Longest that the server may take to say where it listens. */
const START_MS_MAX = 60_000;
/** Longest that a child's work is waited for. */
const CHILD_MS_MAX = 120_000;
const INTERNAL = "<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>";
let scratch, model, server, proxy, home, gateway;
/** Opened when the client has heard that the call was made: until then the model says nothing more. */
let released;
const streamed = new Promise((resolve) => (released = resolve));

const action = (tool, input) => ({ text: `Thought: I do it.\nAction: ${tool}\nAction Input: ${JSON.stringify(input)}` });
const scripts = {
  /** What the model writes: a call in words, then an answer. */
  async note({ number }) {
    if (number === 1) return action("write", { path: "note.txt", content: "from the model" });
    await streamed;
    return { text: "Final Answer: it is written down." };
  },
  plain: () => ({ text: "the model that was there before" }),
  /** The same for a child, whose parent is another model. */
  child: ({ number }) =>
    number === 1 ? action("write", { path: "child.txt", content: "from the child" }) : { text: "Final Answer: the child is done." },
  parent: ({ number }) =>
    number === 1
      ? { calls: [{ name: "tool_call", arguments: { id: "openclaw:core:sessions_spawn", args: { task: "[[script:child]] Write it down.", agentId: "gpt-oss-executor" } } }] }
      : { text: "the child works" },
  /** OpenClaw's own tools: the call goes back to it. */
  returned: ({ number }) => (number === 1 ? action("exec", { command: "echo from-$((1+1))" }) : { text: "Final Answer: it was run." }),
};

before(async () => {
  scratch = await mkdtemp(join(tmpdir(), "holdfast-executor-"));
  const workspace = join(scratch, "workspace");
  await mkdir(workspace);
  model = await startModel(scripts);
  const [port, front] = [await freePort(), await freePort()];
  const config = join(scratch, "holdfast.yaml");
  await writeFile(config, `server:\n  listen: 127.0.0.1:${port}\n`);
  const general = ["--config", config, "--state", join(scratch, "state")];
  const env = { ...process.env, HOME: scratch };
  const printed = await promisify(execFile)(HOLDFAST, [...general, "openclaw", "config"], { env });
  const block = JSON.parse(printed.stdout.replaceAll(`:${port}/`, `:${front}/`));
  server = start(HOLDFAST, [...general, "serve", "--json", "--log", "off", "--workspace", workspace, "--model-url", model.url.replace(/\/v1$/, "")], {
    env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  await once(createInterface(server.stdout), "line", { signal: AbortSignal.timeout(START_MS_MAX) });
  proxy = await startProxy(front, port, (piece) => piece.includes('"called"') && released());
  // What is printed is all that is added; what there was stays what it was.
  assert.equal(block.agents.defaults.model, undefined);
  home = await makeHome(model.url, { models: block.models, agents: block.agents });
  gateway = await startGateway(home);
});
after(async () => {
  released();
  await gateway?.stop();
  await proxy?.stop();
  if (server && server.exitCode === null) {
    const gone = once(server, "close");
    server.kill("SIGTERM");
    await gone;
  }
  await model?.stop();
  await home?.remove();
  if (scratch) await rm(scratch, { recursive: true, force: true });
});

/** What of the stream a client takes for the answer. */
function answered(pieces) {
  const events = pieces.join("").split("\n\n").filter((event) => event.startsWith("data: {"));
  return events.map((event) => JSON.parse(event.slice(6)).choices?.[0]?.delta?.content ?? "").join("");
}

const of = (name) => proxy.completions().filter(({ asked }) => JSON.stringify(asked.messages).includes(`[[script:${name}]]`));

test("OpenClaw's answer is the model's, Holdfast ran its call, and the stream told so before the answer was there", async () => {
  const answer = await turn(gateway, "[[script:note]] Write it down.", { session: "agent:gpt-oss-executor:note", agent: "gpt-oss-executor" });
  assert.equal(answer.text, "it is written down.");
  assert.equal(await readFile(join(scratch, "workspace/note.txt"), "utf8"), "from the model");
  const requests = model.requests("note");
  assert.equal(requests.length, 2);
  assert.ok(requests[1].messages.some((message) => textOf(message).includes("note.txt")));
  const [{ asked, pieces }] = of("note");
  assert.equal(asked.stream, true);
  assert.ok(pieces.length > 2, `${pieces.length} pieces`);
  assert.equal(answered(pieces), "it is written down.");
  assert.ok(pieces.join("").trimEnd().endsWith("[DONE]"));
});

test("whoever was asked before is still asked, by its own model", async () => {
  const answer = await turn(gateway, "[[script:plain]] Who is there?", { session: "agent:main:plain", agent: "main" });
  assert.equal(answer.text, "the model that was there before");
  assert.equal(model.requests("plain").length, 1);
  assert.equal(of("plain").length, 0, "Holdfast was not asked");
});

test("what OpenClaw adds under its user's name reaches the model and is not what it is asked", async () => {
  const [{ asked }] = of("note");
  const last = textOf(asked.messages.at(-1));
  assert.equal(asked.messages.at(-1).role, "user");
  assert.ok(last.includes(INTERNAL), last.slice(0, 200));
  const [first] = model.requests("note");
  const texts = first.messages.map(textOf);
  assert.ok(texts.some((text) => text.includes("[[script:note]] Write it down.")), "the task is there");
  assert.ok(texts.some((text) => text.includes(INTERNAL)), "so is what the host said");
});

test("calls that go back to OpenClaw are matched with their results, whose ids come back stripped", async () => {
  const answer = await turn(gateway, "[[script:returned]] Run it.", { session: "agent:main:returned", agent: "main", model: "holdfast/gpt-oss-tools" });
  assert.equal(answer.text, "it was run.");
  const [first, second] = of("returned");
  const [, given] = /"id":"(call_\w+)"/.exec(first.pieces.join(""));
  const call = second.asked.messages.flatMap((message) => message.tool_calls ?? [])[0];
  const result = second.asked.messages.find((message) => message.role === "tool");
  assert.notEqual(result.tool_call_id, given, "the id is not what was given");
  assert.equal(result.tool_call_id, given.replaceAll(/[^a-zA-Z0-9]/g, ""));
  assert.equal(call.id, result.tool_call_id);
  const told = model.requests("returned")[1].messages.map(textOf).join("\n");
  assert.match(told, /\[TOOL_RESULT: exec\]\n[^]*from-2/);
});

test("spawned as a subagent by its name it works for another model's agent", async () => {
  const answer = await turn(gateway, "[[script:parent]] Have it written down.", { session: "agent:main:parent", agent: "main" });
  assert.equal(answer.status, 200);
  const until = Date.now() + CHILD_MS_MAX;
  const file = join(scratch, "workspace/child.txt");
  let written;
  while ((written = await readFile(file, "utf8").catch(() => undefined)) === undefined) {
    assert.ok(Date.now() < until, `the child wrote nothing; the parent was told: ${JSON.stringify(model.requests("parent").at(-1)?.messages.at(-2))}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  assert.equal(written, "from the child");
  const [{ asked }] = of("child");
  assert.equal(asked.model, "executor");
  while (!answered(of("child")[0].pieces).includes("the child is done.")) {
    assert.ok(Date.now() < until, "the child gave no answer");
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
});
