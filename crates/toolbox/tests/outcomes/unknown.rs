//! The promise: an effect that may have happened is not repeated.

use std::collections::HashMap;
use std::sync::Arc;

use holdfast_contract::CallHints;
use holdfast_testkit::{Reaction, ScriptedTool};
use serde_json::json;

use crate::common::{Build, ask};

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
