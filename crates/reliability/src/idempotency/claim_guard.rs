//! A held claim. Whatever happens to its call, the record is left in a defined state.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use holdfast_contract::{ErrorCode, Status};

use super::derive::safety_when_given_up;
use super::ending::done;
use super::held::HeldClaim;
use super::key::StoredKey;
use super::lease::{Lease, LostTo, Sign, follows_soon, pause};
use super::record::{Execution, RecordError};
use super::transition::{ClaimRequest, Ending, Finalisation, Lifetimes, Refused};
use crate::call::{Call, Started};
use crate::observe::Event;
use crate::retry::RepeatSafety;
use crate::runtime::Runtime;
use crate::store::{DedupeStore, StoreResult};

/// Holds a claim and settles it when it is dropped.
///
/// It is made before the claim is asked for: a claim that the store has granted and whose answer
/// never arrived is held by us as well, and nobody else could give it back.
///
/// A caller that goes away drops the whole call. The claim then ends as done when the tool had
/// answered, as cancelled when nothing can have happened, else as unknown; never as "in flight"
/// for nobody.
pub(super) struct ClaimGuard {
    store: Arc<dyn DedupeStore>,
    key: StoredKey,
    owner: Arc<str>,
    lifetimes: Lifetimes,
    lease: Arc<Lease>,
    /// Whether the call may be made anew when nobody knows how it ended.
    when_given_up: RepeatSafety,
    payload_bytes_max: usize,
    started: Arc<Started>,
    /// What the drop will say, as long as nothing better is on record.
    open: Option<LastWord>,
}

/// What became of a renewal.
enum Renewal {
    Done,
    /// It has not come back and may have been written, or was overtaken by the call's beginning.
    Unsure,
    Lost(LostTo),
}

enum LastWord {
    /// Decided by how far the call got.
    ByProgress,
    /// The call ended this way, and only the store has not confirmed it yet.
    Known(Ending, Execution),
}

impl ClaimGuard {
    pub(super) fn new(
        store: Arc<dyn DedupeStore>,
        wish: &ClaimRequest,
        call: &Call,
        runtime: &Runtime,
    ) -> Self {
        let lease = Lease::new(wish, call.policy.lifetimes.lease_ms, Sign::now(runtime));
        Self {
            store,
            key: wish.key,
            owner: wish.owner.clone(),
            lifetimes: call.policy.lifetimes,
            lease: Arc::new(lease),
            when_given_up: safety_when_given_up(call),
            payload_bytes_max: call.policy.payload_bytes_max,
            started: call.started.clone(),
            open: Some(LastWord::ByProgress),
        }
    }

    /// The claim was not granted: there is nothing to settle.
    pub(super) fn stand_down(mut self) {
        self.open = None;
    }

    pub(super) fn lease(&self) -> &Arc<Lease> {
        &self.lease
    }

    /// Extends the lease, again and again. A lost claim does not stop a call that runs: it is the
    /// only one that can still bring the truth. One that waits has it again if nobody else does, and
    /// looks whether it is lost.
    pub(super) async fn keep(&self, held: Option<&HeldClaim>, runtime: &Runtime) -> Infallible {
        // A renewal sent while the call waited may arrive after its beginning and cut the lease
        // short. So the pace follows what was written last, and not what will be.
        let mut written_ms = self.lease.now_ms();
        let (mut failures, mut refusals) = (0_u32, 0_u32);
        loop {
            let third = Duration::from_millis((written_ms / 3).max(1));
            tokio::time::sleep(pause(third, failures)).await;
            let (lease_ms, asked) = (self.lease.now_ms(), Sign::now(runtime));
            match self.renewed(held, lease_ms, third).await {
                Ok(Renewal::Done) => {
                    written_ms = lease_ms;
                    (failures, refusals) = (0, 0);
                    self.lease.renewed(asked);
                    continue;
                }
                Ok(Renewal::Lost(to)) => {
                    if to.is_for_good(refusals) {
                        self.lease.lose(to);
                        return std::future::pending().await;
                    }
                    self.lease.contest(true);
                    // Asked again soon, also when the store was away before.
                    failures = refusals;
                    refusals += 1;
                }
                // Not each of those that follow soon.
                Err(error) if !follows_soon(failures) => runtime.tell(&Event::StoreTrouble {
                    what: "renew",
                    error: &error,
                }),
                Ok(Renewal::Unsure) | Err(_) => {}
            }
            failures = failures.saturating_add(1);
        }
    }

    async fn renewed(
        &self,
        held: Option<&HeldClaim>,
        lease_ms: u64,
        patience: Duration,
    ) -> StoreResult<Renewal> {
        let has_waited = !self.lease.is_begun();
        let renewal = self.store.renew(&self.key, &self.owner, lease_ms);
        // One that does not come back must not keep the next from being sent.
        let Ok(renewed) = tokio::time::timeout(patience, renewal).await else {
            return Ok(Renewal::Unsure);
        };
        if renewed?.is_ok() {
            return Ok(Renewal::Done);
        }
        let Some(held) = held.filter(|_| has_waited) else {
            return Ok(Renewal::Lost(LostTo::Nobody));
        };
        if self.lease.is_begun() {
            // The call has its claim anew since this was sent, and runs on it.
            return Ok(Renewal::Unsure);
        }
        // For as long as it takes: a claim that is cut off in the middle is given back, perhaps late.
        // In a box: nearly every call never comes here, and must not carry the room for it.
        Ok(match Box::pin(held.regain()).await? {
            Ok(()) => Renewal::Done,
            Err(to) => Renewal::Lost(to),
        })
    }

    /// Takes the claim back: nothing ran.
    pub(super) async fn release(&mut self, runtime: &Runtime) {
        self.open = Some(LastWord::Known(Ending::Cancelled, Execution::default()));
        let released = self.store.release(&self.key, &self.owner).await;
        self.settled("release", released, runtime);
    }

    /// Records how the call ended.
    pub(super) async fn finalise(
        &mut self,
        ending: Ending,
        execution: Execution,
        runtime: &Runtime,
    ) {
        self.open = Some(LastWord::Known(ending.clone(), execution.clone()));
        let recorded = self.store.finalise(self.last_word(ending, execution)).await;
        self.settled("finalise", recorded, runtime);
    }

    fn settled(
        &mut self,
        what: &'static str,
        result: StoreResult<Result<(), Refused>>,
        runtime: &Runtime,
    ) {
        match result {
            // Refused: an operator cleared the record, or it was settled without us. Either way
            // there is nothing left to say.
            Ok(_) => self.open = None,
            // The drop tries once more; until then the lease protects the effect.
            Err(error) => runtime.tell(&Event::StoreTrouble {
                what,
                error: &error,
            }),
        }
    }

    fn last_word(&self, ending: Ending, execution: Execution) -> Finalisation {
        Finalisation {
            key: self.key,
            owner: self.owner.clone(),
            ending,
            execution,
            lifetimes: self.lifetimes,
        }
    }

    fn ending_by_progress(&self) -> Ending {
        if let Some(output) = self.started.output() {
            return done(output, self.payload_bytes_max);
        }
        if !self.started.may_have_effect() {
            return Ending::Cancelled;
        }
        match self.when_given_up {
            RepeatSafety::Safe => Ending::Cancelled,
            RepeatSafety::Unsafe => Ending::Unknown(RecordError {
                code: ErrorCode::OutcomeUnknown.as_str().to_owned(),
                message: "the caller went away while the tool was running, so the effect may have \
                          happened"
                    .to_owned(),
                terminal: true,
                should_retriable: false,
                status: Status::Error,
            }),
        }
    }
}

impl Drop for ClaimGuard {
    fn drop(&mut self) {
        let (ending, execution) = match self.open.take() {
            None => return,
            Some(LastWord::ByProgress) => (self.ending_by_progress(), Execution::default()),
            Some(LastWord::Known(ending, execution)) => (ending, execution),
        };
        self.store
            .finalise_detached(self.last_word(ending, execution));
    }
}

#[cfg(test)]
#[path = "claim_guard_tests.rs"]
mod tests;
