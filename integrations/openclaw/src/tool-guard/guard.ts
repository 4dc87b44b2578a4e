// One guard a process: what it knows of runs and calls, and what it does at each hook.

import { loadAddon, type HoldfastAddon } from "../shared/addon.js";
import type { Answer, GuardedCall, Outcome, ToolCall, ToolGuard } from "../shared/addon-types.js";
import type {
  AfterToolCall,
  AssistantMessage,
  BeforeToolCall,
  CallContext,
  Logger,
  ModelCallStarted,
  ToolResultPersist,
} from "../shared/host.js";
import { Crossing } from "../shared/crossing.js";
import { comparable, exact, meant } from "../shared/meant.js";
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
/** By then a line of the log is written or lost. */
const LOG_WRITTEN_MS = 1_000;

/** Where a call belongs, and what it asks for. */
interface Place {
  session: string;
  turn: string | undefined;
  model: string | undefined;
  tool: string;
  args: unknown;
  /** Which of the run's requests to the model brought it. */
  request: number;
}

interface CallNote extends Omit<Place, "args" | "model"> {
  /** The call for the guard: what is long in it crosses once, however often the host tells of the call. */
  guarded: GuardedCall;
  sessionId: string | undefined;
  /** The guard's text, when it refused the call. */
  refused: string | undefined;
  /** It was answered from a record: neither a success nor a failure of the model's. */
  answered: boolean;
}

type Block = { block: true; blockReason: string } | undefined;

interface RunNote {
  model?: string;
  /** Requests to the model so far; each registration of this plugin counts, so the number only tells them apart. */
  requests: number;
  /** Requests in a row whose calls drew a text of the guard, without a call that worked in between. */
  ignored: number;
  /** The last of them. */
  spokenIn: number | undefined;
  /** The request whose calls used up the turn's failures. */
  stoppedIn: number | undefined;
}

/** The guard as the hooks use it. */
export class HostGuard {
  readonly #addon: HoldfastAddon;
  readonly #guard: ToolGuard;
  readonly #once: Once;
  #settings: Settings;
  readonly #calls = new BoundedMap<string, CallNote>(CALLS_MAX);
  readonly #runs = new BoundedMap<string, RunNote>(RUNS_MAX);
  /** Answers that were counted: each registration of this plugin is handed the same object. */
  readonly #written = new WeakSet<AssistantMessage>();
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

  modelCallStarted(event: ModelCallStarted): void {
    if (!event.runId || !event.model) return;
    if (event.sessionKey) this.#current.set(event.sessionKey, event.runId);
    const run = this.#run(event.runId);
    run.requests += 1;
    run.model = event.provider ? `${event.provider}/${event.model}` : event.model;
  }

  /** Refuses what has failed often enough. */
  beforeToolCall(event: BeforeToolCall, context: CallContext): Block | Promise<Block> {
    const id = event.toolCallId ?? context.toolCallId;
    if (!id) return undefined;
    // What no run makes is never counted: nobody is told how it ends.
    if (!id.startsWith(NESTED) && !isInvoked(id, event.runId ?? context.runId)) {
      const note = this.#note(id, event, context);
      const refusal = this.#guard.check(note.guarded);
      note.refused = refusal?.text;
      this.#calls.set(key(note.session, id), note);
      if (refusal) return { block: true, blockReason: refusal.text };
    }
    // Inside `tool_call` too: there the tool itself is named.
    const once = isGuarded(event.toolName, event.params, this.#settings.once.tools);
    return once ? this.#onlyOnce(id, event, context) : undefined;
  }

  /** No call that may have an effect is made without its record: trouble with the ledger is a refusal. */
  async #onlyOnce(id: string, event: BeforeToolCall, context: CallContext): Promise<Block> {
    const place = this.#place(event, context);
    const call = told(place, id, exact(place.args));
    let answer: string | undefined;
    try {
      answer = isInvoked(id, call.turn)
        ? await this.#once.beforeInvoked(context, call, this.#settings.once)
        : await this.#once.before(key(call.session, id), `${call.turn}/${place.request}`, call, this.#settings.once);
    } catch (error) {
      this.trouble("once", error);
      answer = `[NOT MADE] This call of "${call.tool}" could not be recorded, so it was not made. Report this; a repeat does not help.`;
    }
    if (answer === undefined) return undefined;
    const outer = this.#calls.get(key(call.session, outerOf(id)));
    if (outer) outer.answered = true;
    return { block: true, blockReason: answer };
  }

  /** The only hook that knows run and arguments of a call that fails its schema. */
  afterToolCall(event: AfterToolCall, context: CallContext): void {
    const id = event.toolCallId ?? context.toolCallId;
    if (!id) return;
    void this.#once.after(key(sessionOf(context), id), event).catch((error) => this.trouble("once", error));
    if (id.startsWith(NESTED)) return;
    // A refusal was decided before; and what the host changed of the arguments is not what the model said.
    const at = key(sessionOf(context), id);
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
    const at = key(sessionOf(context), id);
    const note = this.#calls.get(at);
    // Counted already: a second registration of this plugin hears of it too.
    if (!note) return;
    this.#calls.delete(at);
    const { outcome, text } = this.#outcome(note, event);
    const answer = this.#observe(note.guarded, outcome, text);
    if (!worked(outcome)) this.#lookAfterLog();
    if (answer.append !== undefined) append(event.message, answer.append);
    this.#mayEndRun(note, outcome, answer);
  }

  /** A call whose arguments are no JSON has no result; OpenClaw only asks the model again. */
  assistantWritten(message: AssistantMessage, context: CallContext): void {
    if (message.stopReason !== "error" || !UNREADABLE.test(message.errorMessage ?? "")) return;
    if (this.#written.has(message)) return;
    this.#written.add(message);
    const session = sessionOf(context);
    const runId = this.#current.get(session);
    if (runId === undefined) return;
    const model = this.#runs.get(runId)?.model;
    const call = told({ session, turn: runId, model, tool: UNREADABLE_TOOL }, undefined, "{}");
    const answer = this.#observe(new this.#addon.GuardedCall(call), { ending: "failed" }, UNREADABLE_ERROR);
    this.#untold.set(runId, UNREADABLE_ERROR + (answer.append ?? ""));
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
    if (note.answered) return { outcome: { ending: "neutral" }, text: ended.text };
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
   * A model that goes on after the guard's texts has its run ended, once the result is stored. Of the calls of
   * one request none goes on after another: the model has read nothing in between.
   */
  #mayEndRun(note: CallNote, outcome: Outcome, answer: Answer): void {
    const { endRunAfterIgnored } = this.#settings;
    const runId = note.turn;
    if (!runId) return;
    const run = this.#run(runId);
    const { request } = note;
    const spoken = answer.action === "loop-detected" || answer.action === "hard-cap";
    if (spoken && isLater(request, run.spokenIn)) run.ignored += 1;
    if (spoken) run.spokenIn = request;
    else if (outcome.ending === "succeeded") run.ignored = 0;
    const wentOn = run.stoppedIn !== undefined && isLater(request, run.stoppedIn);
    if (answer.stopTurn) run.stoppedIn ??= request;
    else if (wentOn) run.stoppedIn = undefined;
    // The first text alone is never too many: nobody has read it yet.
    const deaf = run.ignored >= Math.max(endRunAfterIgnored, 2);
    if (endRunAfterIgnored === 0 || !(wentOn || deaf)) return;
    const why = `tool-guard: the run ${runId} went on after the guard's texts in ${run.ignored} requests and is ended`;
    const isUnderWay = (): boolean => (this.#current.get(note.session) ?? runId) === runId;
    endRun({ sessionId: note.sessionId, runId, why, logger: this.logger, isUnderWay });
  }

  #note(id: string, event: BeforeToolCall | AfterToolCall, context: CallContext): CallNote {
    const { args, model, ...place } = this.#place(event, context);
    return { ...place, guarded: this.#guarded({ ...place, model }, id, args), sessionId: context.sessionId, refused: undefined, answered: false };
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
    return { session: sessionOf(context), turn, model: run?.model, tool, args, request: run?.requests ?? 0 };
  }

  #run(runId: string): RunNote {
    const known = this.#runs.get(runId);
    if (known) return known;
    const made: RunNote = { requests: 0, ignored: 0, spokenIn: undefined, stoppedIn: undefined };
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
      this.trouble("log", `lines of ${this.#settings.logPath} could not be written; is its directory writable?`);
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

/** The model's own id of the call that a nested one is made for. */
function outerOf(id: string): string {
  return id.startsWith(NESTED) ? (id.slice(NESTED.length).split(":")[0] as string) : id;
}

function key(session: string, id: string): string {
  return `${session}\u0000${id}`;
}
