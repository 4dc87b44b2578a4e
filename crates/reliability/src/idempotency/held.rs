//! A claim whose call waits for leave to start.

use std::sync::Arc;

use super::key::StoredKey;
use super::record::{Execution, SharedRecord};
use super::transition::{ClaimRequest, Ending, Finalisation, Hold, OnRetriableFailure, Refused};
use crate::store::{Claim, DedupeStore, StoreResult, WaitTicket};

/// The claim of a call that waits, as the layer sees it that lets it start.
#[derive(Clone)]
pub struct HeldClaim {
    store: Arc<dyn DedupeStore>,
    wish: Arc<ClaimRequest>,
    /// From its start on.
    lease_ms: u64,
}

/// What became of the claim of another call.
pub enum TakenOver {
    /// Nobody had it: whoever held it is gone, and ran nothing.
    Free(ForeignClaim),
    /// Somebody has it.
    Running(WaitTicket),
    /// It has ended, and this is how.
    Ended(SharedRecord),
    /// The key belongs to a call with other arguments.
    Other,
}

impl HeldClaim {
    /// The claim, if it was made for a call that waits.
    pub(super) fn of(
        store: &Arc<dyn DedupeStore>,
        wish: &ClaimRequest,
        lease_ms: u64,
    ) -> Option<Self> {
        (wish.hold == Hold::Held).then(|| Self {
            store: store.clone(),
            wish: Arc::new(wish.clone()),
            lease_ms,
        })
    }

    /// The intent.
    pub fn key(&self) -> StoredKey {
        self.wish.key
    }

    /// Puts on record that the call starts now. Refused, it must not: the claim is another's.
    pub async fn begin(&self) -> StoreResult<Result<(), Refused>> {
        self.store
            .begin(&self.wish.key, &self.wish.owner, self.lease_ms)
            .await
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
            Claim::Granted { .. } => TakenOver::Free(claim),
            Claim::InFlight { ticket } => TakenOver::Running(ticket),
            Claim::Ended(record) => TakenOver::Ended(record),
            Claim::Conflict { .. } => TakenOver::Other,
        })
    }

    /// What came of a call like this one, once it has ended; `None` when nothing ran.
    pub async fn outcome_of(&self, key: StoredKey) -> StoreResult<Option<SharedRecord>> {
        loop {
            match self.take_over(key).await? {
                TakenOver::Ended(record) => return Ok(Some(record)),
                TakenOver::Running(ticket) => self.store.changed(ticket).await,
                TakenOver::Free(claim) => {
                    claim.release().await?;
                    return Ok(None);
                }
                TakenOver::Other => return Ok(None),
            }
        }
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
