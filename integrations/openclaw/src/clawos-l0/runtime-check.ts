// Checks a session before a run: advisory, because a plugin can not change the history.

import { setImmediate } from "node:timers/promises";
import type { HoldfastAddon } from "../shared/addon.js";
import { isRecord, type CallContext } from "../shared/host.js";
import { BoundedMap } from "../shared/process-wide.js";

/** Longest history that is looked at before a run; longer ones are left to the scans, so that no run waits. */
export const MESSAGES_MAX = 5_000;
/** Entries that are written down in one go: far less than a millisecond's worth. */
const SLICE_MESSAGES = 250;
/** What is read of a stored session in one go: about a millisecond's worth. */
const PAGE_ENTRIES = 100;
const PAGE_BYTES = 128 * 1024;
/** Sessions that are known to be too long at most. */
const TOO_LONG_MAX = 1024;
/** Longest entry that is read before a run. */
const ENTRY_BYTES_MAX = 8 * 1024 * 1024;
/** The host's own module; an older host does not have it. */
const MODULE = "openclaw/plugin-sdk/session-transcript-runtime";

export interface Issue {
  type: string;
  toolUseId: string | null;
  messageIndex: number;
  description: string;
}

interface TranscriptRuntime {
  readSessionTranscriptRawDelta?: (asked: Asked) => Promise<Page>;
  readSessionTranscriptEvents?: (target: CallContext) => Promise<unknown[]>;
  readSessionTranscriptVisibleMessageDelta?: (asked: CallContext & { maxMessages: number }) => Promise<{ kind: string }>;
}

interface Asked extends CallContext {
  cursor?: string;
  maxEvents: number;
  maxBytes: number;
}

interface Page {
  /** `page`, or why there is none. */
  kind: string;
  events?: Array<{ event: unknown }>;
  cursor?: string;
  hasMore?: boolean;
  /** How much has to be asked for to get the next entry. */
  requiredBytes?: number;
}

/**
 * What is stored of a session, and no more than one entry beyond what is looked at. What the host hands to a hook is
 * mended already, so that nothing is seen there.
 */
export async function stored(context: CallContext): Promise<unknown[] | undefined> {
  if (!context.sessionKey || !context.sessionId) return undefined;
  const runtime = (await import(MODULE).catch(() => undefined)) as TranscriptRuntime | undefined;
  const { agentId, sessionKey, sessionId } = context;
  const target = { sessionKey, sessionId, ...(agentId !== undefined && { agentId }) };
  const { readSessionTranscriptRawDelta: read } = runtime ?? {};
  if (!read) return runtime?.readSessionTranscriptEvents?.(target);
  const known = `${sessionKey}\u0000${sessionId}`;
  if (tooLong.get(known)) return [];
  const entries = await paged((page) => read({ ...target, ...page }));
  if (entries && entries.length > MESSAGES_MAX) tooLong.set(known, true);
  return entries;
}

/** Whether the host has its view of a session ready; a host that has no such view, or does not say, has. */
export async function isReadable(session: CallContext): Promise<boolean> {
  try {
    const runtime = (await import(MODULE)) as TranscriptRuntime;
    const page = await runtime.readSessionTranscriptVisibleMessageDelta?.({ ...session, maxMessages: 1 });
    return page?.kind !== "unavailable";
  } catch {
    return true;
  }
}

/** Sessions that are not read again: the host only ever adds to one. */
const tooLong = new BoundedMap<string, true>(TOO_LONG_MAX);

/** Reads page by page: the host reads on the event loop, which has a round after each. */
export async function paged(read: (page: Omit<Asked, keyof CallContext>) => Promise<Page>): Promise<unknown[] | undefined> {
  const entries: unknown[] = [];
  let [cursor, maxBytes]: [string | undefined, number] = [undefined, PAGE_BYTES];
  while (entries.length <= MESSAGES_MAX) {
    const page = await read({ maxEvents: PAGE_ENTRIES, maxBytes, ...(cursor !== undefined && { cursor }) });
    // It was replaced while it was read, or there is none: what the host says of it has to do.
    if (page.kind !== "page") return undefined;
    for (const { event } of page.events ?? []) entries.push(event);
    if (!page.hasMore || page.cursor === undefined) break;
    // One long entry is a page of its own; one that is too long even for that is left to the scans.
    const isStuck = (page.events ?? []).length === 0;
    if (isStuck && !((page.requiredBytes ?? 0) > maxBytes && (page.requiredBytes as number) <= ENTRY_BYTES_MAX)) return undefined;
    maxBytes = isStuck ? (page.requiredBytes as number) : PAGE_BYTES;
    cursor = page.cursor;
    await setImmediate();
  }
  return entries;
}

/** What pairing needs of some entries or messages as JSON, and nothing else: texts can be megabytes. The event loop has a round after each slice. */
export async function skeleton(messages: unknown[]): Promise<string> {
  const slices: string[] = [];
  for (let at = 0; at < messages.length; at += SLICE_MESSAGES) {
    if (at > 0) await setImmediate();
    const slice = messages.slice(at, at + SLICE_MESSAGES).map(entry);
    slices.push(JSON.stringify(slice).slice(1, -1));
  }
  return `[${slices.join(",")}]`;
}

function entry(given: unknown): unknown {
  if (!isRecord(given)) return { role: "user", content: "" };
  if (typeof given["type"] !== "string") return bare(given);
  const { type, id, parentId, firstKeptEntryId, targetId, message } = given;
  return { type, id, parentId, firstKeptEntryId, targetId, ...(isRecord(message) && { message: bare(message) }) };
}

function bare(message: Record<string, unknown>): unknown {
  const { role, toolCallId, toolName, stopReason, excludeFromContext, content } = message;
  const blocks = Array.isArray(content) ? content.filter(isRecord).map(block) : "";
  return { role, toolCallId, toolName, stopReason, excludeFromContext, content: blocks };
}

function block(part: Record<string, unknown>): unknown {
  const { type, id, name, toolCallId, tool_use_id } = part;
  return { type, id, name, toolCallId, tool_use_id, ...(type === "text" && { text: "" }) };
}

/** What was found, and where its file is or why there is none. */
export interface Found {
  issues: Issue[];
  incident?: string;
  trouble?: string;
}

/** What is wrong with them; when that is news, an incident file says so. */
export async function check(
  addon: HoldfastAddon,
  messages: unknown[],
  sessionKey: string,
  stateDir: string,
  isNews: (issues: Issue[]) => boolean,
): Promise<Found> {
  if (messages.length === 0 || messages.length > MESSAGES_MAX) return { issues: [] };
  const json = await skeleton(messages);
  const issues = JSON.parse(await addon.checkMessages(json)) as Issue[];
  if (!isNews(issues)) return { issues };
  try {
    return { issues, incident: JSON.parse(await addon.writeIncident(stateDir, sessionKey, json)) as string };
  } catch (error) {
    // What was found is not lost with its file.
    return { issues, trouble: error instanceof Error ? error.message : String(error) };
  }
}

/** What the model is told about it. */
export function warning(issues: Issue[]): string {
  const first = issues[0]?.description ?? "";
  return `[SESSION INTEGRITY] ${issues.length} tool calls and results of this conversation do not fit together (${first}). Results that seem to be missing may be lost; do not rely on them.`;
}
