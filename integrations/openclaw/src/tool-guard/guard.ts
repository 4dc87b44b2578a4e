// One guard a process: what it knows of runs and calls, and what it does at each hook.

import { createHash } from "node:crypto";
import { loadAddon, type HoldfastAddon } from "../shared/addon.js";
import type { Answer, GuardedCall, Outcome, ToolCall, ToolGuard } from "../shared/addon-types.js";
import {
  isRecord,
  type AfterToolCall,
  type AssistantMessage,
  type BeforeToolCall,
  type CallContext,
  type Logger,
  type ModelCallStarted,
  type ToolResultPersist,
} from "../shared/host.js";
import { Crossing } from "../shared/crossing.js";
import { comparable, exact, meant, type Meant } from "../shared/meant.js";
import { BoundedMap } from "../shared/process-wide.js";
import { endRun } from "./end-run.js";
import { isGuarded, isInvoked, Once } from "./once.js";
import { OldHost } from "./old-host.js";
import { append, outcomeOf, type Ended } from "./outcome.js";
import type { Settings } from "./settings.js";

/** Calls under way at most; of more the oldest is forgotten, and passes unguarded. */
const CALLS_MAX = 4096;
/** Runs remembered at most. */
const RUNS_MAX = 1024;
/** What OpenClaw says of a call whose arguments it could not read; it stores nothing else of it. */
const UNREADABLE = /malformed tool call/i;
/** How such calls are named and explained: their tool's name is lost. */
const UNREADABLE_TOOL = "(unreadable call)";
const UNREADABLE_ERROR = "Invalid arguments for tool: they were not one whole JSON object.";
/** Calls inside `tool_call` have ids of their own; the model only sees the outer one. */
const NESTED = "tool_search_code:";
/** Longest that the outer one's id may be in it. */
const PART_CHARS_MAX = 120;
/** What stands in front of an answer that is not the tool's. */
const ANSWER_WORD = /^\[[A-Z ]+\]/;
const NOT_MADE = "[NOT MADE]";
/** Goes before the guard's text where a call is made once: that text speaks of failures, and the first call may have worked. */
const ONLY_REPEATED =
  "Only the repetition of this call is refused. The answer to the first one says whether it was made; do not make it in other words.\n";
/** What a model is told whose calls of one tool, or of one that there is not, were wrong too often; nobody else can be told by a plugin. */
const HAND_BACK =
  "\nCalls of this tool were wrong too often. Do not try others: say what could not be done, so that whoever gave " +
  "you this task (for a subagent its parent session) can take it back.";
/** What a model is told that went on after the guard's texts, before its run is ended. */
const ANSWER_NOW = "\nAnswer now, with what you have: this run ends when one more call repeats itself.";
/** By then a line of the log is written or lost. */
const LOG_WRITTEN_MS = 1_000;

/** Where a call belongs, and what it asks for. */
interface Place {
  session: string;
  turn: string | undefined;
  model: string | undefined;
  tool: string;
  args: unknown;
  /** Which request to the model brought it: calls of one have the same number, and those of a later one a higher. */
  request: number;
}

interface CallNote extends Omit<Place, "args" | "model"> {
  /** The call for the guard: what is long in it crosses once, however often the host tells of the call. */
  guarded: GuardedCall;
  sessionId: string | undefined;
  /** The guard's text, when it refused the call. */
  refused: string | undefined;
  /** The first word of what it was answered with, when that was not the tool's; blank when it counts for nothing. */
  answered: string | undefined;
}

type Block = { block: true; blockReason: string } | undefined;

interface RunNote {
  model?: string;
  /** The last request to the model that the host told of when it began. */
  request: number;
  /** Requests in a row whose calls drew a text of the guard, without a call that worked in between. */
  ignored: number;
  /** The last of them. */
  spokenIn: number | undefined;
  /** The request whose calls used up the turn's failures. */
  stoppedIn: number | undefined;
  /** The first request after that whose calls were refused: the model was told to answer. */
  askedIn: number | undefined;
}

/** The guard as the hooks use it. */
export class HostGuard {
  readonly #addon: HoldfastAddon;
  readonly #guard: ToolGuard;
  readonly #once: Once;
  #settings: Settings;
  readonly #calls = new BoundedMap<string, CallNote>(CALLS_MAX);
  /** Calls whose arguments were read: each registration of this plugin is handed the same ones. */
  readonly #read = new WeakMap<object, { id: string; note: CallNote }>();
  /** Ids that the host writes otherwise inside the ids of nested calls. */
  readonly #outers = new BoundedMap<string, string>(CALLS_MAX);
  readonly #runs = new BoundedMap<string, RunNote>(RUNS_MAX);
  /** Answers that were counted: each registration of this plugin is handed the same object. */
  readonly #written = new WeakSet<AssistantMessage>();
  /** Requests to models so far, of all runs; each registration of this plugin counts, so a number only tells them apart. */
  #requests = 0;
  /** The request that brought a session's last answer with calls in it. */
  readonly #answeredIn = new BoundedMap<string, number>(RUNS_MAX);
  /** Which call of a run first asked for what is made once. */
  readonly #asked = new BoundedMap<string, string>(CALLS_MAX);
  /** The run under way in a session, for hooks that are not told. */
  readonly #current = new BoundedMap<string, string>(RUNS_MAX);
  /** What the model of a run still has to be told, because no result could carry it. */
  readonly #untold = new BoundedMap<string, string>(RUNS_MAX);
  readonly #crossing = new Crossing();
  #isLogWaiting = false;
  readonly #said = new Set<string>();
  /** Whether the log is about to be looked after. */
  #looking = false;
  /** What is known of an older host's calls. */
  readonly oldHost = new OldHost();
  /** Hooks for versions of the host are warned about once. */
  readonly warned = new Set<string>();
  /** Settings that could not be used and are known to be so. */
  refused: string | undefined = undefined;
  logger: Logger;

  constructor(settings: Settings, logger: Logger) {
    const addon = loadAddon();
    this.#addon = addon;
    this.#guard = new addon.ToolGuard(settings.guard, settings.logPath);
    this.#once = new Once(addon);
    this.#settings = settings;
    this.logger = logger;
  }

  /** Takes settings that may have changed; what was counted stays. */
  configure(settings: Settings): void {
    if (settings.guard !== this.#settings.guard || settings.logPath !== this.#settings.logPath) {
      this.#guard.configure(settings.guard, settings.logPath);
    }
    this.#settings = settings;
  }

  /** Whether the plugin is switched on in its own settings. */
  get isEnabled(): boolean {
    return this.#settings.enabled;
  }

  modelCallStarted(event: ModelCallStarted): void {
    if (!event.runId || !event.model) return;
    if (event.sessionKey) this.#current.set(event.sessionKey, event.runId);
    const run = this.#run(event.runId);
    run.request = this.#requests += 1;
    run.model = event.provider ? `${event.provider}/${event.model}` : event.model;
  }

  /** Refuses what has failed often enough. */
  beforeToolCall(event: BeforeToolCall, context: CallContext): Block | Promise<Block> {
    const id = event.toolCallId ?? context.toolCallId;
    if (!id) return undefined;
    const refused = this.#refused(id, event, context);
    const { tools } = this.#settings.once;
    if (refused !== undefined) {
      const { tool, args } = meant(event.toolName, event.params);
      return { block: true, blockReason: isGuarded(tool, args, tools) ? ONLY_REPEATED + refused : refused };
    }
    // Inside `tool_call` too: there the tool itself is named.
    const once = isGuarded(event.toolName, event.params, tools);
    return once ? this.#onlyOnce(id, event, context) : undefined;
  }

  /** Why the guard refuses a call. Trouble with that is no reason to refuse it, and none to leave its record out. */
  #refused(id: string, event: BeforeToolCall, context: CallContext): string | undefined {
    // What no run makes is never counted: nobody is told how it ends.
    if (id.startsWith(NESTED) || isInvoked(id, event.runId ?? context.runId)) return undefined;
    try {
      const note = this.#note(id, event, context);
      note.refused = this.#guard.check(note.guarded)?.text;
      this.#calls.set(placeOf(context, id), note);
      const shown = asPart(id);
      if (shown !== id) this.#outers.set(placeOf(context, shown), id);
      return note.refused;
    } catch (error) {
      this.trouble("before_tool_call", error);
      return undefined;
    }
  }

  /** No call that may have an effect is made without its record: trouble with the ledger is a refusal. */
  async #onlyOnce(id: string, event: BeforeToolCall, context: CallContext): Promise<Block> {
    const place = this.#place(event, context);
    let answer: string | undefined;
    try {
      const call = told(place, id, exact(place.args));
      answer = isInvoked(id, call.turn)
        ? await this.#once.beforeInvoked(context, call, this.#settings.once)
        : await this.#once.before(placeOf(context, id), `${call.turn}/${place.request}`, call, this.#settings.once);
    } catch (error) {
      this.trouble("once", error);
      answer = `${NOT_MADE} This call of "${place.tool}" could not be recorded, so it was not made. Report this; a repeat does not help.`;
    }
    const shown = outerOf(id);
    const outer = this.#calls.get(placeOf(context, this.#outers.get(placeOf(context, shown)) ?? shown));
    const isRepeat = outer !== undefined && this.#isRepeat(outer, place, id);
    if (answer === undefined) return undefined;
    if (outer) outer.answered = isRepeat || answer.startsWith(NOT_MADE) ? (ANSWER_WORD.exec(answer)?.[0] ?? "") : "";
    return { block: true, blockReason: answer };
  }

  /**
   * Whether the run has asked for the same before. What it asks for the first time somebody else may have asked for:
   * a run that does another's work again after a restart is in no loop.
   */
  #isRepeat({ turn, request }: CallNote, { tool, args }: Meant, id: string): boolean {
    if (turn === undefined) return false;
    // What is asked about itself: one call of the model's may make several others.
    const what = `${turn}\u0000${tool}\u0000${createHash("sha256").update(exact(args)).digest("hex")}`;
    // Each registration of this plugin asks about each call.
    const which = `${request}\u0000${id}`;
    const first = this.#asked.get(what) ?? which;
    this.#asked.set(what, first);
    return first !== which;
  }

  /** The only hook that knows run and arguments of a call that fails its schema. */
  afterToolCall(event: AfterToolCall, context: CallContext): void {
    const id = event.toolCallId ?? context.toolCallId;
    if (!id) return;
    const at = placeOf(context, id);
    void this.#once.after(at, event).catch((error) => this.trouble("once", error));
    if (id.startsWith(NESTED)) return;
    // A refusal was decided before; and what the host changed of the arguments is not what the model said.
    const known = this.#calls.get(at);
    // Some servers use an id again: a note of an earlier run is about another call.
    if (known === undefined || known.turn !== (event.runId ?? context.runId)) {
      this.#calls.set(at, this.#note(id, event, context));
    }
  }

  /** Counts the result, and writes the guard's words into it. */
  toolResultPersist(event: ToolResultPersist, context: CallContext): void {
    const id = event.toolCallId ?? event.message.toolCallId;
    if (event.isSynthetic || !id) return;
    const at = placeOf(context, id);
    const note = this.#calls.get(at);
    // Counted already: a second registration of this plugin hears of it too.
    if (!note) return;
    this.#calls.delete(at);
    const { outcome, text } = this.#outcome(note, event);
    const answer = this.#observe(note.guarded, outcome, text);
    if (!worked(outcome)) this.#lookAfterLog();
    const last = this.#mayEndRun(note, outcome, answer);
    const suffix = (answer.append ?? "") + (answer.handBack ? HAND_BACK : "") + (last ? ANSWER_NOW : "");
    if (suffix !== "") append(event.message, suffix);
  }

  /**
   * An answer of the model. The calls in it are of one request: the host may drop what it says of a request that
   * begins, and never this. A call whose arguments are no JSON has no result, OpenClaw only asks the model again;
   * it is told so where this plugin may speak before a prompt.
   */
  assistantWritten(message: AssistantMessage, context: CallContext, maySpeak: boolean): void {
    if (message.role !== "assistant" || this.#written.has(message)) return;
    this.#written.add(message);
    this.#requests += 1;
    if (context.sessionKey !== undefined && hasCalls(message)) this.#answeredIn.set(context.sessionKey, this.#requests);
    if (message.stopReason !== "error" || !UNREADABLE.test(message.errorMessage ?? "")) return;
    const session = sessionOf(context);
    const runId = this.#current.get(session);
    if (runId === undefined) return;
    const model = this.#runs.get(runId)?.model;
    const call = told({ session, turn: runId, model, tool: UNREADABLE_TOOL }, undefined, "{}");
    const answer = this.#observe(new this.#addon.GuardedCall(call), { ending: "failed" }, UNREADABLE_ERROR);
    this.#lookAfterLog();
    if (maySpeak) this.#untold.set(runId, UNREADABLE_ERROR + (answer.append ?? ""));
  }

  /** What goes before the prompt when OpenClaw asks again. */
  promptContext(context: CallContext): { prependContext: string } | undefined {
    const untold = context.runId === undefined ? undefined : this.#untold.get(context.runId);
    if (untold === undefined) return undefined;
    this.#untold.delete(context.runId as string);
    return { prependContext: untold };
  }

  #outcome(note: CallNote, event: ToolResultPersist): Ended {
    const ended = outcomeOf(note.tool, event.message, this.#settings.readOnlyTools);
    if (note.answered === "") return { outcome: { ending: "neutral" }, text: ended.text };
    // Only its first word: the rest says how long ago the first one was made, and that is never the same.
    if (note.answered !== undefined) return { outcome: { ending: "failed", error: note.answered }, text: ended.text };
    return note.refused === undefined ? ended : { outcome: { ending: "blocked" }, text: ended.text };
  }

  #observe(guarded: GuardedCall, outcome: Outcome, text: string): Answer {
    const { bytes, length } = this.#crossing.one(text);
    const answer = this.#guard.observe(guarded, outcome, bytes, length);
    if (!worked(outcome)) this.#writeLogSoon();
    return answer;
  }

  /** When the hook has returned: whoever wakes the thread that writes may have to wait for it. */
  #writeLogSoon(): void {
    if (this.#isLogWaiting) return;
    this.#isLogWaiting = true;
    setImmediate(() => {
      this.#isLogWaiting = false;
      this.#guard.writeLog();
    });
  }

  /**
   * A model that goes on after the guard's texts is told to answer; when it goes on even so its run is ended, once
   * the result is stored. Of the calls of one request none goes on after another: the model has read nothing in
   * between. Says whether the guard's own text leaves out that it has to answer now.
   */
  #mayEndRun(note: CallNote, outcome: Outcome, answer: Answer): boolean {
    const { endRunAfterIgnored } = this.#settings;
    const runId = note.turn;
    if (!runId) return false;
    const run = this.#run(runId);
    const { request } = note;
    const spoken = answer.action === "loop-detected" || answer.action === "hard-cap";
    if (spoken && isLater(request, run.spokenIn)) run.ignored += 1;
    if (spoken) run.spokenIn = request;
    else if (outcome.ending === "succeeded") run.ignored = 0;
    const wentOn = run.stoppedIn !== undefined && isLater(request, run.stoppedIn);
    if (!answer.stopTurn) {
      if (wentOn) run.stoppedIn = run.askedIn = undefined;
    } else if (wentOn) run.askedIn ??= request;
    else run.stoppedIn ??= request;
    const wasAsked = run.askedIn !== undefined && isLater(request, run.askedIn);
    // The first text alone is never too many: nobody has read it yet. Then it is told once more.
    const last = Math.max(endRunAfterIgnored, 2) + 1;
    if (endRunAfterIgnored === 0) return false;
    if (!wasAsked && run.ignored <= last) return spoken && run.ignored === last && !answer.stopTurn;
    const why = `tool-guard: the run ${runId} went on after the guard's texts in ${run.ignored} requests`;
    const isUnderWay = (): boolean => (this.#current.get(note.session) ?? runId) === runId;
    endRun({ sessionId: note.sessionId, runId, why, logger: this.logger, isUnderWay });
    return false;
  }

  #note(id: string, event: BeforeToolCall | AfterToolCall, context: CallContext): CallNote {
    const { args, model, ...place } = this.#place(event, context);
    const { params } = event;
    const known = isRecord(params) ? this.#read.get(params) : undefined;
    if (known?.id === id && known.note.turn === place.turn && known.note.request === place.request) return known.note;
    const note: CallNote = { ...place, guarded: this.#guarded({ ...place, model }, id, args), sessionId: context.sessionId, refused: undefined, answered: undefined };
    if (isRecord(params)) this.#read.set(params, { id, note });
    this.#callBegan(context.sessionKey, note);
    return note;
  }

  /** Of a run that the host did not announce the first call tells: it is in an answer that came after the last run's request. */
  #callBegan(sessionKey: string | undefined, { turn, request }: CallNote): void {
    if (sessionKey === undefined || turn === undefined) return;
    const current = this.#current.get(sessionKey);
    if (current === turn || (current !== undefined && (this.#runs.get(current)?.request ?? 0) >= request)) return;
    this.#current.set(sessionKey, turn);
  }

  #guarded(place: Omit<Place, "args" | "request">, id: string, args: unknown): GuardedCall {
    const { args: json, texts } = comparable(args);
    const call = told(place, id, json);
    if (texts === undefined) return new this.#addon.GuardedCall(call);
    const { bytes, ends } = this.#crossing.all(texts);
    return new this.#addon.GuardedCall(call, bytes, ends);
  }

  #place(event: BeforeToolCall | AfterToolCall, context: CallContext): Place {
    const { tool, args } = meant(event.toolName, event.params);
    const turn = event.runId ?? context.runId;
    const run = turn === undefined ? undefined : this.#runs.get(turn);
    const answeredIn = context.sessionKey === undefined ? undefined : this.#answeredIn.get(context.sessionKey);
    return { session: sessionOf(context), turn, model: run?.model, tool, args, request: answeredIn ?? run?.request ?? 0 };
  }

  #run(runId: string): RunNote {
    const known = this.#runs.get(runId);
    if (known) return known;
    const made: RunNote = { request: 0, ignored: 0, spokenIn: undefined, stoppedIn: undefined, askedIn: undefined };
    this.#runs.set(runId, made);
    return made;
  }

  /** Lines are written by a thread of the addon's: whether the last one was is known a little later. */
  #lookAfterLog(): void {
    if (this.#looking) return;
    this.#looking = true;
    const look = (): void => {
      this.#looking = false;
      if (this.#guard.linesLost() === 0) return;
      this.trouble("log", `lines of ${this.#settings.logPath} could not be written; is its directory writable, and the file itself no link?`);
    };
    setTimeout(look, LOG_WRITTEN_MS).unref();
  }

  /** Says a trouble once: the guard must not become a flood, nor the outage. */
  trouble(where: string, error: unknown): void {
    const said = `tool-guard: ${where}: ${error instanceof Error ? error.message : String(error)}`;
    if (this.#said.has(said)) return;
    this.#said.add(said);
    this.logger.error(said);
  }

  /** How much is remembered, for tests. */
  get sizes(): { calls: number; runs: number } {
    return { calls: this.#calls.size, runs: this.#runs.size };
  }
}

/** A call as the addon is told of it. */
function told({ session, turn, model, tool }: Omit<Place, "args" | "request">, callId: string | undefined, args: string): ToolCall {
  const call: ToolCall = { session, tool, args };
  if (turn !== undefined) call.turn = turn;
  if (callId !== undefined) call.callId = callId;
  if (model !== undefined) call.model = model;
  return call;
}

/** Whether nothing is to be logged of a call, whatever the guard says to it. */
function worked({ ending }: Outcome): boolean {
  return ending === "succeeded" || ending === "neutral";
}

function sessionOf(context: CallContext): string {
  return context.sessionKey ?? context.sessionId ?? "";
}

/** Whether a request came after another one, or is the first. */
function isLater(request: number, than: number | undefined): boolean {
  return than === undefined || request > than;
}

/** The id of the call that a nested one is made for: before the tool's name and a number. */
function outerOf(id: string): string {
  return id.startsWith(NESTED) ? id.slice(NESTED.length).split(":").slice(0, -2).join(":") : id;
}

/** A call's id as the host puts it into the ids of calls inside it. */
function asPart(id: string): string {
  return id.trim().replace(/[^A-Za-z0-9_.:-]+/g, "_").slice(0, PART_CHARS_MAX);
}

/** Where a call is noted. Not every hook that tells of it says the session's id. */
function placeOf({ sessionKey }: CallContext, id: string): string {
  return `${sessionKey ?? ""}\u0000${id}`;
}

function hasCalls({ content }: AssistantMessage): boolean {
  return Array.isArray(content) && content.some((part) => isRecord(part) && part["type"] === "toolCall");
}
