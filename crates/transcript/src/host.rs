//! What happens to a session that is broken: what the agent that wrote it does by itself when it
//! loads it, and what a provider answers when the agent sends it as it is.
//!
//! Where each of these was seen stands in `docs/decisions/0025-formats-of-sessions.md`.

use crate::check::Fault;
use crate::format::Format;

/// What comes of a fault, in one line.
pub(crate) fn outcome(format: Format, fault: Fault, id: &str) -> String {
    let refused = || format!("a provider answers 400: {}", answer(format, fault, id));
    match (format, fault) {
        (Format::OpenClaw, Fault::InvalidLine) => "OpenClaw and pi pass it over".to_owned(),
        (Format::ClaudeCode, Fault::InvalidLine) => "Claude Code passes it over".to_owned(),
        (Format::Codex, Fault::InvalidLine) => "Codex passes it over".to_owned(),
        (Format::Goose, Fault::InvalidLine) => "Goose loads what it can save of it".to_owned(),
        (_, Fault::InvalidLine) => "nobody can load it".to_owned(),
        (_, Fault::BrokenParent) => "the agent loses the history before it".to_owned(),
        (Format::OpenClaw, Fault::MissingToolResult) => {
            "OpenClaw and pi put an error in its place whenever they send the session".to_owned()
        }
        (Format::OpenClaw, Fault::MisplacedToolResult) => format!(
            "OpenClaw moves it back, or drops it behind another reply; pi sends it, and {}",
            refused()
        ),
        (Format::OpenClaw, Fault::OrphanedToolResult | Fault::DuplicateToolResult) => format!(
            "OpenClaw drops it whenever it sends the session; pi sends it, and {}",
            refused()
        ),
        (Format::ClaudeCode, _) => format!(
            "Claude Code refuses to resume: API Error: 400 {}",
            answer(format, fault, id)
        ),
        (Format::Codex, Fault::MissingToolResult) => {
            "Codex answers it with `aborted` whenever it sends the session".to_owned()
        }
        (Format::Codex, Fault::OrphanedToolResult) => {
            "Codex drops it whenever it sends the session".to_owned()
        }
        (Format::LangChain, Fault::MissingToolResult) => {
            "an agent of LangGraph refuses to go on: INVALID_CHAT_HISTORY".to_owned()
        }
        (Format::Goose, Fault::MissingToolResult) => {
            "Goose drops the call whenever it sends the session".to_owned()
        }
        (Format::Goose, Fault::OrphanedToolResult | Fault::DuplicateToolResult) => {
            "Goose drops it whenever it sends the session".to_owned()
        }
        (Format::Crush, Fault::MissingToolResult) => format!(
            "Crush puts an error in its place whenever it sends the session; before April 2026 {}",
            refused()
        ),
        (Format::Crush, Fault::OrphanedToolResult) => {
            "Crush drops it whenever it sends the session".to_owned()
        }
        _ => refused(),
    }
}

fn answer(format: Format, fault: Fault, id: &str) -> String {
    match format {
        Format::OpenClaw
        | Format::ClaudeCode
        | Format::Anthropic
        | Format::Goose
        | Format::Crush => match fault {
            Fault::MissingToolResult => format!(
                "`tool_use` ids were found without `tool_result` blocks immediately after: {id}"
            ),
            Fault::DuplicateToolCallId => "`tool_use` ids must be unique".to_owned(),
            Fault::DuplicateToolResult => format!(
                "each tool_use must have a single result. Found multiple `tool_result` blocks with id: {id}"
            ),
            _ => format!("unexpected `tool_use_id` found in `tool_result` blocks: {id}"),
        },
        Format::OpenAiChat | Format::LangChain => match fault {
            Fault::MissingToolResult => format!(
                "an assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id': {id}"
            ),
            Fault::DuplicateToolCallId => format!("duplicate tool call id: {id}"),
            _ => "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'"
                .to_owned(),
        },
        Format::Codex | Format::OpenAiResponses => match fault {
            Fault::MissingToolResult => format!("No tool output found for function call {id}."),
            Fault::DuplicateToolCallId => format!("Duplicate function call with call_id {id}."),
            Fault::DuplicateToolResult => {
                format!("Duplicate function call output with call_id {id}.")
            }
            _ => format!("No tool call found for function call output with call_id {id}."),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_agent_is_said_to_do_what_it_does() {
        let said = |format, fault| outcome(format, fault, "c1");
        let missing = Fault::MissingToolResult;
        assert!(said(Format::ClaudeCode, missing).starts_with("Claude Code refuses to resume"));
        assert!(said(Format::Anthropic, missing).starts_with("a provider answers 400"));
        for format in [Format::OpenClaw, Format::Codex] {
            // They mend it by themselves: nobody is answered 400.
            assert!(!said(format, missing).contains("400"), "{format:?}");
        }
        let orphan = said(Format::OpenClaw, Fault::OrphanedToolResult);
        assert!(orphan.contains("OpenClaw drops it"), "{orphan}");
        assert!(orphan.contains("pi sends it"), "{orphan}");
        // A broken line is passed over by every agent, and its provider never sees it.
        for format in [Format::OpenClaw, Format::ClaudeCode, Format::Codex] {
            assert!(
                said(format, Fault::InvalidLine).contains("over"),
                "{format:?}"
            );
        }
    }
}
