// A model, a home and a gateway for the length of some tests, and what the tests ask of them.

import { join } from "node:path";
import { createRequire } from "node:module";
import { startModel, textOf } from "./model.mjs";
import { CACHE, makeHome, startGateway, turn } from "./openclaw.mjs";

/** Where the packed plugins are, unpacked. */
export const PACKAGES = join(CACHE, "packages");
/** The addon of the packed plugins. */
export const addon = createRequire(import.meta.url)(join(PACKAGES, "tool-guard/native/holdfast.linux-x64-gnu.node"));

/** A configuration that loads some of our plugins from their folders. */
export function loading(...ids) {
  const entries = ids.map((id) => [id, { enabled: true, hooks: { allowConversationAccess: true } }]);
  return {
    load: { paths: ids.map((id) => join(PACKAGES, id)) },
    allow: ids,
    entries: Object.fromEntries(entries),
  };
}

/** Starts everything; the first turn of a gateway loads half of OpenClaw, so one is had before the tests'. */
export async function startSession(scripts, { requestsMax, ...options } = {}) {
  const model = await startModel({ ...scripts, warm: () => ({ text: "warm" }) }, requestsMax);
  const home = await makeHome(model.url, options).catch(async (error) => {
    await model.stop();
    throw error;
  });
  let gateway;
  const session = {
    model,
    home,
    gateway: () => gateway,
    say: (script, session = `agent:main:${script}`) => turn(gateway, `[[script:${script}]] go`, { session }),
    async start(how) {
      gateway = await startGateway(home, how);
      await session.say("warm");
    },
    async stopGateway() {
      await gateway?.stop();
      gateway = undefined;
    },
    async stop() {
      await session.stopGateway();
      await model.stop();
      await home.remove();
    },
  };
  try {
    await session.start();
  } catch (error) {
    await session.stop();
    throw error;
  }
  return session;
}

/** Everything that a request showed the model and that came from a tool or the plugin, in order. */
export function told(request) {
  return request.messages.filter((message) => message.role !== "system").map(textOf);
}

/** What a scan of the home's stores finds. */
export async function findings(home) {
  const reports = JSON.parse(await addon.scanSessions([join(home.state, "agents")], "report", "remove_orphans"));
  return reports.flatMap((report) => report.findings ?? []);
}
