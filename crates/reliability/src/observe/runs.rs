//! What is counted about runs and the models that they ask.
//!
//! The labels `model`, `server`, `from` and `to` only ever hold what was configured: whoever reports
//! knows a server by its address in the configuration, and a model by the name that its server was
//! configured with. No client's, model's or server's word becomes a label.

use std::collections::HashSet;

use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::metrics::{MetricDoc, duration_histogram};

/// Distinct models and servers that are labels of their own; further ones, which a configuration
/// that is read again and again may bring, are counted as `other`.
pub const METRIC_MODELS_MAX: usize = 64;

/// The reference table.
pub const RUN_METRICS: &[MetricDoc] = &[
    MetricDoc {
        name: "holdfast_runs_begun_total",
        kind: "counter",
        labels: "",
        meaning: "Runs that this process began to work on, those it took up included.",
    },
    MetricDoc {
        name: "holdfast_runs_ended_total",
        kind: "counter",
        labels: "outcome",
        meaning: "Runs that this process works on no longer: `answered`, `calls`, `cancelled`, the code of an error, `left` for the next process, or `lost`.",
    },
    MetricDoc {
        name: "holdfast_runs_in_flight",
        kind: "gauge",
        labels: "",
        meaning: "Runs being worked on.",
    },
    MetricDoc {
        name: "holdfast_run_iterations_total",
        kind: "counter",
        labels: "",
        meaning: "Answers of models that runs have heard.",
    },
    MetricDoc {
        name: "holdfast_run_tokens_total",
        kind: "counter",
        labels: "kind",
        meaning: "Tokens of those answers: `prompt` read, `completion` written.",
    },
    MetricDoc {
        name: "holdfast_model_requests_total",
        kind: "counter",
        labels: "model, server, outcome",
        meaning: "Requests to model servers: `answered`, `unavailable`, `busy`, `barred`, `refused`, `too_long`, `history`, or `cut_off` when nobody waited any more. `model` is its name on its server, `server` its address in the configuration.",
    },
    MetricDoc {
        name: "holdfast_model_request_duration_ms",
        kind: "histogram",
        labels: "model, server",
        meaning: "How long they took, in milliseconds.",
    },
    MetricDoc {
        name: "holdfast_model_failovers_total",
        kind: "counter",
        labels: "from, to",
        meaning: "How often a model server was away and the next one was asked.",
    },
];

/// Something that happened to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunEvent<'a> {
    /// This process works on one more.
    Begun,
    /// It works on one less.
    Ended {
        /// How that ended, in a word from a short list.
        outcome: &'static str,
    },
    /// A model has answered.
    Heard {
        /// Tokens that it read.
        prompt: u64,
        /// Tokens that it wrote.
        completion: u64,
    },
    /// A server was asked.
    Asked {
        /// The model, as it is configured.
        model: &'a str,
        /// The server, as it is configured.
        server: &'a str,
        /// What came of it, in a word from a short list.
        outcome: &'static str,
        /// How long that took.
        duration_ms: u64,
    },
    /// A server was away, and the next one is asked.
    FailedOver {
        /// The one that was away, as it is configured.
        from: &'a str,
        /// The next one.
        to: &'a str,
    },
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OutcomeLabels {
    outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct KindLabels {
    kind: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ServerLabels {
    model: String,
    server: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RequestLabels {
    model: String,
    server: String,
    outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct FailoverLabels {
    from: String,
    to: String,
}

type DurationFamily = Family<ServerLabels, Histogram, fn() -> Histogram>;

/// The counts of one process.
pub(super) struct RunMetrics {
    names: Mutex<HashSet<String>>,
    begun: Counter,
    ended: Family<OutcomeLabels, Counter>,
    in_flight: Gauge,
    iterations: Counter,
    tokens: Family<KindLabels, Counter>,
    requests: Family<RequestLabels, Counter>,
    durations: DurationFamily,
    failovers: Family<FailoverLabels, Counter>,
}

impl RunMetrics {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let metrics = Self {
            names: Mutex::default(),
            begun: Counter::default(),
            ended: Family::default(),
            in_flight: Gauge::default(),
            iterations: Counter::default(),
            tokens: Family::default(),
            requests: Family::default(),
            durations: DurationFamily::new_with_constructor(duration_histogram),
            failovers: Family::default(),
        };
        let meaning = |name: &str| {
            let row = RUN_METRICS.iter().find(|row| row.name == name);
            // The text format ends it with a full stop of its own.
            row.map_or("", |row| row.meaning.trim_end_matches('.'))
        };
        macro_rules! register {
            ($name:literal, $metric:expr) => {
                registry.register(
                    // The text format adds `_total` to counters by itself.
                    $name.trim_end_matches("_total"),
                    meaning($name),
                    $metric.clone(),
                )
            };
        }
        register!("holdfast_runs_begun_total", metrics.begun);
        register!("holdfast_runs_ended_total", metrics.ended);
        register!("holdfast_runs_in_flight", metrics.in_flight);
        register!("holdfast_run_iterations_total", metrics.iterations);
        register!("holdfast_run_tokens_total", metrics.tokens);
        register!("holdfast_model_requests_total", metrics.requests);
        register!("holdfast_model_request_duration_ms", metrics.durations);
        register!("holdfast_model_failovers_total", metrics.failovers);
        metrics
    }

    pub(super) fn observe(&self, event: &RunEvent<'_>) {
        match *event {
            RunEvent::Begun => {
                self.begun.inc();
                self.in_flight.inc();
            }
            RunEvent::Ended { outcome } => {
                self.in_flight.dec();
                self.ended.get_or_create(&OutcomeLabels { outcome }).inc();
            }
            RunEvent::Heard { prompt, completion } => {
                self.iterations.inc();
                for (kind, tokens) in [("prompt", prompt), ("completion", completion)] {
                    self.tokens
                        .get_or_create(&KindLabels { kind })
                        .inc_by(tokens);
                }
            }
            RunEvent::Asked {
                model,
                server,
                outcome,
                duration_ms,
            } => {
                let (model, server) = (self.name(model), self.name(server));
                let labels = ServerLabels {
                    model: model.clone(),
                    server: server.clone(),
                };
                #[expect(
                    clippy::cast_precision_loss,
                    reason = "durations are far below 2^52 ms"
                )]
                let duration_ms = duration_ms as f64;
                self.durations.get_or_create(&labels).observe(duration_ms);
                let labels = RequestLabels {
                    model,
                    server,
                    outcome,
                };
                self.requests.get_or_create(&labels).inc();
            }
            RunEvent::FailedOver { from, to } => {
                let (from, to) = (self.name(from), self.name(to));
                self.failovers
                    .get_or_create(&FailoverLabels { from, to })
                    .inc();
            }
        }
    }

    /// The name itself, as long as there are not too many of them.
    fn name(&self, name: &str) -> String {
        let mut names = self.names.lock();
        if names.len() >= METRIC_MODELS_MAX && !names.contains(name) {
            return "other".to_owned();
        }
        if !names.contains(name) {
            names.insert(name.to_owned());
        }
        name.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::super::metrics::Metrics;
    use super::super::{Event, Observer};
    use super::*;

    #[test]
    fn every_metric_is_on_the_page_and_names_are_few() {
        let metrics = Metrics::new();
        metrics.observe(&Event::Run(RunEvent::Begun));
        metrics.observe(&Event::Run(RunEvent::Begun));
        let outcome = "answered";
        metrics.observe(&Event::Run(RunEvent::Ended { outcome }));
        metrics.observe(&Event::Run(RunEvent::Heard {
            prompt: 30,
            completion: 7,
        }));
        for number in 0..2 * METRIC_MODELS_MAX {
            metrics.observe(&Event::Run(RunEvent::Asked {
                model: "m",
                server: &format!("http://h{number}"),
                outcome,
                duration_ms: 3,
            }));
        }
        metrics.observe(&Event::Run(RunEvent::FailedOver {
            from: "http://h0",
            to: "http://h1",
        }));
        let page = metrics.encode();
        for row in RUN_METRICS {
            assert!(page.contains(row.name), "{} is not on the page", row.name);
        }
        for line in [
            "holdfast_runs_begun_total 2",
            "holdfast_runs_ended_total{outcome=\"answered\"} 1",
            "holdfast_runs_in_flight 1",
            "holdfast_run_iterations_total 1",
            "holdfast_run_tokens_total{kind=\"prompt\"} 30",
            "holdfast_run_tokens_total{kind=\"completion\"} 7",
            "holdfast_model_requests_total{model=\"m\",server=\"http://h0\",outcome=\"answered\"} 1",
            "holdfast_model_failovers_total{from=\"http://h0\",to=\"http://h1\"} 1",
            "holdfast_model_request_duration_ms_count{model=\"m\",server=\"http://h0\"} 1",
        ] {
            assert!(page.contains(line), "{line}: {page}");
        }
        let requests = page
            .lines()
            .filter(|line| line.starts_with("holdfast_model_requests_total{"));
        assert_eq!(requests.count(), METRIC_MODELS_MAX, "the rest is other");
    }
}
