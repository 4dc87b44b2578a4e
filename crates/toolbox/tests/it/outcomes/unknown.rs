//! The promise: an effect that may have happened is not repeated.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use holdfast_contract::{
    CallHints, DedupeMode, Effect, PermissionTier, Status, Tool, ToolContext, ToolError, ToolResult,
};
use holdfast_testkit::{Reaction, ScriptedTool};
use serde_json::{Value, json};

use crate::stack::{Build, Custom, ask, error_of, http};

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
    // The tool's minute, in which it may also say something itself.
    assert_eq!(attempt.finished_at_ms - attempt.started_at_ms, 60_000);
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
    // It may be asked again under the same key; who gives up has to say that nobody knows.
    let result = harness.call(&ask("pay").key("k")).await;
    assert_eq!(
        error_of(&result),
        ("outcome_unknown", Status::Error, true, false)
    );
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

/// A tool whose downstream honours keys, and which fails like this, one after the other.
fn keyed(failures: Vec<ToolError>) -> Arc<Custom> {
    let failures = Mutex::new(failures.into_iter());
    let mut tool = Custom::new("spawn", Effect::External, move |_, _| {
        let next = failures.lock().unwrap().next();
        next.map_or_else(|| Ok(ToolResult::new(json!("done"), "")), Err)
    });
    tool.forwards_key = true;
    Arc::new(tool)
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_honoured_does_not_vouch_for_the_next_one() {
    let tool = keyed(vec![http(504); 4]);
    let harness = Build::new(&tool).stack();
    let say = || ask("spawn").params(json!({"task": "pay invoice 17"}));
    let first = harness.call(&say()).await;
    assert_eq!(error_of(&first).0, "outcome_unknown");
    // The model asks again, under a new id and so under a new key.
    let again = harness.call(&say()).await;
    assert_eq!(error_of(&again).0, "outcome_unknown");
    assert!(again.from_cache && tool.executions() == 4);
}

#[tokio::test(start_paused = true)]
async fn what_one_attempt_proves_it_proves_of_itself_alone() {
    let refused = || ToolError::transport("ECONNREFUSED", "refused");
    let tool = keyed(vec![http(504), refused(), refused(), refused()]);
    let harness = Build::new(&tool).stack();
    let result = harness.call(&ask("spawn")).await;
    assert_eq!(error_of(&result).0, "outcome_unknown");
    assert_eq!(
        harness.records().await[0].state,
        holdfast_reliability::idempotency::record::RecordState::Unknown
    );
    assert_eq!(tool.executions(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_tools_own_words_are_not_taken_for_ours() {
    // Worth another attempt by the settings, and of unknown effect.
    for code in ["rate_limited", "circuit_open"] {
        let failures = vec![http(503), ToolError::coded(code, "busy")];
        let failures = Mutex::new(failures.into_iter());
        let tool = Custom::new("pay", Effect::External, move |_, _| {
            let next = failures.lock().unwrap().next();
            next.map_or_else(|| Ok(ToolResult::new(json!("done"), "")), Err)
        });
        let harness = Build::new(&Arc::new(tool))
            .reliability(json!({"retry": {"retryOn": [code]}}))
            .stack();
        let result = harness.call(&ask("pay")).await;
        assert_eq!(error_of(&result).0, "outcome_unknown", "{code}");
        assert_eq!(result.attempts, 2);
    }
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
