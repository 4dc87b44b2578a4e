// Which broken sessions somebody was told about: a session that nobody mends is broken before each of its runs.

import type { CallContext } from "../shared/host.js";
import { BoundedMap } from "../shared/process-wide.js";
import type { Issue } from "./runtime-check.js";

/** Sessions and runs remembered at most. */
const SESSIONS_MAX = 1024;
const RUNS_MAX = 1024;

/** One a process: each registration of the plugin hears of each run. */
export class Incidents {
  /** What was found in each session last. */
  readonly #known = new BoundedMap<string, string>(SESSIONS_MAX);
  readonly #runs = new BoundedMap<string, true>(RUNS_MAX);
  /** The same for hosts that name no run: all registrations are handed the same event. */
  readonly #events = new WeakSet<object>();
  #count = 0;

  /** Incidents so far. */
  get count(): number {
    return this.#count;
  }

  /** Whether something is wrong with a session that nobody was told of; it counts as told from here on. */
  isNews({ sessionKey, sessionId }: CallContext, issues: Issue[]): boolean {
    const session = `${sessionKey ?? ""}\u0000${sessionId ?? ""}`;
    // Not where they are: that changes with each compaction.
    const found = issues.map(({ type, toolUseId }) => `${type} ${toolUseId}`).sort().join("\n");
    if (issues.length === 0) this.#known.delete(session);
    if (issues.length === 0 || this.#known.get(session) === found) return false;
    this.#known.set(session, found);
    this.#count += 1;
    return true;
  }

  /** Whether the model of a run is still to be told; it counts as told from here on. */
  isUntold({ runId }: CallContext, event: object): boolean {
    const isTold = runId === undefined ? this.#events.has(event) : this.#runs.get(runId) === true;
    if (runId === undefined) this.#events.add(event);
    else this.#runs.set(runId, true);
    return !isTold;
  }
}
