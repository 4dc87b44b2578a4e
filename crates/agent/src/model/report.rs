//! What servers of models tell about being asked, while they are: some of it happens where nobody
//! waits for an answer any more.

use std::fmt;
use std::sync::Arc;

use holdfast_reliability::observe::runs::RunEvent;
use tokio::time::Instant;

use super::{ModelError, ModelReply};

/// What is counted, and why it happened where something failed.
type Hears = dyn Fn(RunEvent<'_>, Option<&ModelError>) + Send + Sync;

/// Whoever hears of it.
#[derive(Clone, Default)]
pub struct Reports(Option<Arc<Hears>>);

impl Reports {
    /// This one.
    pub fn to(hears: impl Fn(RunEvent<'_>, Option<&ModelError>) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(hears)))
    }

    pub(super) fn tell(&self, report: RunEvent<'_>, why: Option<&ModelError>) {
        if let Some(hears) = &self.0 {
            hears(report, why);
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
        let asked = RunEvent::Asked {
            model: self.model,
            server: self.server,
            outcome: self.outcome,
            duration_ms: u64::try_from(took_ms).unwrap_or(u64::MAX),
        };
        self.reports.tell(asked, None);
    }
}
