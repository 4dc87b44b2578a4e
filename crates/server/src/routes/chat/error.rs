//! Errors in the shape that clients know, with the codes of the executor.

use std::borrow::Cow;

use axum::response::Response;
use holdfast_agent::run::{Effects, RunError, RunErrorCode};
use holdfast_agent::runs::{Lost, RunStoreError, StartError};
use holdfast_reliability::store::StoreError;
use http::StatusCode;
use http::header::{HeaderName, HeaderValue, RETRY_AFTER};
use serde_json::{Value, json};

use crate::executor::Served;
use crate::limits::RETRY_AFTER_S;
use crate::respond::{Refusal, json_response, whole_seconds};
use crate::server::Server;
use crate::shape::{ChatErrorBody, ChatErrorText};

const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");
/// The kind of errors that a run ended with.
const EXECUTION: &str = "ExecutionError";
const INVALID: &str = "invalid_request_error";
/// The code of a request that can not be understood.
const INVALID_REQUEST: &str = "invalid_request";
const NO_MODEL: &str = "model_not_found";

/// An error, before it is written.
#[derive(Debug, Clone)]
pub(crate) struct ChatError {
    pub(super) status: StatusCode,
    kind: &'static str,
    code: &'static str,
    message: Cow<'static, str>,
    retry_after_s: Option<u64>,
    again: Again,
    metadata: Option<Box<Value>>,
    /// A refusal that has a shape of its own beyond the body.
    refusal: Option<Box<Refusal>>,
}

/// What a client's own retries are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Again {
    /// Nothing: the status says it.
    AsStatusSays,
    /// Not to.
    No,
}

impl ChatError {
    fn new(
        status: StatusCode,
        kind: &'static str,
        code: &'static str,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            status,
            kind,
            code,
            message: message.into(),
            retry_after_s: None,
            again: Again::AsStatusSays,
            metadata: None,
            refusal: None,
        }
    }

    /// A request that can not be understood.
    pub(crate) fn invalid(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, INVALID, INVALID_REQUEST, message)
    }

    /// A model that is not ours.
    pub(crate) fn no_such_model(known: &[Served]) -> Self {
        let names: Vec<&str> = known.iter().map(|model| model.name.as_str()).collect();
        let message = format!(
            "There is no such model here; there are {}",
            names.join(", ")
        );
        Self::new(StatusCode::NOT_FOUND, INVALID, NO_MODEL, message)
    }

    /// A client that did not show what the route asks for.
    pub(crate) fn not_let_in(refusal: Refusal) -> Self {
        let mut error = Self::from(refusal);
        if error.status == StatusCode::UNAUTHORIZED {
            error.message = Cow::Borrowed(
                "This server asks for the key of a client, or for its token for calls: send \
                 `Authorization: Bearer KEY`",
            );
        }
        error
    }

    /// No model was configured.
    pub(crate) fn no_model() -> Self {
        let mut error = Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            EXECUTION,
            RunErrorCode::GptOssUnreachable.as_str(),
            "No model server is configured; start with `holdfast serve --model-url URL`",
        );
        // Somebody has to start it anew first.
        error.again = Again::No;
        error
    }

    /// There is no such run, or it is somebody else's.
    pub(crate) fn no_such_run() -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            INVALID,
            "run_not_found",
            "There is no such run",
        )
    }

    /// A run that nobody here works on, so that nothing can be heard of it.
    pub(crate) fn not_running(run: &str) -> Self {
        let message = format!(
            "{run} is unfinished and this server does not work on it; POST /v1/runs/{run}/resume goes on with it"
        );
        let mut error = Self::new(StatusCode::CONFLICT, INVALID, "run_conflict", message);
        error.again = Again::No;
        error
    }

    /// There is no room, or there were too many.
    pub(super) fn too_many(message: &'static str, after_s: u64) -> Self {
        let status = StatusCode::TOO_MANY_REQUESTS;
        let mut error = Self::new(status, "rate_limit_error", "rate_limited", message);
        error.retry_after_s = Some(after_s);
        error
    }

    /// A key that belongs to another request. Not 409: clients repeat that by themselves.
    pub(super) fn key_conflict() -> Self {
        Self::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            INVALID,
            "idempotency_key_conflict",
            "Another request has this Idempotency-Key",
        )
    }

    /// The server ends; the run can be gone on with.
    pub(super) fn leaving(run: &str) -> Self {
        let message = format!("The server is ending; {run} is kept and goes on when it is back");
        let status = StatusCode::SERVICE_UNAVAILABLE;
        let mut error = Self::new(status, EXECUTION, "cancelled", message);
        // Asking anew would begin the task anew beside it, so no time is named at which to do so.
        error.again = Again::No;
        error.with(json!({ "run_id": run }))
    }

    /// What could not be kept did not go on. Causes are for those with the admin token.
    pub(super) fn lost(run: &str, why: &Lost) -> Self {
        let (status, what) = match why {
            Lost::Away(_) => (
                StatusCode::SERVICE_UNAVAILABLE,
                "the state can not be used; it is kept and goes on when the state is back",
            ),
            Lost::Cancelled(_) => (
                StatusCode::SERVICE_UNAVAILABLE,
                "it is cancelled; the state can not be used and is told when it is back",
            ),
            Lost::Taken(_) => (
                StatusCode::INTERNAL_SERVER_ERROR,
                "another process has taken it up, or it was removed",
            ),
            Lost::NotBegun => (StatusCode::INTERNAL_SERVER_ERROR, "it did not begin"),
            Lost::Fault => (StatusCode::INTERNAL_SERVER_ERROR, "internal error"),
        };
        Self::stopped(status, run, format!("{run} stopped: {what}"))
    }

    /// Nobody knows yet whether the run has begun. A repetition would begin the task beside it.
    fn in_doubt(run: &str) -> Self {
        let message = format!(
            "The state does not answer, so nobody knows yet whether {run} has begun; it is \
             cancelled as soon as the state is back, and GET /v1/runs/{run} says so then"
        );
        Self::stopped(StatusCode::SERVICE_UNAVAILABLE, run, message)
    }

    /// A run that stopped, and that nobody may begin again without a look at it.
    fn stopped(status: StatusCode, run: &str, message: String) -> Self {
        let code = RunErrorCode::ToolExecutionFailed.as_str();
        let mut error = Self::new(status, EXECUTION, code, message);
        error.again = Again::No;
        error.with(json!({ "run_id": run }))
    }

    /// A run that has no answer.
    pub(super) fn failed(failed: &RunError, effects: Effects) -> Self {
        let (code, message) = (failed.code, failed.message.clone());
        let mut error = Self::new(status_of(code), EXECUTION, code.as_str(), message);
        if effects == Effects::Possible || failed.lasts {
            error.again = Again::No;
        } else {
            // What the model's server asks of us, we ask of whoever waits for it.
            error.retry_after_s = failed.retry_after_ms.map(whole_seconds);
        }
        error
    }

    /// A run that somebody cancelled.
    pub(super) fn cancelled() -> Self {
        let status = StatusCode::BAD_REQUEST;
        let mut error = Self::new(status, EXECUTION, "cancelled", "The run was cancelled");
        error.again = Again::No;
        error
    }

    /// The same, with what is known about the run.
    pub(super) fn with(mut self, metadata: Value) -> Self {
        self.metadata = Some(Box::new(metadata));
        self
    }

    /// The field that is wrong: what is said of a request begins with it.
    fn param(&self) -> Option<&str> {
        match self.code {
            INVALID_REQUEST => {}
            NO_MODEL => return Some("model"),
            _ => return None,
        }
        let (field, _) = self.message.split_once(": ")?;
        let is_path = |byte: u8| byte.is_ascii_alphanumeric() || b"_.[]".contains(&byte);
        field.bytes().all(is_path).then_some(field)
    }

    /// The body.
    pub(super) fn body(&self) -> Value {
        json!(self.shape())
    }

    fn shape(&self) -> ChatErrorBody<'_> {
        ChatErrorBody {
            error: ChatErrorText {
                message: &self.message,
                kind: self.kind,
                code: self.code,
                param: self.param(),
            },
            executor_metadata: self.metadata.as_deref(),
        }
    }

    /// Writes it, and counts it.
    pub(crate) fn respond(self, server: &Server) -> Response {
        server.http.count_refused(self.code);
        let mut response = match &self.refusal {
            // Its headers say what becomes of the connection.
            Some(refusal) => {
                let (head, _) = Refusal::clone(refusal).into_response().into_parts();
                let mut response = json_response(self.status, &self.shape());
                response.headers_mut().extend(head.headers);
                response
            }
            None => json_response(self.status, &self.shape()),
        };
        let headers = response.headers_mut();
        if let Some(seconds) = self.retry_after_s {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.again == Again::No {
            headers.insert(SHOULD_RETRY, HeaderValue::from_static("false"));
        }
        response
    }
}

/// The HTTP status of a run that has no answer.
fn status_of(code: RunErrorCode) -> StatusCode {
    match code {
        RunErrorCode::GptOssUnreachable => StatusCode::SERVICE_UNAVAILABLE,
        RunErrorCode::MaxIterationsExceeded
        | RunErrorCode::ContextWindowExceeded
        | RunErrorCode::BudgetExceeded => StatusCode::BAD_REQUEST,
        RunErrorCode::TimeoutExceeded => StatusCode::REQUEST_TIMEOUT,
        RunErrorCode::ToolExecutionFailed => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl From<Refusal> for ChatError {
    fn from(refusal: Refusal) -> Self {
        let code = match refusal.kind {
            INVALID => INVALID_REQUEST,
            other => other,
        };
        let message = refusal.message.clone();
        let mut error = Self::new(refusal.status, refusal.kind, code, message);
        error.refusal = Some(Box::new(refusal));
        error
    }
}

impl From<StartError> for ChatError {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Busy => Self::too_many("Too many runs at once", RETRY_AFTER_S),
            StartError::Heavy => {
                Self::too_many("The runs at work hold as much as they may", RETRY_AFTER_S)
            }
            StartError::Leaving => Refusal::busy("The server is ending").into(),
            StartError::Store(error) => error.into(),
            StartError::InDoubt(run) => Self::in_doubt(&run),
        }
    }
}

impl From<StoreError> for ChatError {
    fn from(_: StoreError) -> Self {
        // Paths and causes are for those with the admin token.
        let code = RunErrorCode::ToolExecutionFailed.as_str();
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            EXECUTION,
            code,
            "The state can not be used, so nothing was begun",
        )
    }
}

impl From<RunStoreError> for ChatError {
    fn from(error: RunStoreError) -> Self {
        match error {
            RunStoreError::NotFound(_) => Self::no_such_run(),
            RunStoreError::Busy(_) | RunStoreError::Elsewhere(..) | RunStoreError::Ended(_) => {
                let status = StatusCode::CONFLICT;
                let message = error.to_string();
                let mut error = Self::new(status, INVALID, "run_conflict", message);
                error.again = Again::No;
                error
            }
            RunStoreError::Unreadable(..) => {
                let code = RunErrorCode::ToolExecutionFailed;
                let failed = RunError::new(code, error.to_string());
                Self::failed(&failed, Effects::Possible)
            }
            RunStoreError::Store(error) => error.into(),
        }
    }
}
