//! TR-8 to TR-11: what is down is left alone, and found again when it is back.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use holdfast_contract::{
    Cause, CircuitBreakerState, Effect, PermissionTier, Status, Tool, ToolContext, ToolError,
    ToolResult, ToolResultEnvelope,
};
use holdfast_reliability::breaker::{
    BreakerKey, BreakerOp, BreakerPolicy, BreakerStore, PARTS_PER_TOOL_MAX,
};
use holdfast_reliability::config::ReliabilityConfig;
use holdfast_reliability::guard::GuardConfig;
use holdfast_testkit::{Reaction, ScriptedTool};
use holdfast_toolbox::permit::PermissionConfig;
use serde_json::{Value, json};

use crate::stack::{Build, Harness, ask, effect_of, error_of, http, message_of, pass};

const COOLDOWN_MS: u64 = 15_000;

/// A tool that is down, after so many failed calls of one attempt each.
async fn failing(calls: usize) -> (Arc<ScriptedTool>, Harness) {
    let tool = Arc::new(ScriptedTool::mutating("post", [Reaction::Fail(http(503))]));
    let other = Arc::new(ScriptedTool::mutating("other", [Reaction::Succeed]));
    let harness = Build::new(&tool).and(&other).stack();
    for _ in 0..calls {
        let result = once(&harness).await;
        assert_eq!(error_of(&result).1, Status::RetryExhausted);
    }
    (tool, harness)
}

/// One attempt, with a content of its own: a call that looks like a running one would join it.
async fn once(harness: &Harness) -> ToolResultEnvelope {
    let call = ask("post").attempts(1);
    let path = call.0.request_id.clone();
    harness.call(&call.params(json!({"path": path}))).await
}

async fn circuit(harness: &Harness) -> CircuitBreakerState {
    let circuits = harness.circuits().await;
    let own = circuits
        .iter()
        .find(|(key, _)| key == "tool:holdfast.tools/post");
    own.unwrap().1
}

fn assert_refused(result: &ToolResultEnvelope, state: CircuitBreakerState) {
    let expected = ("circuit_open", Status::CircuitOpen, false, true);
    assert_eq!(error_of(result), expected);
    assert_eq!(result.error.as_ref().unwrap().breaker_state, Some(state));
    assert_eq!((result.attempts, result.retried_by.len()), (0, 0));
    assert!(result.duration_ms <= 10);
}

#[tokio::test(start_paused = true)]
async fn tr_08_five_failed_mutations_open_the_breaker() {
    let (tool, harness) = failing(4).await;
    assert_eq!(circuit(&harness).await, CircuitBreakerState::Closed);
    let fifth = once(&harness).await;
    let state = fifth.error.unwrap().breaker_state;
    assert_eq!(state, Some(CircuitBreakerState::Open));
    assert_eq!(circuit(&harness).await, CircuitBreakerState::Open);

    assert_refused(&once(&harness).await, CircuitBreakerState::Open);
    assert_eq!((tool.executions(), harness.records().await.len()), (5, 5));

    // A call that would succeed is refused as well, whatever namespace it claims to be of.
    tool.then([Reaction::Succeed]);
    assert_refused(&once(&harness).await, CircuitBreakerState::Open);
    let elsewhere = ask("post").with(|envelope| envelope.tool_namespace = "elsewhere".into());
    assert_refused(&harness.call(&elsewhere).await, CircuitBreakerState::Open);
    assert_eq!(tool.executions(), 5);

    // The claim was released: the same intent runs once the breaker lets it.
    let intent = ask("post").key("k");
    assert_refused(&harness.call(&intent).await, CircuitBreakerState::Open);
    pass(COOLDOWN_MS).await;
    let result = harness.call(&intent.again()).await;
    assert_eq!((effect_of(&result), result.from_cache), (1, false));
}

#[tokio::test(start_paused = true)]
async fn tr_09_two_successful_probes_close_the_breaker() {
    let (tool, harness) = failing(5).await;
    let slow = Reaction::SucceedAfter(Duration::from_secs(2));
    tool.then([slow, Reaction::Succeed]);
    pass(COOLDOWN_MS - 1).await;
    assert_refused(&once(&harness).await, CircuitBreakerState::Open);

    pass(1).await;
    // One probe at a time: whoever comes beside it is refused.
    let (probe, beside) = tokio::join!(once(&harness), once(&harness));
    assert_eq!((effect_of(&probe), probe.attempts), (1, 1));
    assert_refused(&beside, CircuitBreakerState::HalfOpen);
    assert_eq!(circuit(&harness).await, CircuitBreakerState::HalfOpen);

    assert_eq!(effect_of(&once(&harness).await), 2);
    assert_eq!(circuit(&harness).await, CircuitBreakerState::Closed);

    // Everything is as before: at once, in one attempt, also side by side.
    let (one, two) = tokio::join!(once(&harness), once(&harness));
    for result in [one, two] {
        assert_eq!(result.status, Status::Success);
        assert_eq!((result.attempts, result.duration_ms), (1, 0));
    }
    assert_eq!(tool.executions(), 5 + 4);
}

#[tokio::test(start_paused = true)]
async fn tr_10_a_failed_probe_opens_the_breaker_again() {
    let (tool, harness) = failing(5).await;
    assert!(harness.call(&ask("other")).await.is_success());
    pass(COOLDOWN_MS).await;
    assert_eq!(error_of(&once(&harness).await).0, "http_503");
    assert_eq!(circuit(&harness).await, CircuitBreakerState::Open);

    // The cooldown has begun again.
    tool.then([Reaction::Succeed]);
    pass(COOLDOWN_MS - 1).await;
    assert_refused(&once(&harness).await, CircuitBreakerState::Open);
    assert_eq!(tool.executions(), 6);
    pass(1).await;
    assert!(once(&harness).await.is_success());

    // A failure after a successful probe still opens it, and nobody else was touched by any of it.
    tool.then([Reaction::Fail(http(503))]);
    once(&harness).await;
    assert_eq!(circuit(&harness).await, CircuitBreakerState::Open);
    assert!(harness.call(&ask("other")).await.is_success());
}

#[tokio::test(start_paused = true)]
async fn tr_11_nothing_is_retried_against_an_open_breaker() {
    let (tool, harness) = failing(0).await;
    let first = harness.call(&ask("post")).await;
    assert_eq!((first.attempts, tool.executions()), (4, 4));

    // The fifth failure opens it: the retries that were left are not even waited for.
    let second = harness.call(&ask("post")).await;
    let expected = ("http_503", Status::RetryExhausted, false, true);
    assert_eq!(error_of(&second), expected);
    assert_eq!((second.attempts, second.duration_ms), (1, 0));
    assert!(second.retried_by.is_empty());
    let state = second.error.unwrap().breaker_state;
    assert_eq!(state, Some(CircuitBreakerState::Open));

    // No storm during the outage: in a minute of calls only the probes get through.
    for _ in 0..600 {
        pass(100).await;
        harness.call(&ask("post")).await;
    }
    assert_eq!(tool.executions(), 5 + 4);

    // While half open a failure that closes nothing is retried, once the breaker lets it.
    tool.then([Reaction::Succeed]);
    pass(COOLDOWN_MS).await;
    assert!(harness.call(&ask("post")).await.is_success());
    assert_eq!(circuit(&harness).await, CircuitBreakerState::HalfOpen);
    assert!(harness.call(&ask("post")).await.is_success());
    tool.then([Reaction::Fail(http(503)), Reaction::Succeed]);
    let retried = harness.call(&ask("post")).await;
    assert_eq!((retried.attempts, retried.status), (2, Status::Success));
}

#[tokio::test(start_paused = true)]
async fn tr_11_a_breaker_that_an_operator_holds_open_stays_open_until_a_reset() {
    let (tool, harness) = failing(0).await;
    tool.then([Reaction::Succeed]);
    assert!(once(&harness).await.is_success());
    let key = BreakerKey::tool("holdfast.tools", "post");
    let operator = async |op| {
        let policy = BreakerPolicy::mutating();
        let outcome = harness.breakers.apply(&key, op, &policy).await;
        outcome.unwrap().transition.unwrap().to
    };
    let reason = "vendor incident".to_owned();
    let forced = operator(BreakerOp::ForceOpen { reason }).await;
    assert_eq!(forced, CircuitBreakerState::ForcedOpen);
    pass(10 * COOLDOWN_MS).await;
    assert_refused(&once(&harness).await, CircuitBreakerState::ForcedOpen);
    assert_eq!(
        operator(BreakerOp::Reset).await,
        CircuitBreakerState::Closed
    );
    assert!(once(&harness).await.is_success());
    assert_eq!(tool.executions(), 2);
}

#[tokio::test(start_paused = true)]
async fn calls_that_wait_in_vain_until_their_callers_leave_open_it() {
    let tool = Arc::new(ScriptedTool::mutating("post", [Reaction::Hang]));
    let harness = Build::new(&tool).stack();
    let hasty = |ms| {
        let call = ask("post").deadline_in(ms);
        let path = call.0.request_id.clone();
        call.params(json!({"path": path}))
    };
    // Whoever leaves at once says nothing about the tool.
    for _ in 0..20 {
        harness.call(&hasty(50)).await;
    }
    assert_eq!(circuit(&harness).await, CircuitBreakerState::Closed);
    for _ in 0..20 {
        harness.call(&hasty(1_200)).await;
    }
    assert_eq!(circuit(&harness).await, CircuitBreakerState::Open);
    // Their calls are gone when it opens, and it is told all the same.
    let told = harness.log.of("tool_call_circuit_state");
    assert_eq!(told[0]["breakerState"], "OPEN", "{told:?}");
    assert_eq!(told[0]["toolName"], "post", "{told:?}");
    assert_eq!(told[0]["sessionKey"], "session", "{told:?}");
    assert!(told[0]["requestId"].is_string(), "{told:?}");
    assert_eq!(gauge(&harness, "post", "OPEN").as_deref(), Some("1"));
}

/// Reaches hosts, one of which is down and one of which does not exist.
struct Hosts;

#[async_trait]
impl Tool for Hosts {
    fn name(&self) -> &str {
        "fetch"
    }

    fn description(&self) -> &str {
        "Made for one test."
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

    fn depends_on(&self, params: &Value) -> Option<String> {
        params["host"].as_str().map(str::to_owned)
    }

    async fn execute(&self, params: &Value, _: &ToolContext) -> Result<ToolResult, ToolError> {
        match params["host"].as_str() {
            Some("down.example") => Err(http(503)),
            Some("misspelt.example") => Err(ToolError::ExecutionError {
                message: "no such name".to_owned(),
                cause: Cause::NoSuchAddress {
                    code: "ENOTFOUND".into(),
                },
            }),
            _ => Ok(ToolResult::new(json!("a page"), "")),
        }
    }
}

async fn fetched(harness: &Harness, host: &str, calls: usize) -> Vec<Status> {
    let mut statuses = Vec::new();
    for _ in 0..calls {
        let call = ask("fetch").attempts(1);
        let page = call.0.request_id.clone();
        let call = call.params(json!({"host": host, "page": page}));
        statuses.push(harness.call(&call).await.status);
    }
    statuses
}

#[tokio::test(start_paused = true)]
async fn one_host_that_is_down_does_not_close_the_others() {
    let harness = Build::new(&Arc::new(Hosts))
        .with(|build| build.guard.enabled = false)
        .stack();
    let down = fetched(&harness, "down.example", 60).await;
    assert_eq!(down.last(), Some(&Status::CircuitOpen), "{down:?}");
    assert_eq!(fetched(&harness, "up.example", 1).await, [Status::Success]);
    let open = harness.circuits().await;
    let open: Vec<_> = open
        .iter()
        .filter(|(_, state)| *state == CircuitBreakerState::Open)
        .collect();
    assert_eq!(open.len(), 1, "{open:?}");
    assert!(open[0].0.starts_with("part:fetch/"), "{open:?}");

    // An operator's word on the tool holds for all of them.
    let key = BreakerKey::tool("holdfast.tools", "fetch");
    let reason = "maintenance".to_owned();
    let op = BreakerOp::ForceOpen { reason };
    let policy = BreakerPolicy::standard();
    let _ = harness.breakers.apply(&key, op, &policy).await.unwrap();
    assert_eq!(
        fetched(&harness, "up.example", 1).await,
        [Status::CircuitOpen]
    );
}

fn gauge(harness: &Harness, tool: &str, state: &str) -> Option<String> {
    let text = harness.metrics.encode();
    let line = format!(r#"openclaw_tool_circuit_breaker_state{{tool="{tool}",state="{state}"}} "#);
    let found = text.lines().find_map(|it| it.strip_prefix(&line));
    found.map(str::to_owned)
}

#[tokio::test(start_paused = true)]
async fn gauge_of_a_tool_is_the_worst_of_its_hosts() {
    let harness = Build::new(&Arc::new(Hosts))
        .with(|build| build.guard.enabled = false)
        .stack();
    fetched(&harness, "up.example", 3).await;
    fetched(&harness, "down.example", 60).await;
    assert_eq!(gauge(&harness, "fetch", "OPEN").as_deref(), Some("1"));
    fetched(&harness, "up.example", 3).await;
    assert_eq!(gauge(&harness, "fetch", "OPEN").as_deref(), Some("1"));
    let changed = harness.log.of("tool_call_circuit_state");
    assert_eq!(changed[0]["part"], "down.example", "{changed:?}");
    assert_eq!(changed[0]["toolName"], "fetch", "{changed:?}");

    // What another process knows counts, and so does what it has closed.
    let forced = BreakerKey::tool("holdfast.tools", "fetch");
    let part = BreakerKey::part("fetch", 7);
    let known = |state| {
        [
            (forced.clone(), state),
            (part.clone(), CircuitBreakerState::HalfOpen),
        ]
    };
    harness
        .metrics
        .set_breakers(known(CircuitBreakerState::ForcedOpen));
    assert_eq!(
        gauge(&harness, "fetch", "FORCED_OPEN").as_deref(),
        Some("1")
    );
    assert_eq!(gauge(&harness, "fetch", "OPEN").as_deref(), Some("0"));
    harness
        .metrics
        .set_breakers(known(CircuitBreakerState::Closed));
    assert_eq!(gauge(&harness, "fetch", "HALF_OPEN").as_deref(), Some("1"));
    harness.metrics.set_breakers([]);
    assert_eq!(gauge(&harness, "fetch", "CLOSED").as_deref(), Some("1"));
    assert_eq!(gauge(&harness, "fetch", "HALF_OPEN").as_deref(), Some("0"));
}

#[tokio::test(start_paused = true)]
async fn refused_call_is_told_the_tool_and_the_host() {
    let harness = Build::new(&Arc::new(Hosts))
        .with(|build| build.guard.enabled = false)
        .stack();
    fetched(&harness, "down.example", 60).await;
    let call = ask("fetch").params(json!({"host": "down.example"}));
    let refused = harness.call(&call).await;
    let told = message_of(&refused);
    assert!(
        told.contains("the circuit breaker fetch (down.example) is open"),
        "{told}"
    );
}

#[tokio::test(start_paused = true)]
async fn configuration_holds_a_breaker_open_as_long_as_it_says_so() {
    let tool = Arc::new(ScriptedTool::mutating("post", [Reaction::Succeed]));
    let settings = json!({"tools": {"post": {"breaker": {"forcedOpen": "vendor incident"}}}});
    let harness = Build::new(&tool).reliability(settings).stack();
    let refused = harness.call(&ask("post")).await;
    assert_eq!(refused.status, Status::CircuitOpen);
    let told = message_of(&refused);
    let reason = "the circuit breaker post is held open by the configuration: vendor incident";
    assert!(told.contains(reason), "{told}");
    assert_eq!(tool.executions(), 0);
    let held = harness.stack.policies().held_open();
    assert_eq!(held.len(), 1, "{held:?}");

    // The configuration is read again without it.
    let exchanged = harness.stack.exchange(
        &ReliabilityConfig::default(),
        PermissionConfig::default(),
        GuardConfig::default(),
    );
    assert!(exchanged.is_ok(), "{exchanged:?}");
    assert!(harness.call(&ask("post")).await.is_success());
}

#[tokio::test(start_paused = true)]
async fn a_name_that_does_not_exist_speaks_against_nobody() {
    let harness = Build::new(&Arc::new(Hosts))
        .with(|build| build.guard.enabled = false)
        .stack();
    let misspelt = fetched(&harness, "misspelt.example", 60).await;
    assert!(!misspelt.contains(&Status::CircuitOpen), "{misspelt:?}");
}

#[tokio::test(start_paused = true)]
async fn however_many_hosts_are_named_their_breakers_are_few() {
    let harness = Build::new(&Arc::new(Hosts))
        .with(|build| build.guard.enabled = false)
        .stack();
    for host in 0..2_000 {
        fetched(&harness, &format!("h{host}.example"), 1).await;
    }
    let kept = harness.circuits().await.len();
    assert!(kept <= PARTS_PER_TOOL_MAX + 1, "{kept}");
}
