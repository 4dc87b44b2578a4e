//! Calls whose holder is lost: what is on record about them from then on.

use holdfast_contract::{ErrorCode, Status};

use super::record::{DedupeRecord, RecordError, RecordState};
use super::transition::{ClaimRequest, Holder};

/// Whether nobody will ever say how a running call ended.
pub(crate) fn is_lost(record: &DedupeRecord, holder: Holder, now_ms: u64) -> bool {
    holder == Holder::Dead || record.lease_has_ended(now_ms)
}

/// Whether a call was lost while it waited for leave to start.
pub(super) fn is_lost_before_start(record: &DedupeRecord, holder: Holder, now_ms: u64) -> bool {
    record.state == RecordState::Inflight && record.held && is_lost(record, holder, now_ms)
}

/// Since when nobody knows how a lost call ended. Until its lease was over it may have done its work,
/// so the doubt begins no earlier, and it begins no later: how long ago a process died does not
/// depend on when somebody asks.
pub(super) fn doubted_since_ms(record: &DedupeRecord, now_ms: u64) -> u64 {
    record
        .lock_until_ms
        .map_or(now_ms, |until_ms| until_ms.min(now_ms))
}

/// The record of a lost call with equal content that does not keep another from being sent.
pub(super) fn passed_over(
    record: &DedupeRecord,
    holder: Holder,
    wish: &ClaimRequest,
    now_ms: u64,
) -> Option<DedupeRecord> {
    if record.state != RecordState::Inflight || !is_lost(record, holder, now_ms) {
        return None;
    }
    Some(if record.held {
        turned_cancelled(record, wish, now_ms)
    } else {
        turned_unknown(record, wish, now_ms)
    })
}

/// The record of a call that was lost while it waited, and whose content another call sends now.
fn turned_cancelled(record: &DedupeRecord, wish: &ClaimRequest, now_ms: u64) -> DedupeRecord {
    DedupeRecord {
        state: RecordState::Cancelled,
        updated_at_ms: now_ms,
        expires_at_ms: now_ms.saturating_add(wish.lifetimes.cancelled_ms),
        ttl_ms: wish.lifetimes.cancelled_ms,
        lock_until_ms: None,
        held: false,
        version: record.version + 1,
        ..record.clone()
    }
}

/// The record of a holder that is lost. Its owner stays on record, so that it can still bring the
/// truth when it comes back. It is kept from now on, and in doubt since it was lost.
pub(super) fn turned_unknown(
    record: &DedupeRecord,
    wish: &ClaimRequest,
    now_ms: u64,
) -> DedupeRecord {
    let since_ms = doubted_since_ms(record, now_ms);
    let expires_at_ms = now_ms.saturating_add(wish.lifetimes.unknown_ms);
    DedupeRecord {
        state: RecordState::Unknown,
        updated_at_ms: since_ms,
        expires_at_ms,
        ttl_ms: expires_at_ms.saturating_sub(since_ms),
        lock_until_ms: None,
        version: record.version + 1,
        error: Some(lost(&record.request.request_id)),
        ..record.clone()
    }
}

/// What stands on record about a call whose holder is lost.
pub(crate) fn lost(request_id: &str) -> RecordError {
    RecordError {
        code: ErrorCode::OutcomeUnknown.as_str().to_owned(),
        message: format!(
            "the process that ran this call (request {request_id}) ended or stalled before it could \
             say how the call ended, so the effect may have happened"
        ),
        terminal: true,
        should_retriable: false,
        status: Status::Error,
    }
}
