// Scans the sessions from a child process, and says what came of it.

import { execFile } from "node:child_process";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** Longest that a scan may take. */
const SCAN_MS_MAX = 120_000;
/** Most that a scan may print. */
const REPORT_BYTES_MAX = 64 * 1024 * 1024;
/** Findings that a command shows; the rest is counted. */
const FINDINGS_SHOWN_MAX = 20;

export interface Finding {
  file: string;
  type: string;
  id: string | null;
  entry: number;
  description: string;
}

/** What was found in one file. */
export interface Report {
  file: string;
  sessions: number;
  findings?: Finding[];
  repaired?: number;
  left?: Finding[];
  backup?: string | null;
  leftAlone?: string | null;
  error?: string | null;
}

/** What a scan came to. */
export interface Scan {
  at: Date;
  sessions: number;
  findings: Finding[];
  repaired: number;
  left: Finding[];
  backups: string[];
  leftAlone: Array<{ file: string; why: string }>;
  errors: Array<{ file: string; why: string }>;
}

/** Scans every session below the state directory. */
export async function scan(action: "report" | "repair", strategy: string, stateDir: string): Promise<Scan> {
  const worker = join(dirname(fileURLToPath(import.meta.url)), "worker.js");
  const printed = await run(worker, [action, strategy, join(stateDir, "agents")]);
  return summed(JSON.parse(printed) as Report[]);
}

function run(worker: string, args: string[]): Promise<string> {
  const options = { timeout: SCAN_MS_MAX, maxBuffer: REPORT_BYTES_MAX, killSignal: "SIGKILL" as const };
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [worker, ...args], options, (error, out, said) => {
      if (error) reject(new Error(`the scan failed: ${said.trim() || error.message}`));
      else resolve(out);
    });
  });
}

/** All files together. */
export function summed(reports: Report[]): Scan {
  const made: Scan = {
    at: new Date(),
    sessions: 0,
    findings: [],
    repaired: 0,
    left: [],
    backups: [],
    leftAlone: [],
    errors: [],
  };
  for (const report of reports) {
    made.sessions += report.sessions;
    made.findings.push(...(report.findings ?? []));
    made.repaired += report.repaired ?? 0;
    made.left.push(...(report.left ?? []));
    if (report.backup) made.backups.push(report.backup);
    if (report.leftAlone) made.leftAlone.push({ file: report.file, why: report.leftAlone });
    if (report.error) made.errors.push({ file: report.file, why: report.error });
  }
  return made;
}

/** `N sessions, M issues found, K repaired`, as the specification words it. */
export function inOneLine(scan: Scan): string {
  return `${scan.sessions} sessions, ${scan.findings.length} issues found, ${scan.repaired} repaired`;
}

/** A scan for a person to read. */
export function inWords(scan: Scan): string {
  if (scan.sessions === 0 && scan.errors.length === 0) return "no sessions yet";
  const lines = [inOneLine(scan)];
  for (const finding of scan.findings.slice(0, FINDINGS_SHOWN_MAX)) {
    lines.push(`- ${finding.type} ${finding.id ?? "(no id)"} in ${shortened(finding.file)}, entry ${finding.entry}`);
  }
  const more = scan.findings.length - FINDINGS_SHOWN_MAX;
  if (more > 0) lines.push(`- and ${more} more`);
  for (const backup of scan.backups) lines.push(`As it was: ${backup}`);
  for (const { file, why } of scan.leftAlone) lines.push(`${shortened(file)}: ${why}`);
  for (const { file, why } of scan.errors) lines.push(`${shortened(file)}: ${why}`);
  if (scan.leftAlone.length > 0) {
    lines.push("A store in use is never written. Stop the gateway, run `holdfast scan --repair`, and start it again.");
  }
  return lines.join("\n");
}

function shortened(file: string): string {
  const at = file.indexOf("/agents/");
  return at < 0 ? file : file.slice(at + 1);
}
