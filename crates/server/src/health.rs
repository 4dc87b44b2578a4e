//! Whether calls can be protected right now.

use std::sync::Arc;
use std::time::Duration;

use holdfast_contract::Clock;
use holdfast_contract::redact::Redactor;
use holdfast_reliability::idempotency::DedupeStores;
use holdfast_reliability::observe::{Event, Observer};
use holdfast_reliability::store::StoreSize;
use parking_lot::Mutex;
use serde::Serialize;
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::Instant;

use crate::limits::{PROBE_EVERY_MS, PROBE_MS_MAX};

/// Trouble younger than this still counts: a store that answers a question may not take a write.
const RECENT_MS: u64 = 10_000;

/// The last time a store failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Trouble {
    /// When.
    pub at_ms: u64,
    /// What was attempted.
    pub what: &'static str,
    /// Why it failed; redacted.
    pub error: String,
    /// How often something failed since the server started.
    pub count: u64,
    /// Whether the store was away and has come back since.
    #[serde(skip)]
    is_over: bool,
}

/// Notes what goes wrong with the stores; an observer of the stack.
pub struct TroubleWatch {
    clock: Arc<dyn Clock>,
    redactor: Redactor,
    last: Mutex<Option<Trouble>>,
}

impl TroubleWatch {
    /// Nothing went wrong yet.
    pub fn new(clock: Arc<dyn Clock>, redactor: Redactor) -> Self {
        Self {
            clock,
            redactor,
            last: Mutex::default(),
        }
    }

    /// The last trouble, if there was any.
    pub fn last(&self) -> Option<Trouble> {
        self.last.lock().clone()
    }

    fn recent(&self) -> Option<Trouble> {
        let now_ms = self.clock.now_ms();
        self.last()
            .filter(|trouble| !trouble.is_over)
            .filter(|trouble| now_ms.saturating_sub(trouble.at_ms) < RECENT_MS)
    }
}

impl Observer for TroubleWatch {
    fn observe(&self, event: &Event<'_>) {
        match *event {
            Event::StoreTrouble { what, error } => {
                let mut last = self.last.lock();
                let count = last.as_ref().map_or(0, |trouble| trouble.count) + 1;
                *last = Some(Trouble {
                    at_ms: self.clock.now_ms(),
                    what,
                    error: self.redactor.redact_text(&error.to_string()).into_owned(),
                    count,
                    is_over: false,
                });
            }
            Event::Degraded { degraded: None } => {
                if let Some(trouble) = &mut *self.last.lock() {
                    trouble.is_over = true;
                }
            }
            _ => {}
        }
    }
}

/// What a store holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Holds {
    /// Records.
    pub records: u64,
    /// Bytes, as far as the store knows.
    pub bytes: u64,
    /// Records in flight.
    pub in_flight: u64,
}

impl From<StoreSize> for Holds {
    fn from(size: StoreSize) -> Self {
        Self {
            records: size.records,
            bytes: size.bytes,
            in_flight: size.in_flight,
        }
    }
}

/// How the stores are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// What the durable store holds, or why it can not say.
    pub durable: Result<Holds, String>,
    /// What this process's memory holds; nothing when one store is both.
    pub memory: Option<Holds>,
    /// Trouble of the last seconds.
    pub recent: Option<Trouble>,
}

impl Condition {
    /// Why calls may not be protected, if so.
    pub fn degraded(&self) -> Option<String> {
        match (&self.durable, &self.recent) {
            (Err(reason), _) => Some(reason.clone()),
            (Ok(_), Some(trouble)) => Some(format!("{}: {}", trouble.what, trouble.error)),
            (Ok(_), None) => None,
        }
    }
}

/// Asks the stores how they are, not more often than they should be asked.
pub struct Health {
    stores: DedupeStores,
    watch: Arc<TroubleWatch>,
    /// Held while asking, so that a crowd of probes asks once.
    last: AsyncMutex<Option<(Instant, Condition)>>,
}

impl Health {
    /// Of these stores.
    pub fn new(stores: DedupeStores, watch: Arc<TroubleWatch>) -> Self {
        Self {
            stores,
            watch,
            last: AsyncMutex::default(),
        }
    }

    /// What went wrong so far.
    pub fn watch(&self) -> &TroubleWatch {
        &self.watch
    }

    /// How the stores are, at most a moment ago.
    pub async fn condition(&self) -> Condition {
        let mut last = self.last.lock().await;
        if let Some((at, condition)) = &*last
            && at.elapsed() < Duration::from_millis(PROBE_EVERY_MS)
        {
            return condition.clone();
        }
        let condition = self.ask().await;
        *last = Some((Instant::now(), condition.clone()));
        condition
    }

    async fn ask(&self) -> Condition {
        let patience = Duration::from_millis(PROBE_MS_MAX);
        let asked = tokio::time::timeout(patience, self.stores.durable.size()).await;
        let durable = match asked {
            Ok(Ok(size)) => Ok(Holds::from(size)),
            Ok(Err(error)) => Err(self
                .watch
                .redactor
                .redact_text(&error.to_string())
                .into_owned()),
            Err(_) => Err(format!(
                "the record store does not answer within {PROBE_MS_MAX} ms"
            )),
        };
        let memory = if Arc::ptr_eq(&self.stores.durable, &self.stores.memory) {
            None
        } else {
            let asked = tokio::time::timeout(patience, self.stores.memory.size()).await;
            asked.ok().and_then(Result::ok).map(Holds::from)
        };
        Condition {
            durable,
            memory,
            recent: self.watch.recent(),
        }
    }
}

#[cfg(test)]
mod tests {
    use holdfast_reliability::store::{Degraded, StoreError};
    use holdfast_testkit::TokioClock;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn trouble_counts_for_a_while_and_no_longer_once_the_store_is_back() {
        let clock = Arc::new(TokioClock::new());
        let watch = TroubleWatch::new(clock.clone(), Redactor::default());
        let away = StoreError::Unavailable("Redis is away".to_owned());
        let fails = || {
            watch.observe(&Event::StoreTrouble {
                what: "claim",
                error: &away,
            });
        };
        fails();
        assert!(watch.recent().is_some());
        let since = Degraded {
            since_ms: 900,
            why: "away".to_owned(),
        };
        watch.observe(&Event::Degraded {
            degraded: Some(&since),
        });
        assert!(watch.recent().is_some(), "it is away");
        watch.observe(&Event::Degraded { degraded: None });
        assert!(watch.recent().is_none(), "it is back");
        fails();
        assert_eq!(watch.recent().map(|trouble| trouble.count), Some(2));
        clock.jump_ms(RECENT_MS.cast_signed());
        assert!(watch.recent().is_none());
    }
}
