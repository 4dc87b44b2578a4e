//! `/v1/runs`: what was asked of the model, how far it is, and the way back to it.
//!
//! A run is shown to whoever asked for it. Without keys that is everybody on this machine who knows
//! its name, which nobody can guess; the list needs the token for tool calls.

use std::sync::Arc;

use axum::extract::Request;
use axum::response::Response;
use holdfast_agent::run::{Ending, RunState};
use holdfast_agent::runs::{Cancelled, KeptRun, ResumeError};
use http::StatusCode;
use serde_json::{Value, json};

use super::chat::{self, ChatError, calls_on_wire, client_of, earlier_run, status_word};
use crate::access::Client;
use crate::executor::Executor;
use crate::limits::PAGE_RUNS_MAX;
use crate::respond::json_response;
use crate::server::Server;

/// All of them.
pub const PATH: &str = "/v1/runs";
/// One of them.
pub const ONE: &str = "/v1/runs/{id}";
/// What happens in it, from its beginning.
pub const STREAM: &str = "/v1/runs/{id}/stream";
/// Ends it.
pub const CANCEL: &str = "/v1/runs/{id}/cancel";
/// Goes on with it.
pub const RESUME: &str = "/v1/runs/{id}/resume";

pub(super) async fn list(server: Arc<Server>, request: Request) -> Response {
    let query = request.uri().query().unwrap_or_default().to_owned();
    match listed(&server, &query).await {
        Ok(body) => json_response(StatusCode::OK, &body),
        Err(error) => error.respond(&server),
    }
}

async fn listed(server: &Server, query: &str) -> Result<Value, ChatError> {
    let executor = server.executor.as_ref().ok_or_else(ChatError::no_model)?;
    let (mut after, mut limit) = (None, PAGE_RUNS_MAX);
    for pair in query.split('&') {
        match pair.split_once('=') {
            None if pair.is_empty() => {}
            Some(("after", id)) => after = Some(id),
            Some(("limit", text)) => {
                let fits = text.parse().ok();
                limit = fits
                    .filter(|count| (1..=PAGE_RUNS_MAX).contains(count))
                    .ok_or_else(|| {
                        ChatError::invalid(format!("limit: between 1 and {PAGE_RUNS_MAX}"))
                    })?;
            }
            _ => return Err(ChatError::invalid("Only after and limit can be asked for")),
        }
    }
    let found = executor.runs.store().list(after, limit).await?;
    let last = found.last().filter(|_| found.len() == limit);
    let next = last.map(|run| run.state.id.clone());
    let shown: Vec<Value> = found.iter().map(|run| brief(executor, run)).collect();
    Ok(json!({"object": "list", "data": shown, "next": next}))
}

pub(super) async fn show(server: Arc<Server>, request: Request) -> Response {
    let which = Which::of(&server, &request);
    match shown(&server, which).await {
        Ok(body) => json_response(StatusCode::OK, &body),
        Err(error) => error.respond(&server),
    }
}

async fn shown(server: &Server, which: Result<Which, ChatError>) -> Result<Value, ChatError> {
    let (executor, run) = run_of(server, which).await?;
    let mut shown = brief(executor, &run);
    shown["result"] = result(&run.state);
    shown["reasoning"] = json!(run.state.reasoning);
    Ok(shown)
}

/// What happens in a run, from its beginning, to a client that was cut off.
pub(super) async fn stream(server: Arc<Server>, request: Request) -> Response {
    let which = Which::of(&server, &request);
    let found = async {
        let (executor, run) = run_of(&server, which).await?;
        earlier_run(executor, &run.state.id).await
    };
    match found.await {
        Ok(source) => chat::streamed(&server, source),
        Err(error) => error.respond(&server),
    }
}

pub(super) async fn cancel(server: Arc<Server>, request: Request) -> Response {
    let which = Which::of(&server, &request);
    let cancelled = async {
        let (executor, run) = run_of(&server, which).await?;
        let id = run.state.id.as_str();
        Ok::<_, ChatError>(match executor.runs.cancel(id).await? {
            Cancelled::Asked => (
                StatusCode::ACCEPTED,
                json!({"id": id, "status": "cancelling"}),
            ),
            Cancelled::Done(state) => {
                let status = status_word(&state);
                (StatusCode::OK, json!({"id": id, "status": status}))
            }
        })
    };
    match cancelled.await {
        Ok((status, body)) => json_response(status, &body),
        Err(error) => error.respond(&server),
    }
}

pub(super) async fn resume(server: Arc<Server>, request: Request) -> Response {
    let which = Which::of(&server, &request);
    let resumed = async {
        let (executor, run) = run_of(&server, which).await?;
        match executor.runs.resume(&run.state.id).await {
            Ok(listener) => Ok(json!({"id": listener.run(), "status": "running"})),
            Err(ResumeError::Store(error)) => Err(ChatError::from(error)),
            Err(ResumeError::Start(error)) => Err(ChatError::from(error)),
        }
    };
    match resumed.await {
        Ok(body) => json_response(StatusCode::ACCEPTED, &body),
        Err(error) => error.respond(&server),
    }
}

/// Which run a request is about, and who asks.
struct Which {
    client: Client,
    id: String,
}

impl Which {
    fn of(server: &Server, request: &Request) -> Result<Self, ChatError> {
        let rest = request.uri().path().strip_prefix(PATH).unwrap_or_default();
        let id = rest.trim_start_matches('/').split('/').next();
        Ok(Self {
            client: client_of(server, request)?,
            id: id.unwrap_or_default().to_owned(),
        })
    }
}

/// The run that a request is about, if it is any of the client's business.
async fn run_of(
    server: &Server,
    which: Result<Which, ChatError>,
) -> Result<(&Arc<Executor>, KeptRun), ChatError> {
    let executor = server.executor.as_ref().ok_or_else(ChatError::no_model)?;
    let which = which?;
    let run = executor.runs.store().get(&which.id).await?;
    if which.client.may_see(&run.client) {
        Ok((executor, run))
    } else {
        Err(ChatError::no_such_run())
    }
}

fn brief(executor: &Executor, run: &KeptRun) -> Value {
    let state = &run.state;
    let runs_here = executor.runs.is_live(&state.id);
    let status = match status_word(state) {
        "unfinished" if runs_here => "running",
        word => word,
    };
    json!({
        "id": state.id,
        "object": "run",
        "status": status,
        "model": state.model,
        "client": run.client,
        "created": state.begun_at_ms / 1000,
        "updated": run.kept_at_ms / 1000,
        "iterations": state.iteration,
        "tools_called": state.tools_called,
        "total_tokens": state.tokens_total(),
    })
}

fn result(state: &RunState) -> Value {
    match state.ending() {
        None | Some(Ending::Cancelled) => Value::Null,
        Some(Ending::Answered { content, cut_off }) => {
            json!({"content": content, "finish_reason": if *cut_off { "length" } else { "stop" }})
        }
        Some(Ending::Calls { content, calls }) => {
            json!({"content": content, "tool_calls": calls_on_wire(calls),
                   "finish_reason": "tool_calls"})
        }
        Some(Ending::Failed(error)) => {
            json!({"error": {"code": error.code.as_str(), "message": error.message}})
        }
    }
}
