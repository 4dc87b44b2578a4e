//! What the stack counts, for the reference page.

/// A metric's row in the reference.
#[derive(Debug, Clone, Copy)]
pub struct MetricDoc {
    /// The name as scraped.
    pub name: &'static str,
    /// `counter`, `gauge` or `histogram`.
    pub kind: &'static str,
    /// The labels.
    pub labels: &'static str,
    /// What it counts.
    pub meaning: &'static str,
}

/// The reference table.
pub const METRICS: &[MetricDoc] = &[
    MetricDoc {
        name: "openclaw_tool_calls_total",
        kind: "counter",
        labels: "tool, status, scope",
        meaning: "Calls answered. `scope` is `shadow` where the layers only watch, else `live`, also where they are off.",
    },
    MetricDoc {
        name: "openclaw_tool_call_duration_ms",
        kind: "histogram",
        labels: "tool, status",
        meaning: "Time from admission to answer, in milliseconds.",
    },
    MetricDoc {
        name: "openclaw_tool_retry_attempts_total",
        kind: "counter",
        labels: "tool, reason",
        meaning: "Retries, by the code of the failure before them.",
    },
    MetricDoc {
        name: "openclaw_tool_idempotency_hits_total",
        kind: "counter",
        labels: "tool, state",
        meaning: "Duplicates that met a record, by its state.",
    },
    MetricDoc {
        name: "openclaw_tool_dedupe_cache_size",
        kind: "gauge",
        labels: "tool, scope",
        meaning: "Records kept; `tool` is `all`, `scope` the store, or `durable_inflight` for those that run, `durable_stale` for those of them whose holder has let its lease end.",
    },
    MetricDoc {
        name: "openclaw_tool_dedupe_ttl_seconds",
        kind: "gauge",
        labels: "tool, state",
        meaning: "Configured time to live of a tool's records.",
    },
    MetricDoc {
        name: "openclaw_tool_circuit_breaker_state",
        kind: "gauge",
        labels: "tool, state",
        meaning: "1 for the state a breaker is in, 0 for the others. A tool that has a breaker for each of its hosts shows the worst of them.",
    },
    MetricDoc {
        name: "openclaw_tool_circuit_breaker_transitions_total",
        kind: "counter",
        labels: "tool, from_state, to_state",
        meaning: "Changes of a breaker's state.",
    },
    MetricDoc {
        name: "holdfast_tool_calls_blocked_total",
        kind: "counter",
        labels: "tool, code, mode",
        meaning: "Calls refused before they ran, or that would have been (`mode` is `shadow`).",
    },
    MetricDoc {
        name: "holdfast_tool_repeats_total",
        kind: "counter",
        labels: "tool, met",
        meaning: "Calls of external tools that are not idempotent, made again: `met` is `record` where a record answered, `nothing` where an equal call of the last 10 minutes had another key, so that it ran again.",
    },
    MetricDoc {
        name: "holdfast_store_errors_total",
        kind: "counter",
        labels: "operation",
        meaning: "Store operations that failed.",
    },
    MetricDoc {
        name: "holdfast_store_degraded",
        kind: "gauge",
        labels: "",
        meaning: "1 while the shared store is away, else 0.",
    },
    MetricDoc {
        name: "holdfast_trace_spans_total",
        kind: "counter",
        labels: "outcome",
        meaning: "Trace spans: `built`, then `exported` or `failed`; what is neither was dropped or still waits.",
    },
];
