//! The innermost service: the tool itself.

use std::borrow::Cow;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use holdfast_contract::{
    CallContext, Cause, ErrorCode, ResultOutput, Status, ToolContext, ToolError, ToolResult, Trust,
};
use serde_json::{Map, Value};

use crate::call::{Besides, Call, Failure, Judged, Origin, Reply};
use crate::guard::FailureKind;
use crate::idempotency::record::{AttemptNote, AttemptStatus};
use crate::retry::{Classified, Evidence, RequestSent, THROTTLED};
use crate::runtime::Runtime;
use crate::service::Service;
use crate::timeout::told_limit_ms;

/// The member of a result's metadata that says how far it is trusted.
pub const TRUST_FIELD: &str = "trust";

/// Runs the tool. A panic inside it becomes an error and goes no further.
pub struct Execute {
    runtime: Arc<Runtime>,
}

impl Execute {
    /// The end of the stack.
    pub fn new(runtime: Arc<Runtime>) -> Self {
        Self { runtime }
    }
}

impl Service for Execute {
    async fn call(&self, call: &mut Call) -> Reply {
        let Some(tool) = call.tool.clone() else {
            // The resolve layer has answered such a call already.
            return Failure::before_start(
                ErrorCode::ToolNotFound,
                "no tool was resolved",
                Judged::Counts(FailureKind::UnknownTool),
            )
            .into();
        };
        let told_ms = told_limit_ms(attempt_limit_ms(call));
        let context = tool_context(call, call.attempt_count() + 1, Some(told_ms));
        let started_at_ms = self.runtime.clock.now_ms();
        // Noted before it runs: an attempt that is cut off from outside was still made.
        call.attempts.push(AttemptNote {
            started_at_ms,
            finished_at_ms: started_at_ms,
            status: AttemptStatus::Error,
            retriable: false,
            error_code: Some(ErrorCode::OutcomeUnknown.as_str().into()),
        });
        call.started.set();
        // Called inside the block, so that a panic before the first await is caught as well.
        let running =
            AssertUnwindSafe(async { tool.execute(&call.envelope.payload.params, &context).await });
        let outcome = match running.catch_unwind().await {
            Ok(Ok(result)) => Ok(output_of(result)),
            Ok(Err(error)) => Err(failure_of(call, error)),
            Err(panic) => Err(panicked(&*panic)),
        };
        match &outcome {
            Ok(output) => call.started.finished(output),
            Err(failure) if failure.evidence == Evidence::NoEffect => {
                call.started.ended_without_effect();
            }
            Err(_) => {}
        }
        note_end(call, &outcome, self.runtime.clock.now_ms());
        Reply {
            outcome,
            cache: None,
        }
    }
}

fn note_end(call: &mut Call, outcome: &Result<ResultOutput, Failure>, finished_at_ms: u64) {
    if let Some(note) = call.attempts.last_mut() {
        note.finished_at_ms = finished_at_ms;
        match outcome {
            Ok(_) => {
                note.status = AttemptStatus::Success;
                note.error_code = None;
            }
            Err(failure) => {
                note.retriable = failure.retriable;
                note.error_code = Some(failure.code.clone());
            }
        }
    }
}

/// The limit of one attempt: the caller's hint, bounded by the tool's own setting.
pub(crate) fn attempt_limit_ms(call: &Call) -> u64 {
    let own_ms = call.policy.timeout_ms;
    call.envelope
        .hints()
        .timeout_ms
        .map_or(own_ms, |hint_ms| hint_ms.min(own_ms))
}

/// The limit that a tool kept: the attempt's, where it took all that it was told of it, else one of
/// its own.
fn limit_passed_ms(call: &Call, elapsed_ms: u64) -> u64 {
    let limit_ms = attempt_limit_ms(call);
    let is_of_attempt = (told_limit_ms(limit_ms)..limit_ms).contains(&elapsed_ms);
    if is_of_attempt { limit_ms } else { elapsed_ms }
}

/// What the tool is handed.
pub(crate) fn tool_context(call: &Call, attempt: u32, time_limit_ms: Option<u64>) -> ToolContext {
    ToolContext {
        session: call.session.clone(),
        call: CallContext {
            request_id: call.envelope.request_id.clone(),
            idempotency_key: call.stored_key.map(|key| key.to_string()),
            attempt,
            time_limit_ms,
            lifeline: call.lifeline.clone(),
            // The arguments are a model's words, and those are never trusted more than a tool's.
            input_trust: call.input_trust.min(Trust::Tool),
            hosts: call.hosts.clone(),
        },
    }
}

/// The output as it leaves and as it is recorded.
pub(crate) fn output_of(result: ToolResult) -> ResultOutput {
    let mut metadata = Map::new();
    if !result.display.is_empty() {
        metadata.insert("display".to_owned(), Value::String(result.display));
    }
    if !result.artifacts.is_empty() {
        let artifacts = serde_json::to_value(&result.artifacts).unwrap_or_default();
        metadata.insert("artifacts".to_owned(), artifacts);
    }
    if let Some(code) = result.exit_code {
        metadata.insert("exitCode".to_owned(), Value::from(code));
    }
    if let Some(trust) = result.trust {
        metadata.insert(TRUST_FIELD.to_owned(), Value::from(trust.as_str()));
    }
    ResultOutput {
        content: Arc::new(result.output),
        metadata: if metadata.is_empty() {
            None
        } else {
            Some(metadata)
        },
    }
}

fn failure_of(call: &Call, error: ToolError) -> Failure {
    match error {
        ToolError::ValidationError { message, field } => {
            let message = match &field {
                Some(field) => format!("{field}: {message}"),
                None => message,
            };
            Failure::before_start(
                ErrorCode::InvalidArguments,
                message,
                Judged::Counts(FailureKind::Validation),
            )
            .with_field(field)
        }
        ToolError::PermissionDenied { tier, reason } => Failure::before_start(
            ErrorCode::PermissionDenied,
            format!("{reason} (tier {tier:?})"),
            Judged::Counts(FailureKind::Permission),
        ),
        ToolError::Timeout { elapsed, so_far } => Failure {
            besides: so_far.map(|found| {
                Box::new(Besides {
                    details: Some(*found),
                    ..Besides::default()
                })
            }),
            ..timed_out(limit_passed_ms(call, millis(elapsed)))
        },
        ToolError::ExecutionError { message, cause } => from_cause(call, message, &cause),
    }
}

fn from_cause(call: &Call, message: String, cause: &Cause) -> Failure {
    let lists = &call.policy.retry;
    let mut classified = match cause {
        Cause::Deterministic => Classified::caller_mistake(ErrorCode::ExecutionFailed.as_str()),
        Cause::LostTrack => Classified::unknown(ErrorCode::ExecutionFailed.as_str()),
        Cause::Http {
            status,
            retry_after_ms,
        } => Classified::http(*status, *retry_after_ms),
        Cause::Transport { code } | Cause::NoSuchAddress { code } => {
            Classified::named(code, RequestSent::Maybe)
        }
        Cause::Throttled { retry_after_ms } => Classified::throttled(THROTTLED, *retry_after_ms),
        Cause::Coded { code } => Classified::caller_mistake(code.clone()),
    }
    .under(lists);
    match cause {
        // The tool says that it failed, not that nothing happened: a list that makes its code worth
        // a retry does not make the retry safe.
        Cause::Deterministic | Cause::Coded { .. } if classified.retriable => {
            classified.evidence = Evidence::MayHaveHappened;
        }
        // Our own side is busy, or a name is misspelt: that says nothing about what the tool depends
        // on.
        Cause::Throttled { .. } | Cause::NoSuchAddress { .. } => {
            classified.counts_for_breaker = false;
        }
        _ => {}
    }
    Failure {
        status: Status::Error,
        origin: Origin::Tool,
        message,
        hint: None,
        retriable: classified.retriable,
        terminal: !classified.retriable,
        evidence: classified.evidence,
        counts_for_breaker: classified.counts_for_breaker,
        retry_after_ms: classified.retry_after_ms,
        judged: Judged::Counts(if classified.retriable {
            FailureKind::Retryable
        } else {
            FailureKind::Deterministic
        }),
        breaker_state: None,
        besides: None,
        code: classified.code,
    }
}

/// An attempt that ran out of time: it may still have had its effect.
pub(crate) fn timed_out(limit_ms: u64) -> Failure {
    let classified = Classified::timeout();
    Failure {
        status: Status::Timeout,
        code: Cow::Borrowed(ErrorCode::Timeout.as_str()),
        origin: Origin::Holdfast,
        message: format!("the tool did not answer within {limit_ms} ms"),
        hint: Some(ErrorCode::Timeout.doc().next.to_owned()),
        retriable: true,
        terminal: false,
        evidence: Evidence::MayHaveHappened,
        counts_for_breaker: classified.counts_for_breaker,
        retry_after_ms: None,
        judged: Judged::Counts(FailureKind::Retryable),
        breaker_state: None,
        besides: None,
    }
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> Failure {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    let mut failure = Failure::before_start(
        ErrorCode::ToolPanicked,
        format!("the tool panicked: {text}"),
        Judged::Counts(FailureKind::Deterministic),
    );
    failure.evidence = Evidence::MayHaveHappened;
    failure.counts_for_breaker = true;
    failure
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
