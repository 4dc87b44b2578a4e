// The plugin `clawos-l0`: which hook and which command does what.

import { loadAddon, NoAddonError, type HoldfastAddon } from "../shared/addon.js";
import { isOld, mayHear, settingsOf, warnIfUnknown, type CallContext, type PluginApi } from "../shared/host.js";
import { BoundedMap, processWide } from "../shared/process-wide.js";
import { stateDir } from "../shared/state-dir.js";
import { engine, ENGINE_ID } from "./engine.js";
import { Incidents } from "./incidents.js";
import { check, stored, warning, type Found, type Issue } from "./runtime-check.js";
import { inOneLine, inWords, scan, type Scan } from "./scan.js";

/** The shape of what all copies of this plugin share in a process. */
const SHARED_VERSION = 5;
/** How long after a scan that failed none is begun by itself: a scan costs a process, and runs come by the second. */
const RETRY_MS = 3_600_000;
/** Runs whose check is remembered at most. */
const RUNS_MAX = 1024;
const LEVELS = ["debug", "info", "warn", "error"] as const;
type Level = (typeof LEVELS)[number];

interface Shared {
  addon: HoldfastAddon;
  warned: Set<string>;
  /** The scan under way, so that no two run at once. */
  scanning: Promise<Scan> | undefined;
  last: Scan | undefined;
  /** When the last scan failed, unless one has worked since. */
  failedAtMs: number | undefined;
  incidents: Incidents;
  /** Results of sessions in use that the host was asked to leave out. */
  leftOut: number;
  /** The check of each run: every registration of this plugin is asked for it, and one reads the session. */
  checks: BoundedMap<string, Promise<Found>>;
}

interface Settings {
  strategy: string;
  level: Level;
  scanOnStart: boolean;
}

export default {
  id: "clawos-l0",
  name: "ClawOS L0",
  description: "Session integrity: finds tool results without their calls before a provider refuses them",
  register(api: PluginApi): void {
    const shared = open(api);
    if (!shared) return;
    warnIfUnknown(api, shared.warned);
    const l0 = new L0(api, shared, read(settingsOf(api)));
    if (l0.settings.scanOnStart) {
      api.on("gateway_start", () => l0.ensureScanned());
    }
    if (mayHear(api)) {
      // The first is gone from newer hosts, the second is not in older ones.
      const hook = isOld(api) ? "before_agent_start" : "before_prompt_build";
      api.on(hook, ((event: { messages?: unknown[] }, context: CallContext) =>
        l0.beforeRun(event, context)) as (event: never, context: never) => unknown);
    }
    // It only works where the configuration puts it into `plugins.slots.contextEngine`.
    api.registerContextEngine?.(ENGINE_ID, () => engine(shared.addon, (text, results) => l0.mended(text, results)));
    api.registerCommand?.({
      name: "l0-status",
      description: "Show what the last scan of the sessions found",
      handler: async () => ({ text: await l0.status() }),
    });
    api.registerCommand?.({
      name: "l0-scan",
      description: "Scan all sessions, and mend those that nobody has open",
      handler: async () => ({ text: await l0.scanNow() }),
    });
  },
};

/** One registration's view of what the process shares. */
class L0 {
  readonly settings: Settings;
  readonly #api: PluginApi;
  readonly #shared: Shared;

  constructor(api: PluginApi, shared: Shared, settings: Settings) {
    this.#api = api;
    this.#shared = shared;
    this.settings = settings;
  }

  /** The first scan, whichever way in is used first: old hosts start the gateway before plugins can hear of it. */
  async ensureScanned(): Promise<void> {
    const { last, scanning, failedAtMs } = this.#shared;
    if (last || scanning || (failedAtMs !== undefined && Date.now() - failedAtMs < RETRY_MS)) return;
    try {
      await this.#scan("report");
    } catch (error) {
      this.#say("error", error instanceof Error ? error.message : String(error));
    }
  }

  async status(): Promise<string> {
    await this.ensureScanned();
    const { last, incidents, leftOut } = this.#shared;
    if (!last) return "No scan has worked yet; /l0-scan tries again and says why.";
    return `Last scan ${last.at.toISOString()}: ${inWords(last)}\nIncidents before runs since the start: ${incidents.count}; results left out of sessions in use: ${leftOut}`;
  }

  async scanNow(): Promise<string> {
    try {
      return inWords(await this.#scan("repair"));
    } catch (error) {
      return error instanceof Error ? error.message : String(error);
    }
  }

  /** Advisory: the host mends what it sends, and its stored rows stay as they are. */
  async beforeRun(event: { messages?: unknown[] }, context: CallContext): Promise<{ prependContext: string } | undefined> {
    try {
      // Where the host tells of its start too early to be heard.
      if (this.settings.scanOnStart) void this.ensureScanned();
      const { incidents } = this.#shared;
      const { issues, incident, trouble, isFirst } = await this.#checked(event, context);
      if (isFirst && (incident !== undefined || trouble !== undefined)) {
        const file = incident === undefined ? `no incident file could be written: ${trouble}` : `see ${incident}`;
        this.#say("warn", `${issues.length} issues before a run of ${context.sessionKey}; ${file}`);
      }
      const isToBeTold = issues.length > 0 && incidents.isUntold(context, event);
      return isToBeTold ? { prependContext: warning(issues) } : undefined;
    } catch (error) {
      // A check that fails must not keep anybody from being answered.
      this.#say("error", error instanceof Error ? error.message : String(error));
      return undefined;
    }
  }

  /** What is wrong with a session before a run, looked at once; `isFirst` for whoever asked first. */
  async #checked(event: { messages?: unknown[] }, context: CallContext): Promise<Found & { isFirst: boolean }> {
    const { checks } = this.#shared;
    const { runId } = context;
    const known = runId === undefined ? undefined : checks.get(runId);
    if (known) return { ...(await known), isFirst: false };
    const found = this.#look(event, context);
    if (runId !== undefined) checks.set(runId, found);
    return { ...(await found), isFirst: true };
  }

  async #look(event: { messages?: unknown[] }, context: CallContext): Promise<Found> {
    const { addon, incidents } = this.#shared;
    const messages = (await stored(context)) ?? event.messages ?? [];
    const isNews = (issues: Issue[]): boolean => incidents.isNews(context, issues);
    return check(addon, messages, context.sessionKey ?? "", stateDir(), isNews);
  }

  async #scan(action: "report" | "repair"): Promise<Scan> {
    while (this.#shared.scanning) await this.#shared.scanning.catch(() => undefined);
    const scanning = scan(action, this.settings.strategy, stateDir());
    this.#shared.scanning = scanning;
    try {
      this.#shared.last = await scanning;
      this.#shared.failedAtMs = undefined;
    } catch (error) {
      this.#shared.failedAtMs = Date.now();
      throw error;
    } finally {
      this.#shared.scanning = undefined;
    }
    this.#say("info", inOneLine(this.#shared.last));
    return this.#shared.last;
  }

  /** Counts and says what was done to a session in use. */
  mended(text: string, results: number): void {
    this.#shared.leftOut += results;
    this.#say("info", text);
  }

  #say(level: Exclude<Level, "debug">, text: string): void {
    if (LEVELS.indexOf(level) >= LEVELS.indexOf(this.settings.level)) this.#api.logger[level](`clawos-l0: ${text}`);
  }
}

function open(api: PluginApi): Shared | undefined {
  try {
    return processWide("clawos-l0", SHARED_VERSION, () => ({
      addon: loadAddon(),
      warned: new Set<string>(),
      scanning: undefined,
      last: undefined,
      failedAtMs: undefined,
      incidents: new Incidents(),
      leftOut: 0,
      checks: new BoundedMap<string, Promise<Found>>(RUNS_MAX),
    }));
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    api.logger.error(error instanceof NoAddonError ? `clawos-l0: ${why} Until then this plugin does nothing.` : `clawos-l0 is off: ${why}`);
    return undefined;
  }
}

function read(given: Record<string, unknown>): Settings {
  const { repairStrategy, logLevel, scanOnStart } = given;
  const level = LEVELS.find((known) => known === logLevel);
  return {
    strategy: typeof repairStrategy === "string" ? repairStrategy : "remove_orphans",
    level: level ?? "info",
    scanOnStart: scanOnStart !== false,
  };
}
