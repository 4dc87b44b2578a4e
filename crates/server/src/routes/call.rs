//! `POST /v1/tools/call`: an envelope in, a result envelope out.
//!
//! The HTTP status says whether Holdfast could do its part; the envelope says what became of the
//! call. A tool that ran and failed is a 200 with an error inside, since sending the same request
//! again could not change it.

use std::sync::Arc;

use axum::extract::Request;
use axum::response::Response;
use holdfast_contract::code::CODES;
use holdfast_contract::{ErrorCode, ResultError, ToolCallEnvelope, ToolResultEnvelope};
use holdfast_reliability::retry::THROTTLED;
use http::StatusCode;
use http::header::{HeaderValue, RETRY_AFTER};

use crate::limits::{BODY_BYTES_MAX, RETRY_AFTER_S};
use crate::receipts::Receipts;
use crate::respond::{json_response, whole_seconds};
use crate::server::Server;

pub(super) async fn handle(server: Arc<Server>, request: Request) -> Response {
    let _slot = match server.begin_call() {
        Ok(slot) => slot,
        Err(refusal) => return server.refuse(refusal),
    };
    let connection = request.extensions().get::<Receipts>().cloned();
    let body = match server.read_json(request, BODY_BYTES_MAX).await {
        Ok(body) => body,
        Err(refusal) => return server.refuse(refusal),
    };
    let Ok(envelope) = ToolCallEnvelope::parse(&body) else {
        // Answered by the stack, which says what is wrong.
        return answer(&Box::pin(server.stack.call_bytes(&body)).await);
    };
    // A call may wait for a person, and what it was read from need not.
    drop(body);
    let answered = server.call(envelope).await;
    if let (Some(connection), Some(receipt)) = (connection, answered.receipt) {
        connection.keep(receipt);
    }
    answer(&answered.result)
}

fn answer(result: &ToolResultEnvelope) -> Response {
    let status = status_of(result);
    let mut response = json_response(status, result);
    if let Some(seconds) = retry_after_s(status, result) {
        let value = HeaderValue::from(seconds);
        response.headers_mut().insert(RETRY_AFTER, value);
    }
    response
}

/// When to come again, for answers that invite to.
pub(super) fn retry_after_s(status: StatusCode, result: &ToolResultEnvelope) -> Option<u64> {
    let invites = matches!(
        status,
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::CONFLICT | StatusCode::TOO_MANY_REQUESTS
    );
    let known_ms = result.error.as_ref().and_then(|error| error.retry_after_ms);
    invites.then(|| known_ms.map_or(RETRY_AFTER_S, whole_seconds))
}

/// The HTTP status of a result.
pub fn status_of(result: &ToolResultEnvelope) -> StatusCode {
    match result.error_code().and_then(own_code) {
        Some(code) => http_status(code),
        None if is_throttled(result) => StatusCode::TOO_MANY_REQUESTS,
        // It worked, or the tool says why not in words of its own.
        None => StatusCode::OK,
    }
}

/// Whether a tool of ours did nothing because it is asked too often: waiting helps, and it is known
/// how long.
pub(super) fn is_throttled(result: &ToolResultEnvelope) -> bool {
    let waits = |error: &ResultError| error.code == THROTTLED && error.retry_after_ms.is_some();
    result.error.as_ref().is_some_and(waits)
}

/// One of our own codes, by its name.
pub(super) fn own_code(name: &str) -> Option<ErrorCode> {
    CODES
        .iter()
        .map(|row| row.code)
        .find(|code| code.as_str() == name)
}

/// The HTTP status of an error code.
pub fn http_status(code: ErrorCode) -> StatusCode {
    match code {
        ErrorCode::InvalidEnvelope | ErrorCode::InvalidArguments => StatusCode::BAD_REQUEST,
        ErrorCode::PermissionDenied | ErrorCode::RefusedByHook => StatusCode::FORBIDDEN,
        ErrorCode::ToolNotFound => StatusCode::NOT_FOUND,
        ErrorCode::DuplicateInFlight => StatusCode::CONFLICT,
        // Understood, and not done because of what was asked. Not 429: waiting changes nothing,
        // and clients repeat a 429 by themselves.
        ErrorCode::IdempotencyKeyConflict | ErrorCode::LoopDetected | ErrorCode::ToolErrorLimit => {
            StatusCode::UNPROCESSABLE_ENTITY
        }
        // The one case that the status is meant for: waiting helps, and it is said how long.
        ErrorCode::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        // Nothing ran, and later it may.
        ErrorCode::CircuitOpen
        | ErrorCode::StoreFull
        | ErrorCode::StoreUnavailable
        | ErrorCode::Cancelled => StatusCode::SERVICE_UNAVAILABLE,
        // The tool was tried; what became of it is in the envelope.
        ErrorCode::Timeout
        | ErrorCode::OutcomeUnknown
        | ErrorCode::ExecutionFailed
        | ErrorCode::ToolPanicked
        | ErrorCode::OutputTooLarge => StatusCode::OK,
    }
}
