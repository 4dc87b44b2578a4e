// OpenClaw of the first half of 2026: its hooks name neither the run nor the call. The message that asked for
// the call does, and is written before the call is made.

import { isRecord, type AssistantMessage, type BeforeToolCall, type ToolResultPersist } from "../shared/host.js";
import { BoundedMap } from "../shared/process-wide.js";

/** Sessions whose calls are remembered at most, and calls of each. */
const SESSIONS_MAX = 1024;
const CALLS_MAX = 256;

interface Asked {
  id: string;
  tool: string;
  params: unknown;
  /** As it is compared. */
  json: string;
  begun: boolean;
}

/** A run, and the model that answers in it. */
export interface Run {
  runId: string;
  provider?: string;
  model?: string;
}

/** What such a host's hooks have told so far. */
export class OldHost {
  readonly #asked = new BoundedMap<string, Asked[]>(SESSIONS_MAX);
  readonly #runs = new BoundedMap<string, Run>(SESSIONS_MAX);
  /** Calls that have begun: each registration of this plugin is handed the same object. */
  readonly #named = new WeakMap<BeforeToolCall, BeforeToolCall>();

  runBegan(session: string, run: Run): void {
    this.#runs.set(session, run);
  }

  runOf(session: string): Run | undefined {
    return this.#runs.get(session);
  }

  /** Notes the calls of an answer; says whether it has any. */
  answerWritten(session: string, message: AssistantMessage): boolean {
    const blocks = Array.isArray(message.content) ? message.content.filter(isRecord) : [];
    const calls = blocks.flatMap(({ type, id, name, arguments: params }): Asked[] => {
      if (type !== "toolCall" || typeof id !== "string" || typeof name !== "string") return [];
      return [{ id, tool: name, params, json: JSON.stringify(params ?? {}), begun: false }];
    });
    // Each registration of this plugin hears of the answer, and some servers use an id again: the last one counts.
    const ids = new Set(calls.map(({ id }) => id));
    const others = (this.#asked.get(session) ?? []).filter(({ id }) => !ids.has(id));
    if (calls.length > 0) this.#asked.set(session, [...others, ...calls].slice(-CALLS_MAX));
    return calls.length > 0;
  }

  /** The call with its names: the first of its kind that has not begun. */
  named(event: BeforeToolCall, session: string): BeforeToolCall {
    const known = this.#named.get(event);
    if (known) return known;
    const json = JSON.stringify(event.params ?? {});
    const asked = this.#asked.get(session)?.find((call) => !call.begun && call.tool === event.toolName && call.json === json);
    if (!asked) return event;
    asked.begun = true;
    const named = this.#with(event, asked.id, session);
    this.#named.set(event, named);
    return named;
  }

  /** The call that a result is about, with its names. */
  ended(event: ToolResultPersist, session: string): BeforeToolCall | undefined {
    const id = event.toolCallId ?? event.message.toolCallId;
    const calls = this.#asked.get(session) ?? [];
    const asked = calls.find((call) => call.id === id);
    if (!asked) return undefined;
    this.#asked.set(session, calls.filter((call) => call !== asked));
    return this.#with({ toolName: asked.tool, params: asked.params }, asked.id, session);
  }

  #with(event: BeforeToolCall, toolCallId: string, session: string): BeforeToolCall {
    const runId = this.#runs.get(session)?.runId;
    return { ...event, toolCallId, ...(runId !== undefined && { runId }) };
  }
}
