// What became of a call, read from the result that OpenClaw is about to store.

import type { Outcome } from "../shared/addon-types.js";
import { isRecord, type ToolResultMessage } from "../shared/host.js";

/** OpenClaw's tools that only look. */
const READ_ONLY: ReadonlySet<string> = new Set([
  "agents_list",
  "find",
  "grep",
  "image",
  "ls",
  "memory_get",
  "memory_search",
  "pdf",
  "process",
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
/** OpenClaw's tools that are asked again and again until something is ready. */
const POLLING: ReadonlySet<string> = new Set(["process", "session_status", "sessions_yield", "subagents"]);
/** Longest text that is compared whole; of a longer one both ends are, so that no call holds Node up. */
export const TEXT_CHARS_MAX = 128 * 1024;
/** Pieces of a longer text that are compared besides its ends, and how long each is. */
const PIECES = 64;
const PIECE_CHARS = 256;

/** The tool and the arguments that the model meant. */
export interface Meant {
  tool: string;
  args: string;
}

/** Most tools sit behind `tool_call`; then the tool inside it is what the model meant. */
export function meant(toolName: string, params: unknown): Meant {
  if (toolName === "tool_call" && isRecord(params)) {
    const inner = params["id"] ?? params["name"] ?? params["tool"];
    if (typeof inner === "string") {
      return { tool: inner.split(":").at(-1) ?? inner, args: json(params["args"] ?? params["arguments"] ?? {}) };
    }
  }
  return { tool: toolName, args: json(params ?? {}) };
}

/** Arguments as JSON. Only texts in them are ever long: what a model writes at once is short otherwise. */
function json(value: unknown): string {
  if (!isLong(value)) return JSON.stringify(value) ?? "null";
  return JSON.stringify(value, (_, part: unknown) => (typeof part === "string" ? bounded(part) : part)) ?? "null";
}

function isLong(value: unknown): boolean {
  if (typeof value === "string") return value.length > TEXT_CHARS_MAX;
  if (typeof value !== "object" || value === null) return false;
  for (const key in value) if (isLong((value as Record<string, unknown>)[key])) return true;
  return false;
}

/** All the text of a result. */
export function textOf(message: ToolResultMessage): string {
  const texts = message.content.filter((part) => part.type === "text").map((part) => part.text ?? "");
  return texts.length === 1 ? (texts[0] as string) : texts.join("\n");
}

/** What became of a call that this guard did not refuse. */
export function outcomeOf(tool: string, message: ToolResultMessage, readOnly: ReadonlySet<string>): Outcome {
  const text = bounded(textOf(message));
  const { details } = message;
  if (message.isError) {
    const error = typeof details?.error === "string" ? details.error : undefined;
    return { ending: "failed", text, ...(error !== undefined && { error }) };
  }
  const polls = POLLING.has(tool);
  // A command that returned non-zero is no error to OpenClaw.
  if (typeof details?.exitCode === "number" && details.exitCode !== 0) {
    return { ending: "exitedNonZero", text, polls };
  }
  return { ending: "succeeded", text, polls, mutating: !READ_ONLY.has(tool) && !readOnly.has(tool) };
}

function bounded(text: string): string {
  if (text.length <= TEXT_CHARS_MAX) return text;
  const end = (TEXT_CHARS_MAX - PIECES * PIECE_CHARS) / 2;
  const step = (text.length - 2 * end) / PIECES;
  const pieces = Array.from({ length: PIECES }, (_, n) => {
    const at = end + Math.floor(n * step);
    return text.slice(at, at + PIECE_CHARS);
  });
  return `${text.slice(0, end)}\n(${text.length})\n${pieces.join("\n")}\n${text.slice(-end)}`;
}

/** Appends to what the model reads: in place, because only that reaches it in its very next request. */
export function append(message: ToolResultMessage, suffix: string): void {
  const last = message.content.findLast((part) => part.type === "text");
  if (last) last.text = (last.text ?? "") + suffix;
  else message.content.push({ type: "text", text: suffix.trimStart() });
}
