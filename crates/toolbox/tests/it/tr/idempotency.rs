//! TR-1 to TR-4: the contract, and one key for one effect.

use std::sync::Arc;
use std::time::Duration;

use holdfast_contract::{CacheMatch, DedupeMode, Status};
use holdfast_reliability::idempotency::record::RecordState;
use holdfast_testkit::{Reaction, ScriptedTool};
use serde_json::{Value, json};

use crate::stack::{Build, ask, effect_of, error_of};

fn written(ask: &crate::stack::Ask) -> Value {
    serde_json::to_value(&ask.0).unwrap()
}

#[tokio::test(start_paused = true)]
async fn tr_01_a_malformed_envelope_is_a_terminal_error_without_a_trace() {
    let tool = Arc::new(ScriptedTool::mutating("pay", [Reaction::Succeed]));
    let harness = Build::new(&tool).stack();
    let good = written(&ask("pay").key("k"));

    let mut nameless = good.clone();
    nameless.as_object_mut().unwrap().remove("toolName");
    let mut old = good.clone();
    old["contractVersion"] = json!("1.0");
    let mut no_params = good.clone();
    no_params["payload"]["params"] = json!("not an object");
    for (envelope, field) in [
        (nameless, "toolName"),
        (old, "contractVersion"),
        (no_params, "payload.params"),
    ] {
        let bytes = serde_json::to_vec(&envelope).unwrap();
        let result = harness.stack.call_bytes(&bytes).await;
        let expected = ("invalid_envelope", Status::Error, true, false);
        assert_eq!(error_of(&result), expected, "{field}");
        assert!(result.error.as_ref().unwrap().message.contains(field));
        assert_eq!((result.attempts, result.retried_by.len()), (0, 0));
    }
    let result = harness.stack.call_bytes(b"{").await;
    assert_eq!(result.error_code(), Some("invalid_envelope"));
    assert_eq!((tool.executions(), harness.record().await), (0, None));

    // A valid call still executes.
    let bytes = serde_json::to_vec(&good).unwrap();
    let result = harness.stack.call_bytes(&bytes).await;
    assert_eq!((result.status, effect_of(&result)), (Status::Success, 1));
}

#[tokio::test(start_paused = true)]
async fn tr_02_a_duplicate_of_a_running_call_waits_and_runs_nothing() {
    let slow = Reaction::SucceedAfter(Duration::from_secs(5));
    let tool = Arc::new(ScriptedTool::mutating("pay", [slow]));
    let harness = Build::new(&tool).stack();

    let first = ask("pay").key("k");
    let mut second = written(&first.again());
    second["transport"]["dedupeMode"] = json!("enabled");
    let second = serde_json::to_vec(&second).unwrap();
    let (first, second) = tokio::join!(harness.call(&first), harness.stack.call_bytes(&second));

    assert_eq!((tool.executions(), tool.effects()), (1, 1));
    assert_eq!((effect_of(&first), first.from_cache), (1, false));
    assert_eq!((effect_of(&second), second.from_cache), (1, true));
    assert_eq!(second.cache.unwrap().matched_on, CacheMatch::Inflight);
    assert_eq!((first.attempts, second.attempts), (1, 0));
    assert_eq!(second.duration_ms, 5_000);

    // Without deduplication nobody waits for anybody.
    let free = ask("pay").key("k").mode(DedupeMode::Disabled);
    let again = free.again();
    let (one, two) = tokio::join!(harness.call(&free), harness.call(&again));
    assert_eq!((one.duration_ms, two.duration_ms), (5_000, 5_000));
    assert!(!one.from_cache && !two.from_cache);
    assert_eq!(tool.executions(), 3);
}

#[tokio::test(start_paused = true)]
async fn tr_03_a_duplicate_of_a_finished_call_gets_its_output() {
    let tool = Arc::new(ScriptedTool::mutating("pay", [Reaction::Succeed]));
    let harness = Build::new(&tool).stack();
    let call = ask("pay").key("k").params(json!({"path": "a", "n": 1}));
    let first = harness.call(&call).await;
    let before = harness.records().await;
    crate::stack::pass(1_000).await;

    let second = harness.call(&call.again()).await;
    assert!(second.from_cache && !first.from_cache);
    assert_eq!(second.output, first.output);
    assert_eq!((second.attempts, tool.executions()), (0, 1));
    let cache = second.cache.unwrap();
    assert_eq!(
        (cache.matched_on, cache.age_ms),
        (CacheMatch::Completed, 1_000)
    );
    assert_eq!(
        cache.key_fingerprint,
        before[0].key.fingerprint().to_string()
    );

    // The digest, and all else on record, is as it was.
    let after = harness.records().await;
    assert_eq!(after, before);
    assert_eq!(after[0].state, RecordState::Done);
}

#[tokio::test(start_paused = true)]
async fn tr_04_one_key_with_other_arguments_is_never_answered_from_the_record() {
    for (policy, executions) in [("reject", 1), ("independent", 2)] {
        let tool = Arc::new(ScriptedTool::mutating("pay", [Reaction::Succeed]));
        let settings = json!({"onKeyConflict": policy});
        let harness = Build::new(&tool).reliability(settings).stack();
        let ten = ask("pay").key("k").params(json!({"amount": 10}));
        let eleven = ask("pay").key("k").params(json!({"amount": 11}));

        assert_eq!(effect_of(&harness.call(&ten).await), 1);
        let record = harness.records().await.pop().unwrap();
        let other = harness.call(&eleven).await;
        assert!(!other.from_cache, "{policy}");
        if policy == "reject" {
            let expected = ("idempotency_key_conflict", Status::Error, true, false);
            assert_eq!(error_of(&other), expected);
        } else {
            assert_eq!(effect_of(&other), 2);
            // Its own duplicates are found, too.
            let again = harness.call(&eleven.again()).await;
            assert_eq!((effect_of(&again), again.from_cache), (2, true));
        }

        // The first call's record is as it was and answers its own duplicates.
        assert!(harness.records().await.contains(&record), "{policy}");
        let same = harness.call(&ten.again()).await;
        assert_eq!((effect_of(&same), same.from_cache), (1, true));
        assert_eq!(tool.executions(), executions, "{policy}");
    }
}
