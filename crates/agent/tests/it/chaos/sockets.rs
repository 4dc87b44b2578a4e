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
use tokio::sync::Notify;

use crate::chaos::play::documented;

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

async fn ended(
    server: &ModelServer,
    telling: Telling,
    attempts_max: u32,
    call_timeout_ms: u64,
) -> RunState {
    let stack = stack();
    let model = HttpModel::new(&HttpModelConfig {
        base_url: server.url(),
        model: "gpt-oss".to_owned(),
        api_key: None,
        http2: Http2::default(),
    });
    let settings = RunSettings {
        model_attempts_max: attempts_max,
        call_timeout_ms,
        ..RunSettings::default()
    };
    let messages = vec![Message::text(Role::User, "Do it.")];
    let now_ms = stack.runtime().clock.now_ms();
    let state = RunState {
        telling,
        ..RunState::new("r", "gpt-oss", messages, settings, now_ms)
    };
    let agent = Loop::new(Arc::new(model.expect("an address")), stack);
    agent.go_on(state, &NoCheckpoint).await.expect("kept")
}

fn code(state: &RunState) -> RunErrorCode {
    match &state.phase {
        Phase::Ended(Ending::Failed(error)) => {
            assert!(documented().contains(error.code.as_str()), "{error}");
            error.code
        }
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
        let state = ended(&server, Telling::Whole, 1, patience_ms).await;
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
    let both = |fault: &Say| [Telling::Whole, Telling::AsItComes].map(|it| (fault.clone(), it));
    for (fault, telling) in faults.iter().flat_map(both) {
        let asked = AtomicU64::new(0);
        let name = format!("{fault:?}");
        let server = ModelServer::start(move |_| match asked.fetch_add(1, Ordering::SeqCst) {
            0 => fault.clone(),
            _ => Say::says("Hello."),
        });
        let server = server.expect("a server");
        let state = ended(&server, telling, 3, 60_000).await;
        assert_eq!(state.phase, answered("Hello."), "{name}");
        assert_eq!(server.asked().len(), 2, "{name}");
    }
}

fn answered(content: &str) -> Phase {
    Phase::Ended(Ending::Answered {
        content: content.to_owned(),
        cut_off: false,
        filtered: false,
    })
}

/// The same of an answer that comes in pieces.
#[tokio::test]
async fn a_stream_that_is_always_wrong_is_said_to_be() {
    let piece = json!({"choices": [{"index": 0, "delta": {"content": "word ".repeat(10_000)}}]});
    let half = json!({"choices": [{"index": 0, "delta": {"content": "Half"}}]});
    let stream = |events: &str| Say::Stream(events.to_owned());
    let table: Vec<(&str, Say, &str)> = vec![
        ("never", Say::Silence, "did not answer within"),
        (
            "never goes on",
            Say::Held("Thought: ".to_owned(), String::new()),
            "broke off before its end: nothing more came for 300 ms",
        ),
        ("half a body", Say::Half, ""),
        (
            "closes mid-stream",
            Say::BrokenOff("Thought: I".to_owned()),
            "broke off before its end (",
        ),
        (
            "ends mid-answer",
            Say::Stream(format!("data: {half}\n\n")),
            "broke off before its end",
        ),
        ("nothing at all", stream(""), "broke off before its end"),
        (
            "broken JSON",
            stream("data: {\"choices\": [\n\ndata: [DONE]\n\n"),
            "is no JSON",
        ),
        (
            "an error in the stream",
            stream("data: {\"error\": {\"message\": \"overloaded\"}}\n\n"),
            "overloaded",
        ),
        (
            "wrong types",
            stream("data: {\"choices\": {\"0\": 1}, \"usage\": 7}\n\n"),
            "broke off before its end",
        ),
        (
            "without end",
            Say::Endless(format!("data: {piece}\n\n")),
            "is larger than",
        ),
        ("500", Say::Status(500, "{}".to_owned()), "answered 500"),
    ];
    for (name, say, says) in table {
        let patience_ms = if name.starts_with("never") {
            300
        } else {
            60_000
        };
        let server = ModelServer::start(move |_| say.clone()).expect("a server");
        let state = ended(&server, Telling::AsItComes, 1, patience_ms).await;
        assert_eq!(code(&state), RunErrorCode::GptOssUnreachable, "{name}");
        let why = format!("{:?}", state.phase);
        assert!(why.contains(says), "{name}: {why}");
        assert_eq!(server.asked()[0]["stream"], true, "{name}");
    }
}

/// A server that takes its time has it.
#[tokio::test]
async fn a_server_that_is_late_is_waited_for() {
    for telling in [Telling::Whole, Telling::AsItComes] {
        let (asked, may_speak) = (Arc::<Notify>::default(), std::sync::mpsc::channel::<()>());
        let (speak, heard) = (may_speak.0, parking_lot::Mutex::new(may_speak.1));
        let is_asked = asked.clone();
        let server = ModelServer::start(move |_| {
            is_asked.notify_one();
            let _ = heard.lock().recv();
            Say::says("Hello.")
        });
        let server = server.expect("a server");
        let lets = async {
            asked.notified().await;
            speak.send(()).expect("it waits");
        };
        let (state, ()) = tokio::join!(ended(&server, telling, 1, 60_000), lets);
        assert_eq!(state.phase, answered("Hello."));
    }
}
