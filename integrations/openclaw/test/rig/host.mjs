// A host that only notes what it is told: for what the real one can not be brought to do at will.

import { join } from "node:path";

/** Registers plugins with such a host, whose files are in a folder. */
export const hostIn =
  (folder) =>
  (plugin, { version = "2026.9.6", hears = false, config = {} } = {}) => {
    const handlers = new Map();
    const said = [];
    const say = (text) => said.push(text);
    plugin.register({
      id: plugin.id,
      config: { plugins: { entries: { [plugin.id]: { hooks: { allowConversationAccess: hears } } } } },
      pluginConfig: { logPath: join(folder, "copies.log"), ...config },
      runtime: { version },
      logger: { info: say, warn: say, error: say },
      on: (name, handler) => handlers.set(name, handler),
      registerTrustedToolPolicy: ({ evaluate }) => handlers.set("policy", evaluate),
      registerAgentToolResultMiddleware: (handler) => handlers.set("result", handler),
      registerCommand: ({ name, handler }) => handlers.set(name, async () => (await handler({})).text),
    });
    return { hook: (name, ...args) => handlers.get(name)(...args), said, registered: [...handlers.keys()] };
  };
