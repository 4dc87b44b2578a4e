// Scans in a process of its own, and prints the reports as JSON.
//
//   node worker.js report|repair STRATEGY [FOLDER]
//
// Never inside the gateway: closing a database there through a second copy of SQLite would take the gateway's
// own locks away. From another process the stores that it has open are seen to be in use, and left alone.

import { homedir } from "node:os";
import { join } from "node:path";
import { loadAddon } from "../shared/addon.js";

const [action, strategy, folder] = process.argv.slice(2);
if ((action !== "report" && action !== "repair") || !strategy) {
  console.error("usage: worker.js report|repair STRATEGY [FOLDER]");
  process.exit(2);
}

function stateDir(): string {
  const home = process.env["OPENCLAW_HOME"] ?? homedir();
  return process.env["OPENCLAW_STATE_DIR"] ?? join(home, ".openclaw");
}

try {
  const reports = await loadAddon().scanSessions([folder ?? join(stateDir(), "agents")], action, strategy);
  process.stdout.write(`${reports}\n`);
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error));
  process.exit(1);
}
