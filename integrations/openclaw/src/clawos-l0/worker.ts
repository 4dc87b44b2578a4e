// Scans in a process of its own, and prints the reports: as JSON for the plugin, in words for a person.
//
//   node worker.js report|repair STRATEGY [FOLDER]
//   node worker.js report|repair STRATEGY --words [ARGUMENTS OF THE GATEWAY]
//
// Never inside the gateway: closing a database there through a second copy of SQLite would take the gateway's
// own locks away. From another process the stores that it has open are seen to be in use, and left alone.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { loadAddon } from "../shared/addon.js";
import { startedStateDir } from "../shared/state-dir.js";
import { inWords, summed, type Report } from "./scan.js";

const [action, strategy, where, ...gateway] = process.argv.slice(2);
if ((action !== "report" && action !== "repair") || !strategy) {
  console.error("usage: worker.js report|repair STRATEGY [FOLDER | --words [ARGUMENTS]]");
  process.exit(2);
}
const isInWords = where === "--words";

try {
  const folder = where === undefined || isInWords ? join(startedStateDir(gateway), "agents") : where;
  // Before anybody has said anything there is no folder, and nothing wrong with it.
  const folders = existsSync(folder) ? [folder] : [];
  const reports = await loadAddon().scanSessions(folders, action, strategy);
  process.stdout.write(isInWords ? `clawos-l0: ${inWords(summed(JSON.parse(reports) as Report[]))}\n` : `${reports}\n`);
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error));
  process.exit(1);
}
