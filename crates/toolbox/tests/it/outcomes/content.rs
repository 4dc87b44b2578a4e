//! The second look-up: a message asked for again under a new id.

use std::sync::Arc;
use std::time::Duration;

use holdfast_contract::{CacheMatch, DedupeMode, Effect};
use holdfast_testkit::{Reaction, ScriptedTool};
use serde_json::json;

use crate::stack::{Ask, Build, Harness, MINUTE_MS, ask, effect_of, error_of, http, pass};

fn external(name: &'static str, reaction: Reaction) -> (Arc<ScriptedTool>, Harness) {
    let tool = Arc::new(ScriptedTool::mutating(name, [reaction]));
    let harness = Build::new(&tool).stack();
    (tool, harness)
}

/// The same words under a new id.
fn say(tool: &str) -> Ask {
    ask(tool).params(json!({"path": "hello"}))
}

#[tokio::test(start_paused = true)]
async fn a_running_message_is_joined() {
    let slow = Reaction::SucceedAfter(Duration::from_secs(5));
    let (tool, harness) = external("message", slow);
    let (one, two, hasty) = (
        say("message"),
        say("message"),
        say("message").mode(DedupeMode::BestEffort),
    );
    let (one, two, hasty) =
        tokio::join!(harness.call(&one), harness.call(&two), harness.call(&hasty));
    assert_eq!((effect_of(&one), effect_of(&two)), (1, 1));
    assert_eq!(two.cache.unwrap().matched_on, CacheMatch::Inflight);
    assert_eq!(error_of(&hasty).0, "duplicate_in_flight");
    assert_eq!(tool.executions(), 1);
}

#[tokio::test(start_paused = true)]
async fn whoever_joined_a_call_gets_its_answer_though_it_has_no_echo() {
    let slow = Reaction::SucceedAfter(Duration::from_secs(5));
    let (tool, harness) = external("post", slow);
    let (one, two) = (say("post"), say("post"));
    let (one, two) = tokio::join!(harness.call(&one), harness.call(&two));
    assert_eq!((effect_of(&one), effect_of(&two)), (1, 1));
    assert_eq!(two.cache.unwrap().matched_on, CacheMatch::Inflight);
    assert_eq!(tool.executions(), 1);
    // Who asks later means it.
    assert!(!harness.call(&say("post")).await.from_cache);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_message_answers_for_ten_minutes() {
    let (tool, harness) = external("message", Reaction::EffectThenFail(http(500)));
    harness.call(&say("message")).await;
    pass(10 * MINUTE_MS - 1).await;
    let echo = harness.call(&say("message")).await;
    assert_eq!(error_of(&echo).0, "outcome_unknown");
    assert!(echo.from_cache && tool.effects() == 1);
    pass(1).await;
    assert!(!harness.call(&say("message")).await.from_cache);
    assert_eq!(tool.effects(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_finished_message_answers_for_thirty_seconds() {
    let (tool, harness) = external("message", Reaction::Succeed);
    harness.call(&say("message")).await;
    pass(29_999).await;
    let echo = harness.call(&say("message")).await;
    assert_eq!((effect_of(&echo), echo.from_cache), (1, true));
    // An echo does not prolong what it echoes.
    pass(1).await;
    assert_eq!(effect_of(&harness.call(&say("message")).await), 2);
    assert_eq!(tool.effects(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_failed_message_may_be_asked_for_again() {
    let (tool, harness) = external("message", Reaction::Fail(http(422)));
    harness.call(&say("message")).await;
    assert!(!harness.call(&say("message")).await.from_cache);
    assert_eq!(tool.executions(), 2);
}

#[tokio::test(start_paused = true)]
async fn other_external_tools_have_no_echo_but_their_unknown_calls_answer() {
    let (tool, harness) = external("post", Reaction::Succeed);
    for _ in 0..2 {
        assert!(!harness.call(&say("post")).await.from_cache);
    }
    tool.then([Reaction::EffectThenFail(http(500))]);
    harness.call(&say("post")).await;
    let echo = harness.call(&say("post")).await;
    assert_eq!(error_of(&echo).0, "outcome_unknown");
    assert_eq!(tool.effects(), 3);
}

#[tokio::test(start_paused = true)]
async fn ordinary_work_is_never_taken_for_an_echo() {
    // By their names, whatever effect they declare; by being repeatable; by staying inside.
    let kinds = [
        ("exec", Effect::External, false),
        ("write", Effect::External, false),
        ("edit", Effect::External, false),
        ("read", Effect::External, false),
        ("put", Effect::External, true),
        ("save", Effect::Workspace, false),
        ("look", Effect::None, true),
    ];
    for (name, effect, idempotent) in kinds {
        for reaction in [
            Reaction::Succeed,
            Reaction::Fail(http(422)),
            Reaction::EffectThenFail(http(500)),
            Reaction::SucceedAfter(Duration::from_secs(1)),
        ] {
            let tool = Arc::new(ScriptedTool::new(name, effect, idempotent, [reaction]));
            let echo_everything = json!({"retry": {"maxAttempts": 1}, "tools": {
                name: {"echoWindowMs": 60_000, "unknownWindowMs": 60_000},
            }});
            let harness = Build::new(&tool).reliability(echo_everything).stack();
            let (one, two) = (say(name), say(name));
            tokio::join!(harness.call(&one), harness.call(&two));
            harness.call(&say(name)).await;
            assert_eq!(tool.executions(), 3, "{name}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn who_names_an_intent_means_it() {
    let (tool, harness) = external("message", Reaction::Succeed);
    for call in [
        say("message").key("a"),
        say("message").key("b"),
        say("message"),
        say("message").key("c"),
    ] {
        assert!(!harness.call(&call).await.from_cache);
    }
    assert_eq!(tool.effects(), 4);
}

#[tokio::test(start_paused = true)]
async fn an_echo_comes_from_the_same_mouth_with_the_same_words() {
    let (tool, harness) = external("message", Reaction::Succeed);
    harness.call(&say("message")).await;
    for other in [
        say("message").with(|envelope| envelope.target.session_key = "other".into()),
        say("message").with(|envelope| envelope.target.actor_id = "other".into()),
        say("message").with(|envelope| envelope.target.tenant_id = Some("other".into())),
        say("message").params(json!({"path": "hello "})),
    ] {
        assert!(!harness.call(&other).await.from_cache);
    }
    // What does not matter does not matter.
    let stamped = say("message").params(json!({"path": "hello", "clientTs": 5}));
    assert!(harness.call(&stamped).await.from_cache);
    assert_eq!(tool.effects(), 5);
}

#[tokio::test(start_paused = true)]
async fn the_windows_are_settings() {
    let tool = Arc::new(ScriptedTool::mutating("message", [Reaction::Succeed]));
    let settings = json!({"tools": {"message": {"echoWindowMs": 0, "unknownWindowMs": 1_000}}});
    let harness = Build::new(&tool).reliability(settings).stack();
    harness.call(&say("message")).await;
    assert!(!harness.call(&say("message")).await.from_cache);
    tool.then([Reaction::EffectThenFail(http(500))]);
    harness.call(&say("message")).await;
    pass(999).await;
    assert!(harness.call(&say("message")).await.from_cache);
    pass(1).await;
    assert!(!harness.call(&say("message")).await.from_cache);
    assert_eq!(tool.effects(), 4);
}
