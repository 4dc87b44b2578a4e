//! The promise: an effect that may have happened is not repeated.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use holdfast_contract::{
    CallHints, DedupeMode, Effect, PermissionTier, Tool, ToolContext, ToolError, ToolResult,
};
use holdfast_testkit::{Reaction, ScriptedTool};
use serde_json::{Value, json};

use crate::common::{Build, Custom, ask, http};

const INTENTS: u32 = 1_000;
const TRIES: u32 = 3;

/// A naive client over a tool that commits its effect and then never answers: it calls again,
/// under the same key, whenever it gets an error. Gives the effects that were one too many.
async fn repeated_effects(enabled: bool) -> u32 {
    let tool = Arc::new(ScriptedTool::mutating("pay", [Reaction::EffectThenHang]));
    // Without the breaker every intent gets through to the tool.
    let settings = json!({"enabled": enabled, "openMode": "off"});
    let harness = Build::new(&tool).reliability(settings).stack();
    for intent in 0..INTENTS {
        let key = format!("order-{intent}");
        let call = ask("pay")
            .key(&key)
            .params(json!({"path": key}))
            .hints(CallHints {
                timeout_ms: Some(1_000),
                ..CallHints::default()
            });
        for _ in 0..TRIES {
            if harness.call(&call.again()).await.is_success() {
                break;
            }
        }
    }
    let mut effects: HashMap<String, u32> = HashMap::new();
    for params in tool.seen() {
        *effects.entry(params["path"].to_string()).or_default() += 1;
    }
    assert_eq!(
        effects.len(),
        INTENTS as usize,
        "every intent was carried out"
    );
    effects.values().map(|count| count - 1).sum()
}

#[tokio::test(start_paused = true)]
async fn unknown_outcomes_never_repeat_1000() {
    assert_eq!(repeated_effects(true).await, 0);
    // The same client without the layers pays two times too many for every order.
    assert_eq!(repeated_effects(false).await, INTENTS * (TRIES - 1));
}

#[tokio::test(start_paused = true)]
async fn the_record_says_what_became_of_an_attempt_that_was_cut_off() {
    let tool = Arc::new(ScriptedTool::mutating("pay", [Reaction::Hang]));
    let harness = Build::new(&tool).stack();
    harness.call(&ask("pay").key("k")).await;
    let records = harness.records().await;
    let execution = records[0].execution.as_ref().unwrap();
    let attempt = &execution.attempts[0];
    assert_eq!(execution.attempt_count, 1);
    assert_eq!(attempt.error_code.as_deref(), Some("timeout"));
    // The tool's own minute, and the second in which it may still say something itself.
    assert_eq!(attempt.finished_at_ms - attempt.started_at_ms, 61_000);
}

#[tokio::test(start_paused = true)]
async fn a_downstream_that_honours_our_key_is_asked_again_only_with_a_key() {
    let keys: Arc<Mutex<Vec<Option<String>>>> = Arc::default();
    let seen = keys.clone();
    let mut tool = Custom::new("pay", Effect::External, move |_, ctx| {
        seen.lock().unwrap().push(ctx.call.idempotency_key.clone());
        Err(http(500))
    });
    tool.forwards_key = true;
    let harness = Build::new(&Arc::new(tool)).stack();
    let result = harness.call(&ask("pay").key("k")).await;
    assert_eq!(result.error_code(), Some("http_500"));
    let sent = std::mem::take(&mut *keys.lock().unwrap());
    assert_eq!(
        sent,
        vec![Some(harness.records().await[0].key.to_string()); 4]
    );

    let bare = ask("pay")
        .mode(DedupeMode::Disabled)
        .params(json!({"n": 1}));
    let result = harness.call(&bare).await;
    assert_eq!(result.error_code(), Some("outcome_unknown"));
    assert_eq!(*keys.lock().unwrap(), [None]);
}

/// Panics before there is anything to wait for.
struct Rash;

impl Tool for Rash {
    fn name(&self) -> &str {
        "rash"
    }

    fn description(&self) -> &str {
        "Panics at once."
    }

    fn parameters_schema(&self) -> Value {
        json!({"type": "object"})
    }

    fn permission_tier(&self) -> PermissionTier {
        PermissionTier::ReadOnly
    }

    fn effect(&self) -> Effect {
        Effect::None
    }

    fn execute<'life0, 'life1, 'life2, 'run>(
        &'life0 self,
        _params: &'life1 Value,
        _ctx: &'life2 ToolContext,
    ) -> BoxFuture<'run, Result<ToolResult, ToolError>>
    where
        'life0: 'run,
        'life1: 'run,
        'life2: 'run,
        Self: 'run,
    {
        panic!("as the test says")
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_panics_before_it_runs_is_caught_as_well() {
    let harness = Build::new(&Arc::new(Rash)).stack();
    let result = harness.call(&ask("rash")).await;
    assert_eq!(result.error_code(), Some("tool_panicked"));
    assert!(harness.call(&ask("rash")).await.error.is_some());
}
