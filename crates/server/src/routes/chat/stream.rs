//! A run as it comes: server-sent events, in chunks of a completion.
//!
//! The answer's text comes as the model says it where it is certain that it is the answer
//! (`agent::run::saying`), else at the end, in pieces. Before that every chunk carries what the run is doing in `executor_progress`,
//! beside an empty delta: clients that do not know the field pass over it.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use holdfast_agent::run::RunState;
use holdfast_agent::runs::{Event, Listener, Outcome};
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use serde_json::{Value, json};

use super::Source;
use super::answer::{self, Notes, Said};
use super::error::ChatError;
use super::request::Usage;
use crate::limits::{DELTA_CHARS_MAX, STREAM_ALIVE_MS};
use crate::server::Server;

/// Answers with a stream.
pub(super) fn respond(
    server: &Arc<Server>,
    source: Source,
    usage: Usage,
    notes: Notes,
) -> Response {
    let told = Told {
        _open: Open::new(server),
        usage,
        notes,
        sent: 0,
        at: match source {
            Source::Live(listener) => At::Listening(Box::new(listener), None),
            Source::Ended(state) => At::Ended(state, None),
        },
    };
    let parts = stream::unfold(told, |mut told| async move {
        let part = told.next().await?;
        Some((Ok::<_, Infallible>(Bytes::from(part)), told))
    });
    let mut response = Response::new(Body::from_stream(parts));
    *response.status_mut() = StatusCode::OK;
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/event-stream; charset=utf-8"),
    );
    headers.insert(
        CACHE_CONTROL,
        HeaderValue::from_static("no-cache, no-store"),
    );
    response
}

/// A stream that is not at its end counts as a request that is not answered.
struct Open(Arc<Server>);

impl Open {
    fn new(server: &Arc<Server>) -> Self {
        server.requests.fetch_add(1, Ordering::SeqCst);
        Self(server.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.requests.fetch_sub(1, Ordering::SeqCst);
    }
}

/// How far a stream is.
enum At {
    /// What happens is told; the head, once its first part was sent.
    Listening(Box<Listener>, Option<Head>),
    /// The run has ended, and nothing of its end is told yet.
    Ended(Box<RunState>, Option<Head>),
    /// Everything is told.
    Over,
}

/// What all chunks of a stream share.
#[derive(Clone)]
struct Head {
    id: String,
    created_s: u64,
    model: String,
}

impl Head {
    fn of(state: &RunState) -> Self {
        Self {
            id: answer::id(state),
            created_s: answer::created_s(state),
            model: state.model.clone(),
        }
    }

    fn chunk(&self, delta: &Value, reason: Option<&str>) -> Value {
        json!({
            "id": self.id,
            "object": "chat.completion.chunk",
            "created": self.created_s,
            "model": self.model,
            "choices": [{"index": 0, "delta": delta, "finish_reason": reason, "logprobs": null}],
        })
    }
}

struct Told {
    _open: Open,
    usage: Usage,
    notes: Notes,
    /// Bytes of the answer that were sent as it came.
    sent: usize,
    at: At,
}

impl Told {
    /// The next part; nothing when all is said.
    async fn next(&mut self) -> Option<String> {
        match std::mem::replace(&mut self.at, At::Over) {
            At::Listening(listener, head) => Some(self.listen(listener, head).await),
            At::Ended(state, head) => Some(self.end(&state, head.is_some())),
            At::Over => None,
        }
    }

    async fn listen(&mut self, mut listener: Box<Listener>, head: Option<Head>) -> String {
        let Some(head) = head else {
            let head = Head {
                id: listener.run().replacen("run-", "chatcmpl-", 1),
                created_s: listener.begun_at_ms() / 1000,
                model: listener.model().to_owned(),
            };
            let mut first = head.chunk(&json!({"role": "assistant", "content": ""}), None);
            first["executor_progress"] = json!({"event": "begins", "run_id": listener.run()});
            self.at = At::Listening(listener, Some(head));
            return data(&first);
        };
        let alive = Duration::from_millis(STREAM_ALIVE_MS);
        let Ok(happened) = tokio::time::timeout(alive, listener.next()).await else {
            self.at = At::Listening(listener, Some(head));
            // A comment, so that nobody between us takes the connection for dead.
            return ": still running\n\n".to_owned();
        };
        if let Some(Event::Says { text }) = &happened {
            self.sent += text.len();
            let mut part = String::new();
            pieces(&head, text, &mut part);
            self.at = At::Listening(listener, Some(head));
            return part;
        }
        if let Some(event) = happened {
            let part = data(&progress(&head, &event, self.sent > 0));
            self.at = At::Listening(listener, Some(head));
            return part;
        }
        match &*listener.outcome().await {
            Outcome::Ended(state) => self.end(state, true),
            Outcome::Left => failed(&ChatError::leaving(listener.run())),
            Outcome::Lost(why) => failed(&ChatError::lost(listener.run(), why)),
        }
    }

    /// Everything from the answer on.
    fn end(&self, state: &RunState, begun: bool) -> String {
        let head = Head::of(state);
        let mut text = String::new();
        if !begun {
            let delta = json!({"role": "assistant", "content": ""});
            text.push_str(&data(&head.chunk(&delta, None)));
        }
        let reason = match answer::ended(state, &self.notes) {
            Err(error) => return text + &failed(&error),
            Ok(Said::Answer { content, reason }) => {
                pieces(
                    &head,
                    content.get(self.sent..).unwrap_or_default(),
                    &mut text,
                );
                reason
            }
            Ok(Said::Calls { content, calls }) => {
                pieces(&head, content.unwrap_or_default(), &mut text);
                for (place, call) in answer::calls_shown(calls).into_iter().enumerate() {
                    let mut call = json!(call);
                    call["index"] = json!(place);
                    text.push_str(&data(&head.chunk(&json!({"tool_calls": [call]}), None)));
                }
                "tool_calls"
            }
        };
        let mut last = head.chunk(&json!({}), Some(reason));
        last["executor_metadata"] = json!(answer::metadata(state, &self.notes));
        text.push_str(&data(&last));
        if self.usage == Usage::Shown {
            let mut usage = head.chunk(&json!({}), None);
            usage["choices"] = json!([]);
            usage["usage"] = json!(answer::usage(state));
            text.push_str(&data(&usage));
        }
        text.push_str("data: [DONE]\n\n");
        text
    }
}

fn data(value: &Value) -> String {
    format!("data: {value}\n\n")
}

fn failed(error: &ChatError) -> String {
    format!("{}data: [DONE]\n\n", data(&error.body()))
}

/// What the model thought is a delta too; clients for such models know the field. Behind the
/// beginning of the answer they would take it for a part of the answer: then it is only told beside.
fn progress(head: &Head, event: &Event, answer_begun: bool) -> Value {
    let mut delta = json!({});
    let mut told = json!(event);
    if let (Event::Heard { reasoning, .. }, Value::Object(told), false) =
        (event, &mut told, answer_begun)
    {
        told.remove("reasoning");
        if !reasoning.is_empty() {
            delta["reasoning"] = json!(reasoning);
        }
    }
    let mut chunk = head.chunk(&delta, None);
    chunk["executor_progress"] = told;
    chunk
}

fn pieces(head: &Head, content: &str, text: &mut String) {
    let chars: Vec<char> = content.chars().collect();
    for piece in chars.chunks(DELTA_CHARS_MAX) {
        let piece: String = piece.iter().collect();
        text.push_str(&data(&head.chunk(&json!({"content": piece}), None)));
    }
}
