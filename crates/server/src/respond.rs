//! Answers, in the shapes that clients know.
//!
//! What is refused before a call is understood has the gateway's and `OpenAI`'s shape,
//! `{"error":{"message","type"}}`. A call that is understood is answered with its result envelope.

use std::borrow::Cow;

use axum::body::Body;
use axum::response::Response;
use http::header::{
    CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE,
};
use http::{HeaderName, StatusCode};
use serde::Serialize;

use crate::limits::RETRY_AFTER_S;
use crate::shape::{ErrorBody, ErrorText};

const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// A refusal, before it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status.
    pub status: StatusCode,
    /// A word for programs.
    pub kind: &'static str,
    /// For people. Never holds what the client sent.
    pub message: Cow<'static, str>,
    /// When to come again.
    pub retry_after_s: Option<u64>,
    /// Whether the connection ends with it, because what follows on it can not be trusted.
    pub then: Then,
}

/// What becomes of the connection after an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// It can be used again.
    KeepOpen,
    /// It is closed.
    Close,
}

impl Refusal {
    /// A refusal without further ado.
    pub fn new(
        status: StatusCode,
        kind: &'static str,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            status,
            kind,
            message: message.into(),
            retry_after_s: None,
            then: Then::KeepOpen,
        }
    }

    /// A request that can not be understood.
    pub fn invalid(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request_error", message)
    }

    /// There is no room right now.
    pub fn busy(message: &'static str) -> Self {
        let refusal = Self::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded", message);
        refusal.after(RETRY_AFTER_S)
    }

    /// The same, with a time to come again.
    #[must_use]
    pub fn after(mut self, retry_after_s: u64) -> Self {
        self.retry_after_s = Some(retry_after_s);
        self
    }

    /// The same, and the connection is closed.
    #[must_use]
    pub fn closing(mut self) -> Self {
        self.then = Then::Close;
        self
    }

    /// Writes it.
    pub fn into_response(self) -> Response {
        let body = ErrorBody {
            error: ErrorText {
                message: &self.message,
                kind: self.kind,
            },
        };
        let mut response = json_response(self.status, &body);
        let headers = response.headers_mut();
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(seconds) = self.retry_after_s {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.then == Then::Close {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

/// A JSON answer.
pub fn json_response(status: StatusCode, body: &impl Serialize) -> Response {
    // Our own types always serialise.
    bytes_response(status, JSON, serde_json::to_vec(body).unwrap_or_default())
}

/// A plain text answer.
pub fn text_response(status: StatusCode, body: impl Into<Vec<u8>>) -> Response {
    bytes_response(status, TEXT, body.into())
}

/// An answer in a format of its own.
pub fn bytes_response(status: StatusCode, kind: HeaderValue, body: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, kind);
    headers.insert(CACHE_CONTROL, NO_STORE);
    headers.insert(
        HeaderName::from_static("x-content-type-options"),
        HeaderValue::from_static("nosniff"),
    );
    response
}

/// Seconds for a `Retry-After`, never too few.
pub fn whole_seconds(ms: u64) -> u64 {
    ms.div_ceil(1000).max(1)
}
