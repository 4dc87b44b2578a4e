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
/** Errors after which nothing was sent. With any other error nobody knows. */
const NOTHING_SENT =
  /econnrefused|enotfound|eai_again|\b(400|401|403|404|429)\b|too many requests|unauthorized|forbidden|not found|unsupported|invalid|missing|required|unknown (channel|target)/i;

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

  constructor(addon: HoldfastAddon) {
    this.#addon = addon;
  }

  /** Why a call is not made, or nothing when it is this one that is to be made. */
  async before(at: string, call: ToolCall, settings: OnceSettings): Promise<string | undefined> {
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
    const text = textOf(event).slice(0, ANSWER_CHARS_MAX);
    await this.#ledger.finish(claim, endingOf(event), text);
  }
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
  const { error } = event;
  if (error === undefined || error === null || error === "") return "done";
  return NOTHING_SENT.test(String(error)) ? "failed" : "unknown";
}

function textOf(event: AfterToolCall): string {
  const parts = event.result?.content;
  const texts = Array.isArray(parts) ? parts.map((part) => part.text ?? "") : [];
  return texts.join("\n") || String(event.error ?? "");
}
