//! How long a claim is held without a sign of life.

use std::sync::atomic::{AtomicBool, Ordering};

use super::transition::{ClaimRequest, Hold};

/// The lease of one claim, shared by the one who renews it and the one who lets its call start.
#[derive(Debug)]
pub(super) struct Lease {
    /// Of a call that waits.
    held_ms: u64,
    /// Of one that runs, or is queued to.
    running_ms: u64,
    has_begun: AtomicBool,
    is_lost: AtomicBool,
}

impl Lease {
    pub(super) fn new(wish: &ClaimRequest, running_ms: u64) -> Self {
        Self {
            held_ms: wish.lifetimes.lease_ms,
            running_ms,
            has_begun: AtomicBool::new(wish.hold == Hold::None),
            is_lost: AtomicBool::new(false),
        }
    }

    /// What the next renewal asks for.
    pub(super) fn now_ms(&self) -> u64 {
        if self.has_begun.load(Ordering::SeqCst) {
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

    /// The claim is another's, or was cleared.
    pub(super) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::SeqCst)
    }

    pub(super) fn lose(&self) {
        self.is_lost.store(true, Ordering::SeqCst);
    }
}
