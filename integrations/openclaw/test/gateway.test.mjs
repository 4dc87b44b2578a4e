// Holdfast's gateway tools against the real gateway: `holdfast call gateway_…` goes through `POST /tools/invoke`.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { startModel } from "./rig/model.mjs";
import { HOLDFAST, makeHome, startGateway, TOKEN } from "./rig/openclaw.mjs";

const here = dirname(fileURLToPath(import.meta.url));
/** What the double in the Rust tests answers. */
const recorded = JSON.parse(await readFile(join(here, "../../../crates/web/tests/it/data/gateway.json"), "utf8"));
/** Tools that run in the agent only, or in Holdfast itself. */
const NOT_OVER_HTTP = ["read", "write", "edit", "exec"];
const OFFERED = [...NOT_OVER_HTTP, "agents_list", "memory_search", "message", "sessions_list", "sessions_history", "session_status", "unheard_of", "web_fetch"];
let model, home, gateway, scratch, config;

before(async () => {
  model = await startModel({});
  home = await makeHome(model.url);
  gateway = await startGateway(home);
  scratch = await mkdtemp(join(tmpdir(), "holdfast-gateway-"));
  config = join(scratch, "holdfast.yaml");
  // Nobody is there to be asked about a new recipient.
  const settings = { message: "{recipients: [nobody]}" };
  const tools = OFFERED.map((name) => `    ${name}: ${settings[name] ?? "{}"}\n`).join("");
  // A machine with much to do may take minutes for what is asked here.
  const patient = OFFERED.map((name) => `    gateway_${name}: {timeoutMs: 180000}\n`).join("");
  await writeFile(config, `gateway:\n  url: ${gateway.url}\n  tools:\n${tools}reliability:\n  tools:\n${patient}`);
});
after(async () => {
  await gateway?.stop();
  await model?.stop();
  await home?.remove();
  if (scratch) await rm(scratch, { recursive: true, force: true });
});

/** One call, with its result envelope. */
function holdfast(tool, args, { token = TOKEN, state = "state" } = {}) {
  const general = ["--config", config, "--state", join(scratch, state)];
  const params = JSON.stringify({ args });
  const env = { PATH: process.env.PATH, HOME: scratch, OPENCLAW_GATEWAY_TOKEN: token };
  const command = [...general, "call", `gateway_${tool}`, "--args", params, "--turn", `${tool}-${Math.random()}`, "--json"];
  return new Promise((resolve, reject) => {
    execFile(HOLDFAST, command, { env, cwd: scratch }, (error, out, said) => {
      if (error && error.code !== 1) reject(new Error(`${command.join(" ")}: ${said || error.message}`));
      else resolve(JSON.parse(out));
    });
  });
}

test("the gateway answers what the double in our tests answers", async (t) => {
  for (const { name, ask, answer } of recorded) {
    await t.test(name, async () => {
      const { method = "POST", token = TOKEN, text, body, padding = 0 } = ask;
      const sent = text ?? JSON.stringify({ ...body, ...(padding && { args: { padding: "x".repeat(padding) } }) });
      const response = await fetch(`${gateway.url}/tools/invoke`, {
        method,
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
        ...(method === "POST" && { body: sent }),
      });
      const got = await response.text();
      assert.equal(String(response.status), answer.status.split(" ")[0], got);
      if (answer.text !== undefined) assert.equal(got, answer.text);
      else assert.deepEqual(JSON.parse(got), answer.body);
    });
  }
});

test("what works comes back as the tool said it", async () => {
  const agents = await holdfast("agents_list", {});
  assert.equal(agents.status, "success", JSON.stringify(agents));
  assert.equal(agents.output.content.details.agents[0].id, "main");
  assert.deepEqual(JSON.parse(agents.output.content.content[0].text), agents.output.content.details);
  assert.equal(agents.output.metadata.trust, "untrusted");
  const sessions = await holdfast("sessions_list", {});
  assert.equal(typeof sessions.output.content.details.count, "number");
  const status = await holdfast("session_status", {});
  assert.match(status.output.content.content[0].text, /OpenClaw 20\d\d/);
  const memory = await holdfast("memory_search", { query: "anything" });
  assert.deepEqual(memory.output.content.details.results, []);
});

test("tools that HTTP callers do not get are not found", async () => {
  const args = { read: { path: "a.txt" }, exec: { command: "true" } };
  for (const tool of [...NOT_OVER_HTTP, "unheard_of"]) {
    const { status, error } = await holdfast(tool, args[tool] ?? { path: "a.txt", content: "x" });
    assert.deepEqual([tool, status, error.code], [tool, "error", "gateway_tool_not_found"]);
    assert.match(error.message, new RegExp(`404 Not Found for ${tool}: Tool not available: ${tool}`));
  }
});

test("bad arguments, a wrong token and a tool that throws are told apart", async () => {
  const bad = await holdfast("web_fetch", {});
  assert.deepEqual([bad.error.code, bad.error.terminal], ["invalid_arguments", true]);
  assert.match(bad.error.message, /url required/);
  const stranger = await holdfast("agents_list", {}, { token: "wrong" });
  assert.equal(stranger.error.code, "permission_denied");
  assert.match(stranger.error.message, /OPENCLAW_GATEWAY_TOKEN/);
  const inside = await holdfast("web_fetch", { url: gateway.url });
  assert.equal(inside.status, "retry_exhausted", JSON.stringify(inside));
  assert.match(inside.error.message, /500 Internal Server Error for web_fetch: tool execution failed/);
  // Nobody knows whether it was sent: the gateway says the same whatever happened.
  // In a state of its own: the attempts before may have opened the gateway's breaker, depending on how long all of it took.
  const sent = await holdfast("message", { action: "send", target: "nobody", message: "hello" }, { state: "apart" });
  assert.match(JSON.stringify(sent.error), /outcome_unknown|500/);
});
