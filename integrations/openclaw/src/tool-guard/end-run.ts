// Ends a run from outside, after its last result was stored.

import type { Logger } from "../shared/host.js";

interface Ending {
  sessionId: string | undefined;
  runId: string;
  why: string;
  logger: Logger;
}

interface HarnessRuntime {
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
export function endRun({ sessionId, runId, why, logger }: Ending): void {
  if (sessionId === undefined || ending.has(runId)) return;
  ending.add(runId);
  setImmediate(() => {
    ending.delete(runId);
    void prepare().then((host) => {
      if (host?.abortAgentHarnessRun) {
        logger.warn(why);
        host.abortAgentHarnessRun(sessionId);
      } else {
        logger.warn(`${why}; this OpenClaw offers no way to end it`);
      }
    });
  });
}
