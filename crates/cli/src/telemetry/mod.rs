//! Traces: what a call recorded on its way, told as OpenTelemetry spans once it has ended.
//!
//! Nothing happens before the end of a call, and nothing at all unless `observability.otlp` is
//! configured. A collector that is slow or away costs spans, never a call.

pub(crate) mod config;

#[cfg(not(feature = "otlp"))]
#[path = "absent.rs"]
mod export;
#[cfg(feature = "otlp")]
mod export;
#[cfg(feature = "otlp")]
mod spans;
#[cfg(feature = "otlp")]
mod traceparent;

use holdfast_contract::Limit;

pub(crate) use export::Traces;

/// A process that ends waits this long at most for its last spans to leave.
pub(crate) const TRACE_FLUSH_MS_MAX: u64 = 2_000;
/// Spans that wait to be sent; more are dropped and show as a difference in the metrics.
pub(crate) const TRACE_QUEUE_MAX: usize = 2_048;
/// Spans in one request to the collector.
pub(crate) const TRACE_BATCH_MAX: usize = 512;
/// How long a span waits for others to share a request with.
pub(crate) const TRACE_BATCH_DELAY_MS: u64 = 1_000;
/// How much of an error's message goes into a span.
pub(crate) const TRACE_MESSAGE_CHARS_MAX: usize = 256;

/// The limits of traces, for the reference page.
pub(crate) const LIMITS: &[Limit] = &[
    Limit {
        name: "TRACE_FLUSH_MS_MAX",
        value: TRACE_FLUSH_MS_MAX,
        meaning: "longest wait of an ending process for its last spans to leave",
        setting: None,
    },
    Limit {
        name: "TRACE_QUEUE_MAX",
        value: TRACE_QUEUE_MAX as u64,
        meaning: "spans waiting to be sent; more are dropped",
        setting: None,
    },
    Limit {
        name: "TRACE_BATCH_MAX",
        value: TRACE_BATCH_MAX as u64,
        meaning: "spans in one request to the collector",
        setting: None,
    },
    Limit {
        name: "TRACE_BATCH_DELAY_MS",
        value: TRACE_BATCH_DELAY_MS,
        meaning: "longest wait of a span for others to share a request with",
        setting: None,
    },
    Limit {
        name: "TRACE_MESSAGE_CHARS_MAX",
        value: TRACE_MESSAGE_CHARS_MAX as u64,
        meaning: "length of an error's message in a span; the rest is cut off",
        setting: None,
    },
    Limit {
        name: "OTLP_TIMEOUT_MS_MAX",
        value: config::OTLP_TIMEOUT_MS_MAX,
        meaning: "longest time limit of one request to the collector that can be configured",
        setting: Some("observability.otlp.timeoutMs"),
    },
];
