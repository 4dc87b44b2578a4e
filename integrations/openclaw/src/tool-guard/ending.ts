// How a call ended that has an effect outside: done, not done, or nobody knows.

import type { OnceEnding } from "../shared/addon-types.js";
import { isRecord, type AfterToolCall } from "../shared/host.js";

/** The host refused the arguments itself: the tool never ran, whatever the text goes on to quote. */
const NEVER_RAN = /^(?:Invalid arguments|Validation failed) for tool\b/;
/** Errors that come after something may have left: whatever else the text says, nobody knows. */
const MAYBE_SENT =
  /time[sd]?[\s_-]*out|deadline|hang up|reset|abort|cancel|terminated|closed|epipe|\b5\d\d\b|json|upstream|gateway/i;
/** Errors after which nothing was sent: no connection came about, or the other side said no by its status. */
const NOTHING_SENT =
  /\b(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN)\b|\b(?:HTTP(?:\/\d(?:\.\d)?)?|status(?:[ _]?code)?)[:=]?\s*(?:400|401|403|404|429)\b|\bfailed! \((?:400|401|403|404|429):/i;
/** What the host says of a call in `details.status` that it did not let run, with the reason beside it. */
const HELD_BACK: ReadonlySet<string> = new Set(["blocked", "skipped"]);
/** What the host takes for an error in a result's `details.status`. */
const FAILED_STATUS: ReadonlySet<string> = new Set([
  "aborted",
  "approval-unavailable",
  "blocked",
  "canceled",
  "cancelled",
  "denied",
  "disabled",
  "error",
  "failed",
  "failure",
  "forbidden",
  "invalid",
  "killed",
  "timed_out",
  "timeout",
  "unavailable",
]);

/** How the host names a message of which some parts have arrived, and the last one has not. */
const PARTIAL_CODE = "CHANNEL_PARTIAL_DELIVERY";
const PARTIAL_STATUS = "partial_failed";
/**
 * A message that is longer than this, or has more than one line, may be sent in several parts: the shortest limit of
 * a channel of the host's own is 350 characters (IRC), and a channel may be set to send each paragraph by itself.
 */
const ONE_PART_CHARS_MAX = 300;
/** Arguments of `message` that add no part to it; whatever else it is given may be a file, a sound, a poll. */
const ADDS_NO_PART: ReadonlySet<string> = new Set(
  ["accountId", "action", "channel", "channelId", "dryRun", "guildId", "message", "replyTo", "silent", "target", "text", "threadId", "to"],
);

/** How a call ended, as far as anybody can know. */
export function endingOf(event: AfterToolCall): OnceEnding {
  const { status, timedOut, deniedReason } = detailsOf(event);
  if (typeof status === "string" && HELD_BACK.has(status) && typeof deniedReason === "string") return "neverRan";
  if (isPartial(event)) return "unknown";
  const error = errorOf(event);
  if (error === undefined) return isUndelivered(event) ? "unknown" : "done";
  if (NEVER_RAN.test(error)) return "neverRan";
  // Of many recipients some may have it, whatever the others' servers said.
  const many = isRecord(event.params) && event.params["action"] === "broadcast";
  // One word of doubt anywhere is doubt; certainty only comes from the error itself.
  const doubtful = timedOut === true || MAYBE_SENT.test(`${error}\n${String(status)}\n${textsOf(event)}`);
  return !many && !doubtful && NOTHING_SENT.test(error) && isOnePart(event) ? "failed" : "unknown";
}

/** Whether the host says that something of it has arrived: the error beside it is only that of the part that has not. */
function isPartial(event: AfterToolCall): boolean {
  const thrown = typeof event.error === "object" && event.error !== null ? (event.error as Record<string, unknown>) : {};
  return [thrown, detailsOf(event), told(textsOf(event))].some(
    ({ code, gatewayCode, sentBeforeError, visibleReplySent, deliveryStatus, status }) =>
      [code, gatewayCode].includes(PARTIAL_CODE) ||
      [deliveryStatus, status].includes(PARTIAL_STATUS) ||
      sentBeforeError === true ||
      visibleReplySent === true,
  );
}

/** Whether a message is sent in one go. Of several parts the host may tell nothing but the error of the last one. */
function isOnePart({ toolName, params }: AfterToolCall): boolean {
  if (toolName !== "message") return true;
  if (!isRecord(params)) return false;
  return Object.entries(params).every(([name, value]) => isBlank(value) || (ADDS_NO_PART.has(name) && isShort(value)));
}

/** What models write for an argument that they do not mean. */
function isBlank(value: unknown): boolean {
  return value === undefined || value === null || value === "" || value === false || (typeof value === "object" && Object.keys(value).length === 0);
}

function isShort(value: unknown): boolean {
  return typeof value !== "string" || (value.length <= ONE_PART_CHARS_MAX && !value.includes("\n"));
}

/** Whether the host has only queued a message: it calls that no error, and may still send it, or never. */
function isUndelivered(event: AfterToolCall): boolean {
  return [detailsOf(event), told(textsOf(event))].some(({ delivered, status }) => delivered === false || status === "delivery_queued");
}

/** A result that is written as JSON. */
function told(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : {};
  } catch {
    return {};
  }
}

/** The error that a call ended with, also when only its result tells. */
function errorOf(event: AfterToolCall): string | undefined {
  if (event.error instanceof Error) return event.error.message;
  if (event.error !== undefined && event.error !== null && event.error !== "") return String(event.error);
  const { status, ok, success, timedOut, error } = detailsOf(event);
  const refused = typeof status === "string" && FAILED_STATUS.has(status.toLowerCase()) && ok !== true && success !== true;
  const failed = event.result?.isError === true || ok === false || success === false || timedOut === true;
  if (!failed && !refused && !error) return undefined;
  return typeof error === "string" ? error : textsOf(event);
}

function detailsOf({ result }: AfterToolCall): Record<string, unknown> {
  return isRecord(result?.details) ? result.details : {};
}

/** What a call came back with, or why it did not. */
export function textOf(event: AfterToolCall): string {
  return textsOf(event) || (errorOf(event) ?? "");
}

function textsOf({ result }: AfterToolCall): string {
  const parts = result?.content;
  return Array.isArray(parts) ? parts.map((part) => part.text ?? "").join("\n") : "";
}
