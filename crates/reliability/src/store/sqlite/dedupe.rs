//! Records of intents: the rules of [`transition`], each inside one transaction.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use holdfast_contract::Lifeline;
use rusqlite::Connection;

use super::errors::StepResult;
use super::rows;
use super::waiters;
use super::writer::{ClosureOp, Durability, Step};
use super::{Shared, SqliteOptions, SqliteState};
use crate::idempotency::key::StoredKey;
use crate::idempotency::record::{DedupeRecord, RecordState, SharedRecord};
use crate::idempotency::transition::{
    self, ClaimDecision, ClaimRequest, Finalisation, Holder, Refused,
};
use crate::store::{
    Claim, DedupeStore, RecordFilter, StoreError, StoreFuture, StoreResult, StoreSize, WaitTicket,
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
    owner: String,
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
        let Some(lifeline) = self.lifeline.take() else {
            return;
        };
        if self.shared.locks.holds(&self.owner) {
            release_detached(&self.shared, self.key, std::mem::take(&mut self.owner));
        } else {
            // It was never committed.
            self.shared.locks.remove(&self.owner, &lifeline);
        }
    }
}

enum Answer {
    Granted(Grant),
    Other(Claim),
}

fn claim(shared: &Arc<Shared>, step: &mut Step<'_>, wish: &ClaimRequest) -> StepResult<Answer> {
    let existing = rows::find(step.conn, &wish.key)?;
    let same_content = match &wish.content {
        Some(lookup) => rows::find_same_content(step.conn, &lookup.key, &wish.key)?,
        None => None,
    };
    let decision = transition::claim(
        existing
            .as_ref()
            .map(|record| (record, holder(shared, record))),
        same_content
            .as_ref()
            .map(|record| (record, holder(shared, record))),
        wish,
        step.now_ms,
    );
    Ok(match decision {
        ClaimDecision::Grant { record } => {
            if existing.is_none() {
                make_room(step.conn, &shared.options, step.now_ms)?;
            }
            Answer::Granted(grant(shared, step, &record)?)
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
                put_and_wake(shared, step, &record)?;
            }
            Answer::Other(Claim::Ended(Arc::new(*record)))
        }
        ClaimDecision::Conflict { recorded_digest } => {
            Answer::Other(Claim::Conflict { recorded_digest })
        }
    })
}

/// Only the holder of a running call is worth asking the operating system about.
fn holder(shared: &Shared, record: &DedupeRecord) -> Holder {
    match record.state {
        RecordState::Inflight => shared.locks.holder(&record.owner),
        _ => Holder::MayLive,
    }
}

/// Locks before it stores: whoever sees the record must find its holder alive.
fn grant(shared: &Arc<Shared>, step: &mut Step<'_>, record: &DedupeRecord) -> StepResult<Grant> {
    let lifeline = shared.locks.acquire(&record.owner)?;
    let grant = Grant {
        shared: shared.clone(),
        key: record.key,
        owner: record.owner.clone(),
        lifeline: Some(lifeline.clone()),
    };
    put_and_wake(shared, step, record)?;
    let (shared, owner, key) = (shared.clone(), record.owner.clone(), record.key);
    step.after_commit(move || shared.locks.keep(owner, key, lifeline));
    Ok(grant)
}

fn put_and_wake(
    shared: &Arc<Shared>,
    step: &mut Step<'_>,
    record: &DedupeRecord,
) -> StepResult<()> {
    rows::put(step.conn, record)?;
    wake_later(shared, step, record.key);
    Ok(())
}

fn wake_later(shared: &Arc<Shared>, step: &mut Step<'_>, key: StoredKey) {
    let shared = shared.clone();
    step.after_commit(move || shared.waiters.wake(&key));
}

/// The holder has had its last word, taken or not.
fn let_go_later(shared: &Arc<Shared>, step: &mut Step<'_>, key: StoredKey, owner: &str) {
    let (shared, owner) = (shared.clone(), owner.to_owned());
    step.after_commit(move || shared.locks.let_go(&owner, &key));
}

/// Makes room for one more record: what has expired first, then what ended longest ago.
fn make_room(conn: &Connection, options: &SqliteOptions, now_ms: u64) -> StepResult<()> {
    let mut swept = false;
    loop {
        let (records, bytes) = rows::usage(conn)?;
        if records < options.keys_max && bytes < options.bytes_max {
            return Ok(());
        }
        if !swept {
            swept = true;
            rows::sweep(conn, now_ms, SWEEP_STEP_RECORDS)?;
        } else if !rows::evict_oldest(conn)? {
            return Err(StoreError::Full(format!(
                "{records} records ({bytes} bytes) are in flight or of unknown outcome and none of \
                 them may be evicted"
            ))
            .into());
        }
    }
}

fn finalise(
    shared: &Arc<Shared>,
    step: &mut Step<'_>,
    last_word: &Finalisation,
) -> StepResult<Result<(), Refused>> {
    let existing = rows::find(step.conn, &last_word.key)?;
    let decision = transition::finalise(existing.as_ref(), last_word, step.now_ms);
    if let Ok(record) = &decision {
        put_and_wake(shared, step, record)?;
    }
    let_go_later(shared, step, last_word.key, &last_word.owner);
    Ok(decision.map(|_| ()))
}

fn release(
    shared: &Arc<Shared>,
    step: &mut Step<'_>,
    key: StoredKey,
    owner: &str,
) -> StepResult<Result<(), Refused>> {
    let existing = rows::find(step.conn, &key)?;
    let decision = transition::release(existing.as_ref(), owner);
    if decision.is_ok() {
        rows::remove(step.conn, &key)?;
        wake_later(shared, step, key);
    }
    let_go_later(shared, step, key, owner);
    Ok(decision)
}

fn release_detached(shared: &Arc<Shared>, key: StoredKey, owner: String) {
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
    async fn sweep_all(&self) -> StoreResult<u64> {
        let mut total = 0;
        loop {
            let step = self
                .write(Durability::Relaxed, |step| {
                    rows::sweep(step.conn, step.now_ms, SWEEP_STEP_RECORDS)
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
            let existing = rows::find(step.conn, &key)?;
            let decision = transition::renew(existing.as_ref(), &owner, lease_ms, step.now_ms);
            if let Ok(record) = &decision {
                rows::put(step.conn, record)?;
            }
            Ok(decision.map(|_| ()))
        })
        .boxed()
    }

    fn finalise(&self, last_word: Finalisation) -> StoreFuture<'_, Result<(), Refused>> {
        let shared = self.shared.clone();
        self.write(Durability::Synced, move |step| {
            finalise(&shared, step, &last_word)
        })
        .boxed()
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
        let (shared, key, owner) = (self.shared.clone(), *key, owner.to_owned());
        self.write(Durability::Synced, move |step| {
            release(&shared, step, key, &owner)
        })
        .boxed()
    }

    fn get<'a>(&'a self, key: &'a StoredKey) -> StoreFuture<'a, Option<SharedRecord>> {
        let key = *key;
        self.read(move |conn| Ok(rows::find(conn, &key)?.map(Arc::new)))
            .boxed()
    }

    fn list<'a>(&'a self, filter: &'a RecordFilter) -> StoreFuture<'a, Vec<SharedRecord>> {
        let filter = filter.clone();
        self.read(move |conn| {
            Ok(rows::list(conn, &filter)?
                .into_iter()
                .map(Arc::new)
                .collect())
        })
        .boxed()
    }

    fn clear<'a>(&'a self, key: &'a StoredKey) -> StoreFuture<'a, bool> {
        let (shared, key) = (self.shared.clone(), *key);
        self.write(Durability::Synced, move |step| {
            let removed = rows::remove(step.conn, &key)?;
            wake_later(&shared, step, key);
            Ok(removed)
        })
        .boxed()
    }

    fn flush<'a>(&'a self, filter: &'a RecordFilter) -> StoreFuture<'a, u64> {
        let filter = filter.clone();
        self.write(Durability::Synced, move |step| {
            rows::flush(step.conn, &filter)
        })
        .boxed()
    }

    fn sweep(&self) -> StoreFuture<'_, u64> {
        self.sweep_all().boxed()
    }

    fn size(&self) -> StoreFuture<'_, StoreSize> {
        self.read(rows::size).boxed()
    }
}
