//! The terminal as a channel: where the person is who runs `holdfast call`.

use std::io::{BufRead, BufReader, IsTerminal, Write};

use async_trait::async_trait;
use holdfast_contract::{
    Answer, ApprovalPrompt, Audience, Channel, ChannelLevel, Gate, Prompted, Prompter, Scope,
    Shown, Shows, Surface, ToolError,
};
use rustix::termios::{QueueSelector, tcflush};
use tokio::sync::oneshot;

use crate::output::harmless;

/// Who answers at the terminal.
const BY: &str = "terminal";
/// Characters of one message on a terminal; there is no limit that matters.
const MESSAGE_CHARS_MAX: usize = 100_000;

/// The terminal.
pub(crate) struct TerminalChannel {
    /// Whether somebody can be asked in place.
    interactive: bool,
}

impl TerminalChannel {
    /// This process's terminal, if it has one.
    pub(crate) fn new() -> Self {
        Self {
            interactive: std::io::stdin().is_terminal() && std::io::stderr().is_terminal(),
        }
    }
}

fn say(text: &str) {
    // Nobody may be there to read it; the request waits all the same.
    let _ = writeln!(std::io::stderr(), "{}", harmless(text));
}

/// What a person has to know of a request.
pub(crate) fn described(prompt: &ApprovalPrompt) -> String {
    let mut text = format!(
        "{} ({:?}) asks for approval {}\n  arguments: {}\n  workspace: {}\n  session:   {}",
        prompt.tool,
        prompt.tier,
        prompt.id,
        prompt.arguments,
        prompt.workspace,
        prompt.origin_session
    );
    if prompt.shown == Shown::Partly {
        text.push_str("\n  hidden:    secrets; `holdfast approvals show ");
        text.push_str(&prompt.id);
        text.push_str("` shows all of it");
    }
    for reason in &prompt.reasons {
        text.push_str("\n  because:   ");
        text.push_str(&reason.text);
    }
    text
}

/// What can be shown.
pub(crate) fn surface() -> Surface {
    Surface {
        tables: Shows::Yes,
        headings: Shows::Yes,
        message_chars_max: MESSAGE_CHARS_MAX,
    }
}

/// One answer, as typed; `None` for anything else.
fn read_answer(typed: &str, gate: Gate) -> Option<Answer> {
    let approve = |scope| Some(Answer::Approve { scope });
    match typed.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" | "once" => approve(Scope::Once),
        "s" | "session" if gate != Gate::Strict => approve(Scope::Session),
        "p" | "policy" if gate != Gate::Strict => approve(Scope::Policy),
        "n" | "no" => Some(Answer::Deny { reason: None }),
        _ => None,
    }
}

fn choices(gate: Gate) -> &'static str {
    match gate {
        Gate::Strict => "Run it? [y]es, [n]o: ",
        _ => "Run it? [y]es once, for this [s]ession, as a [p]olicy, [n]o: ",
    }
}

/// Asks until there is an answer; `None` when the terminal is gone.
fn ask(gate: Gate) -> Option<Answer> {
    // Not standard input: a script may be reading that.
    let terminal = std::fs::File::open("/dev/tty").ok()?;
    loop {
        // What was typed before the question was meant for something else.
        tcflush(&terminal, QueueSelector::IFlush).ok()?;
        let mut lines = BufReader::new(&terminal);
        let mut stderr = std::io::stderr();
        write!(stderr, "{}", choices(gate))
            .and_then(|()| stderr.flush())
            .ok()?;
        let mut typed = String::new();
        if lines.read_line(&mut typed).ok()? == 0 {
            return None;
        }
        if let Some(answer) = read_answer(&typed, gate) {
            return Some(answer);
        }
    }
}

#[async_trait]
impl Prompter for TerminalChannel {
    async fn prompt(&self, prompt: &ApprovalPrompt) -> Result<Prompted, ToolError> {
        say(&described(prompt));
        let elsewhere = format!(
            "  answer:    holdfast approvals approve {0}   or   holdfast approvals deny {0}",
            prompt.id
        );
        if !self.interactive {
            say(&elsewhere);
            return Ok(Prompted::Shown);
        }
        // A thread of its own: it may wait for a key when the answer has come from elsewhere, and
        // nobody waits for it then.
        let (tell, told) = oneshot::channel();
        let gate = prompt.gate;
        std::thread::Builder::new()
            .name("holdfast-prompt".to_owned())
            .spawn(move || tell.send(ask(gate)))
            .map_err(|error| ToolError::failed(format!("nobody can be asked: {error}")))?;
        if let Ok(Some(answer)) = told.await {
            let by = BY.to_owned();
            return Ok(Prompted::Answered { by, answer });
        }
        // The end of input is no answer; nothing more is read here.
        say(&format!("\n{elsewhere}   (nobody answers here any more)"));
        Ok(Prompted::Shown)
    }

    async fn tell(&self, prompt: &ApprovalPrompt) -> Result<(), ToolError> {
        say(&described(prompt).replace("asks for approval", "runs with this note"));
        Ok(())
    }

    fn audience(&self) -> Audience {
        Audience::Approver
    }
}

#[async_trait]
impl Channel for TerminalChannel {
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
        say(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strict_gate_takes_no_more_than_one_call() {
        let session = Answer::Approve {
            scope: Scope::Session,
        };
        assert_eq!(read_answer(" S\n", Gate::Required), Some(session));
        assert_eq!(read_answer("s", Gate::Strict), None);
        assert_eq!(read_answer("p", Gate::Strict), None);
        for gate in [Gate::Required, Gate::Strict] {
            assert_eq!(
                read_answer("y", gate),
                Some(Answer::Approve { scope: Scope::Once })
            );
            assert_eq!(read_answer("no", gate), Some(Answer::Deny { reason: None }));
            // Silence, a slip or half a word is no answer.
            for typed in ["", "\n", "yep", "x", "ye"] {
                assert_eq!(read_answer(typed, gate), None, "{typed}");
            }
        }
    }
}
