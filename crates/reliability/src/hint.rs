//! What to do next, in words that can be followed.
//!
//! The table of codes says it in general (`KEY`, `TOOL`); of a call the names are known.

use holdfast_contract::ErrorCode;

use crate::call::{Call, Failure, Reply};

/// Puts the names of this call into the hint of its failure. What a layer found better words for
/// stays as it is.
pub(crate) fn fill_in(call: &Call, reply: &mut Reply) {
    let record = match (&reply.cache, &call.stored_key) {
        (Some(hit), _) => Some(hit.key_fingerprint.clone()),
        (None, key) => key.map(|key| key.fingerprint().to_string()),
    };
    if let Err(failure) = &mut reply.outcome
        && let Some(hint) = words(call, record, failure)
    {
        failure.hint = Some(hint);
    }
}

fn words(call: &Call, record: Option<String>, failure: &Failure) -> Option<String> {
    // A record gives back the table's words too.
    let says = |code: ErrorCode| {
        failure.code == code.as_str() && failure.hint.as_deref() == Some(code.doc().next)
    };
    if says(ErrorCode::OutcomeUnknown) {
        return Some(match record {
            Some(record) => format!(
                "Check whether the effect is there. If it is not, `holdfast dedupe clear {record}` allows the call again."
            ),
            None => "Check whether the effect is there before you call again: no record of this call is kept, so it would run a second time."
                .to_owned(),
        });
    }
    if says(ErrorCode::InvalidArguments) {
        let tool = call.envelope.tool_name.trim();
        return Some(format!(
            "Correct the field. `holdfast tools {tool}` prints the whole schema."
        ));
    }
    if says(ErrorCode::Timeout)
        && let Some(approval) = &call.waiting_approval
    {
        let has_key = call.envelope.payload.idempotency_key.is_some() || call.hook_key.is_some();
        let then = if has_key {
            "then call again with the same key"
        } else if call.stored_key.is_some() {
            "then `holdfast approvals resume` runs it, or call the same once more: that goes on with this request"
        } else {
            "then `holdfast approvals resume` runs it. Do not call again: no record is kept, so that would be another call, which is asked about and runs by itself"
        };
        return Some(format!(
            "Nothing ran: it waits for the approval {approval}. Answer it (`holdfast approvals approve {approval}`), {then}."
        ));
    }
    None
}
