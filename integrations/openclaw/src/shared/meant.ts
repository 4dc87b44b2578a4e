// What a model meant by a call, as it is compared.

import { createHash } from "node:crypto";
import { isRecord } from "./host.js";

/** Longest text that is handed on whole; of a longer one both ends and a digest are, so that no call holds Node up. */
export const TEXT_CHARS_MAX = 128 * 1024;

/** The tool and the arguments that the model meant. */
export interface Meant {
  tool: string;
  args: unknown;
}

/** Most tools sit behind `tool_call`; then the tool inside it is what the model meant. */
export function meant(toolName: string, params: unknown): Meant {
  if (toolName === "tool_call" && isRecord(params)) {
    const inner = params["id"] ?? params["name"] ?? params["tool"];
    if (typeof inner === "string") {
      return { tool: inner.split(":").at(-1) ?? inner, args: params["args"] ?? params["arguments"] ?? {} };
    }
  }
  return { tool: toolName, args: params ?? {} };
}

/** Arguments as JSON, to the last character. */
export function exact(value: unknown): string {
  return JSON.stringify(value) ?? "null";
}

/** Arguments as JSON, for comparing. Only texts in them are ever long: what a model writes at once is short otherwise. */
export function comparable(value: unknown): string {
  if (!isLong(value)) return exact(value);
  return JSON.stringify(value, (_, part: unknown) => (typeof part === "string" ? bounded(part) : part)) ?? "null";
}

function isLong(value: unknown): boolean {
  if (typeof value === "string") return value.length > TEXT_CHARS_MAX;
  if (typeof value !== "object" || value === null) return false;
  for (const key in value) if (isLong((value as Record<string, unknown>)[key])) return true;
  return false;
}

/** A text whose length holds nothing up, and which is another one wherever the text is. */
export function bounded(text: string): string {
  if (text.length <= TEXT_CHARS_MAX) return text;
  const end = TEXT_CHARS_MAX / 2;
  // As it is in memory: in UTF-8 all lone surrogates are one.
  const digest = createHash("sha256").update(text, "utf16le").digest("hex");
  return `${text.slice(0, end)}\n(${text.length} characters, SHA-256 ${digest})\n${text.slice(-end)}`;
}
