// The guard's log, as tests read it.

import { readFile } from "node:fs/promises";

/** Longest that lines are waited for. */
const LINES_MS_MAX = 60_000;

/** The log is written by a thread of its own: waits for its lines. */
export async function lines(file, count) {
  const until = Date.now() + LINES_MS_MAX;
  for (;;) {
    const text = await readFile(file, "utf8").catch(() => "");
    const found = text.split("\n").filter(Boolean);
    if (found.length >= count) return found.map((line) => JSON.parse(line));
    if (Date.now() > until) throw new Error(`${found.length} of ${count} lines came`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
