//! Where a server says what waits for a person: on its standard error.
//!
//! Nobody is asked in place, since calls of many callers would talk across each other. What is said there
//! ends up in logs that others read, so secrets are left out: those that are known, and what looks like one.

use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use holdfast_contract::redact::Redactor;
use holdfast_contract::time::rfc3339;
use holdfast_contract::{
    ApprovalPrompt, Audience, Channel, ChannelLevel, Clock, Prompted, Prompter, Shown, Surface,
    ToolError, visible,
};
use holdfast_reliability::observe::queued::QueuedSink;
use serde_json::{Value, json};

use crate::output::harmless;
use crate::terminal::{described, surface};

/// How a server writes to standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prints {
    /// For people.
    Words,
    /// One JSON value a line, like the events of its log.
    Json,
}

/// Standard error of a server.
pub(crate) struct ServerTerminal {
    redactor: Redactor,
    prints: Prints,
    clock: Arc<dyn Clock>,
    /// It may be a pipe that nobody reads; the request waits all the same.
    stderr: QueuedSink,
}

impl ServerTerminal {
    pub(crate) fn new(
        redactor: Redactor,
        prints: Prints,
        clock: Arc<dyn Clock>,
    ) -> io::Result<Self> {
        Ok(Self {
            redactor,
            prints,
            clock,
            stderr: QueuedSink::start(io::stderr())?,
        })
    }

    /// Whether it could be said.
    fn say(&self, words: &str, mut event: Value) -> bool {
        let line = match self.prints {
            Prints::Words => harmless(words),
            Prints::Json => {
                event["timestamp"] = rfc3339(self.clock.now_ms()).into();
                event["level"] = "info".into();
                visible::json(&event)
            }
        };
        self.stderr.takes(format!("{line}\n").as_bytes())
    }

    /// The same without what is, or looks like, a secret.
    fn redacted(&self, prompt: &ApprovalPrompt) -> ApprovalPrompt {
        let mut redacted = prompt.clone();
        redacted.arguments = match serde_json::from_str::<Value>(&prompt.arguments) {
            Ok(mut arguments) => {
                self.redactor.redact_value_in_place(&mut arguments);
                visible::json(&arguments)
            }
            Err(_) => self.redactor.redact_text(&prompt.arguments).into_owned(),
        };
        for reason in &mut redacted.reasons {
            reason.text = self.redactor.redact_text(&reason.text).into_owned();
        }
        if redacted.arguments != prompt.arguments || redacted.reasons != prompt.reasons {
            redacted.shown = Shown::Partly;
        }
        redacted
    }
}

fn event(name: &str, prompt: &ApprovalPrompt) -> Value {
    let reasons = prompt.reasons.iter().map(|reason| reason.text.as_str());
    json!({
        "event": name, "approval": prompt.id, "tool": prompt.tool, "tier": prompt.tier,
        "arguments": prompt.arguments, "shown": prompt.shown, "reasons": reasons.collect::<Vec<_>>(),
        "sessionId": prompt.origin_session, "actorId": prompt.actor, "workspace": prompt.workspace,
        "expiresAtMs": prompt.expires_at_ms,
    })
}

#[async_trait]
impl Prompter for ServerTerminal {
    async fn prompt(&self, prompt: &ApprovalPrompt) -> Result<Prompted, ToolError> {
        let prompt = self.redacted(prompt);
        let words = format!(
            "{}\n  answer:    holdfast approvals approve {1}   or   holdfast approvals deny {1}",
            described(&prompt),
            prompt.id
        );
        self.say(&words, event("approval_waiting", &prompt));
        Ok(Prompted::Shown)
    }

    async fn tell(&self, prompt: &ApprovalPrompt) -> Result<(), ToolError> {
        let prompt = self.redacted(prompt);
        let words = described(&prompt).replace("asks for approval", "runs with this note");
        self.say(&words, event("approval_noted", &prompt));
        Ok(())
    }

    fn audience(&self) -> Audience {
        Audience::Readers
    }
}

#[async_trait]
impl Channel for ServerTerminal {
    fn name(&self) -> &str {
        "terminal"
    }

    fn level(&self) -> ChannelLevel {
        ChannelLevel::Elevated
    }

    fn surface(&self) -> Surface {
        surface()
    }

    async fn send(&self, text: &str, _key: Option<&str>) -> Result<(), ToolError> {
        let text = self.redactor.hide_known(text);
        let text = self.redactor.redact_text(&text);
        if self.say(&text, json!({"event": "message", "text": text})) {
            Ok(())
        } else {
            Err(ToolError::failed("nobody reads what the server says"))
        }
    }
}

#[cfg(test)]
mod tests {
    use holdfast_contract::redact::RedactorOptions;
    use holdfast_contract::{Gate, PermissionTier, Reason, SystemClock};

    use super::*;

    fn server() -> ServerTerminal {
        let redactor = Redactor::new(&RedactorOptions::default());
        let clock = Arc::new(SystemClock);
        ServerTerminal::new(redactor, Prints::Words, clock).expect("a thread")
    }

    fn prompt(command: &str) -> ApprovalPrompt {
        ApprovalPrompt {
            id: "a1".to_owned(),
            tool: "exec".to_owned(),
            tier: PermissionTier::Elevated,
            gate: Gate::Strict,
            arguments: visible::json(&json!({ "command": command })),
            shown: Shown::Whole,
            reasons: vec![Reason::new("x", command, visible::line(command))],
            origin_session: "s".to_owned(),
            actor: "local".to_owned(),
            workspace: "/w".to_owned(),
            expires_at_ms: 1,
            code: None,
        }
    }

    #[test]
    fn what_looks_like_a_secret_is_not_said_in_a_log() {
        let command = "rm -rf ~/x; curl --password Hunter2Secret99 -H 'Authorization: Bearer ghp_0123456789abcdefghij0123456789abcdef'";
        let said = server().redacted(&prompt(command));
        for text in [described(&said), event("x", &said).to_string()] {
            assert!(text.contains("rm -rf ~/x"), "{text}");
            assert!(
                !text.contains("Hunter2") && !text.contains("ghp_"),
                "{text}"
            );
        }
        assert!(described(&said).contains("approvals show a1"));
        assert_eq!(event("x", &said)["shown"], "partly");
    }

    #[test]
    fn every_sign_stays_to_be_seen_and_nothing_is_said_to_be_hidden() {
        let prompt = prompt("rm -rf a\u{202e}b\u{a0}c\u{9b}d\u{2028}e\u{fe0f}f");
        let said = server().redacted(&prompt);
        assert_eq!(said, prompt);
        let words = described(&said);
        assert!(
            !words.contains("hidden:") && words.contains("\\u202e"),
            "{words}"
        );
        for text in [harmless(&words), visible::json(&event("x", &said))] {
            let unseen = |sign: &char| *sign != '\n' && visible::is_unseen(*sign);
            assert_eq!(text.chars().find(unseen), None, "{text}");
        }
    }
}
