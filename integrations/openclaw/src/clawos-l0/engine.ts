// The host's own way to change a session in use: a context engine may have messages replaced. This one passes
// everything on as the host's own engine does, and has results that belong to no call left out of what is sent.

import { setTimeout } from "node:timers/promises";
import type { HoldfastAddon } from "../shared/addon.js";
import { isRecord, type CallContext } from "../shared/host.js";
import { isReadable, MESSAGES_MAX, skeleton, stored } from "./runtime-check.js";

/** The engine's name in `plugins.slots.contextEngine`. */
export const ENGINE_ID = "clawos-l0";
const CORE = "openclaw/plugin-sdk/core";
/** Longest that a turn waits until the host can read what it was asked to change; it needs some tens of milliseconds. */
const READABLE_MS_MAX = 10_000;
const READABLE_POLL_MS = 10;

interface Maintenance {
  sessionId: string;
  sessionKey?: string;
  sessionTarget?: { agentId?: string };
  runtimeContext?: {
    rewriteTranscriptEntries?: (request: { replacements: Array<{ entryId: string; message: unknown }> }) => Promise<Rewritten>;
  };
}

interface Rewritten {
  changed: boolean;
  bytesFreed: number;
  rewrittenEntries: number;
  reason?: string;
}

type Mended = (text: string, results: number) => void;

interface Core {
  delegateCompactionToRuntime(params: unknown): Promise<unknown>;
}

/** The engine; `mended` is told what was done to which session, and to how many results. */
export function engine(addon: HoldfastAddon, mended: Mended): unknown {
  return {
    info: {
      id: ENGINE_ID,
      name: "ClawOS L0",
      acceptedHostParams: ["sessionKey", "sessionTarget", "runtimeContext"],
      // It keeps nothing of its own, so any turn may be told to it any number of times.
      transcriptSemantics: {
        currentTurnFence: "before-current-turn-entry-v1",
        turnAdvancementIdempotency: "atomic-idempotent-v1",
      },
    },
    bootstrap: async () => ({ bootstrapped: true }),
    ingest: async () => ({ ingested: false }),
    assemble: async ({ messages }: { messages: unknown[] }) => ({ messages, estimatedTokens: 0 }),
    compact: async (params: unknown) => ((await import(CORE)) as Core).delegateCompactionToRuntime(params),
    commitTurn: async () => ({ status: "committed" }),
    maintain: (params: Maintenance) => maintain(addon, params, mended),
  };
}

async function maintain(addon: HoldfastAddon, params: Maintenance, mended: Mended): Promise<Rewritten> {
  const nothing = { changed: false, bytesFreed: 0, rewrittenEntries: 0 };
  const { sessionId, sessionKey, sessionTarget, runtimeContext } = params;
  const rewrite = runtimeContext?.rewriteTranscriptEntries;
  if (!rewrite || sessionKey === undefined) return nothing;
  const agentId = sessionTarget?.agentId;
  const session = { sessionId, sessionKey, ...(agentId !== undefined && { agentId }) };
  const entries = await stored(session);
  if (!entries || entries.length > MESSAGES_MAX) return nothing;
  const ids = new Set(JSON.parse(await addon.resultsToExclude(await skeleton(entries))) as string[]);
  if (ids.size === 0) return nothing;
  const replacements = entries.filter(isRecord).flatMap(({ id, message }) => {
    const known = typeof id === "string" && ids.has(id) && isRecord(message);
    return known ? [{ entryId: id, message: { ...message, excludeFromContext: true } }] : [];
  });
  const done = await rewrite({ replacements });
  if (!done.changed) return done;
  const results = done.rewrittenEntries;
  mended(`${results} results of ${sessionKey} belong to no call; the host leaves them out from now on`, results);
  await untilReadable(session);
  return done;
}

/**
 * After a change the host builds its view of the session anew in the background, and whoever reads it before that is
 * done gets an error: the turn that goes on from here would fail with it.
 */
async function untilReadable(session: CallContext): Promise<void> {
  const late = new AbortController();
  const readable = async (): Promise<void> => {
    while (!late.signal.aborted && !(await isReadable(session))) await setTimeout(READABLE_POLL_MS);
  };
  const given = setTimeout(READABLE_MS_MAX, undefined, { signal: late.signal }).catch(() => undefined);
  await Promise.race([readable(), given]);
  late.abort();
}
