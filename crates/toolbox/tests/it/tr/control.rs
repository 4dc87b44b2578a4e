//! TR-14: the kill switch.

use std::sync::Arc;

use holdfast_contract::{
    CallContext, Effect, PermissionTier, SessionContext, Status, Tool, ToolContext, ToolResult,
};
use holdfast_testkit::{Reaction, ScriptedTool};
use serde_json::json;

use crate::stack::{Build, Custom, ask, effect_of, error_of, http, message_of};

fn context() -> ToolContext {
    let session = SessionContext::main("session", "agent", "/nowhere".into());
    ToolContext {
        session: Arc::new(session),
        call: CallContext::default(),
    }
}

#[tokio::test(start_paused = true)]
async fn tr_14_switched_off_a_call_is_what_the_tool_makes_of_it() {
    let script = [
        Reaction::Succeed,
        Reaction::Fail(http(503)),
        Reaction::Exit(2),
        Reaction::EffectThenFail(http(500)),
        Reaction::Succeed,
    ];
    let direct = ScriptedTool::mutating("post", script.clone());
    let tool = Arc::new(ScriptedTool::mutating("post", script));
    let settings = json!({"enabled": false});
    let harness = Build::new(&tool).reliability(settings).stack();
    let params = json!({"path": " a  b ", "clientTs": 17, "n": 1.0, "none": null});

    // The same call, ten times: neither deduplicated, nor retried, nor cut off.
    let call = ask("post").key("k").turn("one").params(params.clone());
    for round in 0..10 {
        let expected = direct.execute(&params, &context()).await;
        let result = harness.call(&call).await;
        assert_eq!((result.attempts, result.from_cache), (1, false), "{round}");
        assert!(result.retried_by.is_empty());
        match expected {
            Ok(expected) => {
                let output = result.output.expect("the tool worked");
                assert_eq!(*output.content, expected.output);
                let metadata = output.metadata.expect("a text for people");
                assert_eq!(metadata["display"], expected.display);
                assert!(!metadata.contains_key("advisory"));
            }
            Err(expected) => assert_eq!(message_of(&result), expected.to_string()),
        }
    }
    assert_eq!(tool.seen(), direct.seen());
    assert_eq!(tool.seen(), vec![params; 10]);
    assert_eq!(tool.effects(), direct.effects());
    assert_eq!(
        (harness.record().await, harness.circuits().await),
        (None, vec![])
    );

    // Neither a breaker nor the guard stands in the way of a tool that keeps failing.
    tool.then([Reaction::Fail(http(503))]);
    for _ in 0..30 {
        let result = harness.call(&ask("post").turn("one")).await;
        assert_eq!(error_of(&result).0, "http_503");
        assert_eq!(error_of(&result).1, Status::RetriableError);
    }

    // Rolled forward at run time, calls are protected again from the next one on.
    tool.then([Reaction::Fail(http(503)), Reaction::Succeed]);
    harness.stack.runtime().switches.set_enabled(true);
    let first = harness.call(&call.again().turn("two")).await;
    let second = harness.call(&call.again().turn("two")).await;
    assert_eq!((first.attempts, first.from_cache), (2, false));
    assert_eq!(
        (effect_of(&second), second.from_cache),
        (effect_of(&first), true)
    );

    // And rolled back again.
    harness.stack.runtime().switches.set_enabled(false);
    assert!(!harness.call(&call.again()).await.from_cache);
}

#[tokio::test(start_paused = true)]
async fn tr_14_permissions_and_schemas_can_not_be_switched_off() {
    let mut strict = Custom::new("strict", Effect::None, |_, _| {
        Ok(ToolResult::new(json!(1), ""))
    });
    strict.schema = json!({"type": "object", "required": ["path"]});
    let mut elevated = Custom::new("elevated", Effect::None, |_, _| {
        Ok(ToolResult::new(json!(1), ""))
    });
    elevated.tier = PermissionTier::Elevated;
    let (strict, elevated) = (Arc::new(strict), Arc::new(elevated));
    let settings = json!({"enabled": false});
    let harness = Build::new(&strict)
        .and(&elevated)
        .reliability(settings)
        .stack();
    let result = harness.call(&ask("strict")).await;
    assert_eq!(error_of(&result).0, "invalid_arguments");
    let result = harness.call(&ask("elevated")).await;
    assert_eq!(error_of(&result).0, "permission_denied");
    assert_eq!(strict.executions() + elevated.executions(), 0);
}
