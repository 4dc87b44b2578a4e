// What became of a call, read from the result that OpenClaw is about to store.

import type { Outcome } from "../shared/addon-types.js";
import { READ_ONLY, type AfterToolCall, type ToolResultMessage } from "../shared/host.js";
import { bounded } from "../shared/meant.js";

/** Those that only look, and the one that is mostly used for looking. */
const LOOKING: ReadonlySet<string> = new Set([...READ_ONLY, "process"]);
/** OpenClaw's tools that are asked again and again until something is ready. */
const POLLING: ReadonlySet<string> = new Set(["process", "session_status", "sessions_yield", "subagents"]);

/** All the text of a result. */
export function textOf(message: ToolResultMessage): string {
  const texts = message.content.filter((part) => part.type === "text").map((part) => part.text ?? "");
  return texts.length === 1 ? (texts[0] as string) : texts.join("\n");
}

/** What became of a call, and the text of its result. */
export interface Ended {
  outcome: Outcome;
  text: string;
}

/** What became of a call that this guard did not refuse. */
export function outcomeOf(tool: string, message: ToolResultMessage, readOnly: ReadonlySet<string>): Ended {
  const text = bounded(textOf(message));
  const { details } = message;
  const error = typeof details?.error === "string" ? details.error : undefined;
  // Older hosts, and some tools, only say so in the details.
  if (message.isError || (details?.status === "error" && error !== undefined)) {
    return { outcome: { ending: "failed", ...(error !== undefined && { error }) }, text };
  }
  const polls = POLLING.has(tool);
  // A command that returned non-zero is no error to OpenClaw.
  if (typeof details?.exitCode === "number" && details.exitCode !== 0) {
    return { outcome: { ending: "exitedNonZero", polls }, text };
  }
  const mutating = !LOOKING.has(tool) && !readOnly.has(tool);
  return { outcome: { ending: "succeeded", polls, mutating }, text };
}

/** A stored result as other hooks tell of it. */
export function resultOf({ content, details, isError }: ToolResultMessage): NonNullable<AfterToolCall["result"]> {
  return { content, ...(isError !== undefined && { isError }), ...(details !== undefined && { details }) };
}

/** Appends to what the model reads: in place, because only that reaches it in its very next request. */
export function append(message: ToolResultMessage, suffix: string): void {
  const last = message.content.findLast((part) => part.type === "text");
  if (last) last.text = (last.text ?? "") + suffix;
  else message.content.push({ type: "text", text: suffix.trimStart() });
}
