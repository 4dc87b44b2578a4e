//! What the HTTP server counts.
//!
//! A registry of its own: a process without a server has none of these, and whoever scrapes a
//! server gets them behind the others.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::metrics::{MetricDoc, Metrics};

/// The reference table.
pub const HTTP_METRICS: &[MetricDoc] = &[
    MetricDoc {
        name: "holdfast_http_requests_total",
        kind: "counter",
        labels: "route, status",
        meaning: "Requests answered; `route` is one of the server's paths or `other`.",
    },
    MetricDoc {
        name: "holdfast_http_refused_total",
        kind: "counter",
        labels: "reason",
        meaning: "Requests and connections refused before anything was done for them.",
    },
    MetricDoc {
        name: "holdfast_http_connections",
        kind: "gauge",
        labels: "",
        meaning: "Open connections.",
    },
    MetricDoc {
        name: "holdfast_http_calls_in_flight",
        kind: "gauge",
        labels: "",
        meaning: "Tool calls being answered.",
    },
];

/// What ends a page of metrics.
const PAGE_END: &str = "# EOF\n";

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RequestLabels {
    route: &'static str,
    status: u16,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RefusedLabels {
    reason: &'static str,
}

/// The metrics of one server.
pub struct HttpMetrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    refused: Family<RefusedLabels, Counter>,
    /// Open connections.
    pub connections: Gauge,
    /// Tool calls being answered.
    pub calls_in_flight: Gauge,
}

impl Default for HttpMetrics {
    fn default() -> Self {
        let mut metrics = Self {
            registry: Registry::default(),
            requests: Family::default(),
            refused: Family::default(),
            connections: Gauge::default(),
            calls_in_flight: Gauge::default(),
        };
        let meaning = |name: &str| {
            let row = HTTP_METRICS.iter().find(|row| row.name == name);
            // The text format ends it with a full stop of its own.
            row.map_or("", |row| row.meaning.trim_end_matches('.'))
        };
        let registry = &mut metrics.registry;
        // The text format adds `_total` to counters by itself.
        registry.register(
            "holdfast_http_requests",
            meaning("holdfast_http_requests_total"),
            metrics.requests.clone(),
        );
        registry.register(
            "holdfast_http_refused",
            meaning("holdfast_http_refused_total"),
            metrics.refused.clone(),
        );
        registry.register(
            "holdfast_http_connections",
            meaning("holdfast_http_connections"),
            metrics.connections.clone(),
        );
        registry.register(
            "holdfast_http_calls_in_flight",
            meaning("holdfast_http_calls_in_flight"),
            metrics.calls_in_flight.clone(),
        );
        metrics
    }
}

impl HttpMetrics {
    /// Counts an answer. Both values come from short lists, so the label sets stay few.
    pub fn count_request(&self, route: &'static str, status: u16) {
        self.requests
            .get_or_create(&RequestLabels { route, status })
            .inc();
    }

    /// Counts a refusal.
    pub fn count_refused(&self, reason: &'static str) {
        self.refused.get_or_create(&RefusedLabels { reason }).inc();
    }

    /// The page that is scraped: what the stack counts, then what the server counts.
    pub fn page(&self, stack: &Metrics) -> String {
        let mut page = stack.encode();
        if page.ends_with(PAGE_END) {
            page.truncate(page.len() - PAGE_END.len());
        }
        // Writing to a string can not fail.
        let _ = encode(&mut page, &self.registry);
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_holds_both_and_ends_once() {
        let http = HttpMetrics::default();
        http.count_request("/health", 200);
        http.count_refused("wrong_token");
        http.connections.inc();
        let page = http.page(&Metrics::new());
        assert_eq!(page.matches("# EOF").count(), 1);
        assert!(page.ends_with(PAGE_END));
        for row in HTTP_METRICS {
            assert!(page.contains(row.name), "{} is not on the page", row.name);
        }
        assert!(
            page.contains("holdfast_http_requests_total{route=\"/health\",status=\"200\"} 1"),
            "{page}"
        );
    }
}
