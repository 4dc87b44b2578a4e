//! Callers that go away, deadlines, and those who wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, pending};
use holdfast_contract::{CacheMatch, Status, ToolResultEnvelope};
use holdfast_reliability::hooks::{HOOK_GRACE_MS, HookEvent, ObserveHook, Phase};
use holdfast_reliability::idempotency::record::RecordState;
use holdfast_testkit::{Reaction, ScriptedTool};
use serde_json::json;

use crate::stack::{Ask, Build, DAY_MS, Harness, MINUTE_MS, ask, effect_of, error_of, http, pass};

const CANCELLED: Option<(RecordState, u64)> = Some((RecordState::Cancelled, 5 * MINUTE_MS));
const UNKNOWN: Option<(RecordState, u64)> = Some((RecordState::Unknown, DAY_MS));
const DONE: Option<(RecordState, u64)> = Some((RecordState::Done, DAY_MS));

/// A hook that never comes back, the first time it is told of one phase.
struct Stuck {
    at: Phase,
    armed: AtomicBool,
}

impl Stuck {
    fn at(at: Phase) -> Arc<Self> {
        let armed = AtomicBool::new(true);
        Arc::new(Self { at, armed })
    }
}

impl ObserveHook for Stuck {
    fn observe<'a>(&'a self, event: HookEvent<'a>) -> BoxFuture<'a, ()> {
        if event.phase == self.at && self.armed.swap(false, Ordering::SeqCst) {
            pending().boxed()
        } else {
            futures_util::future::ready(()).boxed()
        }
    }
}

/// Makes a call and goes away after a while.
async fn leave(harness: &Harness, call: &Ask, after_ms: u64) {
    let left = tokio::time::timeout(Duration::from_millis(after_ms), harness.call(call)).await;
    assert!(left.is_err(), "the call was still going on");
}

fn mutating(script: impl IntoIterator<Item = Reaction>) -> Arc<ScriptedTool> {
    Arc::new(ScriptedTool::mutating("tool", script))
}

#[tokio::test(start_paused = true)]
async fn cancelled_before_the_start_a_duplicate_runs() {
    let tool = mutating([Reaction::Succeed]);
    let stuck = Stuck::at(Phase::Before);
    let harness = Build::new(&tool)
        .with(|build| build.hooks.observe.push(stuck))
        .stack();
    let call = ask("tool").key("k");
    leave(&harness, &call, 100).await;
    assert_eq!((harness.record().await, tool.executions()), (CANCELLED, 0));
    let result = harness.call(&call.again()).await;
    assert_eq!((effect_of(&result), result.from_cache), (1, false));
    assert_eq!(harness.record().await, DONE);
}

#[tokio::test(start_paused = true)]
async fn cancelled_after_the_start_nobody_knows() {
    let tool = mutating([Reaction::EffectThenHang]);
    let harness = Build::new(&tool).stack();
    let call = ask("tool").key("k");
    leave(&harness, &call, 100).await;
    assert_eq!((harness.record().await, tool.executions()), (UNKNOWN, 1));
    let result = harness.call(&call.again()).await;
    assert_eq!(
        error_of(&result),
        ("outcome_unknown", Status::Error, true, false)
    );
    assert!(result.from_cache && tool.executions() == 1);
}

#[tokio::test(start_paused = true)]
async fn cancelled_after_the_start_a_read_only_call_runs_again() {
    let script = [Reaction::Hang, Reaction::Succeed];
    let tool = Arc::new(ScriptedTool::read_only("tool", script));
    let harness = Build::new(&tool).stack();
    let call = ask("tool").key("k");
    leave(&harness, &call, 100).await;
    assert_eq!(harness.record().await, CANCELLED);
    assert!(harness.call(&call.again()).await.is_success());
}

#[tokio::test(start_paused = true)]
async fn cancelled_between_attempts_that_had_no_effect_a_duplicate_runs() {
    let busy = holdfast_contract::ToolError::http(503, Some(5_000), "busy");
    let tool = mutating([Reaction::Fail(busy), Reaction::Succeed]);
    let harness = Build::new(&tool).stack();
    let call = ask("tool").key("k");
    leave(&harness, &call, 1_000).await;
    assert_eq!((harness.record().await, tool.executions()), (CANCELLED, 1));
    assert!(harness.call(&call.again()).await.is_success());
}

#[tokio::test(start_paused = true)]
async fn cancelled_after_the_tool_had_answered_the_answer_is_kept() {
    let tool = mutating([Reaction::Succeed]);
    let stuck = Stuck::at(Phase::After);
    let harness = Build::new(&tool)
        .with(|build| build.hooks.observe.push(stuck))
        .stack();
    let call = ask("tool").key("k");
    leave(&harness, &call, 100).await;
    assert_eq!(harness.record().await, DONE);
    let result = harness.call(&call.again()).await;
    assert_eq!((effect_of(&result), result.from_cache), (1, true));
    assert_eq!(tool.executions(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_that_passes_after_the_tool_had_answered_brings_the_answer() {
    let tool = mutating([Reaction::Succeed]);
    let stuck = Stuck::at(Phase::After);
    let harness = Build::new(&tool)
        .with(|build| build.hooks.observe.push(stuck))
        .stack();
    let result = harness.call(&ask("tool").key("k").deadline_in(100)).await;
    assert_eq!((effect_of(&result), result.duration_ms), (1, 100));
    assert_eq!(harness.record().await, DONE);
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_a_cancelled_call_learns_at_once() {
    // Before the start: the one who waited runs.
    let tool = mutating([Reaction::Succeed]);
    let stuck = Stuck::at(Phase::Before);
    let harness = Build::new(&tool)
        .with(|build| build.hooks.observe.push(stuck))
        .stack();
    let call = ask("tool").key("k");
    let second = call.again();
    let ((), waited) = tokio::join!(leave(&harness, &call, 1_000), harness.call(&second));
    assert_eq!((effect_of(&waited), waited.duration_ms), (1, 1_000));

    // After the start: the one who waited gets the honest answer.
    let tool = mutating([Reaction::Hang]);
    let harness = Build::new(&tool).stack();
    let call = ask("tool").key("k");
    let second = call.again();
    let ((), waited) = tokio::join!(leave(&harness, &call, 1_000), harness.call(&second));
    assert_eq!(error_of(&waited).0, "outcome_unknown");
    assert_eq!((waited.duration_ms, tool.executions()), (1_000, 1));
}

#[tokio::test(start_paused = true)]
async fn a_deadline_that_has_passed_runs_nothing() {
    let tool = mutating([Reaction::Succeed]);
    let harness = Build::new(&tool).stack();
    let call = ask("tool").key("k");
    let result = harness.call(&call.clone().deadline_in(0)).await;
    assert_eq!(error_of(&result), ("timeout", Status::Timeout, false, true));
    assert_eq!((result.attempts, harness.record().await), (0, None));
    assert!(harness.call(&call.again()).await.is_success());
}

#[tokio::test(start_paused = true)]
async fn a_deadline_that_passes_while_the_tool_runs() {
    let tool = mutating([Reaction::EffectThenHang]);
    let harness = Build::new(&tool).stack();
    let call = ask("tool").key("k");
    let result = harness.call(&call.clone().deadline_in(500)).await;
    assert_eq!(
        error_of(&result),
        ("outcome_unknown", Status::Error, true, false)
    );
    assert_eq!((result.duration_ms, result.attempts), (500, 1));
    assert_eq!(harness.record().await, UNKNOWN);
    let result = harness.call(&call.again()).await;
    assert_eq!(
        (error_of(&result).0, tool.executions()),
        ("outcome_unknown", 1)
    );

    // Nothing can have happened, so it is a plain timeout and a duplicate runs.
    let script = [Reaction::Hang, Reaction::Succeed];
    let tool = Arc::new(ScriptedTool::read_only("tool", script));
    let harness = Build::new(&tool).stack();
    let result = harness.call(&call.clone().deadline_in(500)).await;
    assert_eq!(error_of(&result), ("timeout", Status::Timeout, false, true));
    assert!(harness.call(&call.again()).await.is_success());
}

#[tokio::test(start_paused = true)]
async fn no_attempt_begins_after_the_deadline() {
    let tool = mutating([Reaction::Fail(http(503))]);
    let harness = Build::new(&tool).stack();
    let result = harness.call(&ask("tool").deadline_in(100)).await;
    assert_eq!(error_of(&result).1, Status::RetryExhausted);
    assert!(result.duration_ms < 100, "{result:?}");
}

#[tokio::test(start_paused = true)]
async fn who_waits_gives_up_at_a_deadline_of_its_own() {
    let tool = mutating([Reaction::SucceedAfter(Duration::from_secs(5))]);
    let harness = Build::new(&tool).stack();
    let call = ask("tool").key("k");
    let hasty = call.again().deadline_in(1_000);
    let patient = call.again();
    let (first, hasty, patient) = tokio::join!(
        harness.call(&call),
        harness.call(&hasty),
        harness.call(&patient)
    );
    assert_eq!(error_of(&hasty), ("timeout", Status::Timeout, false, true));
    assert_eq!((hasty.duration_ms, hasty.attempts), (1_000, 0));
    assert_eq!((effect_of(&first), effect_of(&patient)), (1, 1));
    assert_eq!((tool.executions(), harness.record().await), (1, DONE));

    // Without a deadline nobody waits for ever either.
    let tool = mutating([Reaction::SucceedAfter(Duration::from_mins(50))]);
    let settings = json!({"tools": {"tool": {"timeoutMs": 3_600_000}}});
    let harness = Build::new(&tool).reliability(settings).stack();
    let call = ask("tool").key("k");
    let second = call.again();
    let (first, waited) = tokio::join!(harness.call(&call), harness.call(&second));
    assert_eq!(error_of(&waited), ("timeout", Status::Timeout, false, true));
    assert_eq!(waited.duration_ms, 10 * MINUTE_MS);
    assert!(first.is_success());
}

/// A call of 500 s under a lease of 120 s, and a duplicate after `begins`.
async fn long_call(begins: impl Future<Output = ()>) -> (Harness, [ToolResultEnvelope; 2]) {
    let tool = mutating([Reaction::SucceedAfter(Duration::from_secs(500))]);
    let settings = json!({"tools": {"tool": {"timeoutMs": 600_000}}});
    let harness = Build::new(&tool).reliability(settings).stack();
    let call = ask("tool").key("k");
    let late = async {
        begins.await;
        harness.call(&call.again()).await
    };
    let (first, late) = tokio::join!(harness.call(&call), late);
    assert_eq!((effect_of(&first), tool.executions()), (1, 1));
    // Whatever was thought of it meanwhile: in the end the holder brought the truth.
    assert_eq!(harness.record().await, DONE);
    (harness, [first, late])
}

#[tokio::test(start_paused = true)]
async fn a_call_that_outlives_its_lease_keeps_its_claim() {
    let (_, [first, late]) =
        Box::pin(long_call(tokio::time::sleep(Duration::from_secs(400)))).await;
    assert_eq!(late.output, first.output);
    assert_eq!(late.cache.unwrap().matched_on, CacheMatch::Inflight);
    assert_eq!(late.duration_ms, 100_000);
}

#[tokio::test(start_paused = true)]
async fn a_holder_that_stalls_is_given_up_and_may_come_back() {
    // All at once: the holder gets no chance to renew.
    let (harness, [first, late]) = Box::pin(long_call(pass(400_000))).await;
    assert_eq!(error_of(&late).0, "outcome_unknown");
    let after = harness.call(&ask("tool").key("k")).await;
    assert_eq!((after.output, after.from_cache), (first.output, true));
}

/// A hook that never comes back.
struct Asleep;

impl ObserveHook for Asleep {
    fn observe<'a>(&'a self, _: HookEvent<'a>) -> BoxFuture<'a, ()> {
        pending().boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_does_not_keep_a_caller_beyond_its_deadline() {
    let tool = mutating([Reaction::Hang]);
    let harness = Build::new(&tool)
        .with(|build| build.hooks.observe.push(Arc::new(Asleep)))
        .stack();
    // Cut off in the middle of a hook, and never begun.
    for call in [ask("tool"), ask("no-such-tool")] {
        let begun = tokio::time::Instant::now();
        harness.call(&call.deadline_in(700)).await;
        assert!(begun.elapsed() <= Duration::from_millis(700 + HOOK_GRACE_MS + 1));
    }
}
