//! The answer to an envelope that can not be read.

use holdfast_contract::redact::Redactor;
use holdfast_contract::{
    EnvelopeError, ErrorCode, ResultError, Status, ToolResultEnvelope, TurnStand,
};

/// A malformed envelope is answered at once: no attempt, no record, no retry.
pub(crate) fn malformed(error: &EnvelopeError, redactor: &Redactor) -> ToolResultEnvelope {
    let code = ErrorCode::InvalidEnvelope;
    ToolResultEnvelope {
        request_id: error.request_id.clone().unwrap_or_default(),
        status: Status::Error,
        from_cache: false,
        cache: None,
        tool_name: error.tool_name.clone().unwrap_or_default(),
        duration_ms: 0,
        attempts: 0,
        output: None,
        error: Some(ResultError {
            code: code.as_str().to_owned(),
            message: redactor
                .redact_text(&format!("invalid envelope: {error}"))
                .into_owned(),
            retriable: false,
            terminal: true,
            breaker_state: None,
            hint: Some(code.doc().next.to_owned()),
            retry_after_ms: None,
            escalation: None,
            details: None,
            turn: TurnStand::GoesOn,
        }),
        retried_by: Vec::new(),
    }
}
