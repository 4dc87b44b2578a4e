//! A run whose tools are stopped by the loop guard ends when its model does not listen.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::common::{Script, call, stack, task};
use async_trait::async_trait;
use holdfast_agent::run::{Ending, Loop, NoCheckpoint, Phase, RunErrorCode, RunState};
use holdfast_contract::{Effect, ToolContext, ToolError, ToolResult};
use holdfast_testkit::{Does, MadeTool};
use serde_json::Value;

/// A tool that never works, each time for another reason.
#[derive(Default)]
struct Broken(AtomicU64);

#[async_trait]
impl Does for Broken {
    async fn run(&self, params: &Value, _: &ToolContext) -> Result<ToolResult, ToolError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        let text = params["text"].as_str().unwrap_or_default();
        Err(ToolError::failed(format!("there is no {text} here")))
    }
}

const THINGS: [&str; 8] = ["milk", "bread", "salt", "oil", "rice", "tea", "jam", "fish"];

/// How the run ends, and how often the tool ran.
async fn run(says: &[&str]) -> (RunState, u64) {
    let tool = Arc::new(MadeTool::of_text(
        "fetch",
        Effect::External,
        Broken::default(),
    ));
    let stack = stack(vec![tool.clone()]);
    let mut state = task(&stack);
    state.settings.max_iterations = 20;
    let agent = Loop::new(Script::thinks(says), stack);
    let ended = agent.go_on(state, &NoCheckpoint).await.expect("kept");
    (ended, tool.0.load(Ordering::SeqCst))
}

fn last_told(state: &RunState) -> &str {
    let told = state.messages.last();
    told.map_or("", |message| message.content.as_str())
}

#[tokio::test(start_paused = true)]
async fn a_model_that_goes_on_calling_after_the_limit_ends_its_run() {
    let calls: Vec<String> = THINGS.iter().map(|it| call("fetch", it)).collect();
    let says: Vec<&str> = calls.iter().map(String::as_str).collect();
    let (ended, runs) = run(&says).await;
    let Phase::Ended(Ending::Failed(error)) = &ended.phase else {
        panic!("{:?}", ended.phase);
    };
    assert_eq!(error.code, RunErrorCode::ToolExecutionFailed);
    assert!(error.message.contains("[TOOL ERROR LIMIT]"), "{error}");
    // The fifth failure says it, the sixth call is told to answer, and the seventh did not listen.
    assert_eq!((runs, ended.iteration), (5, 7));
    assert!(last_told(&ended).contains("[TOOL ERROR LIMIT]"));
}

#[tokio::test(start_paused = true)]
async fn a_model_that_listens_has_its_answer() {
    let mut calls: Vec<String> = THINGS[..5].iter().map(|it| call("fetch", it)).collect();
    calls.push("Final Answer: It can not be had.".to_owned());
    let says: Vec<&str> = calls.iter().map(String::as_str).collect();
    let (ended, runs) = run(&says).await;
    assert!(matches!(ended.phase, Phase::Ended(Ending::Answered { .. })));
    assert_eq!(runs, 5);
}

/// Calls of one reply were made before the model could hear of any: together they are one failure.
#[tokio::test(start_paused = true)]
async fn the_calls_of_one_reply_are_one_failure() {
    let all: Vec<String> = THINGS.iter().map(|it| call("fetch", it)).collect();
    let (ended, runs) = run(&[&all.join("\n"), "Final Answer: It can not be had."]).await;
    assert!(matches!(ended.phase, Phase::Ended(Ending::Answered { .. })));
    assert_eq!((runs, ended.iteration), (8, 2));
}

#[tokio::test(start_paused = true)]
async fn calls_beside_the_one_that_reached_the_limit_do_not_end_the_run() {
    let mut says: Vec<String> = THINGS[..4].iter().map(|it| call("fetch", it)).collect();
    let beside: Vec<String> = THINGS[4..].iter().map(|it| call("fetch", it)).collect();
    says.push(beside.join("\n"));
    says.push("Final Answer: It can not be had.".to_owned());
    let says: Vec<&str> = says.iter().map(String::as_str).collect();
    let (ended, runs) = run(&says).await;
    assert!(
        matches!(ended.phase, Phase::Ended(Ending::Answered { .. })),
        "{:?}",
        ended.phase
    );
    assert_eq!((runs, ended.iteration), (5, 6));
}
