// The plugin's settings: the guard's own, and those that are about OpenClaw.

import { homedir } from "node:os";
import { join } from "node:path";
import type { HoldfastAddon } from "../shared/addon.js";
import type { PluginApi } from "../shared/host.js";
import type { OnceSettings } from "./once.js";

const LOG_PATH = "~/.openclaw/tool-guard.log";
/** Requests in a row with a guard text after which the model is told once more, to answer; then its run is ended. */
const END_RUN_AFTER_IGNORED = 4;
const STATE_PATH = "~/.openclaw/holdfast";
/** How long a call whose outcome is unknown answers for another one of the same content. */
const UNKNOWN_MS = 600_000;
/** The same for a call that worked. */
const ECHO_MS = 30_000;

/** A record of a call is kept so long, and answers for no other call after that. */
export const WINDOW_MS_MAX = 86_400_000;

export interface Settings {
  /** Whether the plugin does anything at all. */
  enabled: boolean;
  /** What the guard itself takes, as JSON. */
  guard: string;
  /** Where the attribution log is. */
  logPath: string;
  /** Tools that the person who configures it knows to change nothing. */
  readOnlyTools: ReadonlySet<string>;
  /** Requests in a row with a guard text after which the model is told to answer, and then its run is ended; 0 for never. */
  endRunAfterIgnored: number;
  /** Which calls are made once, and how. */
  once: OnceSettings;
}

/** Reads the settings; what OpenClaw's check of the schema let through may still be refused by the guard, by name. */
export function readSettings(given: Record<string, unknown>, api: Pick<PluginApi, "resolvePath">): Settings {
  const { readOnlyTools, endRunAfterIgnored, logPath, onceTools, onceUnknownMs, onceEchoMs, statePath, ...guard } = given;
  return {
    guard: JSON.stringify({ ...guard, ...(logPath !== undefined && { logPath }) }),
    enabled: given["enabled"] !== false,
    logPath: absolute(text(logPath, LOG_PATH), api),
    readOnlyTools: names(readOnlyTools),
    endRunAfterIgnored: count(endRunAfterIgnored, END_RUN_AFTER_IGNORED),
    once: {
      tools: names(onceTools),
      unknownMs: Math.min(count(onceUnknownMs, UNKNOWN_MS), WINDOW_MS_MAX),
      echoMs: Math.min(count(onceEchoMs, ECHO_MS), WINDOW_MS_MAX),
      dir: absolute(text(statePath, STATE_PATH), api),
    },
  };
}

/** The same without what the guard refuses: one setting that can not be used must not switch the guard off. */
export function usable(settings: Settings, { ToolGuard }: HoldfastAddon): Settings {
  let kept = {};
  for (const [name, value] of Object.entries(JSON.parse(settings.guard) as Record<string, unknown>)) {
    const more = { ...kept, [name]: value };
    try {
      new ToolGuard(JSON.stringify(more));
      kept = more;
    } catch {
      // Whoever takes the settings as they are says what is wrong with them.
    }
  }
  return { ...settings, guard: JSON.stringify(kept) };
}

function names(given: unknown): ReadonlySet<string> {
  return new Set(Array.isArray(given) ? given.map((name) => String(name).trim()) : []);
}

function count(given: unknown, otherwise: number): number {
  return Number.isSafeInteger(given) && (given as number) >= 0 ? (given as number) : otherwise;
}

function text(given: unknown, otherwise: string): string {
  return typeof given === "string" && given.trim() !== "" ? given : otherwise;
}

function absolute(path: string, api: Pick<PluginApi, "resolvePath">): string {
  if (api.resolvePath) return api.resolvePath(path);
  return path.startsWith("~/") ? join(homedir(), path.slice(2)) : path;
}
