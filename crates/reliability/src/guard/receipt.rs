//! Word from the doors that an answer has arrived.

use std::sync::Arc;

use super::answers::RecordMark;
use super::layer::turn_of;
use super::{GuardStore, TurnKey};
use crate::call::Call;
use crate::idempotency::is_known_by_call_id;
use crate::observe::Event;
use crate::policy::Mode;
use crate::runtime::Runtime;

/// The answer of a call that is known by its id within a turn. Whoever hands the answer over says so
/// here; dropped, it says that the answer may have been lost.
#[must_use = "an answer that nobody says has arrived counts as lost"]
pub struct Receipt {
    store: Arc<dyn GuardStore>,
    runtime: Arc<Runtime>,
    turn: TurnKey,
    record: RecordMark,
}

impl Receipt {
    /// For a call that has been answered; none where nobody has to know.
    pub fn of(call: &Call, store: &Arc<dyn GuardStore>, runtime: &Arc<Runtime>) -> Option<Self> {
        if call.modes.guard != Mode::Enforce {
            return None;
        }
        Some(Self {
            record: record_of(call)?,
            store: store.clone(),
            runtime: runtime.clone(),
            turn: turn_of(call),
        })
    }

    /// The answer has arrived.
    pub async fn delivered(self) {
        if let Err(error) = self.store.delivered(&self.turn, self.record).await {
            self.runtime.tell(&Event::StoreTrouble {
                what: "delivered",
                error: &error,
            });
        }
    }
}

/// The record of a call whose id may come again for another call.
pub(super) fn record_of(call: &Call) -> Option<RecordMark> {
    let key = call.stored_key.filter(|_| is_known_by_call_id(call))?;
    Some(RecordMark::of(&key))
}
