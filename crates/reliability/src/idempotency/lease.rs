//! How long a claim is held without a sign of life.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::transition::{ClaimRequest, Hold};
use crate::runtime::Runtime;

/// How soon a renewal is tried again that failed, or was refused because somebody has the claim.
pub const RENEW_AGAIN_MS: u64 = 500;
/// How often in a row: longer than somebody can hold the claim who took it for a moment and died
/// ([`super::HELD_LEASE_MS_MAX`]). A store that is away for longer is asked at the usual pace.
pub const RENEW_AGAIN_TIMES_MAX: u32 = 40;

/// To whom a claim is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LostTo {
    /// Somebody has it who goes on with the same intent.
    Another,
    /// A call with the same content goes on under a key of its own, and may be about to go on with what
    /// is left of this one.
    Alike,
    /// Nobody goes on with the intent: it has ended, or its content is another call's.
    Nobody,
}

impl LostTo {
    /// Whether it is not had again, after so many refusals before.
    pub(super) fn is_for_good(self, refusals: u32) -> bool {
        match self {
            Self::Another => refusals >= RENEW_AGAIN_TIMES_MAX,
            // Longer than that one takes to find what is left of this one.
            Self::Alike => refusals >= RENEW_AGAIN_TIMES_MAX / 4,
            Self::Nobody => true,
        }
    }
}

/// Whose the claim of a call is that waited and goes away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// This call's, or nobody's.
    Its,
    /// That of somebody who goes on with the same intent.
    Anothers,
    /// Somebody may have taken it.
    Unsure,
}

/// When a claim was last asked for with success, by the time that passes here and by the clock: a
/// process may be stopped, and a machine may sleep.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sign {
    at: Instant,
    at_ms: u64,
}

impl Sign {
    /// Taken before the store is asked: what it grants lasts longer, and not shorter.
    pub(super) fn now(runtime: &Runtime) -> Self {
        Self {
            at: Instant::now(),
            at_ms: runtime.clock.now_ms(),
        }
    }

    fn age_ms(self, now_ms: u64) -> u64 {
        let passed_ms = u64::try_from(self.at.elapsed().as_millis()).unwrap_or(u64::MAX);
        // A clock that went back says nothing, so it counts as one that went on.
        passed_ms.max(now_ms.abs_diff(self.at_ms))
    }
}

/// Whether the renewal after so many failures in a row follows soon.
pub(super) fn follows_soon(failures: u32) -> bool {
    (1..=RENEW_AGAIN_TIMES_MAX).contains(&failures)
}

/// How long to wait before the next renewal of a lease of which this is a third.
pub(super) fn pause(third: Duration, failures: u32) -> Duration {
    if follows_soon(failures) {
        third.min(Duration::from_millis(RENEW_AGAIN_MS))
    } else {
        third
    }
}

/// The lease of one claim, shared by the one who renews it and the one who lets its call start.
#[derive(Debug)]
pub(super) struct Lease {
    /// Of a call that waits.
    held_ms: u64,
    /// Of one that runs, or is queued to.
    running_ms: u64,
    has_begun: AtomicBool,
    /// Somebody else had it when it was last to be renewed.
    is_contested: AtomicBool,
    /// A call with its content goes on, which answers for it: it is not claimed anew.
    is_alike: AtomicBool,
    last_sign: Mutex<Sign>,
    lost: OnceLock<LostTo>,
}

impl Lease {
    pub(super) fn new(wish: &ClaimRequest, running_ms: u64, asked: Sign) -> Self {
        Self {
            held_ms: wish.lifetimes.lease_ms,
            running_ms,
            has_begun: AtomicBool::new(wish.hold == Hold::None),
            is_contested: AtomicBool::new(false),
            is_alike: AtomicBool::new(false),
            last_sign: Mutex::new(asked),
            lost: OnceLock::new(),
        }
    }

    /// What the next renewal asks for.
    pub(super) fn now_ms(&self) -> u64 {
        if self.is_begun() {
            self.running_ms
        } else {
            self.held_ms
        }
    }

    /// What the beginning of a call asks for.
    pub(super) fn running_ms(&self) -> u64 {
        self.running_ms
    }

    /// The beginning is on record. Its first attempt may come much later, when it is queued.
    pub(super) fn has_begun(&self) {
        self.has_begun.store(true, Ordering::SeqCst);
    }

    /// Whether its call has begun.
    pub(super) fn is_begun(&self) -> bool {
        self.has_begun.load(Ordering::SeqCst)
    }

    /// The store has renewed it.
    pub(super) fn renewed(&self, asked: Sign) {
        *self.last_sign.lock() = asked;
        self.contest(false);
    }

    /// Whose it is, as far as is known without asking.
    pub(super) fn standing(&self, now_ms: u64) -> Standing {
        match self.lost() {
            Some(LostTo::Another) => Standing::Anothers,
            None if self.is_contested.load(Ordering::SeqCst) => Standing::Unsure,
            // Others may take it from then on, and nobody says so.
            None if self.last_sign.lock().age_ms(now_ms) >= self.held_ms => Standing::Unsure,
            Some(LostTo::Alike | LostTo::Nobody) | None => Standing::Its,
        }
    }

    pub(super) fn contest(&self, is_contested: bool) {
        self.is_contested.store(is_contested, Ordering::SeqCst);
    }

    /// Whether a call with its content goes on.
    pub(super) fn is_alike(&self) -> bool {
        self.is_alike.load(Ordering::SeqCst)
    }

    pub(super) fn has_its_like(&self) {
        self.is_alike.store(true, Ordering::SeqCst);
    }

    /// To whom it is lost, once that is certain.
    pub(super) fn lost(&self) -> Option<LostTo> {
        self.lost.get().copied()
    }

    pub(super) fn lose(&self, to: LostTo) {
        // The first word stays.
        let _ = self.lost.set(to);
    }
}
