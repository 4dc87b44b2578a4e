//! The same faults on real sockets: fewer of them, since time is real there.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use holdfast_agent::chat::{Message, Role};
use holdfast_agent::model::{Http2, HttpModel, HttpModelConfig, MODEL_REPLY_BYTES_MAX};
use holdfast_agent::run::{Ending, Loop, NoCheckpoint, Phase, RunErrorCode, RunState, Telling};
use holdfast_agent::settings::RunSettings;
use holdfast_contract::SessionContext;
use holdfast_contract::{SystemClock, SystemEntropy};
use holdfast_reliability::observe::Observers;
use holdfast_reliability::runtime::Runtime;
use holdfast_reliability::store::memory::MemoryLimits;
use holdfast_testkit::model::{ModelServer, Say};
use holdfast_toolbox::stack::{Parts, Stores, ToolStack};
use serde_json::json;

/// A reply that is larger than any that is read.
const HUGE_BYTES: usize = 50 * 1024 * 1024;

fn stack() -> Arc<ToolStack> {
    let runtime = Runtime::new(
        Arc::new(SystemClock),
        Arc::new(SystemEntropy),
        Observers::new(),
    );
    let runtime = Arc::new(runtime);
    let stores = Stores::memory(&runtime, MemoryLimits::default());
    let session = Arc::new(SessionContext::main("run:r", "main", "/nonexistent".into()));
    let parts = Parts::new(runtime, stores, Arc::new(move |_| session.clone()));
    Arc::new(ToolStack::new(parts).expect("a stack"))
}

async fn ended(server: &ModelServer, attempts_max: u32, call_timeout_ms: u64) -> RunState {
    let stack = stack();
    let model = HttpModel::new(&HttpModelConfig {
        base_url: server.url(),
        model: "gpt-oss".to_owned(),
        api_key: None,
    });
    let settings = RunSettings {
        model_attempts_max: attempts_max,
        call_timeout_ms,
        ..RunSettings::default()
    };
    let messages = vec![Message::text(Role::User, "Do it.")];
    let now_ms = stack.runtime().clock.now_ms();
        http2: Http2::default(),
    let state = RunState::new("r", "gpt-oss", messages, settings, now_ms);
    let agent = Loop::new(Arc::new(model.expect("an address")), stack);
    agent.go_on(state, &NoCheckpoint).await.expect("kept")
}

fn code(state: &RunState) -> RunErrorCode {
    match &state.phase {
        Phase::Ended(Ending::Failed(error)) => error.code,
        other => panic!("{other:?}"),
    }
}

/// Whatever a server does every time, the run says so.
#[tokio::test]
async fn a_server_that_is_always_wrong_is_said_to_be() {
    let huge = || {
        Say::Body(
            json!({"choices": [{"message": {"content": "x".repeat(HUGE_BYTES)}}]}).to_string(),
        )
    };
    const { assert!(HUGE_BYTES > MODEL_REPLY_BYTES_MAX) };
    let table: Vec<(&str, Say)> = vec![
        ("500", Say::Status(500, "{}".to_owned())),
        ("429", Say::Status(429, "slow down".to_owned())),
        (
            "400",
            Say::Status(400, "{\"error\": {\"message\": \"no\"}}".to_owned()),
        ),
        ("empty choices", Say::Body("{\"choices\": []}".to_owned())),
        ("broken JSON", Say::Body("{\"choices\": [".to_owned())),
        (
            "wrong types",
            Say::Body("{\"choices\": {\"0\": []}, \"usage\": 7}".to_owned()),
        ),
        ("no JSON", Say::Body("<html>".to_owned())),
        ("half a body", Say::Half),
        ("never", Say::Silence),
        ("50 MB", huge()),
    ];
    for (name, say) in table {
        // Only a server that never answers is waited for in vain.
        let patience_ms = if name == "never" { 300 } else { 60_000 };
        let server = ModelServer::start(move |_| say.clone()).expect("a server");
        let state = ended(&server, 1, patience_ms).await;
        assert_eq!(code(&state), RunErrorCode::GptOssUnreachable, "{name}");
        let why = format!("{:?}", state.phase);
        assert_eq!(
            why.contains("is larger than"),
            name == "50 MB",
            "{name}: {why}"
        );
        assert_eq!(
            why.contains("did not answer within"),
            name == "never",
            "{name}: {why}"
        );
    }
}

/// A server that is wrong once is asked again, and its answer counts.
#[tokio::test]
async fn a_server_that_is_wrong_once_is_asked_again() {
    let faults = [
        Say::Status(503, String::new()),
        Say::Status(429, String::new()),
        Say::Body("{\"choices\": []}".to_owned()),
        Say::Half,
    ];
    for fault in faults {
        let asked = AtomicU64::new(0);
        let name = format!("{fault:?}");
        let server = ModelServer::start(move |_| match asked.fetch_add(1, Ordering::SeqCst) {
            0 => fault.clone(),
            _ => Say::says("Hello."),
        });
        let server = server.expect("a server");
        let state = ended(&server, 3, 60_000).await;
        let answered = Phase::Ended(Ending::Answered {
            content: "Hello.".to_owned(),
            cut_off: false,
        });
        assert_eq!(state.phase, answered, "{name}");
        assert_eq!(server.asked().len(), 2, "{name}");
    }
}
