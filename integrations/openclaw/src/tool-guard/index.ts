// The plugin `tool-guard`: which hook does what.

import { loadAddon, NoAddonError } from "../shared/addon.js";
import {
  isOld,
  mayHear,
  settingsOf,
  warnIfUnknown,
  type AfterToolCall,
  type BeforeMessageWrite,
  type BeforeToolCall,
  type CallContext,
  type ModelCallStarted,
  type PluginApi,
  type ToolResultPersist,
} from "../shared/host.js";
import { processWide } from "../shared/process-wide.js";
import { prepare } from "./end-run.js";
import { HostGuard } from "./guard.js";
import { resultOf } from "./outcome.js";
import { readSettings, usable, type Settings } from "./settings.js";

/** The shape of what all copies of this plugin share in a process. */
const SHARED_VERSION = 5;

export default {
  id: "tool-guard",
  name: "Tool Guard",
  description: "Prevents malformed tool call loops with dedup detection, hard caps, and model attribution logging",
  register(api: PluginApi): void {
    const guard = open(api);
    if (!guard) return;
    warnIfUnknown(api, guard.warned);
    void prepare();
    // Whatever goes wrong here, the call goes on: OpenClaw would refuse it if this threw.
    const guarded =
      <E, R>(where: string, handler: (event: E, context: CallContext) => R) =>
      (event: E, context: CallContext): R | undefined => {
        // The settings may change while this registration lasts.
        if (!guard.isEnabled) return undefined;
        try {
          return handler(event, context ?? {});
        } catch (error) {
          guard.trouble(where, error);
          return undefined;
        }
      };
    const on = <E, R>(hook: string, handler: (event: E, context: CallContext) => R): void =>
      api.on(hook, guarded(hook, handler) as (event: never, context: never) => unknown);

    if (isOld(api)) {
      listenToOld(on, guard);
      return;
    }
    on("model_call_started", (event: ModelCallStarted) => guard.modelCallStarted(event));
    on("before_tool_call", (event: BeforeToolCall, context) => guard.beforeToolCall(event, context));
    on("after_tool_call", (event: AfterToolCall, context) => guard.afterToolCall(event, context));
    on("tool_result_persist", (event: ToolResultPersist, context) => guard.toolResultPersist(event, context));
    const maySpeak = mayHear(api);
    on("before_message_write", (event: BeforeMessageWrite, context) => guard.assistantWritten(event.message, context, maySpeak));
    // The only way to a model whose call could not be read at all.
    if (maySpeak) on("before_prompt_build", (_event: unknown, context) => guard.promptContext(context));
    else if (guard.isEnabled) sayOnce(guard, HALF_MUTE);
  },
};

/** What is missed without the right to be at the prompt. */
const HALF_MUTE =
  "tool-guard: calls whose arguments are no JSON are counted and logged, but no model is told why they failed; " +
  "plugins.entries.tool-guard.hooks.allowConversationAccess: true lets the guard tell it.";

function sayOnce(guard: HostGuard, text: string): void {
  if (guard.warned.has(text)) return;
  guard.warned.add(text);
  guard.logger.warn(text);
}

type On = <E, R>(hook: string, handler: (event: E, context: CallContext) => R) => void;

/** The same for a host whose hooks tell less. */
function listenToOld(on: On, guard: HostGuard): void {
  const { oldHost } = guard;
  const sessionOf = (context: CallContext): string => context.sessionKey ?? "";
  on("llm_input", ({ runId, provider, model }: ModelCallStarted, context) => {
    if (runId === undefined) return;
    oldHost.runBegan(sessionOf(context), { runId, ...(provider !== undefined && { provider }), ...(model !== undefined && { model }) });
  });
  on("before_message_write", (event: BeforeMessageWrite, context) => {
    const session = sessionOf(context);
    const run = oldHost.runOf(session);
    if (event.message.role !== "assistant" || !oldHost.answerWritten(session, event.message) || run === undefined) return;
    guard.modelCallStarted({ sessionKey: session, ...run });
  });
  on("before_tool_call", (event: BeforeToolCall, context) => guard.beforeToolCall(oldHost.named(event, sessionOf(context)), context));
  on("tool_result_persist", (event: ToolResultPersist, context) => {
    const call = oldHost.ended(event, sessionOf(context));
    if (call) guard.afterToolCall({ ...call, result: resultOf(event.message) }, context);
    guard.toolResultPersist(event, context);
  });
}

/** The process's guard with this registration's settings, or nothing when it can not work. */
function open(api: PluginApi): HostGuard | undefined {
  const settings = readSettings(settingsOf(api), api);
  let otherwise = "the last good settings stay";
  const make = (): HostGuard => {
    otherwise = "the other settings apply";
    return new HostGuard(usable(settings, loadAddon()), api.logger);
  };
  try {
    const guard = processWide("tool-guard", SHARED_VERSION, make);
    guard.logger = api.logger;
    take(guard, settings, otherwise);
    return guard;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    api.logger.error(error instanceof NoAddonError ? `tool-guard: ${why} Until then this plugin does nothing.` : `tool-guard is off: ${why}`);
    return undefined;
  }
}

/** A guard with settings that can not be used goes on with what it has, and says so once, however often it is registered. */
function take(guard: HostGuard, settings: Settings, otherwise: string): void {
  try {
    guard.configure(settings);
    guard.refused = undefined;
  } catch (error) {
    if (guard.refused === settings.guard) return;
    guard.refused = settings.guard;
    guard.logger.error(`tool-guard: ${error instanceof Error ? error.message : String(error)}; ${otherwise}`);
  }
}
