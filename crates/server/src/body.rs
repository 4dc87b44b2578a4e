//! Reads a body, within its limits.

use std::time::Duration;

use axum::extract::Request;
use bytes::Bytes;
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderMap};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Body as _;

use crate::front::one;
use crate::respond::Refusal;

/// Bounds of one body.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Its size.
    pub bytes_max: usize,
    /// Its time.
    pub time: Duration,
}

/// Reads a JSON body whole. Only `application/json` is taken: a form in a web page can not send it
/// without asking first.
pub async fn read_json(request: Request, bounds: Bounds) -> Result<Bytes, Refusal> {
    if !is_json(request.headers())? {
        return Err(Refusal::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "invalid_request_error",
            "The Content-Type has to be application/json",
        ));
    }
    let body = request.into_body();
    // One that says it is too large is not read at all.
    if body.size_hint().lower() > bounds.bytes_max as u64 {
        return Err(too_large());
    }
    let read = Limited::new(body, bounds.bytes_max).collect();
    match tokio::time::timeout(bounds.time, read).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        // The client went away, or what it sends is no body.
        Ok(Err(_)) => Err(Refusal::invalid("The body can not be read").closing()),
        Err(_) => Err(Refusal::new(
            StatusCode::REQUEST_TIMEOUT,
            "invalid_request_error",
            "Request body timeout",
        )
        .closing()),
    }
}

fn too_large() -> Refusal {
    Refusal::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        "invalid_request_error",
        "Payload too large",
    )
    .closing()
}

fn is_json(headers: &HeaderMap) -> Result<bool, Refusal> {
    let value = one(headers, &CONTENT_TYPE)?.and_then(|value| value.to_str().ok());
    Ok(value.is_some_and(|value| {
        let kind = value.split(';').next().unwrap_or_default().trim();
        kind.eq_ignore_ascii_case("application/json")
    }))
}
