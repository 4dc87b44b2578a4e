//! A store of records that goes away for a while, as Redis does, and whose answers get lost.

use std::sync::Arc;

use futures_util::FutureExt;
use holdfast_contract::Clock;
use holdfast_reliability::idempotency::key::StoredKey;
use holdfast_reliability::idempotency::record::RecordState;
use holdfast_reliability::idempotency::transition::{ClaimRequest, Finalisation, Refused};
use holdfast_reliability::store::conformance::interposed::Interposed;
use holdfast_reliability::store::memory::{MemoryDedupeStore, MemoryLimits};
use holdfast_reliability::store::{Claim, DedupeStore, RecordFilter, StoreError, StoreFuture};
use holdfast_testkit::{SeededEntropy, TokioClock};

/// How many runs of a hundred have a store that goes away.
const VANISHES_PERCENT: u64 = 30;
/// How many answers of a hundred such a store loses after it has done what it was asked.
const LOSES_PERCENT: u64 = 3;
/// How long it is away at most.
const AWAY_MS_MAX: u64 = 90_000;

/// What becomes of one step.
enum Fate {
    Answers,
    /// It is done, and nobody hears of it.
    Lost,
    Away,
}

pub(crate) struct Vanishing {
    store: MemoryDedupeStore,
    clock: Arc<TokioClock>,
    chance: SeededEntropy,
    /// When it is away; none for a store that stays.
    away_ms: Option<std::ops::Range<u64>>,
}

impl Vanishing {
    pub(crate) fn new(seed: u64, clock: Arc<TokioClock>) -> Self {
        let chance = SeededEntropy::new(seed.wrapping_mul(43).wrapping_add(5));
        let away_ms = chance.chance(VANISHES_PERCENT).then(|| {
            let from_ms = clock.now_ms() + chance.below(60_000);
            from_ms..from_ms + chance.below(AWAY_MS_MAX)
        });
        Self {
            store: MemoryDedupeStore::new(clock.clone(), MemoryLimits::default()),
            clock,
            chance,
            away_ms,
        }
    }

    /// Whether it was there all the time.
    pub(crate) fn stays(&self) -> bool {
        self.away_ms.is_none()
    }

    /// Calls that somebody still holds.
    pub(crate) async fn held(&self) -> usize {
        let in_flight = RecordFilter {
            state: Some(RecordState::Inflight),
            ..RecordFilter::default()
        };
        let listed = self.store.list(&in_flight).await;
        listed.map_or(0, |found| found.len())
    }

    fn fate(&self) -> Fate {
        let is_away = |away_ms: &std::ops::Range<u64>| away_ms.contains(&self.clock.now_ms());
        match &self.away_ms {
            Some(away_ms) if is_away(away_ms) => Fate::Away,
            Some(_) if self.chance.chance(LOSES_PERCENT) => Fate::Lost,
            Some(_) | None => Fate::Answers,
        }
    }

    fn carry<'a, T: Send + 'a>(
        &'a self,
        step: impl FnOnce() -> StoreFuture<'a, T> + Send + 'a,
    ) -> StoreFuture<'a, T> {
        let away = || StoreError::Unavailable("away".to_owned());
        async move {
            match self.fate() {
                Fate::Answers => step().await,
                Fate::Lost => step().await.and(Err(away())),
                Fate::Away => Err(away()),
            }
        }
        .boxed()
        .into()
    }
}

impl Interposed for Vanishing {
    fn behind(&self) -> &dyn DedupeStore {
        &self.store
    }

    fn claim<'a>(&'a self, wish: &'a ClaimRequest) -> StoreFuture<'a, Claim> {
        self.carry(move || self.store.claim(wish))
    }

    fn begin<'a>(
        &'a self,
        key: &'a StoredKey,
        owner: &'a str,
        lease_ms: u64,
    ) -> StoreFuture<'a, Result<(), Refused>> {
        self.carry(move || self.store.begin(key, owner, lease_ms))
    }

    fn finalise(&self, last_word: Finalisation) -> StoreFuture<'_, Result<(), Refused>> {
        self.carry(move || self.store.finalise(last_word))
    }

    fn finalise_detached(&self, last_word: Finalisation) {
        if matches!(self.fate(), Fate::Answers) {
            self.store.finalise_detached(last_word);
        }
    }

    fn release<'a>(
        &'a self,
        key: &'a StoredKey,
        owner: &'a str,
    ) -> StoreFuture<'a, Result<(), Refused>> {
        self.carry(move || self.store.release(key, owner))
    }
}
