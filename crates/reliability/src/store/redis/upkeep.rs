//! Listing, forgetting and counting, in steps that are too small to hold a server up.
//!
//! The index of a shard is one set. Its members carry the places of session and tool, so a sweep
//! over one session reads no record of another.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use redis::Value;

use super::Shared;
use super::layout::{self, key_of_member, place, unpack};
use super::link::surprise;
use super::options::{CAP_CHECK_ALWAYS_BELOW, CLEARED_MARK_MS_MIN, REDIS_STEP_MAX};
use crate::idempotency::key::StoredKey;
use crate::idempotency::record::{DedupeRecord, RecordState};
use crate::store::{Listing, RecordFilter, StoreResult, StoreSize, UnreadRecord};

/// Records read at once.
const READ_STEP: usize = 64;
/// Records whose size is looked at; the rest is estimated from them.
const SAMPLE_MAX: usize = 512;
/// How often records are counted, to know whether a bound is near.
const COUNT_EVERY: Duration = Duration::from_secs(5);

/// Roughly how many records each shard holds.
pub(super) struct Counts(Vec<AtomicU64>);

impl Counts {
    pub(super) fn new(shards: u16) -> Self {
        // Not counted yet is as good as full.
        Self(
            (0..shards.max(1))
                .map(|_| AtomicU64::new(u64::MAX))
                .collect(),
        )
    }
}

/// Counts now and then, for as long as the store lives.
pub(super) async fn keep_counting(shared: Arc<Shared>) {
    if shared.keys_max_per_shard < CAP_CHECK_ALWAYS_BELOW {
        return;
    }
    loop {
        shared.link.up().await;
        for shard in shared.names.shards() {
            let mut cmd = redis::cmd("SCARD");
            cmd.arg(shared.names.index(shard));
            if let Ok(answer) = shared.link.send(&cmd).await
                && let Ok(count) = number_of(answer, "SCARD")
                && let Some(known) = shared.counts.0.get(usize::from(shard))
            {
                known.store(count, Ordering::Relaxed);
            }
        }
        tokio::time::sleep(COUNT_EVERY).await;
    }
}

/// A member of the index with the head of its record.
struct Found {
    key: StoredKey,
    member: Vec<u8>,
    state: u8,
    updated_at_ms: u64,
}

/// Records as they were read, in no order.
#[derive(Default)]
struct Read {
    records: Vec<DedupeRecord>,
    unread: Vec<UnreadRecord>,
}

impl Read {
    fn add(&mut self, more: Self) {
        self.records.extend(more.records);
        self.unread.extend(more.unread);
    }

    fn newest(mut self, limit: usize) -> Listing {
        self.records.sort_by(|a, b| {
            b.updated_at_ms
                .cmp(&a.updated_at_ms)
                .then_with(|| a.key.cmp(&b.key))
        });
        self.records.truncate(limit);
        self.unread
            .sort_by_key(|unread| std::cmp::Reverse(unread.updated_at_ms));
        self.unread.truncate(limit);
        Listing {
            records: self.records.into_iter().map(Arc::new).collect(),
            unread: self.unread,
        }
    }
}

/// Whether a record is one of those asked for.
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
}

fn number_of(answer: Value, what: &str) -> StoreResult<u64> {
    redis::from_redis_value(answer).map_err(|_| surprise(what))
}

impl Shared {
    /// The bound for a claim to keep to, or 0 while it is far away: counting costs time too.
    pub(super) fn cap_to_check(&self, shard: u16) -> u64 {
        let known = self.counts.0.get(usize::from(shard));
        let count = known.map_or(u64::MAX, |count| count.load(Ordering::Relaxed));
        if count < self.keys_max_per_shard / 2 {
            0
        } else {
            self.keys_max_per_shard
        }
    }

    /// One page of what a filter can be narrowed down to, and where the next begins.
    async fn scan(
        &self,
        shard: u16,
        filter: &RecordFilter,
        cursor: &str,
    ) -> StoreResult<(Vec<Found>, String)> {
        let place_of = |name: &Option<String>| name.as_ref().map(|name| place(name));
        let (session, tool) = (place_of(&filter.session), place_of(&filter.tool));
        let count = REDIS_STEP_MAX.to_string();
        let args: [&[u8]; 4] = [
            cursor.as_bytes(),
            count.as_bytes(),
            session.as_ref().map_or(&[], |place| place),
            tool.as_ref().map_or(&[], |place| place),
        ];
        let index = self.names.index(shard);
        let answer = self.link.eval(&self.scripts.scan, &[&index], &args).await?;
        let (next, parts): (String, Vec<Vec<u8>>) =
            redis::from_redis_value(answer).map_err(|_| surprise("a scan"))?;
        let prefix = filter
            .key_prefix
            .as_ref()
            .map(|prefix| prefix.to_ascii_lowercase());
        let mut found = Vec::with_capacity(parts.len() / 2);
        let mut parts = parts.into_iter();
        while let (Some(member), Some(head)) = (parts.next(), parts.next()) {
            let updated = head.get(18..26).and_then(|bytes| bytes.try_into().ok());
            // A member whose record is gone is for the sweep.
            let (Some(key), Some(updated)) = (key_of_member(&member), updated) else {
                continue;
            };
            let begins = |prefix: &String| key.to_string().starts_with(prefix);
            if prefix.as_ref().is_none_or(begins) {
                found.push(Found {
                    key,
                    member,
                    state: head[0],
                    updated_at_ms: u64::from_le_bytes(updated),
                });
            }
        }
        Ok((found, next))
    }

    /// Reads these records. One that can not be read is told apart and hides no other.
    async fn read(&self, shard: u16, keys: &[StoredKey]) -> StoreResult<Read> {
        let mut read = Read::default();
        for some in keys.chunks(READ_STEP) {
            let mut cmd = redis::cmd("MGET");
            for key in some {
                cmd.arg(self.names.record(shard, key.as_bytes()));
            }
            let values: Vec<Option<Vec<u8>>> = redis::from_redis_value(self.link.send(&cmd).await?)
                .map_err(|_| surprise("MGET"))?;
            for (key, packed) in some.iter().zip(values) {
                let Some(packed) = packed else { continue };
                match unpack(*key, &packed) {
                    Ok(record) => read.records.push(record),
                    Err(why) => read.unread.push(layout::unread(*key, &packed, &why)),
                }
            }
        }
        Ok(read)
    }

    pub(super) async fn list(&self, filter: &RecordFilter) -> StoreResult<Listing> {
        let limit = filter.limit.unwrap_or(usize::MAX);
        let state = filter.state.map(layout::letter);
        let mut all = Read::default();
        for shard in self.names.shards() {
            // By key, because a scan may show a member twice.
            let mut newest: HashMap<StoredKey, u64> = HashMap::new();
            let mut cursor = "0".to_owned();
            loop {
                let (found, next) = self.scan(shard, filter, &cursor).await?;
                let of_state = found
                    .into_iter()
                    .filter(|found| state.is_none_or(|state| state == found.state));
                newest.extend(of_state.map(|found| (found.key, found.updated_at_ms)));
                keep_newest(&mut newest, limit);
                if next == "0" {
                    break;
                }
                cursor = next;
            }
            let keys: Vec<StoredKey> = newest.into_keys().collect();
            let mut read = self.read(shard, &keys).await?;
            read.records.retain(|record| fits(record, filter));
            all.add(read);
        }
        Ok(all.newest(limit))
    }

    /// The newest records with a key that the caller gave, a page of all records at a time.
    pub(super) async fn given(&self, caller_key: &str, limit: usize) -> StoreResult<Listing> {
        let mut all = Read::default();
        for shard in self.names.shards() {
            let mut cursor = "0".to_owned();
            loop {
                let (found, next) = self.scan(shard, &RecordFilter::default(), &cursor).await?;
                for some in found.chunks(READ_STEP) {
                    let keys: Vec<StoredKey> = some.iter().map(|found| found.key).collect();
                    let mut read = self.read(shard, &keys).await?;
                    let is_given = |record: &DedupeRecord| record.idempotency_key == caller_key;
                    read.records.retain(is_given);
                    // Which key they were given can not be read either.
                    read.unread.clear();
                    all.add(read);
                }
                if next == "0" {
                    break;
                }
                cursor = next;
            }
        }
        // A scan may show a member twice.
        all.records.sort_by_key(|record| record.key);
        all.records.dedup_by_key(|record| record.key);
        Ok(all.newest(limit))
    }

    pub(super) async fn flush(&self, filter: &RecordFilter) -> StoreResult<u64> {
        let mut flushed = 0;
        let at_most = filter.limit.unwrap_or(usize::MAX) as u64;
        for shard in self.names.shards() {
            let mut cursor = "0".to_owned();
            loop {
                let (found, next) = self.scan(shard, filter, &cursor).await?;
                flushed += self.forget(shard, filter, found, at_most - flushed).await?;
                if next == "0" || flushed >= at_most {
                    break;
                }
                cursor = next;
            }
        }
        Ok(flushed)
    }

    /// Forgets those of a page that fit by their own word and have ended.
    async fn forget(
        &self,
        shard: u16,
        filter: &RecordFilter,
        found: Vec<Found>,
        at_most: u64,
    ) -> StoreResult<u64> {
        let keys: Vec<StoredKey> = found.iter().map(|found| found.key).collect();
        let fit: Vec<StoredKey> = self
            .read(shard, &keys)
            .await?
            .records
            .into_iter()
            .filter(|record| record.state != RecordState::Inflight && fits(record, filter))
            .map(|record| record.key)
            .take(usize::try_from(at_most).unwrap_or(usize::MAX))
            .collect();
        if fit.is_empty() {
            return Ok(0);
        }
        let mark_ms = CLEARED_MARK_MS_MIN.to_string();
        let members = found
            .iter()
            .filter(|found| fit.contains(&found.key))
            .map(|found| found.member.as_slice());
        let args: Vec<&[u8]> = std::iter::once(mark_ms.as_bytes()).chain(members).collect();
        let index = self.names.index(shard);
        let answer = self
            .link
            .eval(&self.scripts.forget, &[&index], &args)
            .await?;
        number_of(answer, "a flush")
    }

    /// The server drops expired records by itself. A sweep takes them out of the index, so one
    /// process at a time is enough.
    pub(super) async fn sweep(&self) -> StoreResult<u64> {
        if self.sweep_every_ms > 0 {
            let mut cmd = redis::cmd("SET");
            cmd.arg(self.names.single("swept")).arg(1);
            cmd.arg("NX").arg("PX").arg(self.sweep_every_ms);
            if self.link.send(&cmd).await? == Value::Nil {
                return Ok(0);
            }
        }
        let mut forgotten = 0;
        let now_ms = self.link.script_time_ms().to_string();
        let count = REDIS_STEP_MAX.to_string();
        for shard in self.names.shards() {
            let index = self.names.index(shard);
            let mut cursor = "0".to_owned();
            loop {
                let args = [now_ms.as_bytes(), cursor.as_bytes(), count.as_bytes()];
                let answer = self
                    .link
                    .eval(&self.scripts.sweep, &[&index], &args)
                    .await?;
                let (next, gone): (String, u64) =
                    redis::from_redis_value(answer).map_err(|_| surprise("a sweep"))?;
                forgotten += gone;
                if next == "0" {
                    break;
                }
                cursor = next;
            }
        }
        Ok(forgotten)
    }

    /// Records are counted; bytes, and how many run, are estimated where there are many.
    pub(super) async fn size(&self) -> StoreResult<StoreSize> {
        let mut size = StoreSize::default();
        let sample = SAMPLE_MAX.to_string();
        for shard in self.names.shards() {
            let index = self.names.index(shard);
            let answer = self
                .link
                .eval(&self.scripts.sample, &[&index], &[sample.as_bytes()])
                .await?;
            let (records, looked_at, bytes, running): (u64, u64, u64, u64) =
                redis::from_redis_value(answer).map_err(|_| surprise("a count"))?;
            let of_all = |part: u64| part.saturating_mul(records) / looked_at.max(1);
            size.records += records;
            size.bytes += of_all(bytes);
            size.in_flight += of_all(running);
        }
        Ok(size)
    }
}

/// Drops all but the newest, once there are many more than wanted.
fn keep_newest(found: &mut HashMap<StoredKey, u64>, limit: usize) {
    if found.len() <= limit.saturating_mul(2).max(REDIS_STEP_MAX) {
        return;
    }
    let mut by_age: Vec<(StoredKey, u64)> = found.drain().collect();
    by_age.sort_by(|(a_key, a), (b_key, b)| b.cmp(a).then_with(|| a_key.cmp(b_key)));
    by_age.truncate(limit);
    found.extend(by_age);
}
