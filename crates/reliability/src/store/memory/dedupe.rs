//! Records in memory: bounded in keys and bytes.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use holdfast_contract::Clock;
use lru::LruCache;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::idempotency::key::StoredKey;
use crate::idempotency::record::{DedupeRecord, RecordState, SharedRecord};
use crate::idempotency::transition::{
    self, ClaimDecision, ClaimRequest, Finalisation, Holder, Refused,
};
use crate::store::{
    Claim, DedupeStore, RecordFilter, StoreError, StoreFuture, StoreResult, StoreSize, WaitTicket,
};

/// How much the memory store may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryLimits {
    /// Records.
    pub keys_max: usize,
    /// Bytes, roughly.
    pub bytes_max: usize,
}

/// Default of [`MemoryLimits::keys_max`].
pub const MEMORY_KEYS_MAX: usize = 25_000;
/// Default of [`MemoryLimits::bytes_max`].
pub const MEMORY_BYTES_MAX: usize = 256 * 1024 * 1024;

impl Default for MemoryLimits {
    fn default() -> Self {
        Self {
            keys_max: MEMORY_KEYS_MAX,
            bytes_max: MEMORY_BYTES_MAX,
        }
    }
}

/// A record and the bytes it counts for, so that forgetting it does not have to read it again.
struct Kept {
    record: SharedRecord,
    bytes: usize,
}

/// A record that must not be evicted: running, or of unknown outcome.
struct Pinned {
    kept: Kept,
    /// Made by the first waiter; most calls have none.
    waiters: Option<Arc<Notify>>,
}

/// Stored keys are SHA-256 digests: eight of their bytes are a hash already.
#[derive(Default, Clone, Copy)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        if let Some(first) = bytes.first_chunk() {
            self.0 = u64::from_le_bytes(*first);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

type ByKey = BuildHasherDefault<KeyHasher>;

#[derive(Default)]
struct Held {
    pinned: HashMap<StoredKey, Pinned, ByKey>,
    /// Only as many as may be evicted: `None` until the first record ends.
    ended: Option<LruCache<StoredKey, Kept, ByKey>>,
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
    fn ended(&mut self) -> &mut LruCache<StoredKey, Kept, ByKey> {
        // Bounded by `make_room`, which knows what may be evicted.
        self.ended
            .get_or_insert_with(|| LruCache::unbounded_with_hasher(ByKey::default()))
    }

    fn find(&mut self, key: &StoredKey) -> Option<SharedRecord> {
        match self.pinned.get(key) {
            Some(pinned) => Some(pinned.kept.record.clone()),
            None => Some(self.ended.as_mut()?.get(key)?.record.clone()),
        }
    }

    fn records(&self) -> impl Iterator<Item = &SharedRecord> {
        let ended = self
            .ended
            .iter()
            .flat_map(|ended| ended.iter().map(|(_, kept)| &kept.record));
        self.pinned
            .values()
            .map(|pinned| &pinned.kept.record)
            .chain(ended)
    }

    fn count(&self) -> usize {
        self.pinned.len() + self.ended.as_ref().map_or(0, LruCache::len)
    }

    fn remove(&mut self, key: &StoredKey) -> Option<SharedRecord> {
        let (kept, waiters) = match self.pinned.remove(key) {
            Some(pinned) => (pinned.kept, pinned.waiters),
            None => (self.ended.as_mut()?.pop(key)?, None),
        };
        self.forget(&kept);
        if let Some(waiters) = waiters {
            waiters.notify_waiters();
        }
        Some(kept.record)
    }

    fn forget(&mut self, Kept { record, bytes }: &Kept) {
        self.bytes = self.bytes.saturating_sub(*bytes);
        if let Some(content) = &record.content_key
            && self.newest_by_content.get(content) == Some(&record.key)
        {
            self.newest_by_content.remove(content);
        }
    }

    /// Stores a record in the place of what was there, and wakes those who waited for a change.
    fn put(&mut self, record: SharedRecord) {
        self.remove(&record.key);
        let bytes = record.approximate_bytes();
        self.bytes += bytes;
        if let Some(content) = &record.content_key {
            // The newest is the one claimed last: an older call that ends late must not hide it.
            let newest = self.newest_by_content.entry(*content).or_insert(record.key);
            if record.state == RecordState::Inflight {
                *newest = record.key;
            }
        }
        let key = record.key;
        let is_pinned = matches!(record.state, RecordState::Inflight | RecordState::Unknown);
        let kept = Kept { record, bytes };
        if is_pinned {
            self.pinned.insert(
                key,
                Pinned {
                    kept,
                    waiters: None,
                },
            );
        } else {
            self.ended().put(key, kept);
        }
    }

    /// Makes room for one more record, oldest use first. Pinned records stay until they expire.
    fn make_room(&mut self, limits: &MemoryLimits, now_ms: u64) -> StoreResult<()> {
        let mut swept = false;
        while self.count() >= limits.keys_max || self.bytes >= limits.bytes_max {
            let Some((_, evicted)) = self.ended.as_mut().and_then(LruCache::pop_lru) else {
                if !swept {
                    swept = true;
                    self.sweep(now_ms);
                    continue;
                }
                return Err(StoreError::Full(format!(
                    "{} records ({} bytes) are in flight or of unknown outcome and none of them may be evicted",
                    self.count(),
                    self.bytes
                )));
            };
            self.forget(&evicted);
        }
        Ok(())
    }

    /// Forgets what has expired; says how many.
    fn sweep(&mut self, now_ms: u64) -> u64 {
        let doomed: Vec<StoredKey> = self
            .records()
            .filter(|record| record.is_forgettable(now_ms))
            .map(|record| record.key)
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
            ClaimDecision::Grant { record } => {
                if existing.is_none() {
                    held.make_room(&self.limits, now_ms)?;
                }
                held.put(Arc::new(*record));
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
                let record = Arc::new(*record);
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
        transition::may_finalise(held.find(&last_word.key).as_deref(), &last_word)?;
        // Taken out first: a record that nobody else holds is changed in place, not copied.
        let mut record = held.remove(&last_word.key).ok_or(Refused::Gone)?;
        transition::take_last_word(Arc::make_mut(&mut record), last_word, now_ms);
        held.put(record);
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
        let existing = held.find(key);
        let record = rule(existing.as_deref(), now_ms)?;
        // In place: a renewal is not a change that waiters care about.
        if let Some(pinned) = held.pinned.get_mut(key) {
            pinned.kept.record = Arc::new(record);
        }
        Ok(())
    }

    /// A future that ends when the record has changed, or when its lease may have ended.
    async fn changed_later(&self, ticket: WaitTicket) {
        let notify = {
            let mut held = self.held.lock();
            match held.pinned.get_mut(&ticket.key) {
                Some(pinned) if pinned.kept.record.version == ticket.version => {
                    pinned.waiters.get_or_insert_default().clone()
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
            held.pinned
                .get(&ticket.key)
                .is_some_and(|pinned| pinned.kept.record.version == ticket.version)
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
        .is_none_or(|session| *session == record.request.session_key)
        && filter.tool.as_ref().is_none_or(|tool| *tool == record.tool)
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
            .records()
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

    fn clear<'a>(&'a self, key: &'a StoredKey) -> StoreFuture<'a, bool> {
        StoreFuture::ready(Ok(self.held.lock().remove(key).is_some()))
    }

    fn flush<'a>(&'a self, filter: &'a RecordFilter) -> StoreFuture<'a, u64> {
        let mut held = self.held.lock();
        let doomed: Vec<StoredKey> = held
            .records()
            .filter(|record| record.state != RecordState::Inflight && fits(record, filter))
            .take(filter.limit.unwrap_or(usize::MAX))
            .map(|record| record.key)
            .collect();
        for key in &doomed {
            held.remove(key);
        }
        StoreFuture::ready(Ok(doomed.len() as u64))
    }

    fn sweep(&self) -> StoreFuture<'_, u64> {
        let now_ms = self.clock.now_ms();
        StoreFuture::ready(Ok(self.held.lock().sweep(now_ms)))
    }

    fn size(&self) -> StoreFuture<'_, StoreSize> {
        let held = self.held.lock();
        let in_flight = held
            .pinned
            .values()
            .filter(|pinned| pinned.kept.record.state == RecordState::Inflight)
            .count();
        StoreFuture::ready(Ok(StoreSize {
            records: held.count() as u64,
            bytes: held.bytes as u64,
            in_flight: in_flight as u64,
        }))
    }
}
