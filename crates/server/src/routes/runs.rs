//! `/v1/runs`: what was asked of the model, how far it is, and the way back to it.
//!
//! A run is shown to whoever asked for it. Without keys that is everybody on this machine who knows
//! its name, which nobody can guess; the list needs the token for tool calls.

use std::sync::Arc;

use axum::extract::{Query, Request};
use axum::response::Response;
use holdfast_agent::run::{Ending, Phase, RunState};
use holdfast_agent::runs::{Cancelled, KeptRun, ResumeError};
use http::StatusCode;
use serde::Deserialize;

use super::chat::{self, ChatError, Source, calls_shown, client_of, left_out, status_word};
use crate::access::Client;
use crate::executor::Executor;
use crate::limits::PAGE_RUNS_MAX;
use crate::respond::json_response;
use crate::server::Server;
use crate::shape::model::{RunErrorShown, RunList, RunResult, RunShown, RunStatus};

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
    let page = Page::read(&request);
    let listed = listed(&server, page).await;
    listed.unwrap_or_else(|error| error.respond(&server))
}

/// Which page of the runs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    after: Option<String>,
    limit: Option<usize>,
}

impl Page {
    fn read(request: &Request) -> Result<(Option<String>, usize), ChatError> {
        let wrong = || {
            let message =
                format!("Only after and a limit between 1 and {PAGE_RUNS_MAX} can be asked for");
            ChatError::invalid(message)
        };
        let Query(page) = Query::<Self>::try_from_uri(request.uri()).map_err(|_| wrong())?;
        let limit = page.limit.unwrap_or(PAGE_RUNS_MAX);
        if !(1..=PAGE_RUNS_MAX).contains(&limit) {
            return Err(wrong());
        }
        Ok((page.after, limit))
    }
}

async fn listed(
    server: &Server,
    page: Result<(Option<String>, usize), ChatError>,
) -> Result<Response, ChatError> {
    let executor = server.executor.as_ref().ok_or_else(ChatError::no_model)?;
    let (after, limit) = page?;
    let page = executor.runs.store().list(after.as_deref(), limit).await?;
    let body = RunList {
        object: "list",
        data: page.runs.iter().map(|run| brief(executor, run)).collect(),
        next: page.next.as_deref(),
    };
    Ok(json_response(StatusCode::OK, &body))
}

pub(super) async fn show(server: Arc<Server>, request: Request) -> Response {
    let which = Which::of(&server, &request);
    let shown = shown(&server, which).await;
    shown.unwrap_or_else(|error| error.respond(&server))
}

async fn shown(server: &Server, which: Result<Which, ChatError>) -> Result<Response, ChatError> {
    let (executor, run) = run_of(server, which).await?;
    let mut shown = brief(executor, &run);
    shown.result = Some(result(&run.state));
    shown.reasoning = Some(&run.state.reasoning);
    if let (Phase::Act(_), Some(approvals)) = (&run.state.phase, server.stack.approvals()) {
        shown.waits_for_approvals = approvals.waiting_for_run(&run.state.id).await?;
    }
    Ok(json_response(StatusCode::OK, &shown))
}

/// What happens in a run, from its beginning, to a client that was cut off. Whoever looks does not
/// act: one that nobody here works on is not taken up, and the answer says how it can be.
pub(super) async fn stream(server: Arc<Server>, request: Request) -> Response {
    let which = Which::of(&server, &request);
    let found = async {
        let (executor, run) = run_of(&server, which).await?;
        match executor.runs.attach(&run.state.id) {
            Some(listener) => Ok(Source::Live(listener)),
            None if run.state.ending().is_some() => Ok(Source::Ended(Box::new(run.state))),
            None => Err(ChatError::not_running(&run.state.id)),
        }
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
        let (code, status) = match executor.runs.cancel(id).await? {
            Cancelled::Asked => (StatusCode::ACCEPTED, "cancelling"),
            Cancelled::Done(state) => (StatusCode::OK, status_word(&state)),
        };
        Ok::<_, ChatError>(json_response(code, &RunStatus { id, status }))
    };
    let answered = cancelled.await;
    answered.unwrap_or_else(|error| error.respond(&server))
}

pub(super) async fn resume(server: Arc<Server>, request: Request) -> Response {
    let which = Which::of(&server, &request);
    let resumed = async {
        let (executor, run) = run_of(&server, which).await?;
        match executor.runs.resume(&run.state.id).await {
            Ok(listener) => Ok(json_response(
                StatusCode::ACCEPTED,
                &RunStatus {
                    id: listener.run(),
                    status: "running",
                },
            )),
            Err(ResumeError::Store(error)) => Err(ChatError::from(error)),
            Err(ResumeError::Start(error)) => Err(ChatError::from(error)),
        }
    };
    let answered = resumed.await;
    answered.unwrap_or_else(|error| error.respond(&server))
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
    // One that is kept nowhere is known only where it runs.
    let run = match executor.runs.passing(&which.id) {
        Some(run) => run,
        None => executor.runs.store().get(&which.id).await?,
    };
    if which.client.may_see(&run.client) {
        Ok((executor, run))
    } else {
        Err(ChatError::no_such_run())
    }
}

fn brief<'a>(executor: &Executor, run: &'a KeptRun) -> RunShown<'a> {
    let state = &run.state;
    let runs_here = executor.runs.is_live(&state.id);
    let status = match status_word(state) {
        "unfinished" if runs_here => "running",
        word => word,
    };
    RunShown {
        id: &state.id,
        object: "run",
        status,
        model: &state.model,
        client: &run.client,
        created: state.begun_at_ms / 1000,
        updated: run.kept_at_ms / 1000,
        iterations: state.iteration,
        tools_called: &state.tools_called,
        total_tokens: state.tokens_total(),
        result: None,
        reasoning: None,
        waits_for_approvals: Vec::new(),
    }
}

fn result(state: &RunState) -> RunResult<'_> {
    match state.ending() {
        None | Some(Ending::Cancelled) => RunResult::Nothing,
        Some(ending @ Ending::Answered { content, .. }) => RunResult::Answer {
            content,
            tool_calls: None,
            finish_reason: ending.finish_reason(),
            calls_left_out: left_out(state),
        },
        Some(ending @ Ending::Calls { content, calls, .. }) => RunResult::Answer {
            content,
            tool_calls: Some(calls_shown(calls)),
            finish_reason: ending.finish_reason(),
            calls_left_out: left_out(state),
        },
        Some(Ending::Failed(error)) => RunResult::Failed {
            error: RunErrorShown {
                code: error.code.as_str(),
                message: &error.message,
            },
        },
    }
}
