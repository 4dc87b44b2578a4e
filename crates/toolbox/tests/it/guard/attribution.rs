//! Layer D: which model made which malformed call.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdfast_contract::redact::Redactor;
use holdfast_contract::{Effect, ToolError, ToolResult};
use holdfast_reliability::guard::attribution_log::{
    ATTRIBUTION_LOG_BYTES_MAX, ATTRIBUTION_LOGS_KEPT, AttributionLog,
};
use serde_json::{Value, json};

use crate::stack::{Ask, Build, Custom, ask};

/// Makes the calls on a stack that logs to `path`, and ends it, which writes what is queued.
async fn logged(path: &Path, calls: &[Ask]) {
    let mut tool = Custom::new("read", Effect::None, |_, _| {
        Ok(ToolResult::new(json!("text"), ""))
    });
    tool.schema = json!({"type": "object", "required": ["path"]});
    let log = AttributionLog::start(path.to_owned(), Redactor::default()).unwrap();
    let harness = Build::new(&Arc::new(tool))
        .with(|build| build.attribution = Some(Arc::new(log)))
        .stack();
    for call in calls {
        harness.call(call).await;
    }
}

fn lines(path: &Path) -> Vec<Value> {
    fs::read_to_string(path)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

#[tokio::test(start_paused = true)]
async fn the_log_names_the_model_the_call_and_what_was_done() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("made/on/demand/tool-guard.log");
    let named =
        |model: &str| ask("read").with(|envelope| envelope.target.model_id = Some(model.into()));
    let looping = ask("read").turn("loop").call_id("call_7");
    logged(
        &path,
        &[
            ask("read").call_id("call_1").params(json!({"paht": "a"})),
            ask("read").call_id("toolu_1"),
            ask("read").call_id("7"),
            ask("read"),
            // What the caller says about the model counts more than the shape of an id.
            named("minimax/m2.5").call_id("toolu_1"),
            // A call that works is not malformed.
            ask("read").params(json!({"path": "a"})),
            looping.clone(),
            ask("read").turn("loop").call_id("call_8"),
            ask("read").turn("loop").call_id("call_9"),
        ],
    )
    .await;

    let found = lines(&path);
    let models: Vec<&str> = found
        .iter()
        .filter_map(|line| line["modelId"].as_str())
        .collect();
    let fireworks = "fireworks/openai-compat";
    assert_eq!(
        models,
        [
            fireworks,
            "anthropic",
            "unknown",
            "unknown",
            "minimax/m2.5",
            fireworks,
            fireworks,
            fireworks,
        ]
    );
    let first = &found[0];
    assert_eq!(
        (&first["tool"], &first["args"]),
        (&json!("read"), &json!({"paht": "a"}))
    );
    assert_eq!(first["errorType"], "invalid_arguments");
    assert!(
        first["error"]
            .as_str()
            .unwrap()
            .starts_with("Missing required parameter: path")
    );
    assert_eq!(first["timestamp"], "2027-01-15T08:00:00.000Z");
    assert_eq!(
        (&first["sessionKey"], &first["toolCallId"]),
        (&json!("session"), &json!("call_1"))
    );
    let actions: Vec<&Value> = found[5..].iter().map(|line| &line["action"]).collect();
    assert_eq!(actions, ["continue", "loop-detected", "loop-detected"]);
    assert_eq!(found[7]["errorType"], "loop_detected");
    assert_eq!(mode(&path), 0o600);
}

#[tokio::test(start_paused = true)]
async fn a_full_log_is_rotated_and_the_oldest_goes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tool-guard.log");
    let numbered = |number: u32| PathBuf::from(format!("{}.{number}", path.display()));
    let rounds = ATTRIBUTION_LOGS_KEPT + 2;
    for round in 0..rounds {
        logged(&path, &[ask("read").call_id(&format!("call_{round}"))]).await;
        assert_eq!(lines(&path).len(), 1, "round {round}");
        assert_eq!(mode(&path), 0o600);
        // Grown full.
        let file = fs::OpenOptions::new().append(true).open(&path).unwrap();
        file.set_len(ATTRIBUTION_LOG_BYTES_MAX).unwrap();
    }
    let newest = |number: u32| {
        let text = fs::read(numbered(number)).unwrap();
        let line = text.split(|byte| *byte == b'\n').next().unwrap();
        let line: Value = serde_json::from_slice(line).unwrap();
        line["toolCallId"].clone()
    };
    for number in 1..=ATTRIBUTION_LOGS_KEPT {
        assert_eq!(newest(number), format!("call_{}", rounds - 1 - number));
        assert_eq!(mode(&numbered(number)), 0o600);
    }
    assert!(!numbered(ATTRIBUTION_LOGS_KEPT + 1).exists());
}

#[tokio::test(start_paused = true)]
async fn a_log_that_can_not_be_written_costs_no_call() {
    let directory = tempfile::tempdir().unwrap();
    // A directory stands where the file should be.
    let log = AttributionLog::start(directory.path().to_owned(), Redactor::default()).unwrap();
    let log = Arc::new(log);
    let mut tool = Custom::new("read", Effect::None, |_, _| {
        Ok(ToolResult::new(json!("text"), ""))
    });
    tool.schema = json!({"type": "object", "required": ["path"]});
    let harness = Build::new(&Arc::new(tool))
        .with(|build| build.attribution = Some(log))
        .stack();
    let result = harness.call(&ask("read")).await;
    assert_eq!(result.error_code(), Some("invalid_arguments"));
    let result = harness
        .call(&ask("read").params(json!({"path": "a"})))
        .await;
    assert!(result.is_success());
}

#[tokio::test(start_paused = true)]
async fn a_redelivered_call_is_logged_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tool-guard.log");
    let log = AttributionLog::start(path.clone(), Redactor::default()).unwrap();
    let tool = Custom::new("read", Effect::None, |_, _| Err(ToolError::failed("no")));
    let harness = Build::new(&Arc::new(tool))
        .with(|build| build.attribution = Some(Arc::new(log)))
        .stack();
    let request = ask("read");
    for call in [&request, &request, &request, &ask("read")] {
        harness.call(call).await;
    }
    drop(harness);
    assert_eq!(lines(&path).len(), 2);
}
