//! Spans on their way to a collector.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use holdfast_contract::redact::Redactor;
use holdfast_reliability::observe::Observer;
use holdfast_reliability::observe::log::JsonLog;
use holdfast_reliability::observe::metrics::{Metrics, SpanOutcome};
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{Protocol, RetryPolicy, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracerProvider, SpanData, SpanExporter,
};

use super::config::OtlpConfig;
use super::spans::SpanObserver;
use super::{TRACE_BATCH_DELAY_MS, TRACE_BATCH_MAX, TRACE_FLUSH_MS_MAX, TRACE_QUEUE_MAX};

/// The log event of spans that did not arrive.
const EXPORT_FAILED: &str = "trace_export_failed";

/// Traces of one process. A thread of its own sends them.
pub(crate) struct Traces {
    provider: SdkTracerProvider,
    redactor: Redactor,
    report: Report,
}

impl Traces {
    /// Starts sending. What stands in the way of that is logged and does not stop a call.
    pub(crate) fn start(
        config: &OtlpConfig,
        redactor: Redactor,
        metrics: Arc<Metrics>,
        log: Option<Arc<JsonLog>>,
    ) -> Option<Self> {
        let report = Report {
            endpoint: config.endpoint.clone(),
            metrics,
            log,
        };
        let exporter = match otlp_exporter(config) {
            Ok(exporter) => exporter,
            Err(reason) => {
                report.failed(0, &reason);
                return None;
            }
        };
        let watched = Watched {
            exporter,
            report: report.clone(),
        };
        // Every value is said here, so that no variable of the environment changes a limit.
        let batch = BatchConfigBuilder::default()
            .with_max_queue_size(TRACE_QUEUE_MAX)
            .with_max_export_batch_size(TRACE_BATCH_MAX)
            .with_scheduled_delay(Duration::from_millis(TRACE_BATCH_DELAY_MS))
            .build();
        let processor = BatchSpanProcessor::builder(watched)
            .with_batch_config(batch)
            .build();
        let resource = Resource::builder_empty()
            .with_service_name(config.service_name.clone())
            .with_attribute(opentelemetry::KeyValue::new(
                "service.version",
                env!("CARGO_PKG_VERSION"),
            ))
            .build();
        let provider = SdkTracerProvider::builder()
            .with_span_processor(processor)
            .with_resource(resource)
            .with_sampler(Sampler::ParentBased(Box::new(Sampler::AlwaysOn)))
            .build();
        Some(Self {
            provider,
            redactor,
            report,
        })
    }

    /// Builds spans from the events of calls.
    pub(crate) fn observer(&self) -> Arc<dyn Observer> {
        Arc::new(SpanObserver::new(
            self.provider.tracer("holdfast"),
            self.redactor.clone(),
            self.report.metrics.clone(),
        ))
    }

    /// Sends what waits, for [`TRACE_FLUSH_MS_MAX`] at most. What is still under way then is lost.
    pub(crate) fn finish(&self) {
        let limit = Duration::from_millis(TRACE_FLUSH_MS_MAX);
        if self.provider.shutdown_with_timeout(limit).is_err() {
            let reason = format!("no answer within {TRACE_FLUSH_MS_MAX} ms, spans may be lost");
            self.report.log(0, &reason);
        }
    }
}

fn otlp_exporter(config: &OtlpConfig) -> Result<opentelemetry_otlp::SpanExporter, String> {
    let timeout = Duration::from_millis(config.timeout_ms);
    let headers: HashMap<String, String> = config
        .headers
        .iter()
        .map(|(name, value)| (name.clone(), value.reveal().to_owned()))
        .collect();
    opentelemetry_otlp::SpanExporter::builder()
        .with_http()
        .with_protocol(Protocol::HttpBinary)
        .with_endpoint(config.traces_url())
        .with_timeout(timeout)
        .with_headers(headers)
        .with_http_client(http_client(timeout)?)
        // Tried once: a process that ends must not wait for a collector that is away.
        .with_retry_policy(RetryPolicy::disabled())
        .build()
        .map_err(|error| error.to_string())
}

/// A client that never follows a redirect: the headers are meant for the configured address only.
fn http_client(timeout: Duration) -> Result<reqwest::blocking::Client, String> {
    let build = move || {
        holdfast_client::install_cryptography();
        reqwest::blocking::Client::builder()
            .timeout(timeout)
            .redirect(reqwest::redirect::Policy::none())
            .build()
    };
    // A blocking client can not be built on a thread that runs async code.
    std::thread::spawn(build)
        .join()
        .map_err(|_| "the HTTP client can not be built".to_owned())?
        .map_err(|error| error.to_string())
}

/// Counts and logs what becomes of spans.
#[derive(Clone)]
struct Report {
    endpoint: String,
    metrics: Arc<Metrics>,
    log: Option<Arc<JsonLog>>,
}

impl Report {
    fn failed(&self, spans: u64, reason: &str) {
        self.metrics.count_spans(SpanOutcome::Failed, spans);
        self.log(spans, reason);
    }

    fn log(&self, spans: u64, reason: &str) {
        if let Some(log) = &self.log {
            let reason = format!("{}: {reason}", self.endpoint);
            log.trouble(EXPORT_FAILED, &reason, spans);
        }
    }
}

/// An exporter whose failures are seen.
struct Watched<E> {
    exporter: E,
    report: Report,
}

impl<E> fmt::Debug for Watched<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The exporter's own form would show the headers.
        f.write_str("Watched")
    }
}

impl<E: SpanExporter> SpanExporter for Watched<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len() as u64;
        let result = self.exporter.export(batch).await;
        match &result {
            Ok(()) => self
                .report
                .metrics
                .count_spans(SpanOutcome::Exported, spans),
            Err(error) => self.report.failed(spans, &error.to_string()),
        }
        result
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn shutdown(&self) -> OTelSdkResult {
        self.exporter.shutdown()
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}
