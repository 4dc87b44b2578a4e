//! Stands in for the exporter in a build without it.

use std::sync::Arc;

use holdfast_contract::redact::Redactor;
use holdfast_reliability::observe::Observer;
use holdfast_reliability::observe::log::JsonLog;
use holdfast_reliability::observe::metrics::Metrics;

use super::config::OtlpConfig;

/// There are none: a configuration that asks for traces is refused when it is read.
pub(crate) enum Traces {}

impl Traces {
    pub(crate) fn start(
        _config: &OtlpConfig,
        _redactor: Redactor,
        _metrics: Arc<Metrics>,
        _log: Option<Arc<JsonLog>>,
    ) -> Option<Self> {
        None
    }

    pub(crate) fn observer(&self) -> Arc<dyn Observer> {
        match *self {}
    }

    pub(crate) fn finish(&self) {
        match *self {}
    }
}
