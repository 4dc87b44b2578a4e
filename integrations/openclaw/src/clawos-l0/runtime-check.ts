// Checks what is about to be sent, before a run: advisory, because a plugin can not change the history.

import type { HoldfastAddon } from "../shared/addon.js";
import { isRecord } from "../shared/host.js";

/** Messages looked at, at most; a longer history is checked from its end. */
const MESSAGES_MAX = 20_000;

export interface Issue {
  type: string;
  toolUseId: string | null;
  messageIndex: number;
  description: string;
}

/** What pairing needs of some messages, and nothing else: texts can be megabytes. */
export function skeleton(messages: unknown[]): unknown[] {
  return messages.slice(-MESSAGES_MAX).map((message) => {
    if (!isRecord(message)) return { role: "user", content: "" };
    const { role, toolCallId, toolName, stopReason, excludeFromContext, content } = message;
    const bare = Array.isArray(content) ? content.filter(isRecord).map(block) : "";
    return { role, toolCallId, toolName, stopReason, excludeFromContext, content: bare };
  });
}

function block(part: Record<string, unknown>): unknown {
  const { type, id, name, toolCallId, tool_use_id } = part;
  return { type, id, name, toolCallId, tool_use_id, ...(type === "text" && { text: "" }) };
}

/** What is wrong with them; when anything is, an incident file says so. */
export async function check(
  addon: HoldfastAddon,
  messages: unknown[],
  sessionKey: string,
  stateDir: string,
): Promise<{ issues: Issue[]; incident?: string }> {
  if (messages.length === 0) return { issues: [] };
  const json = JSON.stringify(skeleton(messages));
  const issues = JSON.parse(await addon.checkMessages(json)) as Issue[];
  if (issues.length === 0) return { issues };
  const incident = JSON.parse(await addon.writeIncident(stateDir, sessionKey, json)) as string;
  return { issues, incident };
}

/** What the model is told about it. */
export function warning(issues: Issue[]): string {
  const first = issues[0]?.description ?? "";
  return `[SESSION INTEGRITY] ${issues.length} tool calls and results of this conversation do not fit together (${first}). Results that seem to be missing may be lost; do not rely on them.`;
}
