// The plugin's settings: the guard's own, and three that are about OpenClaw.

import { homedir } from "node:os";
import { join } from "node:path";
import type { PluginApi } from "../shared/host.js";

const LOG_PATH = "~/.openclaw/tool-guard.log";
/** Guard texts in a row after which a run is ended. */
const END_RUN_AFTER_IGNORED = 4;

export interface Settings {
  /** What the guard itself takes, as JSON. */
  guard: string;
  /** Where the attribution log is. */
  logPath: string;
  /** Tools that the person who configures it knows to change nothing. */
  readOnlyTools: ReadonlySet<string>;
  /** Guard texts in a row after which a run is ended; 0 for never. */
  endRunAfterIgnored: number;
}

/** Reads the settings; what OpenClaw's check of the schema let through may still be refused by the guard. */
export function readSettings(given: Record<string, unknown>, api: Pick<PluginApi, "resolvePath">): Settings {
  const { readOnlyTools, endRunAfterIgnored, logPath, ...guard } = given;
  const path = typeof logPath === "string" ? logPath : LOG_PATH;
  return {
    guard: JSON.stringify({ ...guard, logPath: path }),
    logPath: absolute(path, api),
    readOnlyTools: new Set(Array.isArray(readOnlyTools) ? readOnlyTools.map(String) : []),
    endRunAfterIgnored: typeof endRunAfterIgnored === "number" ? endRunAfterIgnored : END_RUN_AFTER_IGNORED,
  };
}

function absolute(path: string, api: Pick<PluginApi, "resolvePath">): string {
  if (api.resolvePath) return api.resolvePath(path);
  return path.startsWith("~/") ? join(homedir(), path.slice(2)) : path;
}
