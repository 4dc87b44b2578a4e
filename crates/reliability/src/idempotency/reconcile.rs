//! Asking the tool what became of a call whose answer was lost.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;
use holdfast_contract::{CacheMatch, Reconciled};

use super::ending::done;
use super::layer::Idempotency;
use super::record::SharedRecord;
use super::replay::cache_hit;
use super::transition::{Ending, Finalisation};
use crate::call::{Call, Reply};
use crate::execute::{attempt_limit_ms, output_of, tool_context};
use crate::observe::Event;
use crate::service::Service;
use crate::store::DedupeStore;
use crate::timeout::told_limit_ms;

/// What asking led to.
pub(super) enum Asked {
    /// The effect happened, and this is the answer.
    Answered(Reply),
    /// The effect did not happen: the call may be claimed again.
    ClaimAgain,
    /// Nobody knows.
    StillUnknown,
}

impl<S: Service> Idempotency<S> {
    /// Asks the tool whether an unknown call took effect, and puts what it says on record.
    pub(super) async fn reconcile(
        &self,
        call: &mut Call,
        store: &dyn DedupeStore,
        record: &SharedRecord,
    ) -> Asked {
        match ask(call, record).await {
            Reconciled::Done(result) => {
                call.explain("the tool says that the unknown call took effect");
                let output = output_of(result);
                let ending = done(&output, call.policy.payload_bytes_max);
                // When it can not be recorded, the next duplicate asks again.
                self.settle(store, record, ending, call).await;
                let now_ms = self.runtime.clock.now_ms();
                Asked::Answered(Reply {
                    outcome: Ok(output),
                    cache: Some(cache_hit(record, CacheMatch::Completed, now_ms)),
                })
            }
            Reconciled::NotDone => {
                call.explain("the tool says that the unknown call did not take effect: it may run");
                // By the claim's own token, so that of several who ask at the same time only the
                // first one takes the record, and none takes the claim of one who runs already.
                if self.settle(store, record, Ending::Cancelled, call).await {
                    Asked::ClaimAgain
                } else {
                    Asked::StillUnknown
                }
            }
            Reconciled::CanNotTell => Asked::StillUnknown,
        }
    }

    /// Says whether the store could be asked. That it refused is fine: somebody else settled it.
    async fn settle(
        &self,
        store: &dyn DedupeStore,
        record: &SharedRecord,
        ending: Ending,
        call: &Call,
    ) -> bool {
        let last_word = Finalisation {
            key: record.key,
            owner: record.owner.clone(),
            ending,
            execution: record.execution.clone().unwrap_or_default(),
            lifetimes: call.policy.lifetimes,
        };
        match store.finalise(last_word).await {
            Ok(_) => true,
            Err(error) => {
                self.runtime.tell(&Event::StoreTrouble {
                    what: "finalise",
                    error: &error,
                });
                false
            }
        }
    }
}

/// The tool gets as much time as for an attempt. If it panics or takes longer, nobody knows.
async fn ask(call: &Call, record: &SharedRecord) -> Reconciled {
    let Some(tool) = &call.tool else {
        return Reconciled::CanNotTell;
    };
    let limit_ms = attempt_limit_ms(call);
    let mut context = tool_context(call, 0, Some(told_limit_ms(limit_ms)));
    // The key the lost call ran under; an echo of it has another of its own.
    context.call.idempotency_key = Some(record.key.to_string());
    let params = &call.envelope.payload.params;
    let asking = AssertUnwindSafe(async { tool.reconcile(params, &context).await }).catch_unwind();
    match tokio::time::timeout(Duration::from_millis(limit_ms), asking).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(_)) | Err(_) => Reconciled::CanNotTell,
    }
}
