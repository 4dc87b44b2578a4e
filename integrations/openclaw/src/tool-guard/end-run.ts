// Ends a run from outside, after its last result was stored.

import type { Logger } from "../shared/host.js";

interface Ending {
  sessionId: string | undefined;
  runId: string;
  why: string;
  logger: Logger;
  /** Whether no other run has begun in the session: the host ends what runs there, whichever run it is. */
  isUnderWay: () => boolean;
}

interface HarnessRuntime {
  /** Says whether there was such a run, and whether it could be ended. */
  abortAgentHarnessRun?: (sessionId: string) => unknown;
}

/** The host's own module; an older host does not have it, and then the texts are all there is. */
const MODULE = "openclaw/plugin-sdk/agent-harness-runtime";
let runtime: Promise<HarnessRuntime | undefined> | undefined;

/** Loads what is needed to end a run, so that it is there when it has to be quick. */
export function prepare(): Promise<HarnessRuntime | undefined> {
  runtime ??= import(MODULE).catch(() => undefined) as Promise<HarnessRuntime | undefined>;
  return runtime;
}

const ending = new Set<string>();

/** Ends a run as soon as the result at hand is written: the host writes it when this hook has returned. */
export function endRun(run: Ending): void {
  if (run.sessionId === undefined || ending.has(run.runId)) return;
  ending.add(run.runId);
  setImmediate(() => {
    ending.delete(run.runId);
    // Nobody waits for this: a rejection would end the host.
    abort(run).catch((error: unknown) => {
      run.logger.error(`${run.why}; it could not be ended: ${error instanceof Error ? error.message : String(error)}`);
    });
  });
}

async function abort({ sessionId, why, logger, isUnderWay }: Ending): Promise<void> {
  const host = await prepare();
  if (!isUnderWay()) return;
  if (!host?.abortAgentHarnessRun) {
    logger.warn(`${why}; this OpenClaw offers no way to end it`);
    return;
  }
  const ended = await host.abortAgentHarnessRun(sessionId as string);
  logger.warn(ended === false ? `${why}; OpenClaw did not end it: it is over, or can not be ended` : `${why} and is ended`);
}
