// The same check as a straightforward Node program does it: read a file, split it into lines, parse
// each line, remember the calls of the last assistant message, and look every result up in them.
//
//   node peer.mjs DIR
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

function callsOf(entry) {
  const message = entry.message ?? entry;
  if (entry.type === "response_item") {
    const item = entry.payload;
    return item.type === "function_call" ? [item.call_id] : [];
  }
  if (message.role !== "assistant") return null;
  const calls = [];
  if (Array.isArray(message.content)) {
    for (const block of message.content) {
      if (block.type === "toolCall" || block.type === "tool_use") calls.push(block.id);
    }
  }
  for (const call of message.tool_calls ?? []) calls.push(call.id);
  return calls;
}

function resultsOf(entry) {
  const message = entry.message ?? entry;
  if (entry.type === "response_item") {
    const item = entry.payload;
    return item.type === "function_call_output" ? [item.call_id] : [];
  }
  if (message.role === "toolResult") return [message.toolCallId];
  if (message.role === "tool") return [message.tool_call_id];
  if (message.role !== "user" || !Array.isArray(message.content)) return [];
  return message.content.filter((block) => block.type === "tool_result").map((block) => block.tool_use_id);
}

function check(text) {
  let issues = 0;
  let open = new Set();
  const ids = new Set();
  const used = new Set();
  for (const line of text.split("\n")) {
    if (line.trim() === "") continue;
    let entry;
    try {
      entry = JSON.parse(line);
    } catch {
      issues += 1;
      continue;
    }
    const id = entry.uuid ?? (entry.type === "message" ? entry.id : undefined);
    const parent = entry.parentUuid ?? entry.parentId;
    if (parent && !ids.has(parent)) issues += 1;
    if (id) ids.add(id);
    for (const result of resultsOf(entry)) {
      if (!open.delete(result)) issues += 1;
    }
    const calls = callsOf(entry);
    if (calls !== null && calls.length > 0) {
      issues += open.size;
      open = new Set(calls);
      for (const call of calls) {
        if (used.has(call)) issues += 1;
        used.add(call);
      }
    }
  }
  return issues;
}

const dir = process.argv[2];
let sessions = 0;
let issues = 0;
for (const name of readdirSync(dir)) {
  sessions += 1;
  issues += check(readFileSync(join(dir, name), "utf8"));
}
console.log(`${sessions} sessions, ${issues} issues found`);
