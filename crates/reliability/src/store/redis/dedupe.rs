//! The records of intents: each step is one script.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use redis::Value;

use super::granted::Granted;
use super::layout::{
    self, EXACT_MAX, KEY_GRACE_MS, claim_tail, ending_body, key_ttl_ms, letter, member,
    running_key_ttl_ms, unpack,
};
use super::link::{Trouble, surprise};
use super::options::CLEARED_MARK_MS_MIN;
use super::{RedisState, Shared, waiters};
use crate::canonical::Digest;
use crate::idempotency::key::StoredKey;
use crate::idempotency::record::{Execution, RecordState, SharedRecord};
use crate::idempotency::transition::{
    ClaimRequest, Ending, Finalisation, Hold, OnRetriableFailure, Refused,
};
use crate::retry::RepeatSafety;
use crate::store::{
    Claim, ClearIf, Cleared, DedupeStore, RecordFilter, StoreError, StoreFuture, StoreResult,
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
    fn exact(mut self, number: u64) -> Self {
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

/// A claim whose caller went away before it was answered is given back: nothing ran. It is said
/// on the same connection, so it can not overtake the claim.
struct Abandoned<'a> {
    shared: &'a Shared,
    wish: Option<&'a ClaimRequest>,
}

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        if let Some(wish) = self.wish {
            self.shared.say_later(Finalisation {
                key: wish.key,
                owner: wish.owner.clone(),
                ending: Ending::Cancelled,
                execution: Execution::default(),
                lifetimes: wish.lifetimes,
            });
        }
    }
}

impl Shared {
    async fn claim(&self, wish: &ClaimRequest) -> StoreResult<Claim> {
        let names = &self.names;
        let shard = names.shard_of(&wish.key);
        let lifetimes = &wish.lifetimes;
        let lookup = wish.content.as_ref();
        let safe = u8::from(wish.repeat == RepeatSafety::Safe);
        let numbers = Numbers::new()
            .wide(self.link.script_time_ms())
            .wide(lifetimes.lease_ms)
            .wide(self.cap_to_check(shard))
            .byte(safe + 2 * u8::from(wish.hold == Hold::Held))
            .byte(safe)
            .byte(u8::from(
                wish.on_retriable_failure == OnRetriableFailure::RunAgain,
            ))
            .wide(lookup.map_or(0, |lookup| lookup.unknown_window_ms))
            .wide(lookup.map_or(0, |lookup| lookup.echo_window_ms))
            .exact(lifetimes.cancelled_ms)
            .exact(lifetimes.unknown_ms);
        let running_ms =
            running_key_ttl_ms(lifetimes.unknown_ms.max(lifetimes.done_ms)).to_string();
        let own = names.of(&wish.key);
        let content = lookup.map(|lookup| names.content(&lookup.key));
        let mut keys: Vec<&[u8]> = vec![&own.record, &own.index];
        keys.extend(content.as_deref());
        let tail = claim_tail(wish)?;
        let args: [&[u8]; 3] = [&numbers.0, &tail, running_ms.as_bytes()];
        let mut lane = self.link.lane().await?;
        self.granted.asked(wish);
        let mut abandoned = Abandoned {
            shared: self,
            wish: Some(wish),
        };
        let script = &self.scripts.claim;
        let answer = self.link.eval_on(&mut lane, script, &keys, &args).await;
        abandoned.wish = None;
        let claim = answer
            .map_err(StoreError::from)
            .and_then(|answer| self.read_claim(&text_of(answer, "a claim")?));
        match &claim {
            Ok(Claim::Granted { .. }) => {
                self.link.replicated(&mut lane).await?;
                let granted = Granted::new(wish, tail, self.link.now_ms());
                self.granted.insert(wish, granted);
            }
            // Only the answer may have been lost: whoever asked takes it back.
            Err(StoreError::Unavailable(_)) => {}
            Ok(_) | Err(StoreError::Full(_)) => self.granted.settled(&wish.key, &wish.owner),
        }
        claim
    }

    fn read_claim(&self, answer: &[u8]) -> StoreResult<Claim> {
        let (kind, rest) = answer.split_first().ok_or_else(|| surprise("a claim"))?;
        let keyed = || {
            let (key, rest) = rest
                .split_first_chunk()
                .ok_or_else(|| surprise("a claim"))?;
            Ok::<_, StoreError>((StoredKey::from_bytes(*key), rest))
        };
        Ok(match kind {
            b'G' => Claim::Granted { lifeline: None },
            b'W' => {
                let (key, rest) = keyed()?;
                let number = |at: usize| {
                    let bytes = rest.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
                    bytes
                        .map(u64::from_le_bytes)
                        .ok_or_else(|| surprise("a claim"))
                };
                Claim::InFlight {
                    ticket: WaitTicket {
                        key,
                        version: number(0)?,
                        // What is left of the lease, on our own clock.
                        lock_until_ms: self.clock.now_ms().saturating_add(number(8)?),
                    },
                }
            }
            b'E' => {
                let (key, rest) = keyed()?;
                Claim::Ended(Arc::new(unpack(key, rest)?))
            }
            b'C' => Claim::Conflict {
                recorded_digest: Digest::from_bytes(
                    *rest.first_chunk().ok_or_else(|| surprise("a claim"))?,
                ),
            },
            b'F' => {
                return Err(StoreError::Full(format!(
                    "{} records are in flight or of unknown outcome and none of them may be evicted",
                    self.keys_max_per_shard
                )));
            }
            _ => return Err(surprise("a claim")),
        })
    }

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
        let lifetimes = &word.lifetimes;
        let (state, ttl_ms, retriable) = match &word.ending {
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
        };
        let numbers = Numbers::new()
            .wide(self.link.script_time_ms())
            .byte(2 * u8::from(retriable))
            .byte(letter(state))
            .text(&word.owner);
        let own = self.names.of(&word.key);
        let key_ms = key_ttl_ms(ttl_ms).to_string();
        let body = ending_body(ttl_ms, &word.ending, &word.execution, self.sizes)
            .map_err(Trouble::Lasting)?;
        let args: [&[u8]; 3] = [&numbers.0, &body, key_ms.as_bytes()];
        let keys: [&[u8]; 1] = [&own.record];
        let mut lane = self.link.lane().await?;
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
        self.shared.list(filter).boxed().into()
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
