//! Calls that do not fail and still lead nowhere; and those that only look like it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use holdfast_contract::{Effect, ToolError, ToolResult, ToolResultEnvelope};
use holdfast_testkit::{Reaction, ScriptedTool};
use serde_json::{Value, json};

use crate::stack::{Ask, Build, Custom, ask, error_of, http, message_of};

fn in_turn(tool: &str, params: Value) -> Ask {
    ask(tool).turn("turn").params(params)
}

fn advisory(result: &ToolResultEnvelope) -> Vec<String> {
    let output = result
        .output
        .as_ref()
        .unwrap_or_else(|| panic!("{result:?}"));
    let found = output.metadata.as_ref().and_then(|map| map.get("advisory"));
    found.map_or_else(Vec::new, |texts| {
        serde_json::from_value(texts.clone()).unwrap()
    })
}

fn constant(name: &'static str) -> Arc<Custom> {
    Arc::new(Custom::new(name, Effect::None, |_, _| {
        Ok(ToolResult::new(json!("nothing new"), ""))
    }))
}

#[tokio::test(start_paused = true)]
async fn the_same_result_gets_an_advisory_and_then_a_cut() {
    let tool = constant("status");
    let harness = Build::new(&tool).stack();
    for number in 1..=25 {
        let result = harness.call(&in_turn("status", json!({}))).await;
        // The output itself is the tool's; the text stands beside it.
        assert_eq!(
            *result.output.as_ref().unwrap().content,
            json!("nothing new")
        );
        let texts = advisory(&result);
        match number {
            10 => assert_eq!(
                texts,
                [
                    "[NO PROGRESS] Tool \"status\" returned the same result 10 times with identical \
                  arguments.\nNothing has changed since. Use the result you already have or try a \
                  different approach."
                ]
            ),
            25 => assert!(texts[0].starts_with("[LOOP DETECTED] Tool \"status\" returned")),
            _ => assert!(texts.is_empty(), "{number}: {texts:?}"),
        }
    }
    let cut = harness.call(&in_turn("status", json!({}))).await;
    assert_eq!(error_of(&cut).0, "loop_detected");
    assert_eq!(tool.executions(), 25);
    // Another turn starts afresh.
    assert!(harness.call(&ask("status")).await.is_success());
}

#[tokio::test(start_paused = true)]
async fn an_advisory_is_not_part_of_the_record() {
    let tool = constant("status");
    let harness = Build::new(&tool).stack();
    for _ in 0..9 {
        harness.call(&in_turn("status", json!({}))).await;
    }
    let tenth = in_turn("status", json!({})).key("k");
    assert_eq!(advisory(&harness.call(&tenth).await).len(), 1);
    let elsewhere = tenth.again();
    let result = harness.call(&elsewhere).await;
    assert!(result.from_cache && advisory(&result).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_polls_is_left_alone() {
    let tool = constant("wait");
    let harness = Build::new(&tool)
        .with(|build| build.guard.polling_tools = vec!["wait".into()])
        .stack();
    for _ in 0..60 {
        let result = harness.call(&in_turn("wait", json!({}))).await;
        assert!(advisory(&result).is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_non_zero_exit_is_a_result_and_a_loop_without_progress() {
    let tool = Arc::new(ScriptedTool::mutating("exec", [Reaction::Exit(1)]));
    let harness = Build::new(&tool).stack();
    let test = || in_turn("exec", json!({"path": "cargo test"}));
    let first = harness.call(&test()).await;
    assert!(first.is_success() && advisory(&first).is_empty());
    let second = advisory(&harness.call(&test()).await);
    assert!(second[0].starts_with("[LOOP DETECTED] Tool \"exec\" failed 2 times"));
    let third = harness.call(&test()).await;
    assert_eq!(
        (error_of(&third).0, tool.executions()),
        ("loop_detected", 2)
    );

    // Never toward the limit: a turn may see as many of them as it likes.
    for number in 0..20 {
        tool.then([Reaction::Exit(number)]);
        let call = in_turn("exec", json!({"path": number.to_string()}));
        assert!(harness.call(&call).await.is_success());
    }
}

#[tokio::test(start_paused = true)]
async fn a_changed_world_is_not_a_loop() {
    let test = Arc::new(ScriptedTool::mutating("exec", [Reaction::Exit(1)]));
    let edit = Arc::new(ScriptedTool::mutating("edit", [Reaction::Succeed]));
    let failing = Arc::new(ScriptedTool::read_only(
        "look",
        [Reaction::Fail(ToolError::failed("not there yet"))],
    ));
    let harness = Build::new(&test).and(&edit).and(&failing).stack();
    let run = |tool: &str| in_turn(tool, json!({"path": "same"}));
    // Edit, test, edit, test: as long as every edit is a new one.
    for number in 0..10 {
        assert!(harness.call(&run("exec")).await.is_success(), "{number}");
        let change = in_turn("edit", json!({"path": number.to_string()}));
        assert!(harness.call(&change).await.is_success());
    }
    // A failure of execution gets its second chance as well.
    harness.call(&run("look")).await;
    harness.call(&in_turn("edit", json!({"path": "new"}))).await;
    let result = harness.call(&run("look")).await;
    assert!(!result.error.unwrap().message.contains("[LOOP DETECTED]"));
    // Repeating a change that was made already changes nothing.
    harness.call(&in_turn("edit", json!({"path": "new"}))).await;
    let result = harness.call(&run("look")).await;
    assert!(result.error.unwrap().message.contains("[LOOP DETECTED]"));
}

#[tokio::test(start_paused = true)]
async fn a_changed_world_does_not_make_a_wrong_call_right() {
    let mut strict = Custom::new("strict", Effect::None, |_, _| Err(http(404)));
    strict.schema = json!({"type": "object", "required": ["path"]});
    let strict = Arc::new(strict);
    let edit = Arc::new(ScriptedTool::mutating("edit", [Reaction::Succeed]));
    let harness = Build::new(&strict).and(&edit).stack();
    for number in 0..2 {
        harness.call(&in_turn("strict", json!({}))).await;
        let change = in_turn("edit", json!({"path": number.to_string()}));
        assert!(harness.call(&change).await.is_success());
    }
    let third = harness.call(&in_turn("strict", json!({}))).await;
    assert_eq!(error_of(&third).0, "loop_detected");
}

#[tokio::test(start_paused = true)]
async fn real_work_forgives_a_failure() {
    let script = [Reaction::Fail(ToolError::failed("no"))];
    let failing = Arc::new(ScriptedTool::read_only("look", script));
    let working = Arc::new(ScriptedTool::mutating("edit", [Reaction::Succeed]));
    let harness = Build::new(&failing).and(&working).stack();
    let mut count = 0..;
    let mut next = |tool: &str| {
        let path = count.next().unwrap_or(0).to_string();
        in_turn(tool, json!({"path": path}))
    };
    // One failure and three successes at a time: such a turn never ends.
    for _ in 0..12 {
        assert_eq!(
            error_of(&harness.call(&next("look")).await).0,
            "execution_failed"
        );
        for _ in 0..3 {
            assert!(harness.call(&next("edit")).await.is_success());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn looking_again_and_again_at_what_always_differs_is_cut() {
    let count = AtomicUsize::new(0);
    let tool = Custom::new("exec", Effect::External, move |_, _| {
        let marks = "y".repeat(count.fetch_add(1, Ordering::Relaxed));
        Ok(ToolResult::new(json!(marks), ""))
    });
    let tool = Arc::new(tool);
    let other = Arc::new(ScriptedTool::mutating("other", [Reaction::Succeed]));
    let harness = Build::new(&tool).and(&other).stack();
    let look = || in_turn("exec", json!({"command": "date +%s%N"}));
    // Something was changed in between: it starts anew.
    for _ in 0..99 {
        assert!(harness.call(&look()).await.is_success());
    }
    assert!(
        harness
            .call(&in_turn("other", json!({})))
            .await
            .is_success()
    );
    for _ in 0..99 {
        let result = harness.call(&look()).await;
        assert!(result.is_success(), "{result:?}");
    }
    // Ten minutes have passed.
    tokio::time::advance(Duration::from_secs(601)).await;
    for _ in 0..100 {
        assert!(harness.call(&look()).await.is_success());
    }
    let cut = harness.call(&look()).await;
    assert_eq!(error_of(&cut).0, "loop_detected");
    assert!(message_of(&cut).contains("was called 100 times with identical arguments"));
}
