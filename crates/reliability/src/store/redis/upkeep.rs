//! Listing, forgetting and counting, in steps that are too small to hold a server up.

use std::sync::Arc;

use redis::{Cmd, Value};

use super::Shared;
use super::layout::{key_of_member, unpack};
use super::link::surprise;
use super::options::REDIS_STEP_MAX;
use crate::idempotency::key::StoredKey;
use crate::idempotency::record::{DedupeRecord, RecordState, SharedRecord};
use crate::store::{RecordFilter, StoreError, StoreResult, StoreSize};

/// Records read at once.
const READ_STEP: usize = 64;
/// Records whose size is looked at before the rest is estimated from them.
const SAMPLE_MAX: usize = 1_000;
/// Where the classes of the index begin: ended, of unknown outcome, running.
const CLASSES: [(&str, &str); 3] = [("-inf", "(1e15"), ("1e15", "(2e15"), ("2e15", "+inf")];

/// Whether a record is one of those asked for.
fn fits(record: &DedupeRecord, filter: &RecordFilter) -> bool {
    filter
        .session
        .as_ref()
        .is_none_or(|session| *session == record.request.session_key)
        && filter.tool.as_ref().is_none_or(|tool| *tool == record.tool)
        && filter.state.is_none_or(|state| state == record.state)
}

/// One page of members, and where the next begins.
struct Page {
    members: Vec<Vec<u8>>,
    next: Option<u64>,
}

fn page_of(answer: Value, with_scores: bool) -> StoreResult<Page> {
    let (cursor, members): (u64, Vec<Vec<u8>>) =
        redis::from_redis_value(answer).map_err(|_| surprise("a scan"))?;
    let step = if with_scores { 2 } else { 1 };
    Ok(Page {
        members: members.into_iter().step_by(step).collect(),
        next: (cursor != 0).then_some(cursor),
    })
}

fn list_of(answer: Value, what: &str) -> StoreResult<Vec<Vec<u8>>> {
    redis::from_redis_value(answer).map_err(|_| surprise(what))
}

fn number_of(answer: Value, what: &str) -> StoreResult<u64> {
    redis::from_redis_value(answer).map_err(|_| surprise(what))
}

impl Shared {
    /// The members that a filter can be narrowed down to, page by page.
    fn scan(&self, shard: u16, filter: &RecordFilter, cursor: u64) -> (Cmd, bool) {
        let (name, key) = match (&filter.session, &filter.tool) {
            (Some(session), _) => ("SSCAN", self.names.session(shard, session)),
            (None, Some(tool)) => ("SSCAN", self.names.tool(shard, tool)),
            (None, None) => ("ZSCAN", self.names.index(shard)),
        };
        let mut cmd = redis::cmd(name);
        cmd.arg(key).arg(cursor).arg("COUNT").arg(REDIS_STEP_MAX);
        (cmd, name == "ZSCAN")
    }

    async fn read(
        &self,
        shard: u16,
        members: &[Vec<u8>],
        filter: &RecordFilter,
        found: &mut Vec<SharedRecord>,
    ) -> StoreResult<()> {
        let prefix = filter
            .key_prefix
            .as_ref()
            .map(|prefix| prefix.to_ascii_lowercase());
        let keys: Vec<StoredKey> = members
            .iter()
            .filter_map(|member| key_of_member(member))
            .filter(|key| {
                prefix
                    .as_ref()
                    .is_none_or(|prefix| key.to_string().starts_with(prefix))
            })
            .collect();
        for some in keys.chunks(READ_STEP) {
            let mut cmd = redis::cmd("MGET");
            for key in some {
                cmd.arg(self.names.record(shard, key.as_bytes()));
            }
            let values: Vec<Option<Vec<u8>>> = redis::from_redis_value(self.link.send(&cmd).await?)
                .map_err(|_| surprise("MGET"))?;
            for (key, packed) in some.iter().zip(values) {
                // A member whose record is gone is for the sweep.
                let Some(packed) = packed else { continue };
                let record = unpack(*key, &packed)?;
                if fits(&record, filter) {
                    found.push(Arc::new(record));
                }
            }
        }
        Ok(())
    }

    /// Reads whatever a scan finds.
    async fn list_by_scan(
        &self,
        shard: u16,
        filter: &RecordFilter,
        found: &mut Vec<SharedRecord>,
    ) -> StoreResult<()> {
        let mut cursor = Some(0);
        while let Some(at) = cursor {
            let (cmd, with_scores) = self.scan(shard, filter, at);
            let page = page_of(self.link.send(&cmd).await?, with_scores)?;
            self.read(shard, &page.members, filter, found).await?;
            cursor = page.next;
        }
        // A scan may show a member twice.
        found.sort_by_key(|record| record.key);
        found.dedup_by_key(|record| record.key);
        Ok(())
    }

    /// Reads the newest of each class until there are enough: a person asks for fifty of a million.
    async fn list_newest(
        &self,
        shard: u16,
        filter: &RecordFilter,
        limit: usize,
        found: &mut Vec<SharedRecord>,
    ) -> StoreResult<()> {
        for (low, high) in CLASSES {
            let mut of_class = Vec::new();
            for offset in (0..).step_by(REDIS_STEP_MAX) {
                let mut cmd = redis::cmd("ZREVRANGEBYSCORE");
                cmd.arg(self.names.index(shard)).arg(high).arg(low);
                cmd.arg("LIMIT").arg(offset).arg(REDIS_STEP_MAX);
                let members = list_of(self.link.send(&cmd).await?, "ZREVRANGEBYSCORE")?;
                self.read(shard, &members, filter, &mut of_class).await?;
                if of_class.len() >= limit || members.len() < REDIS_STEP_MAX {
                    break;
                }
            }
            found.append(&mut of_class);
        }
        Ok(())
    }

    pub(super) async fn list(&self, filter: &RecordFilter) -> StoreResult<Vec<SharedRecord>> {
        let mut found = Vec::new();
        let narrow = filter.session.is_some() || filter.tool.is_some();
        for shard in self.names.shards() {
            let mut of_shard = Vec::new();
            match filter.limit {
                Some(limit) if !narrow && filter.key_prefix.is_none() => {
                    self.list_newest(shard, filter, limit, &mut of_shard)
                        .await?;
                }
                _ => self.list_by_scan(shard, filter, &mut of_shard).await?,
            }
            found.append(&mut of_shard);
        }
        found.sort_by(|a, b| {
            b.updated_at_ms
                .cmp(&a.updated_at_ms)
                .then_with(|| a.key.cmp(&b.key))
        });
        found.truncate(filter.limit.unwrap_or(usize::MAX));
        Ok(found)
    }

    pub(super) async fn flush(&self, filter: &RecordFilter) -> StoreResult<u64> {
        let mut flushed = 0;
        let at_most = filter.limit.unwrap_or(usize::MAX) as u64;
        for shard in self.names.shards() {
            let mut cursor = Some(0);
            while let Some(at) = cursor {
                let (cmd, with_scores) = self.scan(shard, filter, at);
                let page = page_of(self.link.send(&cmd).await?, with_scores)?;
                let mut fit = Vec::new();
                self.read(shard, &page.members, filter, &mut fit).await?;
                let keys: std::collections::HashSet<StoredKey> = fit
                    .iter()
                    .filter(|record| record.state != RecordState::Inflight)
                    .map(|record| record.key)
                    .take(usize::try_from(at_most - flushed).unwrap_or(usize::MAX))
                    .collect();
                let doomed: Vec<&[u8]> = page
                    .members
                    .iter()
                    .filter(|member| key_of_member(member).is_some_and(|key| keys.contains(&key)))
                    .map(Vec::as_slice)
                    .collect();
                flushed += self.forget(shard, &doomed).await?;
                cursor = page.next.filter(|_| flushed < at_most);
            }
        }
        Ok(flushed)
    }

    async fn forget(&self, shard: u16, members: &[&[u8]]) -> StoreResult<u64> {
        let mut forgotten = 0;
        let index = self.names.index(shard);
        for some in members.chunks(REDIS_STEP_MAX) {
            let answer = self
                .link
                .eval(&self.scripts.forget, &[&index], some)
                .await?;
            forgotten += number_of(answer, "a flush")?;
        }
        Ok(forgotten)
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

    pub(super) async fn size(&self) -> StoreResult<StoreSize> {
        let mut size = StoreSize::default();
        for shard in self.names.shards() {
            let index = self.names.index(shard);
            let mut cmd = redis::cmd("ZCARD");
            cmd.arg(&index);
            let records = number_of(self.link.send(&cmd).await?, "ZCARD")?;
            if records == 0 {
                continue;
            }
            let mut cmd = redis::cmd("ZCOUNT");
            cmd.arg(&index).arg("2e15").arg("+inf");
            size.in_flight += number_of(self.link.send(&cmd).await?, "ZCOUNT")?;
            size.records += records;
            size.bytes += self.bytes_of(shard, records).await?;
        }
        Ok(size)
    }

    /// Bytes of the records of a shard: counted when they are few, else estimated from a sample.
    async fn bytes_of(&self, shard: u16, records: u64) -> StoreResult<u64> {
        let mut cmd = redis::cmd("ZRANDMEMBER");
        cmd.arg(self.names.index(shard)).arg(SAMPLE_MAX);
        let members = list_of(self.link.send(&cmd).await?, "ZRANDMEMBER")?;
        let mut bytes = 0;
        for some in members.chunks(READ_STEP) {
            let lengths = some.iter().filter_map(|member| {
                let key = key_of_member(member)?;
                let mut cmd = redis::cmd("STRLEN");
                cmd.arg(self.names.record(shard, key.as_bytes()));
                Some(async move { number_of(self.link.send(&cmd).await?, "STRLEN") })
            });
            let lengths: Vec<Result<u64, StoreError>> =
                futures_util::future::join_all(lengths).await;
            for length in lengths {
                bytes += length?;
            }
        }
        let sampled = members.len().max(1) as u64;
        Ok(bytes.saturating_mul(records) / sampled)
    }
}
