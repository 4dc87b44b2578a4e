//! A claim whose call waits for leave to start.

use std::sync::Arc;

use holdfast_contract::Lifeline;
use tokio::sync::Mutex;

use super::key::StoredKey;
use super::lease::{Lease, LostTo, Standing};
use super::record::{Execution, RecordState};
use super::transition::{ClaimRequest, Ending, Finalisation, Hold, OnRetriableFailure, Refused};
use crate::store::{Claim, DedupeStore, StoreResult};

/// The claim of a call that waits, as the layer sees it that lets it start.
#[derive(Clone)]
pub struct HeldClaim {
    store: Arc<dyn DedupeStore>,
    wish: Arc<ClaimRequest>,
    lease: Arc<Lease>,
    /// That of a claim that was had anew. Locked while the claim is asked for: one that is granted
    /// and whose asker goes away is given back, and must not be a claim on which the call has begun.
    regained: Arc<Mutex<Option<Lifeline>>>,
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
            regained: Arc::default(),
        })
    }

    /// The intent.
    pub fn key(&self) -> StoredKey {
        self.wish.key
    }

    /// To whom the claim is lost, once that is certain.
    pub fn lost(&self) -> Option<LostTo> {
        self.lease.lost()
    }

    /// Whose the claim is, as far as is known without asking: what another goes on with is not this
    /// call's to end.
    pub fn standing(&self, now_ms: u64) -> Standing {
        self.lease.standing(now_ms)
    }

    /// Asks the store whether the claim is still this call's. By a look, and not by a renewal: those
    /// may hang, and are sent beside the call for that reason.
    pub async fn is_held(&self) -> StoreResult<bool> {
        let record = self.store.get(&self.wish.key).await?;
        Ok(record.is_some_and(|record| {
            *record.owner == *self.wish.owner && record.state == RecordState::Inflight
        }))
    }

    /// Has the claim again, if it is not this call's and nobody has it: whoever took this call for
    /// dead may have given it back. Nothing ran on it here, so it is claimed as it was at first.
    pub async fn regain(&self) -> StoreResult<Result<(), LostTo>> {
        let mut regained = self.regained.lock().await;
        self.regain_into(&mut regained).await
    }

    async fn regain_into(
        &self,
        regained: &mut Option<Lifeline>,
    ) -> StoreResult<Result<(), LostTo>> {
        // One that runs claims nothing anew: what became of its claim is told by its renewals.
        if self.lease.is_begun() || self.is_held().await? {
            return Ok(Ok(()));
        }
        // What is given up for good is renewed by nobody any more, so nothing may begin on it.
        if let Some(to) = self.lease.lost() {
            return Ok(Err(to));
        }
        if self.lease.is_alike() {
            return Ok(Err(LostTo::Alike));
        }
        let answer = match self.store.claim(&self.wish).await? {
            Claim::Granted { lifeline } => {
                *regained = lifeline;
                Ok(())
            }
            Claim::InFlight { ticket } if ticket.key == self.wish.key => Err(LostTo::Another),
            Claim::InFlight { .. } => {
                self.lease.has_its_like();
                Err(LostTo::Alike)
            }
            Claim::Ended(_) | Claim::Conflict { .. } => Err(LostTo::Nobody),
        };
        self.lease
            .contest(matches!(answer, Err(LostTo::Another | LostTo::Alike)));
        Ok(answer)
    }

    /// Puts on record that the call starts now. Refused, it must not: the claim is another's. What
    /// it gives is to be handed to the tool's children in the place of what they had, if it is there.
    pub async fn begin(&self) -> StoreResult<Result<Option<Lifeline>, Refused>> {
        let mut regained = self.regained.lock().await;
        let mut begun = self.begin_once().await?;
        if begun.is_err() && self.regain_into(&mut regained).await?.is_ok() {
            begun = self.begin_once().await?;
        }
        Ok(begun.map(|()| regained.take()))
    }

    async fn begin_once(&self) -> StoreResult<Result<(), Refused>> {
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
        let (answer, claim) = ForeignClaim::ask(&self.store, wish).await?;
        Ok(match answer {
            Claim::Granted { .. } => TakenOver::Free(Box::new(claim)),
            Claim::InFlight { .. } => TakenOver::Running,
            Claim::Ended(_) | Claim::Conflict { .. } => TakenOver::Over,
        })
    }

    /// Whether somebody else waits on the intent or runs it, or did so and ran nothing: whoever comes
    /// with its key then goes on with what they have left.
    ///
    /// By a look, and not by a claim: one of a call that is over would stand in everybody's way.
    pub async fn is_gone_on_with(&self) -> StoreResult<bool> {
        let record = self.store.get(&self.wish.key).await?;
        Ok(record.is_some_and(|record| {
            *record.owner != *self.wish.owner
                && matches!(record.state, RecordState::Inflight | RecordState::Cancelled)
        }))
    }
}

/// The claim of another call, held for a moment. Nothing is run on it.
pub struct ForeignClaim {
    store: Arc<dyn DedupeStore>,
    wish: ClaimRequest,
    is_open: bool,
}

impl ForeignClaim {
    /// Asks for a claim. It is to be settled only where it was granted.
    async fn ask(store: &Arc<dyn DedupeStore>, wish: ClaimRequest) -> StoreResult<(Claim, Self)> {
        // Before it is asked for: one that is granted, and whose answer is lost, is given back.
        let mut claim = Self {
            store: store.clone(),
            wish,
            is_open: true,
        };
        let answer = claim.store.claim(&claim.wish).await?;
        claim.is_open = matches!(answer, Claim::Granted { .. });
        Ok((answer, claim))
    }

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
