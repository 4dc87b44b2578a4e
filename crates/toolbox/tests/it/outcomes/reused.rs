//! Ids of calls that servers give to several calls of a turn.

use std::future::pending;
use std::sync::Arc;

use holdfast_contract::ToolError;
use holdfast_testkit::{Reaction, ScriptedTool};
use serde_json::json;

use crate::stack::{Ask, Build, Harness, ask, error_of};

fn changing() -> (Arc<ScriptedTool>, Harness) {
    let tool = Arc::new(ScriptedTool::mutating("run", [Reaction::Succeed]));
    let harness = Build::new(&tool).stack();
    (tool, harness)
}

/// A call of the turn under an id.
fn call(id: &str, content: u32) -> Ask {
    let params = json!({"content": content});
    ask("run").turn("t").call_id(id).params(params)
}

/// Answers a call, and the answer is lost on its way.
async fn lost(harness: &Harness, call: Ask) {
    let answered = harness.stack.answer_until(call.0, pending()).await;
    assert!(answered.result.is_success());
    assert!(answered.receipt.is_some());
}

#[tokio::test(start_paused = true)]
async fn second_look_under_a_reused_id_sees_what_was_changed_in_between() {
    let (tool, harness) = changing();
    let from_record = async |content| {
        let answer = harness.call(&call("call_0", content)).await;
        assert!(answer.is_success());
        answer.from_cache
    };
    assert!(!from_record(1).await);
    // Nothing was changed since: a client that asks again gets its answer.
    assert!(from_record(1).await);
    assert!(!from_record(2).await);
    assert!(!from_record(1).await);
    assert!(from_record(1).await);
    assert_eq!(tool.executions(), 3);
}

#[tokio::test(start_paused = true)]
async fn lost_write_beside_a_sibling_that_succeeds_is_one_effect() {
    let (tool, harness) = changing();
    lost(&harness, call("call_0", 1)).await;
    assert!(!harness.call(&call("call_1", 2)).await.from_cache);
    let again = harness.call(&call("call_0", 1)).await;
    assert!(again.is_success() && again.from_cache, "{again:?}");
    assert_eq!(tool.executions(), 2);
    // From here on it has arrived.
    assert!(!harness.call(&call("call_1", 3)).await.from_cache);
    assert!(!harness.call(&call("call_0", 1)).await.from_cache);
}

#[tokio::test(start_paused = true)]
async fn failure_under_a_reused_id_is_tried_again_after_a_change() {
    let script = [
        Reaction::Fail(ToolError::failed("no such file")),
        Reaction::Succeed,
    ];
    let look = Arc::new(ScriptedTool::read_only("look", script));
    let run = Arc::new(ScriptedTool::mutating("run", [Reaction::Succeed]));
    let harness = Build::new(&look).and(&run).stack();
    let look_again = || ask("look").turn("t").call_id("call_0");
    assert_eq!(
        error_of(&harness.call(&look_again()).await).0,
        "execution_failed"
    );
    assert!(harness.call(&call("call_0", 1)).await.is_success());
    assert!(harness.call(&look_again()).await.is_success());
    assert_eq!(look.executions(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_is_in_doubt_stays_in_doubt() {
    let script = [
        Reaction::EffectThenFail(ToolError::http(500, None, "lost")),
        Reaction::Succeed,
    ];
    let tool = Arc::new(ScriptedTool::mutating("run", script));
    let harness = Build::new(&tool).stack();
    let doubted = harness.call(&call("call_0", 1)).await;
    assert_eq!(error_of(&doubted).0, "outcome_unknown");
    assert!(harness.call(&call("call_1", 2)).await.is_success());
    let again = harness.call(&call("call_0", 1)).await;
    assert_eq!(error_of(&again).0, "outcome_unknown");
    assert_eq!(tool.executions(), 2);
}

#[tokio::test(start_paused = true)]
async fn step_of_a_run_is_answered_from_its_record_whatever_changed() {
    let (tool, harness) = changing();
    let step = |index| ask("run").step("run", 1, index).call_id("call_0");
    for index in [0, 1] {
        assert!(!harness.call(&step(index)).await.from_cache);
    }
    assert!(harness.call(&step(0)).await.from_cache);
    assert_eq!(tool.executions(), 2);
}
