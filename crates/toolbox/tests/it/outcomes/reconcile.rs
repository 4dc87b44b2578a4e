//! A tool that can find out what became of a lost call.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use holdfast_contract::{
    CallHints, Effect, PermissionTier, Reconciled, Tool, ToolContext, ToolError, ToolResult,
    ToolResultEnvelope,
};
use holdfast_reliability::idempotency::record::RecordState;
use serde_json::{Value, json};

use crate::stack::{Build, Custom, Harness, ask, error_of, http};

/// A tool whose first answer was lost.
async fn lost_call(name: &'static str) -> (Arc<Custom>, Harness, crate::stack::Ask) {
    let tool = Custom::new(name, Effect::External, |_, _| Err(http(500)));
    let tool = Arc::new(tool);
    let harness = Build::new(&tool).stack();
    let call = ask(name).key("k").params(json!({"path": "lost"}));
    assert_eq!(error_of(&harness.call(&call).await).0, "outcome_unknown");
    (tool, harness, call)
}

#[tokio::test(start_paused = true)]
async fn reconciled_as_done_the_duplicate_gets_the_result() {
    let (tool, harness, call) = lost_call("post").await;
    let found = ToolResult::new(json!("it is there"), "");
    *tool.reconciled.lock().unwrap() = Reconciled::Done(found);
    for _ in 0..2 {
        let result = harness.call(&call.again()).await;
        assert_eq!(*result.output.unwrap().content, json!("it is there"));
        assert!(result.from_cache && result.attempts == 0);
    }
    // Asked once, about the record's key; then it is on record.
    let records = harness.records().await;
    assert_eq!(records[0].state, RecordState::Done);
    let asked = tool.asked.lock().unwrap().clone();
    assert_eq!(asked, [Some(records[0].key.to_string())]);
    assert_eq!(tool.executions(), 1);
}

#[tokio::test(start_paused = true)]
async fn reconciled_as_not_done_the_duplicate_runs() {
    let (tool, harness, call) = lost_call("post").await;
    *tool.reconciled.lock().unwrap() = Reconciled::NotDone;
    let result = harness.call(&call.again()).await;
    assert_eq!(
        (error_of(&result).0, result.attempts),
        ("outcome_unknown", 1)
    );
    assert_eq!(tool.executions(), 2);
}

#[tokio::test(start_paused = true)]
async fn reconciled_as_not_done_only_one_of_many_duplicates_runs() {
    let (tool, harness, call) = lost_call("post").await;
    *tool.reconciled.lock().unwrap() = Reconciled::NotDone;
    tool.works.store(true, Ordering::SeqCst);
    let calls: Vec<_> = (0..20).map(|_| call.again()).collect();
    // All of them ask at the same time, and are answered at the same time.
    let asked = calls.iter().map(|call| harness.call(call));
    let results = futures_util::future::join_all(asked).await;
    assert_eq!(tool.asked.lock().unwrap().len(), 20);
    assert!(results.iter().all(ToolResultEnvelope::is_success));
    let ran = results.iter().filter(|result| result.attempts > 0).count();
    assert_eq!((ran, tool.executions()), (1, 2));
}

#[tokio::test(start_paused = true)]
async fn nobody_can_tell_so_nothing_runs() {
    let (tool, harness, call) = lost_call("post").await;
    let result = harness.call(&call.again()).await;
    assert_eq!(error_of(&result).0, "outcome_unknown");
    assert_eq!((result.from_cache, tool.executions()), (true, 1));
}

#[tokio::test(start_paused = true)]
async fn an_echo_asks_about_the_call_it_echoes() {
    let (tool, harness, _) = lost_call("post").await;
    // Unnamed calls, so that equal content is an echo.
    let first = ask("post").params(json!({"path": "lost"}));
    assert_eq!(error_of(&harness.call(&first).await).0, "outcome_unknown");
    let lost = harness.records().await;
    let lost = lost
        .iter()
        .find(|record| record.request.request_id == first.0.request_id)
        .unwrap();
    let found = ToolResult::new(json!("it is there"), "");
    *tool.reconciled.lock().unwrap() = Reconciled::Done(found);
    let echo = harness.call(&first.again()).await;
    assert!(echo.from_cache && tool.executions() == 2);
    let asked = tool.asked.lock().unwrap().clone();
    assert_eq!(asked, [Some(lost.key.to_string())]);
}

/// Fails at finding out, too.
struct Hopeless {
    hangs: bool,
}

#[async_trait]
impl Tool for Hopeless {
    fn name(&self) -> &str {
        "hopeless"
    }

    fn description(&self) -> &str {
        "Knows nothing."
    }

    fn parameters_schema(&self) -> Value {
        json!({"type": "object"})
    }

    fn permission_tier(&self) -> PermissionTier {
        PermissionTier::System
    }

    fn effect(&self) -> Effect {
        Effect::External
    }

    async fn execute(&self, _params: &Value, _ctx: &ToolContext) -> Result<ToolResult, ToolError> {
        Err(http(500))
    }

    #[expect(clippy::panic, reason = "a tool that panics is what is tested")]
    async fn reconcile(&self, _params: &Value, _ctx: &ToolContext) -> Reconciled {
        if self.hangs {
            std::future::pending().await
        } else {
            panic!("as the test says")
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_fails_at_finding_out_can_not_tell() {
    for hangs in [false, true] {
        let harness = Build::new(&Arc::new(Hopeless { hangs })).stack();
        let call = ask("hopeless").key("k").hints(CallHints {
            timeout_ms: Some(2_000),
            ..CallHints::default()
        });
        harness.call(&call).await;
        let result = harness.call(&call.again()).await;
        assert_eq!(error_of(&result).0, "outcome_unknown");
        assert_eq!(result.duration_ms, if hangs { 2_000 } else { 0 });
    }
}
