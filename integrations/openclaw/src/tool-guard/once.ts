// Calls with an effect outside that a model asks for twice: made once, and answered from the record.

import type { HoldfastAddon } from "../shared/addon.js";
import type { OnceEnding, OnceLedger, ToolCall } from "../shared/addon-types.js";
import { isRecord, type AfterToolCall } from "../shared/host.js";
import { BoundedMap } from "../shared/process-wide.js";

/** Claims under way at most. */
const CLAIMS_MAX = 1024;
/** Longest text of an answer that is kept. */
const ANSWER_CHARS_MAX = 16 * 1024;
/** What the tool `message` does that another person sees; everything else it does may be asked again. */
const SENDS: ReadonlySet<string> = new Set(["send", "reply", "thread-reply", "broadcast", "sendAttachment", "poll", "sticker"]);
/** The host refused the arguments itself: the tool never ran, whatever the text goes on to quote. */
const NEVER_RAN = /^(?:Invalid arguments|Validation failed) for tool\b/;
/** Errors that come after something may have left: whatever else the text says, nobody knows. */
const MAYBE_SENT =
  /time[sd]?[\s_-]*out|deadline|hang up|reset|abort|cancel|terminated|closed|epipe|\b5\d\d\b|json|upstream|gateway/i;
/** Errors after which nothing was sent: no connection came about, or the other side said no by its status. */
const NOTHING_SENT =
  /\b(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN)\b|\b(?:HTTP(?:\/\d(?:\.\d)?)?|status(?:[ _]?code)?)[:=]?\s*(?:400|401|403|404|429)\b|\bfailed! \((?:400|401|403|404|429):/i;
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

export interface OnceSettings {
  tools: ReadonlySet<string>;
  unknownMs: number;
  echoMs: number;
  dir: string;
}

/** The ledger as the hooks use it. */
export class Once {
  readonly #addon: HoldfastAddon;
  #ledger: OnceLedger | undefined;
  readonly #claims = new BoundedMap<string, string>(CLAIMS_MAX);
  /** What was answered to a call, and in which request of the model it was asked. */
  readonly #answers = new BoundedMap<string, Answered>(CLAIMS_MAX);

  constructor(addon: HoldfastAddon) {
    this.#addon = addon;
  }

  /**
   * Why a call is not made, or nothing when it is this one that is to be made.
   *
   * Several registrations of this plugin ask about one call: the first answer is everybody's, or the second
   * would find the first one's claim and refuse the call. An id that comes again in a later request is another call.
   */
  before(at: string, request: string, call: ToolCall, settings: OnceSettings): Promise<string | undefined> {
    const known = this.#answers.get(at);
    if (known?.request === request) return known.answer;
    const answer = this.#claim(at, call, settings);
    this.#answers.set(at, { request, answer });
    return answer;
  }

  async #claim(at: string, call: ToolCall, settings: OnceSettings): Promise<string | undefined> {
    this.#ledger ??= new this.#addon.OnceLedger(settings.dir);
    const windows = { unknownMs: settings.unknownMs, echoMs: settings.echoMs };
    const claimed = JSON.parse(await this.#ledger.claim(call, windows)) as Claimed;
    if (claimed.kind === "granted") {
      this.#claims.set(at, JSON.stringify(claimed.claim));
      return undefined;
    }
    return said(call.tool, claimed);
  }

  /** Keeps how a call ended that was made. */
  async after(at: string, event: AfterToolCall): Promise<void> {
    const claim = this.#claims.get(at);
    if (claim === undefined || !this.#ledger) return;
    this.#claims.delete(at);
    this.#answers.delete(at);
    const text = textOf(event).slice(0, ANSWER_CHARS_MAX);
    await this.#ledger.finish(claim, endingOf(event), text);
  }
}

interface Answered {
  request: string;
  answer: Promise<string | undefined>;
}

interface Claimed {
  kind: "granted" | "inFlight" | "ended";
  claim?: unknown;
  state?: string;
  text?: string | null;
  agoMs?: number;
}

/** Whether a call is one that must not be made twice. */
export function isGuarded(tool: string, params: unknown, tools: ReadonlySet<string>): boolean {
  if (!tools.has(tool)) return false;
  if (tool !== "message" || !isRecord(params)) return true;
  return typeof params["action"] !== "string" || SENDS.has(params["action"]);
}

function said(tool: string, { kind, state, text, agoMs }: Claimed): string {
  const ago = `${Math.round((agoMs ?? 0) / 1000)} s ago`;
  if (kind === "inFlight") return `[ALREADY UNDER WAY] This same call of "${tool}" is being made right now. It is not made a second time.`;
  if (state === "done") {
    return `[ALREADY DONE] This same call of "${tool}" was made ${ago} and worked. It is not made again. Its result was:\n${text ?? ""}`;
  }
  return (
    `[OUTCOME UNKNOWN] This same call of "${tool}" was made ${ago} and nobody knows whether it took effect (${text ?? ""}). ` +
    "It is not made again. Find out whether it arrived, or ask, before anything is repeated."
  );
}

function endingOf(event: AfterToolCall): OnceEnding {
  const error = errorOf(event);
  if (error === undefined) return "done";
  if (NEVER_RAN.test(error)) return "failed";
  // Of many recipients some may have it, whatever the others' servers said.
  const many = isRecord(event.params) && event.params["action"] === "broadcast";
  // One word of doubt anywhere is doubt; certainty only comes from the error itself.
  const { status, timedOut } = detailsOf(event);
  const doubtful = timedOut === true || MAYBE_SENT.test(`${error}\n${String(status)}\n${textsOf(event)}`);
  return !many && !doubtful && NOTHING_SENT.test(error) ? "failed" : "unknown";
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

function textOf(event: AfterToolCall): string {
  return textsOf(event) || (errorOf(event) ?? "");
}

function textsOf({ result }: AfterToolCall): string {
  const parts = result?.content;
  return Array.isArray(parts) ? parts.map((part) => part.text ?? "").join("\n") : "";
}
