//! Reads a body, within its limits.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use bytes::Bytes;
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderMap};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Body as _;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::front::one;
use crate::limits::{BODIES_BYTES_MAX, SMALL_BODY_BYTES_MAX};
use crate::respond::Refusal;

/// Bounds of one body.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Its size.
    pub bytes_max: usize,
    /// Its time.
    pub time: Duration,
}

/// Room is counted in pieces of this size.
const PIECE_BYTES: usize = 1024;

/// Room for the bodies of all requests. Whoever comes first is served first: a large body is not
/// passed by small ones for ever.
#[derive(Debug, Clone)]
pub struct Room(Arc<Semaphore>);

impl Default for Room {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(BODIES_BYTES_MAX / PIECE_BYTES)))
    }
}

impl Room {
    async fn take(
        &self,
        bytes: usize,
        time: Duration,
    ) -> Result<Option<OwnedSemaphorePermit>, Refusal> {
        // Of small ones there are no more than connections, and an answer to somebody who waits must
        // never wait behind what waits for it.
        if bytes <= SMALL_BODY_BYTES_MAX {
            return Ok(None);
        }
        let pieces = bytes
            .div_ceil(PIECE_BYTES)
            .min(BODIES_BYTES_MAX / PIECE_BYTES);
        let pieces = u32::try_from(pieces).unwrap_or(u32::MAX);
        match tokio::time::timeout(time, self.0.clone().acquire_many_owned(pieces)).await {
            Ok(Ok(room)) => Ok(Some(room)),
            // What was not read is still on its way, so the connection can not be used again.
            _ => Err(Refusal::busy("Too many bodies at once").closing()),
        }
    }
}

/// A body in hand. Its room is given back when it is dropped.
#[derive(Debug)]
pub struct Held {
    bytes: Bytes,
    _room: Option<OwnedSemaphorePermit>,
}

impl Deref for Held {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Reads a JSON body whole, once there is room for it. Only `application/json` is taken: a form in a web page can not send it
/// without asking first.
pub async fn read_json(request: Request, bounds: Bounds, room: &Room) -> Result<Held, Refusal> {
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
    // One that does not say how large it is may become as large as it may be.
    let said = body
        .size_hint()
        .upper()
        .and_then(|said| usize::try_from(said).ok());
    let room = room
        .take(said.unwrap_or(bounds.bytes_max), bounds.time)
        .await?;
    let read = Limited::new(body, bounds.bytes_max).collect();
    match tokio::time::timeout(bounds.time, read).await {
        Ok(Ok(collected)) => Ok(Held {
            bytes: collected.to_bytes(),
            _room: room,
        }),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_answer_gets_through_while_large_bodies_hold_all_the_room() {
        let (room, time) = (Room::default(), Duration::from_secs(30));
        let all = room.take(BODIES_BYTES_MAX, time).await.unwrap();
        assert!(all.is_some());
        assert!(room.take(SMALL_BODY_BYTES_MAX, time).await.is_ok());
        assert!(room.take(SMALL_BODY_BYTES_MAX + 1, time).await.is_err());
        drop(all);
        assert!(room.take(SMALL_BODY_BYTES_MAX + 1, time).await.is_ok());
    }
}
