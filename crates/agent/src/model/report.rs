//! What servers of models tell about being asked, while they are: some of it happens where nobody
//! waits for an answer any more.

use std::fmt;
use std::sync::Arc;

use tokio::time::Instant;

use super::{ModelError, ModelReply};

/// Something that happened between a question and its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Report<'a> {
    /// A server was asked.
    Asked {
        /// The model, as it is configured.
        model: &'a str,
        /// The server, as it is configured.
        server: &'a str,
        /// What came of it, in a word.
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
        /// Why.
        why: &'a ModelError,
    },
}

type Hears = dyn Fn(&Report<'_>) + Send + Sync;

/// Whoever hears of it.
#[derive(Clone, Default)]
pub struct Reports(Option<Arc<Hears>>);

impl Reports {
    /// This one.
    pub fn to(hears: impl Fn(&Report<'_>) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(hears)))
    }

    pub(super) fn tell(&self, report: &Report<'_>) {
        if let Some(hears) = &self.0 {
            hears(report);
        }
    }
}

impl fmt::Debug for Reports {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Reports")
    }
}

/// Who listens is no part of a question.
impl PartialEq for Reports {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// A server that is being asked; told about when this is dropped, whatever came of it.
pub(super) struct Asking<'a> {
    reports: &'a Reports,
    model: &'a str,
    server: &'a str,
    begun: Instant,
    outcome: &'static str,
}

impl<'a> Asking<'a> {
    pub(super) fn new(reports: &'a Reports, model: &'a str, server: &'a str) -> Self {
        Self {
            reports,
            model,
            server,
            begun: Instant::now(),
            outcome: "cut_off",
        }
    }

    pub(super) fn ended(
        mut self,
        answered: Result<ModelReply, ModelError>,
    ) -> Result<ModelReply, ModelError> {
        self.outcome = match &answered {
            Ok(_) => "answered",
            Err(error) => error.word(),
        };
        answered
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let took_ms = self.begun.elapsed().as_millis();
        self.reports.tell(&Report::Asked {
            model: self.model,
            server: self.server,
            outcome: self.outcome,
            duration_ms: u64::try_from(took_ms).unwrap_or(u64::MAX),
        });
    }
}
