// Loads the native addon, and says clearly what to do when there is none for this machine.

import { existsSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type * as Addon from "./addon-types.js";

/** The addon's interface that these plugins are written for. */
const INTERFACE_VERSION = 5;

export type HoldfastAddon = typeof Addon;

/** There is no addon that fits; its message says why and what to do. */
export class NoAddonError extends Error {
  override name = "NoAddonError";
}

/** What this machine needs, such as `linux-x64-gnu`. */
export function platform(): string {
  const libc = process.platform === "linux" ? (isGlibc() ? "-gnu" : "-musl") : "";
  return `${process.platform}-${process.arch}${libc}`;
}

function isGlibc(): boolean {
  const header = (process.report?.getReport() as { header?: { glibcVersionRuntime?: string } } | undefined)?.header;
  return header?.glibcVersionRuntime !== undefined;
}

/** Loads the addon from the package that this file is in. */
export function loadAddon(root = packageRoot()): HoldfastAddon {
  const file = join(root, "native", `holdfast.${platform()}.node`);
  if (!existsSync(file)) {
    throw new NoAddonError(
      `Holdfast has no addon for ${platform()} in this package (it has: ${others(root)}). ` +
        "Build one on this machine with `integrations/openclaw/build/pack` in Holdfast's repository (on Linux), and install that.",
    );
  }
  let addon: HoldfastAddon;
  try {
    addon = createRequire(import.meta.url)(file) as HoldfastAddon;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new NoAddonError(`Holdfast's addon ${file} can not be loaded (${why}).`);
  }
  if (addon.interfaceVersion() !== INTERFACE_VERSION) {
    throw new NoAddonError(
      `Holdfast's addon has the interface ${addon.interfaceVersion()}, this plugin needs ${INTERFACE_VERSION}: ` +
        "install both from one package.",
    );
  }
  return addon;
}

function packageRoot(): string {
  // This file is dist/shared/addon.js.
  return join(dirname(fileURLToPath(import.meta.url)), "..", "..");
}

function others(root: string): string {
  try {
    const found = readdirSync(join(root, "native")).filter((name) => name.endsWith(".node"));
    return found.map((name) => name.replace(/^holdfast\./, "").replace(/\.node$/, "")).join(", ") || "none";
  } catch {
    return "none";
  }
}
