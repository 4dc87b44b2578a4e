//! The claims that this process has asked for or holds, so that a server that lost them can be
//! told again, and that no word is said about a claim which was never asked for.
//!
//! A server that writes to its disk once a second forgets the last second when it is killed. What
//! it granted then runs here all the same: as long as this process lives, its claims and results
//! are not lost with the server. An operator who clears a record leaves a mark with its owner's
//! name, and such a claim is not brought back. A call that waits may have claimed anew since: then
//! the mark is known from before, and says nothing of that claim.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use redis::Value;

use super::Shared;
use super::dedupe::{Numbers, text_of};
use super::layout::{ClaimHead, running_key_ttl_ms};
use super::link::surprise;
use crate::idempotency::key::StoredKey;
use crate::idempotency::transition::{ClaimRequest, Hold};
use crate::retry::RepeatSafety;
use crate::store::StoreResult;

/// What a granted claim has put on record.
#[derive(Clone)]
pub(super) struct Granted {
    /// See the layout; without the mark of somebody who waits.
    flags: u8,
    since_ms: u64,
    /// When it had last been cleared before it was claimed, by the server's time; 0 for never.
    cleared_us: u64,
    lease_ms: u64,
    ttl_ms: u64,
    content: Option<StoredKey>,
    /// From the time to live on.
    tail: Arc<[u8]>,
    /// What stands in front of it, where this process wrote it itself.
    head: Option<ClaimHead>,
}

/// Waits for leave to start.
const HELD: u8 = 2;

impl Granted {
    pub(super) fn new(
        wish: &ClaimRequest,
        tail: Vec<u8>,
        head: Option<ClaimHead>,
        since_ms: u64,
        cleared_us: u64,
    ) -> Self {
        let lifetimes = &wish.lifetimes;
        Self {
            flags: u8::from(wish.repeat == RepeatSafety::Safe)
                + HELD * u8::from(wish.hold == Hold::Held),
            since_ms,
            cleared_us,
            lease_ms: lifetimes.lease_ms,
            ttl_ms: lifetimes.unknown_ms.max(lifetimes.done_ms),
            content: wish.content.as_ref().map(|lookup| lookup.key),
            tail: tail.into(),
            head,
        }
    }
}

/// A claim by its owner's token, which nobody else has.
type Holder = (StoredKey, Arc<str>);

/// The claims of this process.
#[derive(Default)]
pub(super) struct GrantedClaims {
    /// Without a value: asked for, and not answered.
    by_owner: Mutex<HashMap<Holder, Option<Granted>>>,
}

impl GrantedClaims {
    /// A claim is about to be sent.
    pub(super) fn asked(&self, wish: &ClaimRequest) {
        let holder = (wish.key, wish.owner.clone());
        self.by_owner.lock().entry(holder).or_default();
    }

    /// Whether the server may hold this claim.
    pub(super) fn knows(&self, key: &StoredKey, owner: &Arc<str>) -> bool {
        self.by_owner.lock().contains_key(&(*key, owner.clone()))
    }

    pub(super) fn insert(&self, wish: &ClaimRequest, granted: Granted) {
        let holder = (wish.key, wish.owner.clone());
        self.by_owner.lock().insert(holder, Some(granted));
    }

    /// The call has begun: from now on a lost holder may have had its effect.
    pub(super) fn begun(&self, key: &StoredKey, owner: &str) {
        if let Some(Some(granted)) = self.by_owner.lock().get_mut(&(*key, owner.into())) {
            granted.flags &= !HELD;
        }
    }

    /// The last word was taken or refused, or nobody will say it any more.
    pub(super) fn settled(&self, key: &StoredKey, owner: &str) {
        self.by_owner.lock().remove(&(*key, owner.into()));
    }

    /// The record as this process claimed it, if it knows that: its front and its tail.
    pub(super) fn record(
        &self,
        key: &StoredKey,
        owner: &Arc<str>,
    ) -> Option<(ClaimHead, Arc<[u8]>)> {
        let held = self.by_owner.lock();
        let granted = held.get(&(*key, owner.clone()))?.as_ref()?;
        Some((granted.head?, granted.tail.clone()))
    }

    fn get(&self, key: &StoredKey, owner: &str) -> Option<Granted> {
        let held = self.by_owner.lock();
        held.get(&(*key, owner.into())).cloned().flatten()
    }
}

impl Shared {
    /// When a claim that is about to be asked for was last cleared; 0 for never. Nobody else can claim
    /// under its name, so it stays so until it is granted.
    pub(super) async fn cleared_us(&self, wish: &ClaimRequest) -> StoreResult<u64> {
        if wish.hold == Hold::None {
            // Only a call that waits claims anew.
            return Ok(0);
        }
        let mut cmd = redis::cmd("GET");
        cmd.arg(self.names.cleared(&wish.key, &wish.owner));
        Ok(match self.link.send(&cmd).await? {
            // That of an older version does not say when.
            Value::BulkString(at) => std::str::from_utf8(&at)
                .ok()
                .and_then(|at| at.parse().ok())
                .unwrap_or(0),
            _ => 0,
        })
    }

    /// Puts a claim of this process back that the server has lost. Says whether it is worth asking
    /// the server again: not when the claim was never ours, and not when it was cleared.
    pub(super) async fn bring_back(&self, key: &StoredKey, owner: &str) -> StoreResult<bool> {
        let Some(granted) = self.granted.get(key, owner) else {
            return Ok(false);
        };
        let own = self.names.of(key);
        let cleared = self.names.cleared(key, owner);
        let content = granted.content.map(|content| self.names.content(&content));
        let mut keys: Vec<&[u8]> = vec![&own.record, &own.index, &cleared];
        keys.extend(content.as_deref());
        let numbers = Numbers::new()
            .wide(self.link.script_time_ms())
            .wide(granted.since_ms)
            .wide(granted.lease_ms)
            .byte(granted.flags)
            .wide(granted.cleared_us);
        let life_ms = running_key_ttl_ms(granted.ttl_ms).to_string();
        let args: [&[u8]; 3] = [numbers.bytes(), &granted.tail, life_ms.as_bytes()];
        let answer: Value = self
            .link
            .eval(&self.scripts.bring_back, &keys, &args)
            .await?;
        match text_of(answer, "a claim that was lost")?.first() {
            // Put back, or there again: a cluster's or a replica's older copy may have come back.
            Some(b'o' | b'n') => Ok(true),
            Some(b'g') => Ok(false),
            _ => Err(surprise("a claim that was lost")),
        }
    }
}
