//! A claim whose call waits for leave to start.

use std::sync::Arc;

use super::key::StoredKey;
use super::lease::Lease;
use super::record::{Execution, RecordState};
use super::transition::{ClaimRequest, Ending, Finalisation, Hold, OnRetriableFailure, Refused};
use crate::store::{Claim, DedupeStore, StoreResult};

/// The claim of a call that waits, as the layer sees it that lets it start.
#[derive(Clone)]
pub struct HeldClaim {
    store: Arc<dyn DedupeStore>,
    wish: Arc<ClaimRequest>,
    lease: Arc<Lease>,
}

/// What became of the claim of another call.
pub enum TakenOver {
    /// Nobody had it: whoever held it is gone, and ran nothing.
    Free(Box<ForeignClaim>),
    /// Somebody has it.
    Running,
    /// There is none to have: the call has ended, or the key is that of one with other arguments.
    Over,
}

impl HeldClaim {
    /// The claim, if it was made for a call that waits.
    pub(super) fn of(
        store: &Arc<dyn DedupeStore>,
        wish: &ClaimRequest,
        lease: &Arc<Lease>,
    ) -> Option<Self> {
        (wish.hold == Hold::Held).then(|| Self {
            store: store.clone(),
            wish: Arc::new(wish.clone()),
            lease: lease.clone(),
        })
    }

    /// The intent.
    pub fn key(&self) -> StoredKey {
        self.wish.key
    }

    /// Whether a renewal has found that the claim is no longer this call's.
    pub fn is_lost(&self) -> bool {
        self.lease.is_lost()
    }

    /// Asks the store whether the claim is still this call's. By a look, and not by a renewal: those
    /// may hang, and are sent beside the call for that reason.
    pub async fn is_held(&self) -> StoreResult<bool> {
        let record = self.store.get(&self.wish.key).await?;
        Ok(record.is_some_and(|record| {
            *record.owner == *self.wish.owner && record.state == RecordState::Inflight
        }))
    }

    /// Puts on record that the call starts now. Refused, it must not: the claim is another's.
    pub async fn begin(&self) -> StoreResult<Result<(), Refused>> {
        let lease_ms = self.lease.running_ms();
        let begun = self
            .store
            .begin(&self.wish.key, &self.wish.owner, lease_ms)
            .await?;
        if begun.is_ok() {
            self.lease.has_begun();
        }
        Ok(begun)
    }

    /// Takes the claim of a call like this one, if nobody has it.
    pub async fn take_over(&self, key: StoredKey) -> StoreResult<TakenOver> {
        let wish = ClaimRequest {
            key,
            // Only that very call: one with equal content is this call's own affair.
            content: None,
            on_retriable_failure: OnRetriableFailure::Replay,
            ..(*self.wish).clone()
        };
        // Before it is asked for: one that is granted, and whose answer is lost, is given back.
        let mut claim = ForeignClaim {
            store: self.store.clone(),
            wish,
            is_open: true,
        };
        let answer = claim.store.claim(&claim.wish).await?;
        claim.is_open = matches!(answer, Claim::Granted { .. });
        Ok(match answer {
            Claim::Granted { .. } => TakenOver::Free(Box::new(claim)),
            Claim::InFlight { .. } => TakenOver::Running,
            Claim::Ended(_) | Claim::Conflict { .. } => TakenOver::Over,
        })
    }
}

/// The claim of another call, held for a moment. Nothing is run on it.
pub struct ForeignClaim {
    store: Arc<dyn DedupeStore>,
    wish: ClaimRequest,
    is_open: bool,
}

impl ForeignClaim {
    /// Gives it back.
    pub async fn release(mut self) -> StoreResult<()> {
        let released = self.store.release(&self.wish.key, &self.wish.owner).await;
        self.is_open = released.is_err();
        released.map(|_| ())
    }
}

impl Drop for ForeignClaim {
    fn drop(&mut self) {
        if self.is_open {
            self.store.finalise_detached(Finalisation {
                key: self.wish.key,
                owner: self.wish.owner.clone(),
                ending: Ending::Cancelled,
                execution: Execution::default(),
                lifetimes: self.wish.lifetimes,
            });
        }
    }
}
