//! A record's answer to a call that is not run.

use holdfast_contract::{CacheHit, CacheMatch, ErrorCode};

use super::record::{DedupeRecord, RecordState};
use crate::call::{Call, Failure, Judged, Origin, Reply};
use crate::guard::FailureKind;
use crate::observe::Event;
use crate::policy::Mode;
use crate::retry::Evidence;
use crate::runtime::Runtime;

/// What the record says, as an answer to this call.
pub(super) fn replay(
    call: &mut Call,
    runtime: &Runtime,
    record: &DedupeRecord,
    matched_on: CacheMatch,
) -> Reply {
    runtime.tell(&Event::DedupeHit {
        call,
        state: record.state,
        mode: Mode::Enforce,
    });
    call.explain(format!(
        "answered from the record {} of request {} ({})",
        record.key.fingerprint(),
        record.request.request_id,
        record.state.as_str()
    ));
    call.redelivered = is_same_delivery(call, record);
    let cache = Some(cache_hit(record, matched_on, runtime.clock.now_ms()));
    let outcome = match (&record.payload, &record.error) {
        (Some(payload), _) => Ok(payload.clone()),
        (None, Some(error)) => Err(Failure {
            status: error.status,
            code: error.code.clone().into(),
            origin: Origin::Tool,
            message: error.message.clone(),
            hint: hint_for(&error.code),
            retriable: error.should_retriable,
            terminal: error.terminal,
            evidence: if record.state == RecordState::Unknown {
                Evidence::MayHaveHappened
            } else {
                Evidence::NoEffect
            },
            counts_for_breaker: false,
            retry_after_ms: None,
            // As the first time: what is unknown is no verdict on the call, and must not keep it
            // from running once a person has cleared the key.
            judged: Judged::Counts(
                if error.should_retriable || record.state == RecordState::Unknown {
                    FailureKind::Retryable
                } else {
                    FailureKind::Deterministic
                },
            ),
            breaker_state: None,
            besides: None,
        }),
        (None, None) => Err(Failure::before_start(
            ErrorCode::OutputTooLarge,
            "the call was done before; its output was too large to be recorded",
            Judged::Neutral,
        )),
    };
    Reply { outcome, cache }
}

pub(super) fn cache_hit(record: &DedupeRecord, matched_on: CacheMatch, now_ms: u64) -> CacheHit {
    CacheHit {
        matched_on,
        age_ms: now_ms.saturating_sub(record.updated_at_ms),
        key_fingerprint: record.key.fingerprint().to_string(),
    }
}

/// Whether the record was made by this very call, delivered again by a transport or a resumed run.
///
/// A `toolCallId` does not say so: servers reuse them, and a model that loops would be taken for a
/// transport that repeats itself.
fn is_same_delivery(call: &Call, record: &DedupeRecord) -> bool {
    record.request.request_id == call.envelope.request_id
        || (call.is_unnamed()
            && call.envelope.payload.tool_step.is_some()
            && call.stored_key == Some(record.key))
}

fn hint_for(code: &str) -> Option<String> {
    holdfast_contract::code::CODES
        .iter()
        .find(|row| row.code.as_str() == code)
        .map(|row| row.next.to_owned())
}
