// What a model meant by a call, as it is compared.

import { createHash } from "node:crypto";
import * as zlib from "node:zlib";
import { isRecord } from "./host.js";

/** Longest text that is handed on whole; of a longer one both ends and a digest are, so that no call holds Node up. */
export const TEXT_CHARS_MAX = 128 * 1024;

/** The tool and the arguments that the model meant. */
export interface Meant {
  tool: string;
  args: unknown;
}

/** Most tools sit behind `tool_call`; then the tool inside it is what the model meant, read in the host's own order. */
export function meant(toolName: string, params: unknown): Meant {
  if (toolName === "tool_call" && isRecord(params)) {
    const inner = params["id"] ?? params["toolId"] ?? params["name"];
    if (typeof inner === "string" && inner.trim()) return { tool: ownName(inner.trim()), args: innerArgs(params) };
  }
  return { tool: toolName, args: params ?? {} };
}

/** Where the host's own tools are in its catalogue: a plugin's tool of the same name is another one. */
const OWN = /^openclaw:(?:core|memory-core|browser|canvas):([^:]+)$/;

function ownName(id: string): string {
  return OWN.exec(id)?.[1] ?? id;
}

/** The host takes what is nested, or else whatever stands beside the tool's name. */
function innerArgs(params: Record<string, unknown>): unknown {
  const nested = params["args"] ?? params["input"];
  const isEmpty = isRecord(nested) && Object.keys(nested).length === 0;
  const dotted = entriesOf(params, (key) => key.startsWith(DOTTED) && key.length > DOTTED.length);
  const named = Object.fromEntries(dotted.map(([key, value]) => [key.slice(DOTTED.length), value]));
  if (nested !== undefined && nested !== null && !isEmpty) return isRecord(nested) ? { ...named, ...nested } : nested;
  const selector = SELECTORS.find((key) => params[key] !== undefined && params[key] !== null);
  const beside = entriesOf(params, (key) => key !== "args" && key !== "input" && key !== selector && !key.startsWith(DOTTED));
  return { ...named, ...Object.fromEntries(beside) };
}

const SELECTORS = ["id", "toolId", "name"];
const DOTTED = "args.";

function entriesOf(params: Record<string, unknown>, has: (key: string) => boolean): Array<[string, unknown]> {
  return Object.entries(params).filter(([key]) => has(key));
}

/** Arguments as JSON, to the last character; of a text that would hold Node up, by a digest that nobody can forge. */
export function exact(value: unknown): string {
  if (!has(value, isLong)) return JSON.stringify(value) ?? "null";
  return JSON.stringify(value, (_, part: unknown) => (typeof part === "string" && isLong(part) ? shortened(part, sha256(part)) : part));
}

/** Arguments for comparing: as JSON, and the long texts of it by themselves. */
export interface Comparable {
  args: string;
  texts?: string[];
}

/** Texts from this length on cross to the addon by themselves: inside JSON they would be escaped, and read by the character. */
const APART_CHARS_MIN = 1024;
/** What stands for such a text, before its place among them; a text that begins so crosses by itself too. */
const APART = "\u0000";

/** Arguments for comparing. Only texts in them are ever long: what a model writes at once is short otherwise. */
export function comparable(value: unknown): Comparable {
  if (!has(value, isApart)) return { args: JSON.stringify(value) ?? "null" };
  const texts: string[] = [];
  const args = JSON.stringify(value, (_, part: unknown) => {
    if (typeof part !== "string" || !isApart(part)) return part;
    const text = bounded(part);
    // Only JSON can tell lone surrogates apart.
    if (!text.isWellFormed()) return text;
    texts.push(text);
    return `${APART}${texts.length - 1}`;
  });
  return { args, texts };
}

function isApart(text: string): boolean {
  return text.length >= APART_CHARS_MIN || text.startsWith(APART);
}

function isLong(text: string): boolean {
  return text.length > TEXT_CHARS_MAX;
}

/** Whether there is such a text in it. */
function has(value: unknown, is: (text: string) => boolean): boolean {
  if (typeof value === "string") return is(value);
  if (typeof value !== "object" || value === null) return false;
  for (const key in value) if (has((value as Record<string, unknown>)[key], is)) return true;
  return false;
}

/** A text whose length holds nothing up, and which is another one wherever the text is. */
export function bounded(text: string): string {
  return isLong(text) ? shortened(text, checked(text)) : text;
}

function shortened(text: string, digest: string): string {
  const end = TEXT_CHARS_MAX / 2;
  return `${text.slice(0, end)}\n(${text.length} characters, ${digest})\n${text.slice(-end)}`;
}

/**
 * All of a text in few letters, for the guard: nobody gains anything by two texts that are taken for one, so it is the
 * quickest sum there is, of each half. It differs wherever a few letters do.
 */
function checked(text: string): string {
  // Node 22.2 has it.
  const crc32 = (zlib as { crc32?: (data: string | Uint8Array) => number }).crc32;
  // In UTF-8 all lone surrogates are one.
  if (!crc32 || !text.isWellFormed()) return sha256(text);
  const half = text.length >>> 1;
  return `CRC-32 ${crc32(text.slice(0, half)).toString(16)} ${crc32(text.slice(half)).toString(16)}`;
}

function sha256(text: string): string {
  // As it is in memory: in UTF-8 all lone surrogates are one.
  return `SHA-256 ${createHash("sha256").update(text, "utf16le").digest("hex")}`;
}
