//! What whoever runs Holdfast says of commands.

use holdfast_contract::Reason;
use holdfast_judge::{Reading, Refusal, RuleSet, Why, allowed, blocked};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `permissions.commands`
///
/// A rule of the first two is a program with words that have to be there: `git`, `git push`,
/// `rm -rf /`. The promise is that the shell starts no such command from the text. What scripts and
/// programs start is the kernel's matter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct CommandRules {
    /// When it is not empty, only these commands run. Each is a program, or a program with words that
    /// have to be there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed: Vec<String>,
    /// Commands that never run, whoever asks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocked: Vec<String>,
    /// Commands about which a person is asked, beside the built-in ones.
    #[serde(skip_serializing_if = "RuleSet::is_empty")]
    pub ask: RuleSet,
}

impl CommandRules {
    /// Why a command line may not run.
    pub(super) fn forbid(&self, reading: &Reading) -> Option<Reason> {
        let mut blocking = self.blocked.iter();
        if let Some((rule, found)) = blocking.find_map(|rule| Some((rule, blocked(rule, reading)?)))
        {
            return Some(refused(&found, rule));
        }
        let found = allowed(&self.allowed, reading)?;
        Some(refused(&found, ""))
    }
}

fn refused(found: &Refusal, rule: &str) -> Reason {
    let (code, why) = match found.why {
        Why::Blocked => ("blocked_command", format!("is blocked by the rule {rule:?}")),
        Why::NotAllowed => (
            "command_not_allowed",
            "is not among the commands that are allowed (permissions.commands.allowed)".to_owned(),
        ),
        Why::Unreadable if rule.is_empty() => (
            "unreadable_command",
            "can not be read in full, so it can not be held against the commands that are allowed. \
             Write it plainer, or in several calls"
                .to_owned(),
        ),
        Why::Unreadable => (
            "unreadable_command",
            format!(
                "may be what the rule {rule:?} blocks: that is only known when it runs. Write the \
                 command out"
            ),
        ),
    };
    let text = format!("`{}` {why}", found.command);
    Reason::new(code, found.command.clone(), text)
}
