//! How an intent is claimed: by plain commands where the key is new, by a script where it may not be.

use std::sync::Arc;

use redis::Value;

use super::Shared;
use super::dedupe::{Numbers, text_of};
use super::granted::Granted;
use super::layout::{
    ClaimHead, RecordNames, claim_head, claim_tail, member_of_tail, running_key_ttl_ms, unpack,
};
use super::link::{Lane, surprise};
use crate::canonical::Digest;
use crate::idempotency::key::StoredKey;
use crate::idempotency::record::Execution;
use crate::idempotency::transition::{
    ClaimRequest, Ending, Finalisation, Hold, OnRetriableFailure,
};
use crate::retry::RepeatSafety;
use crate::store::{Claim, StoreError, StoreResult, WaitTicket};

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

/// A claim on its way, packed.
struct Packed {
    own: RecordNames,
    /// From the time to live on.
    tail: Vec<u8>,
    /// How long the server keeps the key.
    key_ms: String,
    flags: u8,
    /// Bound of the shard's records; 0 when it is far off.
    cap: u64,
}

impl Packed {
    fn new(shared: &Shared, wish: &ClaimRequest) -> StoreResult<Self> {
        let (names, lifetimes) = (&shared.names, &wish.lifetimes);
        let ttl_ms = lifetimes.unknown_ms.max(lifetimes.done_ms);
        Ok(Self {
            own: names.of(&wish.key),
            tail: claim_tail(wish)?,
            key_ms: running_key_ttl_ms(ttl_ms).to_string(),
            flags: u8::from(wish.repeat == RepeatSafety::Safe)
                + 2 * u8::from(wish.hold == Hold::Held),
            cap: shared.cap_to_check(names.shard_of(&wish.key)),
        })
    }
}

impl Packed {
    /// Whether plain commands may find out that the key is new.
    fn may_be_new(&self, wish: &ClaimRequest) -> bool {
        wish.content.is_none() && self.cap == 0
    }
}

impl Shared {
    pub(super) async fn claim(&self, wish: &ClaimRequest) -> StoreResult<Claim> {
        let packed = Packed::new(self, wish)?;
        let cleared_us = self.cleared_us(wish).await?;
        let mut lane = self.link.lane().await?;
        self.granted.asked(wish);
        let mut abandoned = Abandoned {
            shared: self,
            wish: Some(wish),
        };
        let asked = self.ask(&mut lane, wish, &packed).await;
        abandoned.wish = None;
        let (claim, head) = match asked {
            Ok((claim, head)) => (Ok(claim), head),
            Err(error) => (Err(error), None),
        };
        match &claim {
            Ok(Claim::Granted { .. }) => {
                self.link.replicated(&mut lane).await?;
                let since_ms = self.link.now_ms();
                let granted = Granted::new(wish, packed.tail, head, since_ms, cleared_us);
                self.granted.insert(wish, granted);
            }
            // Only the answer may have been lost: whoever asked takes it back.
            Err(StoreError::Unavailable(_)) => {}
            // A server that is full may have refused one of two commands and taken the other.
            Err(StoreError::Full(_)) if packed.may_be_new(wish) => {}
            Ok(_) | Err(StoreError::Full(_)) => self.granted.settled(&wish.key, &wish.owner),
        }
        claim
    }

    /// One round trip for a key that is new, whichever way; one more where plain commands find that
    /// it is not. With the front of the record, where this process wrote it.
    async fn ask(
        &self,
        lane: &mut Lane,
        wish: &ClaimRequest,
        packed: &Packed,
    ) -> StoreResult<(Claim, Option<ClaimHead>)> {
        if packed.may_be_new(wish)
            && let Some(now_ms) = self.link.plain_time_ms(lane)
        {
            let head = claim_head(packed.flags, now_ms, wish.lifetimes.lease_ms);
            if self.claim_new(lane, wish, packed, &head).await? {
                return Ok((Claim::Granted { lifeline: None }, Some(head)));
            }
        }
        let claim = self.claim_by_script(lane, wish, packed).await?;
        Ok((claim, None))
    }

    /// Claims a key that nobody has claimed, with commands that cost the server a third of what a
    /// script does. Says whether it was new. First the index: a server that dies in between has a
    /// member without a record, which the next sweep forgets, and no record that nobody finds.
    async fn claim_new(
        &self,
        lane: &mut Lane,
        wish: &ClaimRequest,
        packed: &Packed,
        head: &ClaimHead,
    ) -> StoreResult<bool> {
        let Packed { own, tail, .. } = packed;
        let record = [&head[..], tail].concat();
        let mut pipe = redis::Pipeline::with_capacity(2);
        pipe.cmd("SADD")
            .arg(&own.index)
            .arg(&member_of_tail(&wish.key, tail)[..]);
        pipe.cmd("SET").arg(&own.record).arg(record);
        pipe.arg("NX").arg("PX").arg(&packed.key_ms);
        match self.link.send_all_on(lane, &pipe, 2).await?.pop() {
            Some(Value::Okay) => Ok(true),
            Some(Value::Nil) => Ok(false),
            _ => Err(surprise("a claim")),
        }
    }

    async fn claim_by_script(
        &self,
        lane: &mut Lane,
        wish: &ClaimRequest,
        packed: &Packed,
    ) -> StoreResult<Claim> {
        let lifetimes = &wish.lifetimes;
        let lookup = wish.content.as_ref();
        let numbers = Numbers::new()
            .wide(self.link.script_time_ms())
            .wide(lifetimes.lease_ms)
            .wide(packed.cap)
            .byte(packed.flags)
            .byte(u8::from(wish.repeat == RepeatSafety::Safe))
            .byte(u8::from(
                wish.on_retriable_failure == OnRetriableFailure::RunAgain,
            ))
            .wide(lookup.map_or(0, |lookup| lookup.unknown_window_ms))
            .wide(lookup.map_or(0, |lookup| lookup.echo_window_ms))
            .exact(lifetimes.cancelled_ms)
            .exact(lifetimes.unknown_ms);
        let content = lookup.map(|lookup| self.names.content(&lookup.key));
        let own = &packed.own;
        let mut keys: Vec<&[u8]> = vec![&own.record, &own.index];
        keys.extend(content.as_deref());
        let args: [&[u8]; 3] = [numbers.bytes(), &packed.tail, packed.key_ms.as_bytes()];
        let script = &self.scripts.claim;
        let answer = self.link.eval_on(lane, script, &keys, &args).await;
        let answer = answer.map_err(StoreError::from)?;
        self.read_claim(&text_of(answer, "a claim")?)
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
}
