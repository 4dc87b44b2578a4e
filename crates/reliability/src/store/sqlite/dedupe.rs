//! Records of intents: the rules of [`transition`], each inside one transaction.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use holdfast_contract::Lifeline;

use super::errors::StepResult;
use super::locks::Lock;
use super::rows::{self, Row};
use super::usage;
use super::waiters;
use super::writer::{ClosureOp, Durability, Step};
use super::{Shared, SqliteOptions, SqliteState};
use crate::idempotency::key::StoredKey;
use crate::idempotency::record::{DedupeRecord, RecordState, SharedRecord};
use crate::idempotency::transition::{
    self, ClaimDecision, ClaimRequest, Finalisation, Holder, Refused,
};
use crate::store::{
    Claim, ClearIf, Cleared, DedupeStore, Listing, RecordFilter, StoreError, StoreFuture,
    StoreResult, StoreSize, WaitTicket,
};

/// Expired records forgotten in one transaction, so that a sweep does not hold claims up.
const SWEEP_STEP_RECORDS: usize = 1_000;

/// A claim that was granted and not yet handed over.
///
/// The caller may go away while its claim is being committed. Nothing has run then, so the claim
/// is taken back instead of blocking the key until its lease ends.
struct Grant {
    shared: Arc<Shared>,
    key: StoredKey,
    owner: Arc<str>,
    lifeline: Option<Lifeline>,
}

impl Grant {
    fn accept(mut self) -> Claim {
        Claim::Granted {
            lifeline: self.lifeline.take(),
        }
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        let committed = self.shared.locks.holds(&self.key, &self.owner);
        if self.lifeline.is_some() && committed {
            release_detached(&self.shared, self.key, self.owner.clone());
        }
    }
}

/// A lock on its way into the care of the store, which it reaches only with the commit.
struct Uncommitted {
    shared: Arc<Shared>,
    lock: Option<Lock>,
}

impl Uncommitted {
    fn keep(mut self, key: StoredKey, owner: Arc<str>) {
        if let Some(lock) = self.lock.take() {
            self.shared.locks.keep(key, owner, lock);
        }
    }
}

impl Drop for Uncommitted {
    fn drop(&mut self) {
        if let Some(lock) = self.lock.take() {
            self.shared.locks.give_back(lock);
        }
    }
}

enum Answer {
    Granted(Grant),
    Other(Claim),
}

fn claim(shared: &Arc<Shared>, step: &mut Step<'_>, wish: &ClaimRequest) -> StepResult<Answer> {
    let existing = rows::find_row(step.conn, &wish.key)?;
    let same_content = match &wish.content {
        Some(lookup) => rows::find_same_content(step.conn, lookup, &wish.key, step.now_ms)?,
        None => None,
    };
    let decision = transition::claim(
        existing
            .as_ref()
            .map(|row| (&row.record, holder(shared, row))),
        same_content
            .as_ref()
            .map(|row| (&row.record, holder(shared, row))),
        wish,
        step.now_ms,
    );
    Ok(match decision {
        ClaimDecision::Grant {
            record,
            passed_over,
        } => {
            if existing.is_none() {
                make_room(step, &shared.options)?;
            }
            if let Some(passed_over) = passed_over {
                put_and_wake(shared, step, same_content.as_ref(), &passed_over)?;
            }
            Answer::Granted(grant(shared, step, existing.as_ref(), &record)?)
        }
        ClaimDecision::InFlight {
            wait_for,
            version,
            lock_until_ms,
        } => {
            let ticket = WaitTicket {
                key: wait_for,
                version,
                lock_until_ms,
            };
            Answer::Other(Claim::InFlight { ticket })
        }
        ClaimDecision::Ended { record, store } => {
            if store {
                let before = [&existing, &same_content]
                    .into_iter()
                    .flatten()
                    .find(|row| row.record.key == record.key);
                put_and_wake(shared, step, before, &record)?;
            }
            Answer::Other(Claim::Ended(record))
        }
        ClaimDecision::Conflict { recorded_digest } => {
            Answer::Other(Claim::Conflict { recorded_digest })
        }
    })
}

/// Only the holder of a running call is worth asking the operating system about.
fn holder(shared: &Shared, row: &Row) -> Holder {
    match row.record.state {
        RecordState::Inflight => {
            let record = &row.record;
            shared
                .locks
                .holder(&record.key, &record.owner, row.lock_file.as_deref())
        }
        _ => Holder::MayLive,
    }
}

/// Locks before it stores: whoever sees the record must find its holder alive.
fn grant(
    shared: &Arc<Shared>,
    step: &mut Step<'_>,
    before: Option<&Row>,
    record: &DedupeRecord,
) -> StepResult<Grant> {
    let lock = shared.locks.acquire()?;
    let name = lock.name.clone();
    let grant = Grant {
        shared: shared.clone(),
        key: record.key,
        owner: record.owner.clone(),
        lifeline: Some(lock.lifeline.clone()),
    };
    let uncommitted = Uncommitted {
        shared: shared.clone(),
        lock: Some(lock),
    };
    rows::put(step, before, record, Some(&name))?;
    let (owner, key) = (record.owner.clone(), record.key);
    step.after_commit(move || {
        uncommitted.shared.waiters.wake(&key);
        uncommitted.keep(key, owner);
    });
    Ok(grant)
}

fn put_and_wake(
    shared: &Arc<Shared>,
    step: &mut Step<'_>,
    before: Option<&Row>,
    record: &DedupeRecord,
) -> StepResult<()> {
    rows::put(step, before, record, None)?;
    wake_later(shared, step, record.key);
    Ok(())
}

fn wake_later(shared: &Arc<Shared>, step: &mut Step<'_>, key: StoredKey) {
    let shared = shared.clone();
    step.after_commit(move || shared.waiters.wake(&key));
}

/// The holder has had its last word, taken or not.
fn let_go_later(shared: &Arc<Shared>, step: &mut Step<'_>, key: StoredKey, owner: &Arc<str>) {
    let (shared, owner) = (shared.clone(), owner.clone());
    step.after_commit(move || shared.locks.let_go(key, owner));
}

/// Makes room for one more record: what has expired first, then what ended longest ago.
fn make_room(step: &Step<'_>, options: &SqliteOptions) -> StepResult<()> {
    let mut swept = false;
    loop {
        let StoreSize { records, bytes, .. } = step.usage.now(step.conn)?;
        if records < options.keys_max && bytes < options.bytes_max {
            return Ok(());
        }
        if !swept {
            swept = true;
            rows::sweep(step, SWEEP_STEP_RECORDS)?;
        } else if !rows::evict_oldest(step)? {
            return Err(StoreError::Full(format!(
                "{records} records ({bytes} bytes) are in flight or of unknown outcome and none of \
                 them may be evicted"
            ))
            .into());
        }
    }
}

/// A renewal or a beginning, by the rule that is given.
fn go_on(
    step: &Step<'_>,
    key: &StoredKey,
    rule: impl FnOnce(Option<&DedupeRecord>, u64) -> Result<DedupeRecord, Refused>,
) -> StepResult<Result<(), Refused>> {
    let existing = rows::find_row(step.conn, key)?;
    let before = existing.as_ref();
    let decision = rule(before.map(|row| &row.record), step.now_ms);
    if let Ok(record) = &decision {
        rows::put(step, before, record, None)?;
    }
    Ok(decision.map(|_| ()))
}

fn finalise(
    shared: &Arc<Shared>,
    step: &mut Step<'_>,
    last_word: &Finalisation,
) -> StepResult<Result<(), Refused>> {
    let existing = rows::find_row(step.conn, &last_word.key)?;
    let decision = transition::finalise(
        existing.as_ref().map(|row| &row.record),
        last_word,
        step.now_ms,
    );
    if let Ok(record) = &decision {
        put_and_wake(shared, step, existing.as_ref(), record)?;
    }
    let_go_later(shared, step, last_word.key, &last_word.owner);
    Ok(decision.map(|_| ()))
}

fn release(
    shared: &Arc<Shared>,
    step: &mut Step<'_>,
    key: StoredKey,
    owner: &Arc<str>,
) -> StepResult<Result<(), Refused>> {
    let existing = rows::find_row(step.conn, &key)?;
    let decision = transition::release(existing.as_ref().map(|row| &row.record), owner);
    if let (Ok(()), Some(row)) = (&decision, &existing) {
        rows::remove_row(step, row)?;
        wake_later(shared, step, key);
    }
    let_go_later(shared, step, key, owner);
    Ok(decision)
}

fn release_detached(shared: &Arc<Shared>, key: StoredKey, owner: Arc<str>) {
    let for_step = shared.clone();
    let op = ClosureOp::new(
        Durability::Synced,
        move |step: &mut Step<'_>| release(&for_step, step, key, &owner),
        None,
    );
    // Refused only at shutdown or beyond the bound: the record is then unknown, which is safe.
    let _ = shared.queue.push_detached(Box::new(op));
}

impl SqliteState {
    /// Whether the record is of a call whose process is gone, so that the next one who asks for it
    /// is told that its outcome is unknown.
    pub async fn is_abandoned(&self, key: StoredKey) -> StoreResult<bool> {
        let row = self.read(move |conn| rows::find_row(conn, &key)).await?;
        let now_ms = self.shared.clock.now_ms();
        Ok(row.is_some_and(|row| {
            row.record.state == RecordState::Inflight
                && transition::is_lost(&row.record, holder(&self.shared, &row), now_ms)
        }))
    }

    async fn sweep_all(&self) -> StoreResult<u64> {
        let mut total = 0;
        loop {
            let step = self
                .write(Durability::Relaxed, |step| {
                    rows::sweep(step, SWEEP_STEP_RECORDS)
                })
                .await?;
            total += step;
            if step < SWEEP_STEP_RECORDS as u64 {
                break;
            }
        }
        let shared = self.shared.clone();
        self.read(move |_| Ok(shared.locks.sweep()?)).await?;
        Ok(total)
    }
}

impl DedupeStore for SqliteState {
    fn claim<'a>(&'a self, wish: &'a ClaimRequest) -> StoreFuture<'a, Claim> {
        let (shared, wish) = (self.shared.clone(), wish.clone());
        async move {
            let answer = self
                .write(Durability::Synced, move |step| claim(&shared, step, &wish))
                .await?;
            Ok(match answer {
                Answer::Granted(grant) => grant.accept(),
                Answer::Other(claim) => claim,
            })
        }
        .boxed()
        .into()
    }

    fn changed(&self, ticket: WaitTicket) -> BoxFuture<'_, ()> {
        waiters::changed(&self.shared, ticket).boxed()
    }

    fn renew<'a>(
        &'a self,
        key: &'a StoredKey,
        owner: &'a str,
        lease_ms: u64,
    ) -> StoreFuture<'a, Result<(), Refused>> {
        let (key, owner) = (*key, owner.to_owned());
        // A lease that a power cut takes back belonged to a holder that is gone as well.
        self.write(Durability::Relaxed, move |step| {
            go_on(step, &key, |existing, now_ms| {
                transition::renew(existing, &owner, lease_ms, now_ms)
            })
        })
        .boxed()
        .into()
    }

    fn begin<'a>(
        &'a self,
        key: &'a StoredKey,
        owner: &'a str,
        lease_ms: u64,
    ) -> StoreFuture<'a, Result<(), Refused>> {
        let (key, owner) = (*key, owner.to_owned());
        // As durable as a claim: after a power cut nobody may take the call for one that waits.
        self.write(Durability::Synced, move |step| {
            go_on(step, &key, |existing, now_ms| {
                transition::begin(existing, &owner, lease_ms, now_ms)
            })
        })
        .boxed()
        .into()
    }

    fn finalise(&self, last_word: Finalisation) -> StoreFuture<'_, Result<(), Refused>> {
        let shared = self.shared.clone();
        self.write(Durability::Synced, move |step| {
            finalise(&shared, step, &last_word)
        })
        .boxed()
        .into()
    }

    fn finalise_detached(&self, last_word: Finalisation) {
        let shared = self.shared.clone();
        self.write_detached(Durability::Synced, move |step| {
            finalise(&shared, step, &last_word)
        });
    }

    fn release<'a>(
        &'a self,
        key: &'a StoredKey,
        owner: &'a str,
    ) -> StoreFuture<'a, Result<(), Refused>> {
        let (shared, key, owner) = (self.shared.clone(), *key, Arc::from(owner));
        self.write(Durability::Synced, move |step| {
            release(&shared, step, key, &owner)
        })
        .boxed()
        .into()
    }

    fn get<'a>(&'a self, key: &'a StoredKey) -> StoreFuture<'a, Option<SharedRecord>> {
        let key = *key;
        self.read(move |conn| Ok(rows::find(conn, &key)?.map(Arc::new)))
            .boxed()
            .into()
    }

    fn list<'a>(&'a self, filter: &'a RecordFilter) -> StoreFuture<'a, Vec<SharedRecord>> {
        async move { Ok(self.listing(filter).await?.records) }
            .boxed()
            .into()
    }

    fn listing<'a>(&'a self, filter: &'a RecordFilter) -> StoreFuture<'a, Listing> {
        let filter = filter.clone();
        self.read(move |conn| rows::list(conn, &filter))
            .boxed()
            .into()
    }

    fn given<'a>(&'a self, caller_key: &'a str, limit: usize) -> StoreFuture<'a, Listing> {
        let caller_key = caller_key.to_owned();
        self.read(move |conn| rows::given(conn, &caller_key, limit))
            .boxed()
            .into()
    }

    fn clear<'a>(&'a self, key: &'a StoredKey, when: ClearIf<'a>) -> StoreFuture<'a, Cleared> {
        let (shared, key) = (self.shared.clone(), *key);
        let seen = match when {
            ClearIf::There => None,
            ClearIf::Unchanged(seen) => Some((seen.owner.clone(), seen.version)),
        };
        self.write(Durability::Synced, move |step| {
            let cleared = rows::clear(step, &key, seen.as_ref())?;
            wake_later(&shared, step, key);
            Ok(cleared)
        })
        .boxed()
        .into()
    }

    fn flush<'a>(&'a self, filter: &'a RecordFilter) -> StoreFuture<'a, u64> {
        let filter = filter.clone();
        self.write(Durability::Synced, move |step| rows::flush(step, &filter))
            .boxed()
            .into()
    }

    fn restore(&self, record: SharedRecord) -> StoreFuture<'_, bool> {
        let shared = self.shared.clone();
        self.write(Durability::Synced, move |step| {
            if rows::find_row(step.conn, &record.key)?.is_some() {
                return Ok(false);
            }
            make_room(step, &shared.options)?;
            rows::put(step, None, &record, None)?;
            Ok(true)
        })
        .boxed()
        .into()
    }

    fn sweep(&self) -> StoreFuture<'_, u64> {
        self.sweep_all().boxed().into()
    }

    fn size(&self) -> StoreFuture<'_, StoreSize> {
        self.read(usage::stored).boxed().into()
    }
}
