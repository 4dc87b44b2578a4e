//! Records in memory: bounded in keys and bytes.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use holdfast_contract::Clock;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::bounds::MemoryLimits;
use super::by_key::ByKey;
use crate::idempotency::key::StoredKey;
use crate::idempotency::record::{DedupeRecord, RecordState, SharedRecord};
use crate::idempotency::transition::{
    self, ClaimDecision, ClaimRequest, Finalisation, Holder, Refused,
};
use crate::store::{
    Claim, ClearIf, Cleared, DedupeStore, RecordFilter, StoreError, StoreFuture, StoreResult,
    StoreSize, WaitTicket,
};

/// A record, and what the store has to know of it beside.
struct Kept {
    record: SharedRecord,
    /// What it counts for, so that forgetting it does not have to read it again.
    bytes: usize,
    /// The number of its last use if it may be evicted; [`PINNED`] while it runs or is in doubt.
    used: u64,
    /// Made by the first waiter; most calls have none.
    waiters: Option<Arc<Notify>>,
}

/// Comes before every use that is counted.
const PINNED: u64 = 0;

impl Kept {
    /// Whether the record is still as the one who waits for a change has seen it.
    fn is_awaited(&self, ticket: &WaitTicket) -> bool {
        self.used == PINNED && self.record.version == ticket.version
    }
}

#[derive(Default)]
struct Held {
    records: HashMap<StoredKey, Kept, ByKey>,
    /// The records that may be evicted, by their last use. An entry that is not a record's last
    /// use is passed over, so that a use costs one entry at the end and no search.
    by_use: VecDeque<(StoredKey, u64)>,
    uses: u64,
    newest_by_content: HashMap<StoredKey, StoredKey, ByKey>,
    bytes: usize,
}

/// The records of one process.
pub struct MemoryDedupeStore {
    clock: Arc<dyn Clock>,
    limits: MemoryLimits,
    held: Mutex<Held>,
}

impl Held {
    /// Looks a record up, which counts as a use of it.
    fn find(&mut self, key: &StoredKey) -> Option<SharedRecord> {
        let kept = self.records.get_mut(key)?;
        let record = kept.record.clone();
        if kept.used != PINNED {
            self.uses += 1;
            kept.used = self.uses;
            self.by_use.push_back((*key, self.uses));
            self.forget_outdated_uses();
        }
        Some(record)
    }

    /// Keeps the uses of a record that is asked for again and again from piling up.
    fn forget_outdated_uses(&mut self) {
        if self.by_use.len() > 2 * self.records.len() + 64 {
            let records = &self.records;
            self.by_use
                .retain(|(key, used)| records.get(key).is_some_and(|kept| kept.used == *used));
        }
    }

    fn remove(&mut self, key: &StoredKey) -> Option<SharedRecord> {
        let kept = self.records.remove(key)?;
        self.forget(&kept);
        if let Some(waiters) = kept.waiters {
            waiters.notify_waiters();
        }
        Some(kept.record)
    }

    fn clear(&mut self, key: &StoredKey, when: ClearIf<'_>) -> Cleared {
        match self.records.get(key) {
            None => Cleared::NotThere,
            Some(kept) if !when.fits(&kept.record) => Cleared::Changed,
            Some(_) => {
                self.remove(key);
                Cleared::Forgotten
            }
        }
    }

    fn forget(&mut self, kept: &Kept) {
        self.bytes = self.bytes.saturating_sub(kept.bytes);
        if let Some(content) = kept.record.content_key
            && let Entry::Occupied(newest) = self.newest_by_content.entry(content)
            && *newest.get() == kept.record.key
        {
            newest.remove();
        }
    }

    /// Stores a record in the place of what was there, and wakes those who waited for a change.
    fn put(&mut self, record: SharedRecord) {
        if self.records.contains_key(&record.key) {
            self.remove(&record.key);
        }
        let key = record.key;
        let kept = Kept {
            record,
            bytes: 0,
            used: PINNED,
            waiters: None,
        };
        self.records.insert(key, kept);
        self.settle(&key);
    }

    /// Works out anew what follows from a record that was put or changed in place.
    fn settle(&mut self, key: &StoredKey) {
        let Some(kept) = self.records.get_mut(key) else {
            return;
        };
        let record = &kept.record;
        let bytes = record.approximate_bytes();
        self.bytes = self.bytes.saturating_sub(kept.bytes) + bytes;
        kept.bytes = bytes;
        if let Some(content) = record.content_key {
            // The newest is the one claimed last: an older call that ends late must not hide it.
            let newest = self.newest_by_content.entry(content).or_insert(*key);
            if record.state == RecordState::Inflight {
                *newest = *key;
            }
        }
        kept.used = match record.state {
            RecordState::Inflight | RecordState::Unknown => PINNED,
            RecordState::Done | RecordState::Failed | RecordState::Cancelled => {
                self.uses += 1;
                self.by_use.push_back((*key, self.uses));
                self.uses
            }
        };
        if let Some(waiters) = kept.waiters.take() {
            waiters.notify_waiters();
        }
    }

    /// Takes out the record that was used longest ago, of those that may go.
    fn evict(&mut self) -> bool {
        while let Some((key, used)) = self.by_use.pop_front() {
            if let Entry::Occupied(kept) = self.records.entry(key)
                && kept.get().used == used
            {
                let evicted = kept.remove();
                self.forget(&evicted);
                return true;
            }
        }
        false
    }

    /// Makes room for one more record, oldest use first. Pinned records stay until they expire.
    fn make_room(&mut self, limits: &MemoryLimits, now_ms: u64) -> StoreResult<()> {
        let mut swept = false;
        while self.records.len() >= limits.keys_max || self.bytes >= limits.bytes_max {
            if self.evict() {
                continue;
            }
            if swept {
                return Err(StoreError::Full(format!(
                    "{} records ({} bytes) are in flight or of unknown outcome and none of them may be evicted",
                    self.records.len(),
                    self.bytes
                )));
            }
            swept = true;
            self.sweep(now_ms);
        }
        Ok(())
    }

    /// Forgets what has expired; says how many.
    fn sweep(&mut self, now_ms: u64) -> u64 {
        let doomed: Vec<StoredKey> = self
            .records
            .values()
            .filter(|kept| kept.record.is_forgettable(now_ms))
            .map(|kept| kept.record.key)
            .collect();
        for key in &doomed {
            self.remove(key);
        }
        doomed.len() as u64
    }
}

impl MemoryDedupeStore {
    /// An empty store.
    pub fn new(clock: Arc<dyn Clock>, limits: MemoryLimits) -> Self {
        Self {
            clock,
            limits,
            held: Mutex::default(),
        }
    }

    fn claim_now(&self, wish: &ClaimRequest) -> StoreResult<Claim> {
        let now_ms = self.clock.now_ms();
        let mut held = self.held.lock();
        let existing = held.find(&wish.key);
        let same_content = wish
            .content
            .as_ref()
            .and_then(|lookup| held.newest_by_content.get(&lookup.key).copied())
            .and_then(|key| held.find(&key));
        // Within one process a holder that dies leaves through its drop, so only the lease counts.
        let decision = transition::claim(
            existing.as_deref().map(|record| (record, Holder::MayLive)),
            same_content
                .as_deref()
                .map(|record| (record, Holder::MayLive)),
            wish,
            now_ms,
        );
        Ok(match decision {
            ClaimDecision::Grant {
                record,
                passed_over,
            } => {
                if existing.is_none() {
                    held.make_room(&self.limits, now_ms)?;
                }
                if let Some(passed_over) = passed_over {
                    held.put(passed_over);
                }
                held.put(record);
                Claim::Granted { lifeline: None }
            }
            ClaimDecision::InFlight {
                wait_for,
                version,
                lock_until_ms,
            } => Claim::InFlight {
                ticket: WaitTicket {
                    key: wait_for,
                    version,
                    lock_until_ms,
                },
            },
            ClaimDecision::Ended { record, store } => {
                if store {
                    held.put(record.clone());
                }
                Claim::Ended(record)
            }
            ClaimDecision::Conflict { recorded_digest } => Claim::Conflict { recorded_digest },
        })
    }

    fn finalise_now(&self, last_word: Finalisation) -> Result<(), Refused> {
        let now_ms = self.clock.now_ms();
        let mut held = self.held.lock();
        let kept = held.records.get_mut(&last_word.key).ok_or(Refused::Gone)?;
        transition::may_finalise(Some(&kept.record), &last_word)?;
        let key = last_word.key;
        // A record that nobody else holds is changed in place, not copied.
        transition::take_last_word(Arc::make_mut(&mut kept.record), last_word, now_ms);
        held.settle(&key);
        Ok(())
    }

    /// A renewal or a beginning, by the rule that is given.
    fn go_on(
        &self,
        key: &StoredKey,
        rule: impl FnOnce(Option<&DedupeRecord>, u64) -> Result<DedupeRecord, Refused>,
    ) -> Result<(), Refused> {
        let now_ms = self.clock.now_ms();
        let mut held = self.held.lock();
        let kept = held.records.get_mut(key).ok_or(Refused::Gone)?;
        // No settling: going on is not a change that waiters care about.
        kept.record = Arc::new(rule(Some(&kept.record), now_ms)?);
        Ok(())
    }

    fn restore_now(&self, record: SharedRecord) -> StoreResult<bool> {
        let mut held = self.held.lock();
        if held.find(&record.key).is_some() {
            return Ok(false);
        }
        held.make_room(&self.limits, self.clock.now_ms())?;
        held.put(record);
        Ok(true)
    }

    /// A future that ends when the record has changed, or when its lease may have ended.
    async fn changed_later(&self, ticket: WaitTicket) {
        let notify = {
            let mut held = self.held.lock();
            match held.records.get_mut(&ticket.key) {
                Some(kept) if kept.is_awaited(&ticket) => {
                    kept.waiters.get_or_insert_default().clone()
                }
                _ => return,
            }
        };
        let notified = notify.notified();
        tokio::pin!(notified);
        notified.as_mut().enable();
        // The record may have changed between the lock above and the line before this one.
        let unchanged = {
            let held = self.held.lock();
            held.records
                .get(&ticket.key)
                .is_some_and(|kept| kept.is_awaited(&ticket))
        };
        if !unchanged {
            return;
        }
        let lease_left_ms = ticket
            .lock_until_ms
            .saturating_sub(self.clock.now_ms())
            .max(1);
        // Ending by time is as good as ending by notice: the caller claims again.
        let _ = tokio::time::timeout(Duration::from_millis(lease_left_ms), notified).await;
    }
}

fn fits(record: &DedupeRecord, filter: &RecordFilter) -> bool {
    filter
        .session
        .as_ref()
        .is_none_or(|session| **session == *record.request.session_key)
        && filter
            .tool
            .as_ref()
            .is_none_or(|tool| **tool == *record.tool)
        && filter.state.is_none_or(|state| state == record.state)
        && filter.key_prefix.as_ref().is_none_or(|prefix| {
            record
                .key
                .to_string()
                .starts_with(&prefix.to_ascii_lowercase())
        })
}

impl DedupeStore for MemoryDedupeStore {
    fn claim<'a>(&'a self, wish: &'a ClaimRequest) -> StoreFuture<'a, Claim> {
        StoreFuture::ready(self.claim_now(wish))
    }

    fn changed(&self, ticket: WaitTicket) -> BoxFuture<'_, ()> {
        self.changed_later(ticket).boxed()
    }

    fn renew<'a>(
        &'a self,
        key: &'a StoredKey,
        owner: &'a str,
        lease_ms: u64,
    ) -> StoreFuture<'a, Result<(), Refused>> {
        StoreFuture::ready(Ok(self.go_on(key, |existing, now_ms| {
            transition::renew(existing, owner, lease_ms, now_ms)
        })))
    }

    fn begin<'a>(
        &'a self,
        key: &'a StoredKey,
        owner: &'a str,
        lease_ms: u64,
    ) -> StoreFuture<'a, Result<(), Refused>> {
        StoreFuture::ready(Ok(self.go_on(key, |existing, now_ms| {
            transition::begin(existing, owner, lease_ms, now_ms)
        })))
    }

    fn finalise(&self, last_word: Finalisation) -> StoreFuture<'_, Result<(), Refused>> {
        StoreFuture::ready(Ok(self.finalise_now(last_word)))
    }

    fn finalise_detached(&self, last_word: Finalisation) {
        // Refused means that somebody cleared or took the claim: there is nobody left to tell.
        let _ = self.finalise_now(last_word);
    }

    fn release<'a>(
        &'a self,
        key: &'a StoredKey,
        owner: &'a str,
    ) -> StoreFuture<'a, Result<(), Refused>> {
        let mut held = self.held.lock();
        let existing = held.find(key);
        let released = transition::release(existing.as_deref(), owner);
        if released.is_ok() {
            held.remove(key);
        }
        StoreFuture::ready(Ok(released))
    }

    fn get<'a>(&'a self, key: &'a StoredKey) -> StoreFuture<'a, Option<SharedRecord>> {
        StoreFuture::ready(Ok(self.held.lock().find(key)))
    }

    fn list<'a>(&'a self, filter: &'a RecordFilter) -> StoreFuture<'a, Vec<SharedRecord>> {
        let mut found: Vec<SharedRecord> = self
            .held
            .lock()
            .records
            .values()
            .map(|kept| &kept.record)
            .filter(|record| fits(record, filter))
            .cloned()
            .collect();
        found.sort_by(|a, b| {
            b.updated_at_ms
                .cmp(&a.updated_at_ms)
                .then_with(|| a.key.cmp(&b.key))
        });
        found.truncate(filter.limit.unwrap_or(usize::MAX));
        StoreFuture::ready(Ok(found))
    }

    fn clear<'a>(&'a self, key: &'a StoredKey, when: ClearIf<'a>) -> StoreFuture<'a, Cleared> {
        StoreFuture::ready(Ok(self.held.lock().clear(key, when)))
    }

    fn flush<'a>(&'a self, filter: &'a RecordFilter) -> StoreFuture<'a, u64> {
        let mut held = self.held.lock();
        let doomed: Vec<StoredKey> = held
            .records
            .values()
            .map(|kept| &kept.record)
            .filter(|record| record.state != RecordState::Inflight && fits(record, filter))
            .take(filter.limit.unwrap_or(usize::MAX))
            .map(|record| record.key)
            .collect();
        for key in &doomed {
            held.remove(key);
        }
        StoreFuture::ready(Ok(doomed.len() as u64))
    }

    fn restore(&self, record: SharedRecord) -> StoreFuture<'_, bool> {
        StoreFuture::ready(self.restore_now(record))
    }

    fn sweep(&self) -> StoreFuture<'_, u64> {
        let now_ms = self.clock.now_ms();
        StoreFuture::ready(Ok(self.held.lock().sweep(now_ms)))
    }

    fn size(&self) -> StoreFuture<'_, StoreSize> {
        let held = self.held.lock();
        let in_flight = held
            .records
            .values()
            // Asked for the cheap reason first: most records have ended.
            .filter(|kept| kept.used == PINNED && kept.record.state == RecordState::Inflight)
            .count();
        StoreFuture::ready(Ok(StoreSize {
            records: held.records.len() as u64,
            bytes: held.bytes as u64,
            in_flight: in_flight as u64,
        }))
    }
}
