//! Commands and paths that a tool hands on are judged as those that run here.

use std::sync::Arc;

use async_trait::async_trait;
use holdfast_contract::{
    Answer, ChannelLevel, Effect, HandedCommand, HandsOn, PermissionTier, Reason, Scope,
    SessionContext, TierVerdict, Tool, ToolContext, ToolError, ToolResult,
};
use serde_json::{Value, json};

use crate::permission::bench::{Build, Recorded, ask, message, word};

/// A tool that runs commands elsewhere.
struct Elsewhere;

#[async_trait]
impl Tool for Elsewhere {
    fn name(&self) -> &str {
        "elsewhere"
    }

    fn description(&self) -> &str {
        "Made for a test."
    }

    fn parameters_schema(&self) -> Value {
        json!({"type": "object"})
    }

    fn permission_tier(&self) -> PermissionTier {
        PermissionTier::System
    }

    fn tier_for(&self, params: &Value, _session: &SessionContext) -> TierVerdict {
        let mut verdict = TierVerdict::declared(self.permission_tier());
        if params["act"].is_string() {
            verdict.raise_exact(Reason::new("acts", "act", "it acts"));
        }
        verdict
    }

    fn hands_on(&self, params: &Value) -> HandsOn {
        let text = |name: &str| params[name].as_str().map(str::to_owned);
        let command = text("command").map(|command| HandedCommand {
            command,
            working_dir: None,
            stdin: text("stdin"),
        });
        HandsOn {
            commands: command.into_iter().collect(),
            paths: text("path").into_iter().collect(),
        }
    }

    fn effect(&self) -> Effect {
        Effect::External
    }

    async fn execute(&self, _params: &Value, _ctx: &ToolContext) -> Result<ToolResult, ToolError> {
        Ok(ToolResult::new(json!("ran"), ""))
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_handed_on_keeps_to_the_rules() {
    let mut build = Build::default();
    build.permissions.commands.blocked = vec!["curl".to_owned()];
    let bench = build.bench(vec![Arc::new(Elsewhere)]);
    let no = Answer::Deny { reason: None };
    let channel = Recorded::new(ChannelLevel::Elevated, Some(no));
    bench.main("/w".into(), Some(channel.clone())).await;
    let table = [
        (json!({"command": "ls"}), "ran"),
        (json!({"path": "notes"}), "ran"),
        (json!({"command": "npm publish"}), "denied it"),
        (json!({"command": "'npm' 'publish'"}), "denied it"),
        (
            json!({"command": "sh", "stdin": "npm publish"}),
            "denied it",
        ),
        (json!({"act": "x"}), "denied it"),
        (
            json!({"command": "curl example.org"}),
            "blocked by the rule",
        ),
        (json!({"command": "sh -c 'curl x'"}), "blocked by the rule"),
        (
            json!({"command": "holdfast approvals approve x"}),
            "by people",
        ),
    ];
    for (params, expected) in table {
        let result = bench
            .stack
            .call(ask("elsewhere", "main", params.clone()))
            .await;
        let said = match word(&result) {
            "ran" => "ran",
            _ => message(&result),
        };
        assert!(said.contains(expected), "{params}: {said}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_yes_to_these_arguments_is_none_to_others() {
    let bench = Build::default().bench(vec![Arc::new(Elsewhere)]);
    let yes = Answer::Approve {
        scope: Scope::Session,
    };
    let channel = Recorded::new(ChannelLevel::Elevated, Some(yes));
    bench.main("/w".into(), Some(channel.clone())).await;
    let asked = |act: &str| {
        let params = json!({ "act": act });
        bench.stack.call(ask("elsewhere", "main", params))
    };
    for (act, prompts) in [("x", 1), ("x", 1), ("y", 2), ("x", 2)] {
        assert_eq!(word(&asked(act).await), "ran");
        assert_eq!(channel.prompts.lock().len(), prompts, "{act}");
    }
}
