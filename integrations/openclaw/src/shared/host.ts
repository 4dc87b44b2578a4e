// What we use of OpenClaw's plugin interface, written down from what 2026.9.6 really sends. Everything that
// an older or newer host may leave out is optional.

export interface Logger {
  info(text: string): void;
  warn(text: string): void;
  error(text: string): void;
}

export interface PluginApi {
  id: string;
  config?: unknown;
  pluginConfig?: unknown;
  registrationMode?: string;
  runtime?: { version?: string };
  logger: Logger;
  on(hook: string, handler: (event: never, context: never) => unknown, options?: { priority?: number }): void;
  registerCommand?(command: {
    name: string;
    description: string;
    acceptsArgs?: boolean;
    requireAuth?: boolean;
    handler: (context: { args?: string }) => Promise<{ text: string }>;
  }): void;
  registerContextEngine?(id: string, make: () => unknown): void;
  registerTrustedToolPolicy?(policy: {
    id: string;
    description: string;
    evaluate: (event: BeforeToolCall, context: ToolContext) => Promise<PolicyDecision | undefined>;
  }): void;
  registerAgentToolResultMiddleware?(
    handler: (event: ToolResultEvent, context: CallContext) => Promise<{ result: ToolResult } | undefined>,
    options: { runtimes: string[] },
  ): void;
  resolvePath?(path: string): string;
}

/** The fields that tell a call's place. */
export interface CallContext {
  agentId?: string;
  sessionKey?: string;
  sessionId?: string;
  runId?: string;
  toolCallId?: string;
}

/** The same for a call, and who asked for it where the host can prove that. */
export interface ToolContext extends CallContext {
  requester?: { senderIsOwner?: boolean };
}

export type PolicyDecision =
  | { block: true; blockReason: string }
  | { requireApproval: { pluginId: string; title: string; description: string; severity: "warning"; timeoutMs?: number; allowedDecisions: string[] } };

export interface ToolResult {
  content?: Array<{ type: string; text?: string }>;
  structuredContent?: unknown;
}

export interface ToolResultEvent {
  toolCallId: string;
  toolName: string;
  args?: unknown;
  result: ToolResult;
}

/** What a run begins with. */
export interface BeforeAgentRun {
  prompt?: string;
  channelId?: string;
  senderId?: string;
  senderIsOwner?: boolean;
}

/** A run's place, and where its words come from. */
export interface AgentContext extends CallContext {
  channel?: string;
  inputProvenance?: { kind?: string; sourceSessionKey?: string };
}

export interface BeforeToolCall extends CallContext {
  toolName: string;
  params?: unknown;
}

export interface AfterToolCall extends CallContext {
  toolName: string;
  params?: unknown;
  result?: { content?: Array<{ type: string; text?: string }>; isError?: boolean; details?: unknown };
  error?: unknown;
}

export interface ToolResultMessage {
  role: "toolResult";
  toolCallId: string;
  toolName: string;
  content: Array<{ type: string; text?: string }>;
  details?: { status?: unknown; error?: unknown; exitCode?: unknown } | null;
  isError?: boolean;
}

export interface AssistantMessage {
  role: string;
  content?: unknown;
  stopReason?: string;
  errorMessage?: string;
}

export interface BeforeMessageWrite {
  message: AssistantMessage;
}

export interface ToolResultPersist {
  toolCallId?: string;
  message: ToolResultMessage;
  isSynthetic?: boolean;
}

export interface ModelCallStarted {
  runId?: string;
  sessionKey?: string;
  provider?: string;
  model?: string;
}

/** OpenClaw's tools that only look. */
export const READ_ONLY: ReadonlySet<string> = new Set([
  "agents_list",
  "find",
  "grep",
  "image",
  "ls",
  "memory_get",
  "memory_search",
  "pdf",
  "read",
  "session_status",
  "sessions_history",
  "sessions_list",
  "sessions_search",
  "tool_describe",
  "tool_search",
  "web_fetch",
  "web_search",
]);

/** A value of the plugin's own section of the configuration, wherever the host keeps it. */
export function settingsOf(api: PluginApi): Record<string, unknown> {
  if (isRecord(api.pluginConfig)) return api.pluginConfig;
  let at: unknown = api.config;
  for (const step of ["plugins", "entries", api.id, "config"]) at = isRecord(at) ? at[step] : undefined;
  return isRecord(at) ? at : {};
}

/** Hosts of the first half of 2026, and those that do not say. */
export function isOld(api: PluginApi): boolean {
  const [, year, month] = /^(\d+)\.(\d+)\./.exec(api.runtime?.version ?? "") ?? [];
  return year === undefined || Number(year) < 2026 || (Number(year) === 2026 && Number(month) < 6);
}

/** Whether this plugin hears what is said: newer hosts refuse such hooks unless their configuration allows it. */
export function mayHear(api: PluginApi): boolean {
  if (isOld(api)) return true;
  let at: unknown = api.config;
  for (const step of ["plugins", "entries", api.id, "hooks", "allowConversationAccess"]) {
    at = isRecord(at) ? at[step] : undefined;
  }
  return at === true;
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Versions that these plugins were run against. */
const KNOWN = /^2026\.9\./;

/** One clear warning, once in a process, when nobody has tried this version. */
export function warnIfUnknown(api: PluginApi, warned: Set<string>): void {
  const version = api.runtime?.version;
  if (version !== undefined && KNOWN.test(version)) return;
  const named = version === undefined || version === "unknown" ? "of an unknown version" : version;
  const said = `${api.id}: OpenClaw ${named} was not tried with this plugin; what its hooks do not offer is left out.`;
  if (warned.has(said)) return;
  warned.add(said);
  api.logger.warn(said);
}
