// The plugin `clawos-trust`: whose words a session has read, what its tools may do, and what looks like an attack.

import { loadAddon } from "../shared/addon.js";
import type { TrustDesk } from "../shared/addon-types.js";
import {
  mayHear,
  READ_ONLY,
  settingsOf,
  warnIfUnknown,
  type AgentContext,
  type BeforeAgentRun,
  type BeforeToolCall,
  type CallContext,
  type PluginApi,
  type PolicyDecision,
  type ToolContext,
  type ToolResult,
  type ToolResultEvent,
} from "../shared/host.js";
import { meant } from "../shared/meant.js";
import { BoundedMap, processWide } from "../shared/process-wide.js";

/** The shape of what all copies of this plugin share in a process. */
const SHARED_VERSION = 3;
/** Longest that a held call waits for a person. */
const APPROVAL_MS = 300_000;
/** The host asks nothing whose title is longer than 80 characters, or its description than 512, once it has escaped them. */
const TITLE_TOOL_CHARS_MAX = 60;
const DESCRIPTION_CHARS_MAX = 480;
/** Results of these runtimes pass through here; the manifest names the same. */
const RUNTIMES = ["openclaw"];

interface SubagentLink {
  requesterSessionKey?: string;
  childSessionKey?: string;
  targetSessionKey?: string;
}

interface Shared {
  desk: TrustDesk;
  warned: Set<string>;
  /** Runs whose first words were heard: several registrations of this plugin hear of each run. */
  heard: Set<string>;
  /** Runs with a call that was asked for by somebody other than the owner, as far as the host can prove; and when that is noted. */
  strangers: BoundedMap<string, Promise<unknown>>;
}

export default {
  id: "clawos-trust",
  name: "ClawOS Trust",
  description: "Provenance of messages, capabilities of tools, and signs of an attack in what is read",
  register(api: PluginApi): void {
    const { approvalMs, ...settings } = settingsOf(api);
    const shared = open(api, JSON.stringify(settings));
    if (typeof shared === "string") return close(api, shared);
    warnIfUnknown(api, shared.warned);
    const timeoutMs = typeof approvalMs === "number" ? approvalMs : APPROVAL_MS;
    const trust = new Trust(api, shared, timeoutMs);
    // L1. Without the right to hear, strangers are known by their calls only.
    if (mayHear(api)) {
      api.on("before_agent_run", ((event: BeforeAgentRun, context: AgentContext) => trust.runBegins(event, context)) as never);
    }
    // A child has read what its parent has, and the parent reads what its child gives back.
    const related = (from: (link: SubagentLink) => [string | undefined, string | undefined]) => (async (event: SubagentLink, context: SubagentLink) => {
      const [source, target] = from({ ...context, ...event });
      if (source !== undefined && target !== undefined) await shared.desk.inherit(source, target);
    }) as never;
    api.on("subagent_spawned", related((link) => [link.requesterSessionKey, link.childSessionKey]));
    api.on("subagent_ended", related((link) => [link.targetSessionKey ?? link.childSessionKey, link.requesterSessionKey]));
    // L2, and what L4 holds.
    api.registerTrustedToolPolicy?.({
      id: "clawos-trust",
      description: "Calls within their tools' capabilities, and a person's answer after what looks like an attack",
      evaluate: (event, context) => trust.evaluate(event, context),
    });
    // L4.
    api.registerAgentToolResultMiddleware?.((event, context) => trust.cameBack(event, context), { runtimes: RUNTIMES });
  },
};

class Trust {
  readonly #api: PluginApi;
  readonly #shared: Shared;
  readonly #timeoutMs: number;

  constructor(api: PluginApi, shared: Shared, timeoutMs: number) {
    this.#api = api;
    this.#shared = shared;
    this.#timeoutMs = timeoutMs;
  }

  /** Whose words a run begins with. What another session or the host itself says is no person's. */
  async runBegins(event: BeforeAgentRun, context: AgentContext): Promise<undefined> {
    const session = sessionOf(context);
    const { kind, sourceSessionKey } = context.inputProvenance ?? {};
    if (sourceSessionKey !== undefined) await this.#shared.desk.inherit(sourceSessionKey, session);
    if (!isFirst(this.#shared.heard, context.runId) || kind === "inter_session" || kind === "internal_system") return undefined;
    // The host's own reviewer takes nobody else for its operator: a sender whom nobody vouches for is a stranger.
    const speaker = event.senderIsOwner === true ? "owner" : "stranger";
    const source = speaker === "owner" ? "user" : (context.channel ?? event.channelId ?? "inbound");
    const heard = JSON.parse(await this.#shared.desk.heard(session, speaker, source, event.prompt ?? "")) as Heard;
    if (heard.trust === "untrusted") this.#say(`a message to ${session} is from somebody not known as its owner (${source})`);
    if (heard.signals) this.#say(`a message to ${session} looks like an attack: ${heard.signals}`);
    return undefined;
  }

  async evaluate(event: BeforeToolCall, context: ToolContext): Promise<PolicyDecision | undefined> {
    const { tool, args } = meant(event.toolName, event.params);
    const session = sessionOf(context);
    if (this.#isStrangers(context)) await this.#strangerHeard(session, context.runId);
    const asked = await this.#shared.desk.judge({ session, tool, args: JSON.stringify(args) }, context.agentId ?? "");
    const verdict = JSON.parse(asked) as Verdict;
    if (verdict.kind === "run") {
      for (const note of verdict.notes) this.#say(note);
      return undefined;
    }
    this.#say(`${tool} in ${session}: ${verdict.why}`);
    if (verdict.kind === "deny") return { block: true, blockReason: `[PERMISSION DENIED] ${verdict.why}` };
    const requireApproval = {
      // The host knows this for hooks and not for policies, and refuses to ask on nobody's behalf.
      pluginId: this.#api.id,
      title: `Let ${cut(tool, TITLE_TOOL_CHARS_MAX)} run?`,
      description: cut(verdict.why, DESCRIPTION_CHARS_MAX),
      severity: "warning" as const,
      timeoutMs: this.#timeoutMs,
      allowedDecisions: ["allow-once", "deny"],
    };
    return { requireApproval };
  }

  /** Notes a stranger once a run. Every call of it waits for that: they may be asked about at the same time. */
  async #strangerHeard(session: string, runId: string | undefined): Promise<void> {
    const { desk, strangers } = this.#shared;
    const known = runId === undefined ? undefined : strangers.get(runId);
    const noted = known ?? desk.heard(session, "stranger", "inbound", "");
    if (runId !== undefined && !known) strangers.set(runId, noted);
    try {
      await noted;
    } catch (error) {
      // What could not be noted is tried again with the next call.
      if (runId !== undefined && strangers.get(runId) === noted) strangers.delete(runId);
      throw error;
    }
  }

  /** Looks at a result before the model does. One without a word, such as an image, was read all the same. */
  async cameBack(event: ToolResultEvent, context: CallContext): Promise<{ result: ToolResult } | undefined> {
    const { content = [], structuredContent } = event.result;
    const words = [...content.flatMap(wordsOf), ...wordsOf(structuredContent)];
    const { tool } = meant(event.toolName, event.args);
    const answer = await this.#shared.desk.cameBack(sessionOf(context), tool, words.join("\n"));
    const { advice, signals } = JSON.parse(answer) as Heard;
    if (!advice) return undefined;
    this.#say(`a result of ${tool} in ${sessionOf(context)} looks like an attack: ${signals}`);
    return { result: { ...event.result, content: [...content, { type: "text", text: advice }] } };
  }

  /** Whether a call is a stranger's. Of a run that was heard it is known who began it; others may steer it later. */
  #isStrangers({ requester, runId }: ToolContext): boolean {
    if (requester?.senderIsOwner !== undefined) return !requester.senderIsOwner;
    return runId === undefined || !this.#shared.heard.has(runId);
  }

  #say(text: string): void {
    this.#api.logger.warn(`clawos-trust: ${text}`);
  }
}

/** Where a part of a result keeps what is no text: an image, a sound, a file. */
const BINARY: ReadonlySet<string> = new Set(["data", "blob"]);

/** All words of a part of a result, however it is made up. */
function wordsOf(part: unknown): string[] {
  if (typeof part === "string") return part === "" ? [] : [part];
  if (typeof part !== "object" || part === null) return [];
  // In an array the names are numbers.
  return Object.entries(part).flatMap(([name, value]) => (BINARY.has(name) && typeof value === "string" ? [] : wordsOf(value)));
}

/** A text of at most so many characters. */
function cut(text: string, charsMax: number): string {
  return text.length <= charsMax ? text : `${text.slice(0, charsMax - 1).toWellFormed()}…`;
}

/** Runs remembered at most. */
const RUNS_MAX = 1024;

/** Whether a run is not in a set yet, where it is from now on; one without a name is never known. */
function isFirst(runs: Set<string>, runId: string | undefined): boolean {
  if (runId === undefined) return true;
  if (runs.has(runId)) return false;
  runs.add(runId);
  if (runs.size > RUNS_MAX) runs.delete(runs.values().next().value as string);
  return true;
}

interface Heard {
  trust: string;
  signals: string | null;
  advice?: string | null;
}

type Verdict = { kind: "run"; notes: string[] } | { kind: "ask"; why: string } | { kind: "deny"; why: string };

function sessionOf(context: CallContext): string {
  return context.sessionKey ?? context.sessionId ?? "";
}

/** What all copies of this plugin share, or why there is nothing to judge by. Settings that are no good change nothing. */
function open(api: PluginApi, settings: string): Shared | string {
  try {
    const make = (): Shared => ({ desk: new (loadAddon().TrustDesk)(settings), warned: new Set(), heard: new Set(), strangers: new BoundedMap(RUNS_MAX) });
    const shared = processWide("clawos-trust", SHARED_VERSION, make);
    try {
      shared.desk.configure(settings);
    } catch (error) {
      api.logger.error(`clawos-trust: the last good settings stay: ${reasonOf(error)}`);
    }
    return shared;
  } catch (error) {
    return reasonOf(error);
  }
}

/** Whoever wants rules would rather have no calls than calls without rules: only what looks may run. */
function close(api: PluginApi, why: string): void {
  api.logger.error(`clawos-trust can not judge, so that only tools that look may run: ${why}`);
  api.registerTrustedToolPolicy?.({
    id: "clawos-trust",
    description: "Only tools that look, because the rules can not be read",
    evaluate: async (event) => {
      const { tool } = meant(event.toolName, event.params);
      if (READ_ONLY.has(tool)) return undefined;
      return { block: true, blockReason: `[PERMISSION DENIED] ${tool} can not be judged, so it may not run: ${why}` };
    },
  });
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
