// What ends a run in the host: notes which it was asked to end. A test may say what it answers.
export const abortAgentHarnessRun = (id) => (globalThis.harness.aborted.push(id), globalThis.harness.answer?.());
