// Calls with an effect outside that a model asks for twice: made once, and answered from the record.

import { createHash } from "node:crypto";
import type { HoldfastAddon } from "../shared/addon.js";
import type { OnceLedger, ToolCall } from "../shared/addon-types.js";
import { isRecord, type AfterToolCall } from "../shared/host.js";
import { BoundedMap } from "../shared/process-wide.js";
import { endingOf, textOf } from "./ending.js";

/** Claims under way at most. */
const CLAIMS_MAX = 1024;
/** Longest text of an answer that is kept. */
const ANSWER_CHARS_MAX = 16 * 1024;
/** Longest key that is kept as it is. */
const KEY_CHARS_MAX = 256;
/** What the tool `message` does that may be done again. Whatever else it does, also what nobody knows yet, is made once. */
const REPEATABLE: ReadonlySet<string> = new Set([
  // It only looks, as the host has it.
  ...["channel-info", "channel-list", "download-file", "emoji-list", "event-list", "list-pins", "member-info", "permissions"],
  ...["reactions", "read", "role-info", "search", "sticker-search", "thread-list", "voice-status"],
  // It sets what is set already; what was set in between would be answered from a record that is no longer true.
  ...["addParticipant", "ban", "category-delete", "category-edit", "channel-delete", "channel-edit", "channel-move", "conversation-open"],
  ...["delete", "edit", "kick", "leaveGroup", "pin", "poll-vote", "react", "removeParticipant", "renameGroup", "role-add", "role-remove"],
  ...["set-presence", "set-profile", "setGroupIcon", "timeout", "topic-edit", "unpin", "unsend"],
]);
/** Calls of the gateway's `tools.invoke`, over HTTP or its socket. Of these the host tells nobody how they end. */
const INVOKED = /^(?:http|rpc)-/;
/** Where whoever calls gave no key, the host makes one up from the time. A key that is nothing but a time looks so too, at each try. */
const FROM_TIME = /^(?:http|rpc)-(?:(?:direct-operator|delegated)-)?\d{13}$/;

export interface OnceSettings {
  tools: ReadonlySet<string>;
  unknownMs: number;
  echoMs: number;
  dir: string;
}

/** The ledger as the hooks use it. */
export class Once {
  readonly #addon: HoldfastAddon;
  /** Its record, and where that is. */
  #opened: { dir: string; ledger: OnceLedger } | undefined;
  readonly #claims = new BoundedMap<string, Granted>(CLAIMS_MAX);
  /** What was answered to a call, and in which request of the model it was asked. */
  readonly #answers = new BoundedMap<string, Answered>(CLAIMS_MAX);
  /** The same for calls that no run makes, by what the host hands to all registrations and to no other call. */
  readonly #invoked = new WeakMap<object, Promise<string | undefined>>();

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

  /**
   * The same for a call that no run makes. Nobody will say how it ended, so nothing is known of its content: only
   * whoever asks again with the same key is refused.
   */
  beforeInvoked(context: object, call: ToolCall, settings: OnceSettings): Promise<string | undefined> {
    const known = this.#invoked.get(context);
    if (known) return known;
    const answer = this.#claimKey(call, settings);
    this.#invoked.set(context, answer);
    return answer;
  }

  async #claimKey(call: ToolCall, settings: OnceSettings): Promise<string | undefined> {
    const { kind } = JSON.parse(await this.#ledger(settings).claim({ ...call, callId: keyOf(call) })) as Claimed;
    if (kind === "granted") return undefined;
    return kind === "conflict" ? inUse(call.tool) : madeBefore(call.tool);
  }

  #ledger({ dir }: OnceSettings): OnceLedger {
    const known = this.#opened;
    if (known?.dir === dir) return known.ledger;
    const ledger = new this.#addon.OnceLedger(dir);
    this.#opened = { dir, ledger };
    return ledger;
  }

  async #claim(at: string, call: ToolCall, settings: OnceSettings): Promise<string | undefined> {
    const windows = { unknownMs: settings.unknownMs, echoMs: settings.echoMs };
    const ledger = this.#ledger(settings);
    const claimed = JSON.parse(await ledger.claim(call, windows)) as Claimed;
    if (claimed.kind === "granted") {
      this.#claims.set(at, { ledger, claim: JSON.stringify(claimed.claim) });
      return undefined;
    }
    return said(call.tool, claimed);
  }

  /** Keeps how a call ended that was made. */
  async after(at: string, event: AfterToolCall): Promise<void> {
    const granted = this.#claims.get(at);
    if (granted === undefined) return;
    this.#claims.delete(at);
    this.#answers.delete(at);
    const text = textOf(event).slice(0, ANSWER_CHARS_MAX);
    await granted.ledger.finish(granted.claim, endingOf(event), text);
  }
}

/** A claim, and the record that it is in: the settings may name another one by the time that the call has ended. */
interface Granted {
  ledger: OnceLedger;
  claim: string;
}

interface Answered {
  request: string;
  answer: Promise<string | undefined>;
}

interface Claimed {
  kind: "granted" | "inFlight" | "ended" | "conflict";
  claim?: unknown;
  state?: string;
  text?: string | null;
  agoMs?: number;
}

/** Whether a call is one that must not be made twice. */
export function isGuarded(tool: string, params: unknown, tools: ReadonlySet<string>): boolean {
  if (!tools.has(tool)) return false;
  if (tool !== "message" || !isRecord(params)) return true;
  return typeof params["action"] !== "string" || !REPEATABLE.has(params["action"]);
}

/** Whether a call is made by no run, and its end told to nobody. */
export function isInvoked(id: string, runId: string | undefined): boolean {
  return runId === undefined && INVOKED.test(id);
}

/** What calls have in common of which one is made. */
function keyOf({ callId = "", args }: ToolCall): string {
  // Two calls of one millisecond are two.
  if (FROM_TIME.test(callId)) return `${callId} ${digest(args)}`;
  return callId.length <= KEY_CHARS_MAX ? callId : `${callId.slice(0, KEY_CHARS_MAX)} ${digest(callId)}`;
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function madeBefore(tool: string): string {
  return (
    `[ALREADY MADE] A call of "${tool}" with this idempotency key was let through before. It is not made a second time. ` +
    "How it ended was only told to whoever made it; if it failed, ask with another key."
  );
}

function inUse(tool: string): string {
  return `[KEY IN USE] Another call of "${tool}" had this idempotency key, so this one is not made. Ask with another key.`;
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
