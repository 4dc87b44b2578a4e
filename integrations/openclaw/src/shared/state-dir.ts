// Where OpenClaw keeps its sessions, found as OpenClaw 2026.9.6 finds it.

import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join, resolve } from "node:path";

type Env = Record<string, string | undefined>;

/** Its folder, and the one of its first name. */
const FOLDER = ".openclaw";
const FIRST_FOLDER = ".clawdbot";
/** A name that is part of a folder's. */
const PROFILE = /^[a-z0-9][a-z0-9_-]{0,63}$/i;
const DEFAULT = "default";

/** The state directory of the gateway that runs, or would run, with this environment. */
export function stateDir(env: Env = process.env): string {
  const home = homeOf(env);
  const given = said(env["OPENCLAW_STATE_DIR"]);
  if (given !== undefined) return resolve(expanded(given, home));
  const folder = join(home, FOLDER);
  const first = join(home, FIRST_FOLDER);
  return !existsSync(folder) && existsSync(first) ? first : folder;
}

/** The same for a gateway that is started with these arguments: with `--profile NAME` it is another one. */
export function startedStateDir(args: readonly string[], env: Env = process.env): string {
  const profile = profileOf(args);
  // OpenClaw itself will say what is wrong with such a name.
  if (profile === undefined || !PROFILE.test(profile)) return stateDir(env);
  const selected = folderOf(profile, env);
  const given = said(env["OPENCLAW_STATE_DIR"]) === undefined ? undefined : stateDir(env);
  // A folder that somebody chose stays; that of the profile which this one is started from does not.
  const isInherited = given === folderOf(said(env["OPENCLAW_PROFILE"]) ?? DEFAULT, env);
  return given === undefined || isInherited ? selected : given;
}

function folderOf(profile: string, env: Env): string {
  return join(homeOf(env), profile.toLowerCase() === DEFAULT ? FOLDER : `${FOLDER}-${profile}`);
}

function profileOf(args: readonly string[]): string | undefined {
  for (const [at, arg] of args.entries()) {
    if (arg === "--") return undefined;
    if (arg === "--profile") return said(args[at + 1]);
    if (arg.startsWith("--profile=")) return said(arg.slice("--profile=".length));
  }
  return undefined;
}

function homeOf(env: Env): string {
  const own = home(env["HOME"]) ?? home(env["USERPROFILE"]) ?? homedir();
  return resolve(expanded(home(env["OPENCLAW_HOME"]) ?? own, own));
}

/** What is blank was not said. */
function said(value: string | undefined): string | undefined {
  return value?.trim() || undefined;
}

function home(value: string | undefined): string | undefined {
  const given = said(value);
  return given === "undefined" || given === "null" ? undefined : given;
}

function expanded(path: string, home: string): string {
  return path.replace(/^~(?=$|[\\/])/, () => home);
}
