//! Where records and breakers are kept, whichever store the configuration names.

use std::ops::Deref;
use std::sync::Arc;

use holdfast_contract::Clock;
use holdfast_reliability::breaker::BreakerStore;
use holdfast_reliability::config::StoreKind;
use holdfast_reliability::idempotency::key::StoredKey;
use holdfast_reliability::idempotency::record::RecordState;
use holdfast_reliability::store::documents::DocumentStore;
use holdfast_reliability::store::sqlite::SqliteState;
use holdfast_reliability::store::{DedupeStore, StoreResult};

use crate::app::App;

#[cfg(feature = "redis")]
mod shared {
    use std::sync::Arc;
    use std::time::Duration;

    use holdfast_contract::Clock;
    use holdfast_reliability::config::ReliabilityConfig;
    use holdfast_reliability::observe::Event;
    use holdfast_reliability::retry::RetryBudgetPolicy;
    use holdfast_reliability::runtime::Runtime;
    use holdfast_reliability::store::StoreResult;
    use holdfast_reliability::store::redis::options::LAST_WORDS_WAIT_MS_MAX;
    use holdfast_reliability::store::redis::{RedisOptions, RedisState};

    use crate::app::App;

    /// The store that several machines share.
    pub(crate) type Shared = RedisState;

    impl App {
        /// Starts connecting to the shared store.
        pub(crate) fn open_shared(&self) -> StoreResult<Arc<Shared>> {
            let options = RedisOptions::of(&self.config.reliability.store.redis);
            RedisState::open(&options, self.clock.clone())
        }
    }

    /// The clock by which leases in this store end: its own.
    pub(crate) fn clock_of(shared: &Arc<Shared>, _: &Arc<dyn Clock>) -> Arc<dyn Clock> {
        shared.clone()
    }

    /// Waits, within a bound, until the store has what is to be recorded; says how many records it
    /// does not have.
    pub(crate) async fn written_back(shared: &Shared) -> usize {
        if shared.health().write_backs_waiting > 0 {
            crate::output::note("waiting for Redis to take what is still to be recorded");
        }
        let at_most = Duration::from_millis(LAST_WORDS_WAIT_MS_MAX);
        shared.written_back(at_most).await
    }

    /// Tells the observers when the store goes away and comes back, and shares the retry budget and
    /// the rate limits where that is asked for.
    pub(crate) fn attach(shared: &Shared, runtime: &Arc<Runtime>, config: &ReliabilityConfig) {
        let policy = RetryBudgetPolicy::standard().with(&config.retry_budget);
        if let (true, Ok(policy)) = (config.store.redis.share_retry_budget, policy) {
            runtime.share_retries(shared.retry_budget(policy));
        }
        if config.store.redis.share_rate_limits {
            runtime.share_limits(shared.rate_limits());
        }
        let weak = Arc::downgrade(runtime);
        shared.on_health(move |degraded| {
            if let Some(runtime) = weak.upgrade() {
                runtime.tell(&Event::Degraded { degraded });
            }
        });
        let weak = Arc::downgrade(runtime);
        shared.on_given_up(move |error| {
            if let Some(runtime) = weak.upgrade() {
                let what = "finalise";
                runtime.tell(&Event::StoreTrouble { what, error });
            }
        });
    }
}

#[cfg(not(feature = "redis"))]
mod shared {
    use std::sync::Arc;

    use holdfast_contract::Clock;
    use holdfast_reliability::config::ReliabilityConfig;
    use holdfast_reliability::runtime::Runtime;
    use holdfast_reliability::store::unavailable::UnavailableStore;
    use holdfast_reliability::store::{StoreError, StoreResult};

    use crate::app::App;

    /// There is none in this build.
    pub(crate) type Shared = UnavailableStore;

    impl App {
        /// Says that there is none.
        pub(crate) fn open_shared(&self) -> StoreResult<Arc<Shared>> {
            Err(StoreError::Unavailable(
                "this binary was built without Redis: build it with `--features redis`".to_owned(),
            ))
        }
    }

    /// There is no other than ours.
    pub(crate) fn clock_of(_: &Arc<Shared>, ours: &Arc<dyn Clock>) -> Arc<dyn Clock> {
        ours.clone()
    }

    /// There is nothing that waits.
    pub(crate) async fn written_back(_: &Shared) -> usize {
        0
    }

    /// There is nothing to attach.
    pub(crate) fn attach(_: &Shared, _: &Arc<Runtime>, _: &ReliabilityConfig) {}
}

pub(crate) use shared::{Shared, attach, clock_of, written_back};

/// The records and breakers that the commands look at.
pub(crate) struct Records {
    dedupe: Arc<dyn DedupeStore>,
    breakers: Arc<dyn BreakerStore>,
    /// Knows more about holders on this machine.
    local: Option<Arc<SqliteState>>,
    /// The store's own: ours may be far from it.
    clock: Arc<dyn Clock>,
}

impl Records {
    /// The breakers.
    pub(crate) fn breakers(&self) -> &dyn BreakerStore {
        &*self.breakers
    }

    /// Whether the holder of a running call is gone: on this machine the kernel knows, elsewhere
    /// its lease says so.
    pub(crate) async fn is_abandoned(&self, key: StoredKey) -> StoreResult<bool> {
        if let Some(local) = &self.local {
            return local.is_abandoned(key).await;
        }
        let record = self.dedupe.get(&key).await?;
        let now_ms = self.clock.now_ms();
        Ok(record.is_some_and(|record| {
            record.state == RecordState::Inflight && record.lease_has_ended(now_ms)
        }))
    }
}

impl Deref for Records {
    type Target = dyn DedupeStore;

    fn deref(&self) -> &Self::Target {
        &*self.dedupe
    }
}

/// Where documents are kept.
pub(crate) struct Held {
    /// Approvals, rules, runs, sessions and what they have read: for all machines that share a store.
    pub(crate) common: Arc<dyn DocumentStore>,
    /// What belongs to this machine: its audit log.
    pub(crate) local: Arc<dyn DocumentStore>,
}

impl App {
    /// Opens the documents, for commands that look at them and answer.
    pub(crate) fn open_documents(&self) -> StoreResult<Held> {
        let local = self.open_state()?;
        let common: Arc<dyn DocumentStore> = match self.config.reliability.store.kind {
            StoreKind::Redis => self.open_shared()?,
            StoreKind::Sqlite | StoreKind::Memory => local.clone(),
        };
        Ok(Held { common, local })
    }

    /// Opens the store of records that the configuration names.
    pub(crate) fn open_records(&self) -> StoreResult<Records> {
        if self.config.reliability.store.kind == StoreKind::Redis {
            let shared = self.open_shared()?;
            return Ok(Records {
                clock: clock_of(&shared, &self.clock),
                dedupe: shared.clone(),
                breakers: shared,
                local: None,
            });
        }
        let state = self.open_state()?;
        Ok(Records {
            dedupe: state.clone(),
            breakers: state.clone(),
            local: Some(state),
            clock: self.clock.clone(),
        })
    }
}
