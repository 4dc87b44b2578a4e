//! What a server says on standard error, whatever its log: that its Redis is gone, and that it is back.
//! Calls fail meanwhile, and somebody at the terminal should not have to ask why.

use std::sync::Arc;

use holdfast_contract::redact::Redactor;
use holdfast_reliability::observe::log::LineSink;
use holdfast_reliability::observe::queued::QueuedSink;
use holdfast_reliability::observe::{Event, Observer};

use crate::fail::Failure;
use crate::output;

/// Nothing could be said there.
pub(crate) fn unwritable(error: &std::io::Error) -> Failure {
    Failure::failed(format!("standard error can not be written to: {error}"))
}

/// See the [module](self).
pub(crate) struct Loud {
    inner: Arc<dyn Observer>,
    redactor: Redactor,
    /// Standard error may be a pipe that nobody reads.
    stderr: QueuedSink,
}

impl Loud {
    /// Tells another observer everything, and people what they have to know.
    pub(crate) fn new(inner: Arc<dyn Observer>, redactor: Redactor) -> std::io::Result<Self> {
        Ok(Self {
            inner,
            redactor,
            stderr: QueuedSink::start(std::io::stderr())?,
        })
    }

    fn say(&self, text: &str) {
        let line = format!("{}\n", output::harmless_line(text));
        self.stderr.line(line.as_bytes());
    }
}

impl Observer for Loud {
    fn observe(&self, event: &Event<'_>) {
        self.inner.observe(event);
        match event {
            Event::Degraded { degraded: None } => {
                self.say("Redis is back: calls are protected again.");
            }
            Event::Degraded {
                degraded: Some(degraded),
            } => {
                let why = self.redactor.redact_text(&degraded.why);
                self.say(&format!(
                    "Redis can not be used ({why}): calls with effects are refused until it can."
                ));
            }
            _ => {}
        }
    }
}
