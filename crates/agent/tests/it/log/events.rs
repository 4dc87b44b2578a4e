//! Every event of the specification's table, with its level and its fields.

use async_trait::async_trait;
use holdfast_agent::model::{ModelReply, ModelRequest};
use holdfast_contract::{ToolContext, ToolError, ToolResult};
use holdfast_testkit::{Does, MadeTool};

use super::*;

/// The table: an event, its level, and the fields that it has beside the run.
const TABLE: [(&str, &str, &[&str]); 14] = [
    (
        "executor_run_start",
        "INFO",
        &["user_prompt_length", "max_iterations", "timeout_seconds"],
    ),
    (
        "gpt_oss_call_start",
        "INFO",
        &["iteration", "message_count"],
    ),
    (
        "gpt_oss_call_complete",
        "INFO",
        &["iteration", "tokens", "finish_reason", "elapsed_ms"],
    ),
    (
        "gpt_oss_call_failed",
        "ERROR",
        &["iteration", "error", "elapsed_ms"],
    ),
    (
        "tool_intents_parsed",
        "INFO",
        &["iteration", "intent_count", "tool_names"],
    ),
    (
        "tool_execution_start",
        "INFO",
        &["iteration", "tool", "args", "client"],
    ),
    (
        "tool_execution_success",
        "INFO",
        &["iteration", "tool", "result_length", "client"],
    ),
    (
        "tool_execution_failed",
        "WARN",
        &["iteration", "tool", "error", "client"],
    ),
    (
        "tool_execution_complete",
        "INFO",
        &["iteration", "tools", "total_time_ms", "client"],
    ),
    (
        "context_window_approaching",
        "WARN",
        &["iteration", "total_tokens", "limit"],
    ),
    ("no_tools_requested", "INFO", &["iteration"]),
    ("completion_signal_detected", "INFO", &["iteration"]),
    (
        "executor_timeout",
        "ERROR",
        &["iteration", "elapsed_seconds"],
    ),
    (
        "executor_max_iterations_exceeded",
        "ERROR",
        &["max_iterations", "total_tokens"],
    ),
];

struct Fails;

#[async_trait]
impl Does for Fails {
    async fn run(&self, _: &Value, _: &ToolContext) -> Result<ToolResult, ToolError> {
        Err(ToolError::failed("the disk is full"))
    }
}

/// A model that never answers, on a client that keeps no time: the run has to.
struct Silent;

#[async_trait]
impl Model for Silent {
    async fn complete(&self, _: &ModelRequest) -> Result<ModelReply, ModelError> {
        std::future::pending().await
    }
}

fn says(text: &str) -> Value {
    json!({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]})
}

/// Runs in which all of them happen.
async fn all_that_happens() -> Vec<Value> {
    let mut events = Vec::new();
    let mut add = |told: &Told| events.extend(told.events());
    let whole = vec![
        away(),
        thinks(&call("note", "a")),
        thinks("Final Answer: done"),
    ];
    add(&Told::of(whole, Level::Info, |mut state| {
        "key:1234".clone_into(&mut state.actor);
        state
    })
    .await);
    let broken = Arc::new(MadeTool::of_text("broken", Effect::None, Fails));
    let fails = vec![thinks(&call("broken", "a")), Ok(says("It is broken."))];
    add(&Told::with(vec![broken], fails, Level::Info, |mut state| {
        state.messages[0].content = "word ".repeat(20_000);
        state
    })
    .await);
    let silent = Arc::new(Silent);
    add(&Told::on(silent, Vec::new(), Level::Info, |mut state| {
        state.settings.run_timeout_ms = 2_500;
        state
    })
    .await);
    let once = vec![thinks(&call("note", "a"))];
    add(&Told::of(once, Level::Info, |mut state| {
        state.settings.max_iterations = 1;
        state
    })
    .await);
    events
}

#[tokio::test(start_paused = true)]
async fn every_event_of_the_table_has_its_level_and_its_fields() {
    let events = all_that_happens().await;
    for (name, level, fields) in TABLE {
        let found: Vec<&Value> = events.iter().filter(|it| it["event"] == name).collect();
        assert!(!found.is_empty(), "{name} never happened");
        for event in found {
            assert_eq!(event["level"], level, "{name}");
            for field in ["timestamp", "logger", "run_id"].iter().chain(fields) {
                assert!(
                    event.get(field).is_some_and(|it| !it.is_null()),
                    "{name} has no {field}: {event}"
                );
            }
        }
    }
    let first = |name: &str| events.iter().find(|it| it["event"] == name).expect("one");
    assert_eq!(first("executor_run_start")["user_prompt_length"], 8);
    assert_eq!(first("gpt_oss_call_start")["message_count"], 1);
    assert_eq!(first("tool_intents_parsed")["intent_count"], 1);
    let started = first("tool_execution_start");
    assert_eq!(
        (&started["args"], &started["client"]),
        (&json!({"text": "a"}), &json!("key:1234"))
    );
    let made = first("tool_execution_success");
    assert!(made["result_length"].as_u64().is_some_and(|it| it >= 5));
    assert_eq!(first("tool_execution_complete")["tools"], "note");
    let error = first("tool_execution_failed")["error"].as_str();
    assert!(error.is_some_and(|it| it.contains("the disk is full")));
    let near = first("context_window_approaching");
    assert_eq!(near["limit"], 32_768);
    assert!(near["total_tokens"].as_u64().is_some_and(|it| it > 20_000));
    assert_eq!(first("executor_timeout")["elapsed_seconds"], 2);
    assert_eq!(
        first("executor_max_iterations_exceeded")["max_iterations"],
        1
    );
}

/// A run that is gone on with began long ago; the question that failed did not.
#[tokio::test(start_paused = true)]
async fn a_failed_call_says_how_long_it_took_and_a_resumed_run_that_it_is_one() {
    let told = Told::of(vec![away()], Level::Info, |mut state| {
        state.begun_at_ms -= 1_000_000;
        state.settings.model_attempts_max = 1;
        state.iteration = 1;
        state
    })
    .await;
    let events = told.events();
    assert_eq!(events[0]["event"], "executor_run_resume");
    let failed = events.last().expect("an event");
    assert_eq!(failed["event"], "gpt_oss_call_failed");
    assert_eq!(failed["elapsed_ms"], 0);
}

/// Runs out of time in the middle of its output.
struct CutOff;

#[async_trait]
impl Does for CutOff {
    async fn run(&self, _: &Value, _: &ToolContext) -> Result<ToolResult, ToolError> {
        Err(ToolError::Timeout {
            elapsed: std::time::Duration::from_secs(1),
            so_far: Some(Box::new(json!({"stdout": "the salary of Ann"}))),
        })
    }
}

/// A log that is always on says what was called and why it failed, not what went through it.
#[tokio::test(start_paused = true)]
async fn what_goes_through_calls_is_told_in_full_only_to_those_who_look_closely() {
    let tool =
        || -> Vec<Arc<dyn Tool>> { vec![Arc::new(MadeTool::of_text("cut", Effect::None, CutOff))] };
    let file = format!("{} the end of the file", "row ".repeat(500));
    let says = || vec![thinks(&call("cut", &file)), Ok(says("It took too long."))];
    let told = Told::with(tool(), says(), Level::Info, |state| state).await;
    let events = told.events();
    let first = |name: &str| events.iter().find(|it| it["event"] == name).expect("one");
    let args = first("tool_execution_start")["args"]["text"].as_str();
    let args = args.expect("a text");
    assert!(args.starts_with("row row"), "{args}");
    assert!(args.ends_with("… (1820 characters more)"), "{args}");
    let error = first("tool_execution_failed")["error"].as_str();
    assert!(
        error.is_some_and(|it| it.starts_with("timeout: ")),
        "{error:?}"
    );
    let all = format!("{events:?}{}", told.page());
    assert!(!all.contains("salary") && !all.contains("end of the file"));
    let told = Told::with(tool(), says(), Level::Debug, |state| state).await;
    let all = format!("{:?}", told.events());
    assert!(all.contains("salary") && all.contains("end of the file"));
    assert!(!told.page().contains("salary"));
}

/// However many arguments there are.
#[tokio::test(start_paused = true)]
async fn a_list_without_end_is_told_by_its_beginning() {
    let many: Vec<u32> = (0..2_000).collect();
    let input = json!({"text": "a", "more": many});
    let wrong = thinks(&format!("Thought: x\nAction: note\nAction Input: {input}"));
    let told = Told::of(vec![wrong], Level::Info, |state| state).await;
    let events = told.events();
    let started = events
        .iter()
        .find(|it| it["event"] == "tool_execution_start");
    let args = started.expect("one")["args"].as_str().expect("a text");
    assert!(args.starts_with("{\"") && args.ends_with("characters more)"));
    assert!(args.chars().count() < 1_100);
}
