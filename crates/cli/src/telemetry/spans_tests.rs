//! Spans of real calls through a real stack, under paused time.

use std::sync::Mutex;

use holdfast_contract::{Cause, SessionContext, Tool, ToolCallEnvelope, ToolError};
use holdfast_reliability::observe::Observers;
use holdfast_reliability::runtime::Runtime;
use holdfast_reliability::store::memory::MemoryLimits;
use holdfast_testkit::{Reaction, ScriptedTool, SeededEntropy, TokioClock};
use holdfast_toolbox::stack::{Parts, Stores, ToolStack};
use opentelemetry::trace::{SpanId, TracerProvider};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SdkTracerProvider, SimpleSpanProcessor, SpanData, SpanExporter};

use super::*;

/// Keeps what it is given.
#[derive(Debug, Clone, Default)]
struct Kept(Arc<Mutex<Vec<SpanData>>>);

impl SpanExporter for Kept {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        self.0.lock().unwrap().extend(batch);
        Ok(())
    }
}

impl Kept {
    fn named(&self, name: &str) -> Vec<SpanData> {
        let mut spans = self.0.lock().unwrap().clone();
        spans.retain(|span| span.name == name);
        spans.sort_by_key(|span| span.start_time);
        spans
    }

    fn call(&self) -> SpanData {
        let mut spans = self.named("tool_execution");
        assert_eq!(spans.len(), 1);
        spans.remove(0)
    }
}

fn attribute(span: &SpanData, name: &str) -> Option<String> {
    let mut attributes = span.attributes.iter();
    attributes
        .find(|attribute| attribute.key.as_str() == name)
        .map(|attribute| attribute.value.to_string())
}

fn unavailable() -> Reaction {
    Reaction::Fail(ToolError::ExecutionError {
        message: "password=hunter2 was not taken".to_owned(),
        cause: Cause::Http {
            status: 503,
            retry_after_ms: None,
        },
    })
}

fn stack(tool: ScriptedTool) -> (ToolStack, Kept) {
    let kept = Kept::default();
    let provider = SdkTracerProvider::builder()
        .with_span_processor(SimpleSpanProcessor::new(kept.clone()))
        .build();
    let observer = SpanObserver::new(provider.tracer("test"), Redactor::default(), Metrics::new());
    let runtime = Arc::new(Runtime::new(
        Arc::new(TokioClock::new()),
        Arc::new(SeededEntropy::new(7)),
        Observers::new().with(Arc::new(observer)),
    ));
    let limits = MemoryLimits {
        keys_max: 64,
        bytes_max: 1 << 20,
    };
    let stores = Stores::memory(&runtime, limits);
    let sessions = Arc::new(|_: &ToolCallEnvelope| {
        Arc::new(SessionContext::main("s", "a", std::env::temp_dir()))
    });
    let tools = [Arc::new(tool) as Arc<dyn Tool>];
    let stack = ToolStack::new(Parts::new(runtime, stores, sessions).with_tools(tools));
    (stack.unwrap(), kept)
}

fn envelope(tool: &str) -> ToolCallEnvelope {
    let arguments = serde_json::Map::new();
    ToolCallEnvelope::new(
        "r-1".to_owned(),
        tool.to_owned(),
        arguments,
        "s".to_owned(),
        "a".to_owned(),
    )
}

#[tokio::test(start_paused = true)]
async fn a_retrying_call_is_a_tree_in_order() {
    let script = [
        unavailable(),
        unavailable(),
        Reaction::SucceedAfter(Duration::from_millis(40)),
    ];
    let (stack, kept) = stack(ScriptedTool::read_only("look", script));
    let result = stack.call(envelope("look")).await;
    assert!(result.is_success(), "{result:?}");

    let call = kept.call();
    assert_eq!(call.parent_span_id, SpanId::INVALID);
    assert_eq!(call.status, Status::Unset);
    for (name, value) in [
        ("tool.name", "look"),
        ("tool.status", "success"),
        ("retry.attempt", "3"),
        ("breaker.state", "CLOSED"),
        ("from_cache", "false"),
        ("request.id", "r-1"),
        ("session.key", "s"),
    ] {
        assert_eq!(attribute(&call, name).as_deref(), Some(value), "{name}");
    }
    assert_eq!(attribute(&call, "error.code"), None);
    let lasted = call.end_time.duration_since(call.start_time).unwrap();
    assert_eq!(lasted, Duration::from_millis(result.duration_ms));

    let (attempts, delays) = (kept.named("tool_attempt"), kept.named("retry_delay"));
    assert_eq!((attempts.len(), delays.len()), (3, 2));
    // An attempt, the wait after it, the next attempt: each begins where the one before ends.
    let line = [
        &attempts[0],
        &delays[0],
        &attempts[1],
        &delays[1],
        &attempts[2],
    ];
    for pair in line.windows(2) {
        assert_eq!(pair[0].end_time, pair[1].start_time);
    }
    assert_eq!(attempts[0].start_time, call.start_time);
    assert_eq!(attempts[2].end_time, call.end_time);
    for span in line {
        assert_eq!(span.parent_span_id, call.span_context.span_id());
        assert_eq!(span.span_context.trace_id(), call.span_context.trace_id());
    }
    for (index, delay) in delays.iter().enumerate() {
        let note = &result.retried_by[index];
        assert_eq!(
            attribute(delay, "retry.delay_ms"),
            Some(note.delay_ms.to_string())
        );
        assert_eq!(
            attribute(delay, "retry.reason").as_deref(),
            Some("http_503")
        );
    }
    for (index, attempt) in attempts.iter().enumerate() {
        let number = (index + 1).to_string();
        assert_eq!(attribute(attempt, "retry.attempt"), Some(number));
        let code = (index < 2).then_some("http_503");
        assert_eq!(attribute(attempt, "error.code").as_deref(), code);
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_call_says_so_without_its_secret() {
    let (stack, kept) = stack(ScriptedTool::read_only("look", [unavailable()]));
    let mut envelope = envelope("look");
    envelope.target.session_key = "token=hunter2".to_owned();
    let result = stack.call(envelope).await;
    assert!(!result.is_success());

    let call = kept.call();
    assert_eq!(attribute(&call, "error.code").as_deref(), Some("http_503"));
    assert_eq!(
        attribute(&call, "tool.status").as_deref(),
        Some("retry_exhausted")
    );
    assert!(matches!(call.status, Status::Error { .. }));
    let all = format!("{:?}", kept.0.lock().unwrap());
    assert!(!all.contains("hunter2"), "{all}");
}

#[tokio::test(start_paused = true)]
async fn the_key_shows_its_fingerprint_only_and_a_duplicate_says_so() {
    let (stack, kept) = stack(ScriptedTool::read_only("look", [Reaction::Succeed]));
    let mut first = envelope("look");
    first.payload.idempotency_key = Some("order-17-of-ann".to_owned());
    let mut second = first.clone();
    second.request_id = "r-2".to_owned();
    stack.call(first).await;
    assert!(stack.call(second).await.from_cache);

    let spans = kept.named("tool_execution");
    let keys: Vec<_> = spans
        .iter()
        .map(|span| attribute(span, "idempotency.key").unwrap())
        .collect();
    assert_eq!(keys[0], keys[1]);
    assert_eq!(keys[0].len(), 12);
    let cached: Vec<_> = spans
        .iter()
        .map(|span| attribute(span, "from_cache").unwrap())
        .collect();
    assert!(cached.contains(&"true".to_owned()) && cached.contains(&"false".to_owned()));
    // Only the first one ran.
    assert_eq!(kept.named("tool_attempt").len(), 1);
    let all = format!("{:?}", kept.0.lock().unwrap());
    assert!(!all.contains("order-17-of-ann"), "{all}");
}

#[tokio::test(start_paused = true)]
async fn a_valid_traceparent_is_the_parent_and_its_decision_counts() {
    let (stack, kept) = stack(ScriptedTool::read_only("look", [Reaction::Succeed]));
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let mut call = envelope("look");
    call.trace.traceparent = Some(parent.to_owned());
    stack.call(call.clone()).await;
    // Not sampled by the caller, so not sent.
    call.request_id = "r-2".to_owned();
    call.trace.traceparent = Some(parent.replace("-01", "-00"));
    stack.call(call.clone()).await;

    let span = kept.call();
    assert_eq!(
        span.span_context.trace_id().to_string(),
        "0af7651916cd43dd8448eb211c80319c"
    );
    assert_eq!(span.parent_span_id.to_string(), "b7ad6b7169203331");
    assert!(span.parent_span_is_remote);

    call.request_id = "r-3".to_owned();
    call.trace.traceparent = Some("00-nonsense".to_owned());
    stack.call(call).await;
    let own = kept.named("tool_execution").pop().unwrap();
    assert_eq!(own.parent_span_id, SpanId::INVALID);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_was_cut_off_lasts_until_the_answer() {
    let (stack, kept) = stack(ScriptedTool::read_only("look", [Reaction::Hang]));
    let mut call = envelope("look");
    call.control.deadline_at_ms = Some(1_800_000_000_000 + 300);
    let result = stack.call(call).await;
    assert!(!result.is_success());

    let (call, attempts) = (kept.call(), kept.named("tool_attempt"));
    assert_eq!(attempts.len(), 1);
    assert_eq!(attempts[0].end_time, call.end_time);
    let lasted = call.end_time.duration_since(call.start_time).unwrap();
    assert_eq!(lasted, Duration::from_millis(300));
}
