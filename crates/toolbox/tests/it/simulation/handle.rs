//! One process's way to a store: slow, lossy, and dead when the process is.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use holdfast_reliability::idempotency::key::StoredKey;
use holdfast_reliability::idempotency::record::{RecordState, SharedRecord};
use holdfast_reliability::idempotency::transition::{ClaimRequest, Finalisation, Refused};
use holdfast_reliability::store::{
    Claim, ClearIf, Cleared, DedupeStore, RecordFilter, StoreError, StoreFuture, StoreResult,
    StoreSize, WaitTicket,
};
use holdfast_testkit::SeededEntropy;

use super::ledger::Ledger;
use super::process::Process;

/// The line between a process and a store.
pub(crate) struct Line {
    pub(crate) process: Arc<Process>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) dice: Arc<SeededEntropy>,
}

impl Line {
    /// Carries one operation out. A caller that goes away in between has sent its request or has
    /// not; one whose answer is lost never learns that it was applied.
    pub(crate) async fn carry<T>(
        &self,
        what: &'static str,
        apply: impl FnOnce() -> T,
    ) -> StoreResult<T> {
        self.travel().await;
        if self.process.is_cut_off() || self.dice.chance(self.process.faults.fails) {
            self.note(what, "failed");
            return Err(self.trouble());
        }
        let answer = apply();
        self.note(what, "applied");
        self.travel().await;
        if self.dice.chance(self.process.faults.answer_lost) {
            self.note(what, "answer lost");
            return Err(StoreError::Unavailable("the answer was lost".to_owned()));
        }
        Ok(answer)
    }

    async fn travel(&self) {
        if self.process.is_dead() {
            std::future::pending::<()>().await;
        }
        if self.dice.chance(self.process.faults.slow) {
            let ms = self.dice.below(self.process.faults.slow_ms_max + 1);
            tokio::time::sleep(Duration::from_millis(ms)).await;
        }
    }

    fn trouble(&self) -> StoreError {
        if self.dice.chance(30) {
            StoreError::Full("no room".to_owned())
        } else {
            StoreError::Unavailable("away".to_owned())
        }
    }

    fn note(&self, what: &'static str, how: &'static str) {
        let process = self.process.number;
        self.ledger.trace.note(what, process, how.len() as u64, || {
            format!("by process {process}: {how}")
        });
    }
}

/// A process's handle on a store of records.
pub(crate) struct Handle {
    pub(crate) line: Line,
    pub(crate) store: Arc<dyn DedupeStore>,
}

impl Handle {
    /// Whoever is granted what another was lost with has given up on that one.
    fn give_up_on_others(&self, wish: &ClaimRequest) {
        let Some(lookup) = &wish.content else { return };
        let records = at_once(self.store.list(&RecordFilter::default()));
        for record in records.unwrap_or_default() {
            let is_doubted = record.state == RecordState::Unknown;
            if is_doubted && record.content_key == Some(lookup.key) {
                self.line.ledger.give_up_on(&record.owner);
            }
        }
    }

    /// What became of a renewal or a beginning.
    fn heard(
        &self,
        owner: &str,
        lease_ms: u64,
        went: StoreResult<Result<(), Refused>>,
    ) -> StoreResult<Result<(), Refused>> {
        if matches!(went, Ok(Ok(()))) {
            self.line.ledger.lives(owner, lease_ms);
        }
        went
    }
}

/// The stores below answer at once; everything that takes time is the line's doing.
pub(crate) fn at_once<T>(future: impl Future<Output = T>) -> T {
    future.now_or_never().expect("memory stores answer at once")
}

impl DedupeStore for Handle {
    fn claim<'a>(&'a self, wish: &'a ClaimRequest) -> StoreFuture<'a, Claim> {
        let apply = move || {
            let delivery = self.line.ledger.asked(wish);
            let claim = at_once(self.store.claim(wish));
            if matches!(claim, Ok(Claim::Granted { .. })) {
                let ledger = &self.line.ledger;
                ledger.world.hold(delivery, wish.key.to_string());
                ledger.lives(&wish.owner, wish.lifetimes.lease_ms);
                self.give_up_on_others(wish);
            }
            if let Ok(Claim::Ended(record)) = &claim
                && record.state == RecordState::Unknown
            {
                self.line.ledger.give_up_on(&record.owner);
                self.line.ledger.judge_doubt(wish, record);
            }
            let kind = match &claim {
                Ok(Claim::Granted { .. }) => "granted",
                Ok(Claim::InFlight { .. }) => "in flight",
                Ok(Claim::Ended(record)) => record.state.as_str(),
                Ok(Claim::Conflict { .. }) => "conflict!",
                Err(_) => "error",
            };
            self.line
                .ledger
                .trace
                .note("claim", delivery, kind.len() as u64, || {
                    format!(
                        "by delivery {delivery} of {}: {kind}",
                        wish.key.fingerprint()
                    )
                });
            claim
        };
        async move { self.line.carry("claim", apply).await? }
            .boxed()
            .into()
    }

    fn changed(&self, ticket: WaitTicket) -> BoxFuture<'_, ()> {
        async {
            // A wake-up may come for nothing, and may come late.
            if !self.line.dice.chance(5) {
                self.store.changed(ticket).await;
            }
            self.line.travel().await;
        }
        .boxed()
    }

    fn renew<'a>(
        &'a self,
        key: &'a StoredKey,
        owner: &'a str,
        lease_ms: u64,
    ) -> StoreFuture<'a, Result<(), Refused>> {
        async move {
            if self
                .line
                .dice
                .chance(self.line.process.faults.renewal_hangs)
            {
                self.line.note("renew", "hangs");
                std::future::pending::<()>().await;
            }
            let apply = || {
                let renewed = at_once(self.store.renew(key, owner, lease_ms));
                self.heard(owner, lease_ms, renewed)
            };
            self.line.carry("renew", apply).await?
        }
        .boxed()
        .into()
    }

    fn begin<'a>(
        &'a self,
        key: &'a StoredKey,
        owner: &'a str,
        lease_ms: u64,
    ) -> StoreFuture<'a, Result<(), Refused>> {
        async move {
            let apply = || {
                let begun = at_once(self.store.begin(key, owner, lease_ms));
                self.heard(owner, lease_ms, begun)
            };
            self.line.carry("begin", apply).await?
        }
        .boxed()
        .into()
    }

    fn finalise(&self, last_word: Finalisation) -> StoreFuture<'_, Result<(), Refused>> {
        async move {
            self.line.ledger.judge_last_word(&last_word);
            let apply = || {
                let taken = at_once(self.store.finalise(last_word.clone()));
                self.heard(&last_word.owner, 0, taken)
            };
            let answer = self.line.carry("finalise", apply).await?;
            if matches!(answer, Ok(Ok(()))) {
                self.line.ledger.acknowledge(&last_word);
            }
            answer
        }
        .boxed()
        .into()
    }

    fn finalise_detached(&self, last_word: Finalisation) {
        let (line, ledger) = (&self.line, &self.line.ledger);
        if line.process.is_dead() {
            return;
        }
        ledger.judge_last_word(&last_word);
        ledger.last_word_lost(&last_word.owner);
        if line.process.is_cut_off() || line.dice.chance(line.process.faults.drop_lost) {
            line.note("last word", "lost");
            return;
        }
        let (store, ledger) = (self.store.clone(), ledger.clone());
        let apply = move || {
            ledger.last_word_heard(&last_word.owner);
            ledger.lives(&last_word.owner, 0);
            store.finalise_detached(last_word);
        };
        if line.dice.chance(line.process.faults.slow) {
            let ms = line.dice.below(line.process.faults.slow_ms_max + 1);
            line.note("last word", "under way");
            drop(line.process.spawn(async move {
                tokio::time::sleep(Duration::from_millis(ms)).await;
                apply();
            }));
        } else {
            line.note("last word", "taken");
            apply();
        }
    }

    fn release<'a>(
        &'a self,
        key: &'a StoredKey,
        owner: &'a str,
    ) -> StoreFuture<'a, Result<(), Refused>> {
        async move {
            if let Some(delivery) = self.line.ledger.delivery_behind(owner) {
                self.line.ledger.judge_no_effect(delivery, "released");
            }
            let apply = || at_once(self.store.release(key, owner));
            self.line.carry("release", apply).await?
        }
        .boxed()
        .into()
    }

    fn get<'a>(&'a self, key: &'a StoredKey) -> StoreFuture<'a, Option<SharedRecord>> {
        async {
            self.line
                .carry("get", || at_once(self.store.get(key)))
                .await?
        }
        .boxed()
        .into()
    }

    fn list<'a>(&'a self, filter: &'a RecordFilter) -> StoreFuture<'a, Vec<SharedRecord>> {
        self.store.list(filter)
    }

    fn clear<'a>(&'a self, key: &'a StoredKey, when: ClearIf<'a>) -> StoreFuture<'a, Cleared> {
        async move {
            self.line
                .carry("clear", || at_once(self.store.clear(key, when)))
                .await?
        }
        .boxed()
        .into()
    }

    fn flush<'a>(&'a self, filter: &'a RecordFilter) -> StoreFuture<'a, u64> {
        self.store.flush(filter)
    }

    fn restore(&self, record: SharedRecord) -> StoreFuture<'_, bool> {
        self.store.restore(record)
    }

    fn sweep(&self) -> StoreFuture<'_, u64> {
        self.store.sweep()
    }

    fn size(&self) -> StoreFuture<'_, StoreSize> {
        self.store.size()
    }
}
