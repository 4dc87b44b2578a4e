//! How an answered call goes on record.

use holdfast_contract::{ErrorCode, ResultOutput};

use super::ends_in_doubt;
use super::record::{RecordError, output_bytes};
use super::transition::Ending;
use crate::call::{Call, Failure, Reply};

/// How the call goes on record; `None` when nothing ran, so that the claim is taken back.
pub(super) fn ending_of(call: &Call, reply: &Reply) -> Option<Ending> {
    match &reply.outcome {
        Ok(output) => Some(done(output, call.policy.payload_bytes_max)),
        Err(failure) if may_have_happened(call, failure) => {
            Some(Ending::Unknown(record_error(failure)))
        }
        Err(failure) if !call.started.is_set() || ended_before_any_effect(failure) => None,
        Err(failure) => Some(Ending::Failed(record_error(failure))),
    }
}

/// A success, with its output if that can be kept.
pub(super) fn done(output: &ResultOutput, payload_bytes_max: usize) -> Ending {
    if output_bytes(output) > payload_bytes_max {
        Ending::DoneWithoutOutput
    } else {
        Ending::Done(output.clone())
    }
}

/// By the code, which an enforcing retry layer sets, or by how far the call got, where it only
/// watches.
fn may_have_happened(call: &Call, failure: &Failure) -> bool {
    failure.is(ErrorCode::OutcomeUnknown) || ends_in_doubt(call)
}

/// A tool that finds its arguments or its rights wanting did nothing, and a corrected call has to
/// be able to run.
fn ended_before_any_effect(failure: &Failure) -> bool {
    failure.is(ErrorCode::InvalidArguments) || failure.is(ErrorCode::PermissionDenied)
}

fn record_error(failure: &Failure) -> RecordError {
    RecordError {
        code: failure.code.to_string(),
        message: failure.message.clone(),
        terminal: failure.terminal,
        should_retriable: failure.retriable,
        status: failure.status,
    }
}
