//! The records of intents from their claim to their end: each step is one script.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use redis::Value;

use super::layout::{
    self, ClaimHead, EXACT_MAX, KEY_GRACE_MS, PLACES_BYTES, TTL_BYTES, ending_body, ending_front,
    key_ttl_ms, member, running_key_ttl_ms, unpack,
};
use super::link::{Trouble, surprise};
use super::options::CLEARED_MARK_MS_MIN;
use super::{RedisState, Shared, waiters};
use crate::idempotency::key::StoredKey;
use crate::idempotency::record::{RecordState, SharedRecord};
use crate::idempotency::transition::{ClaimRequest, Ending, Finalisation, Refused};
use crate::store::{
    Claim, ClearIf, Cleared, DedupeStore, Listing, RecordFilter, StoreFuture, StoreResult,
    StoreSize, WaitTicket,
};

/// Numbers for a script, packed into one argument.
pub(super) struct Numbers(Vec<u8>);

impl Numbers {
    pub(super) fn new() -> Self {
        Self(Vec::with_capacity(64))
    }

    pub(super) fn wide(mut self, number: u64) -> Self {
        self.0
            .extend_from_slice(&number.min(EXACT_MAX).to_le_bytes());
        self
    }

    pub(super) fn byte(mut self, number: u8) -> Self {
        self.0.push(number);
        self
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// As it is stored, also where a script could not count with it.
    pub(super) fn exact(mut self, number: u64) -> Self {
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    fn text(mut self, text: &str) -> Self {
        // Longer owners were refused when they claimed.
        let length = u16::try_from(text.len()).unwrap_or(u16::MAX);
        self.0.extend_from_slice(&length.to_le_bytes());
        self.0.extend_from_slice(text.as_bytes());
        self
    }
}

pub(super) fn text_of(answer: Value, what: &str) -> StoreResult<Vec<u8>> {
    match answer {
        Value::BulkString(text) => Ok(text),
        Value::SimpleString(text) => Ok(text.into_bytes()),
        _ => Err(surprise(what)),
    }
}

/// Whether a holder's word was taken.
fn taken(answer: Value, what: &str) -> StoreResult<Result<(), Refused>> {
    match text_of(answer, what)?.first() {
        Some(b'o') => Ok(Ok(())),
        Some(b'g') => Ok(Err(Refused::Gone)),
        Some(b'n') => Ok(Err(Refused::NotTheHolder)),
        _ => Err(surprise(what)),
    }
}

/// The state that a last word brings, for how long, and whether another attempt may be made.
fn ending_of(word: &Finalisation) -> (RecordState, u64, bool) {
    let lifetimes = &word.lifetimes;
    match &word.ending {
        Ending::Done(_) | Ending::DoneWithoutOutput => {
            (RecordState::Done, lifetimes.done_ms, false)
        }
        Ending::Failed(error) => (
            RecordState::Failed,
            lifetimes.failed_ms,
            error.should_retriable,
        ),
        Ending::Cancelled => (RecordState::Cancelled, lifetimes.cancelled_ms, false),
        Ending::Unknown(error) => (
            RecordState::Unknown,
            lifetimes.unknown_ms,
            error.should_retriable,
        ),
    }
}

/// A record as its last word makes it.
struct EndedRecord {
    /// How it has to begin to be as it was claimed; nothing when that is not known.
    begins: Vec<u8>,
    /// All of it when it is known how it was claimed, else its front, its owner and its body.
    record: Vec<u8>,
    body_at: usize,
}

impl EndedRecord {
    fn new(
        claimed: Option<&(ClaimHead, Arc<[u8]>)>,
        front: &ClaimHead,
        owner: &str,
        ttl_and_body: &[u8],
    ) -> Self {
        let owner = Numbers::new().text(owner).0;
        let (ttl, body) = ttl_and_body.split_at(TTL_BYTES);
        let unknown;
        let (begins, constant) = match claimed {
            None => {
                unknown = [&[0; PLACES_BYTES][..], &owner].concat();
                (Vec::new(), &unknown[..])
            }
            Some((head, tail)) => {
                let (ttl, constant) = tail.split_at(TTL_BYTES.min(tail.len()));
                let compared = constant.len().min(PLACES_BYTES + owner.len());
                let begins = [head, ttl, &constant[..compared]].concat();
                (begins, constant)
            }
        };
        Self {
            begins,
            record: [front, ttl, constant, body].concat(),
            body_at: front.len() + ttl.len() + constant.len(),
        }
    }
}

/// What a renewal is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    GoOn,
    Begin,
}

/// On whose behalf a record is removed.
#[derive(Clone, Copy)]
enum Who<'a> {
    Holder(&'a str),
    Anybody(ClearIf<'a>),
}

impl Shared {
    /// Takes a last word, also where the server has lost the claim. One that says that nothing ran
    /// needs no record.
    pub(super) async fn last_word(
        &self,
        word: &Finalisation,
    ) -> Result<Result<(), Refused>, Trouble> {
        let (key, owner) = (&word.key, &*word.owner);
        let mut taken = self.say(word).await?;
        if taken == Err(Refused::Gone)
            && word.ending != Ending::Cancelled
            && self.bring_back(key, owner).await?
        {
            taken = self.say(word).await?;
        }
        self.granted.settled(key, owner);
        Ok(taken)
    }

    async fn say(&self, word: &Finalisation) -> Result<Result<(), Refused>, Trouble> {
        let (state, ttl_ms, retriable) = ending_of(word);
        let body = ending_body(ttl_ms, &word.ending, &word.execution, self.sizes)
            .map_err(Trouble::Lasting)?;
        let mut lane = self.link.lane().await?;
        // Both, or the script has to find out by itself.
        let known = self.granted.record(&word.key, &word.owner);
        let known = known.zip(self.link.plain_time_ms(&lane));
        let (claimed, now_ms) = known.unzip();
        let front = ending_front(
            claimed.as_ref().map(|(head, _)| *head),
            state,
            retriable,
            now_ms.unwrap_or(0),
        );
        let ended = EndedRecord::new(claimed.as_ref(), &front, &word.owner, &body);
        let body_at = ended.body_at.to_string();
        let own = self.names.of(&word.key);
        let (key_ms, time_ms) = (key_ttl_ms(ttl_ms), self.link.script_time_ms());
        let (key_ms, time_ms) = (key_ms.to_string(), time_ms.to_string());
        let args: [&[u8]; 5] = [
            &ended.begins,
            &ended.record,
            key_ms.as_bytes(),
            body_at.as_bytes(),
            time_ms.as_bytes(),
        ];
        let keys: [&[u8]; 1] = [&own.record];
        let script = &self.scripts.finalise;
        let answer = self.link.eval_on(&mut lane, script, &keys, &args).await?;
        let taken = taken(answer, "a last word")?;
        if taken.is_ok() {
            self.waiters.wake(&word.key, None);
            self.link.replicated(&mut lane).await?;
        }
        Ok(taken)
    }

    /// Extends a lease, also of a claim that the server has lost. A call that is about to begin
    /// has lost nothing yet, and is told.
    async fn renew(
        &self,
        key: &StoredKey,
        owner: &str,
        lease_ms: u64,
        then: Then,
    ) -> StoreResult<Result<(), Refused>> {
        let taken = self.extend(key, owner, lease_ms, then).await?;
        match (taken, then) {
            (Ok(()), Then::Begin) => self.granted.begun(key, owner),
            (Err(Refused::Gone), Then::GoOn) if self.bring_back(key, owner).await? => {
                return self.extend(key, owner, lease_ms, then).await;
            }
            _ => {}
        }
        Ok(taken)
    }

    async fn extend(
        &self,
        key: &StoredKey,
        owner: &str,
        lease_ms: u64,
        then: Then,
    ) -> StoreResult<Result<(), Refused>> {
        let numbers = Numbers::new()
            .wide(self.link.script_time_ms())
            .wide(lease_ms)
            .wide(KEY_GRACE_MS)
            .byte(u8::from(then == Then::Begin))
            .text(owner);
        let own = self.names.of(key);
        let keys: [&[u8]; 1] = [&own.record];
        let args: [&[u8]; 1] = [&numbers.0];
        let mut lane = self.link.lane().await?;
        let script = &self.scripts.renew;
        let answer = self.link.eval_on(&mut lane, script, &keys, &args).await?;
        let taken = taken(answer, "a renewal")?;
        if taken.is_ok() && then == Then::Begin {
            self.link.replicated(&mut lane).await?;
        }
        Ok(taken)
    }

    /// Removes a record: for its holder, or for anybody who clears it.
    async fn remove(&self, key: &StoredKey, who: Who<'_>) -> StoreResult<Result<(), Refused>> {
        let own = self.names.of(key);
        let keys: [&[u8]; 2] = [&own.record, &own.index];
        let mark_ms = CLEARED_MARK_MS_MIN.to_string();
        let (word, owner, version) = match who {
            Who::Holder(owner) => ("holder", owner, None),
            Who::Anybody(ClearIf::There) => ("anybody", "", None),
            Who::Anybody(ClearIf::Unchanged(seen)) => {
                ("anybody", &*seen.owner, Some(seen.version.to_le_bytes()))
            }
        };
        let version: &[u8] = version.as_ref().map_or(&[], |bytes| bytes);
        let args: [&[u8]; 4] = [
            word.as_bytes(),
            owner.as_bytes(),
            version,
            mark_ms.as_bytes(),
        ];
        let answer = self.link.eval(&self.scripts.remove, &keys, &args).await?;
        let removed = taken(answer, "a removal")?;
        if removed.is_ok() {
            self.waiters.wake(key, None);
        }
        Ok(removed)
    }

    async fn get(&self, key: &StoredKey) -> StoreResult<Option<SharedRecord>> {
        let mut cmd = redis::cmd("GET");
        cmd.arg(self.names.of(key).record);
        match self.link.send(&cmd).await? {
            Value::Nil => Ok(None),
            Value::BulkString(packed) => Ok(Some(Arc::new(unpack(*key, &packed)?))),
            _ => Err(surprise("GET")),
        }
    }

    async fn restore(&self, record: &SharedRecord) -> StoreResult<bool> {
        let names = &self.names;
        let (key, session) = (&record.key, &record.request.session_key);
        let own = names.of(key);
        let content = record.content_key.map(|content| names.content(&content));
        let mut keys: Vec<&[u8]> = vec![&own.record, &own.index];
        keys.extend(content.as_deref());
        let left_ms = record.expires_at_ms.saturating_sub(self.link.now_ms());
        let ttl_ms = match record.state {
            RecordState::Inflight => running_key_ttl_ms(record.ttl_ms),
            _ => key_ttl_ms(left_ms),
        };
        let (packed, ttl_ms) = (layout::pack(record, self.sizes)?, ttl_ms.to_string());
        let member = member(key, session, &record.tool);
        let args: [&[u8]; 3] = [&packed, &member, ttl_ms.as_bytes()];
        let answer = self.link.eval(&self.scripts.restore, &keys, &args).await?;
        Ok(answer == Value::Int(1))
    }
}

impl DedupeStore for RedisState {
    fn claim<'a>(&'a self, wish: &'a ClaimRequest) -> StoreFuture<'a, Claim> {
        self.shared.claim(wish).boxed().into()
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
        self.shared
            .renew(key, owner, lease_ms, Then::GoOn)
            .boxed()
            .into()
    }

    fn begin<'a>(
        &'a self,
        key: &'a StoredKey,
        owner: &'a str,
        lease_ms: u64,
    ) -> StoreFuture<'a, Result<(), Refused>> {
        self.shared
            .renew(key, owner, lease_ms, Then::Begin)
            .boxed()
            .into()
    }

    fn finalise(&self, last_word: Finalisation) -> StoreFuture<'_, Result<(), Refused>> {
        async move { Ok(self.shared.last_word(&last_word).await?) }
            .boxed()
            .into()
    }

    fn finalise_detached(&self, last_word: Finalisation) {
        let nothing_ran = last_word.ending == Ending::Cancelled;
        if nothing_ran && !self.shared.granted.knows(&last_word.key, &last_word.owner) {
            // The claim never left this process, or was settled: there is nothing to take back.
            return;
        }
        self.shared.say_later(last_word);
    }

    fn release<'a>(
        &'a self,
        key: &'a StoredKey,
        owner: &'a str,
    ) -> StoreFuture<'a, Result<(), Refused>> {
        async move {
            let released = self.shared.remove(key, Who::Holder(owner)).await?;
            self.shared.granted.settled(key, owner);
            Ok(released)
        }
        .boxed()
        .into()
    }

    fn get<'a>(&'a self, key: &'a StoredKey) -> StoreFuture<'a, Option<SharedRecord>> {
        self.shared.get(key).boxed().into()
    }

    fn list<'a>(&'a self, filter: &'a RecordFilter) -> StoreFuture<'a, Vec<SharedRecord>> {
        async move { Ok(self.shared.list(filter).await?.records) }
            .boxed()
            .into()
    }

    fn listing<'a>(&'a self, filter: &'a RecordFilter) -> StoreFuture<'a, Listing> {
        self.shared.list(filter).boxed().into()
    }

    fn given<'a>(&'a self, caller_key: &'a str, limit: usize) -> StoreFuture<'a, Listing> {
        self.shared.given(caller_key, limit).boxed().into()
    }

    fn clear<'a>(&'a self, key: &'a StoredKey, when: ClearIf<'a>) -> StoreFuture<'a, Cleared> {
        async move {
            let removed = self.shared.remove(key, Who::Anybody(when)).await?;
            Ok(match removed {
                Ok(()) => Cleared::Forgotten,
                Err(Refused::Gone) => Cleared::NotThere,
                Err(Refused::NotTheHolder) => Cleared::Changed,
            })
        }
        .boxed()
        .into()
    }

    fn flush<'a>(&'a self, filter: &'a RecordFilter) -> StoreFuture<'a, u64> {
        self.shared.flush(filter).boxed().into()
    }

    fn restore(&self, record: SharedRecord) -> StoreFuture<'_, bool> {
        async move { self.shared.restore(&record).await }
            .boxed()
            .into()
    }

    fn sweep(&self) -> StoreFuture<'_, u64> {
        self.shared.sweep().boxed().into()
    }

    fn size(&self) -> StoreFuture<'_, StoreSize> {
        self.shared.size().boxed().into()
    }
}
