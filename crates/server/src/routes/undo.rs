//! `/v1/undo`: what calls have changed in the workspace, and the way back.
//!
//! Only the approver's token opens these doors: what a tool could take back, it could also hide.

use std::sync::Arc;

use axum::extract::Request;
use axum::response::Response;
use holdfast_undo::{Options, UndoError, UndoResult, UndoStore};
use http::StatusCode;
use hyper::body::Body as _;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::task::spawn_blocking;

use super::admin::{fields, redacted};
use super::approvals::read;
use crate::limits::ANSWER_BODY_BYTES_MAX;
use crate::respond::{Refusal, json_response};
use crate::server::Server;

/// The points of the server's workspace, newest first.
pub const PATH: &str = "/v1/undo";
/// What one point's calls changed; with `POST`, its undo. The id is a point's, or a call's request id.
pub const ONE: &str = "/v1/undo/{id}";

/// The body of an undo. Every field is optional, and so is the body.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct Wanted {
    /// Also take back the calls that came later.
    also: bool,
    /// Overwrite what somebody changed since. It is kept in the undo's own point.
    force: bool,
    /// Change nothing, and say what would be done.
    dry_run: bool,
}

/// The points.
pub(super) async fn list(server: Arc<Server>, _request: Request) -> Response {
    let workspace = server.workspace.clone();
    answer(&server, move |store| {
        let mut points = store.list(&workspace)?;
        points.reverse();
        Ok(json!({ "points": points }))
    })
    .await
}

/// What one point's calls changed.
pub(super) async fn show(server: Arc<Server>, request: Request) -> Response {
    let (id, workspace) = (id_in(&request), server.workspace.clone());
    answer(&server, move |store| store.show_in(&workspace, &id)).await
}

/// Brings the workspace back to where it was before a point.
pub(super) async fn undo(server: Arc<Server>, request: Request) -> Response {
    let id = id_in(&request);
    let body = if request.body().is_end_stream() {
        None
    } else {
        match server.read_json(request, ANSWER_BODY_BYTES_MAX).await {
            Ok(body) => Some(body),
            Err(refusal) => return server.refuse(refusal),
        }
    };
    let body = body.as_deref().filter(|body| !body.is_empty());
    let wanted: Wanted = match read(&server, body) {
        Ok(wanted) => wanted,
        Err(refusal) => return server.refuse(refusal),
    };
    let options = Options {
        also: wanted.also,
        force: wanted.force,
        dry_run: wanted.dry_run,
    };
    if !options.dry_run {
        let told = json!({"point": id, "also": options.also, "force": options.force});
        if let Err(error) = server.audit.append("undo", fields(told)).await {
            let why = redacted(&server, &error.to_string());
            return server.refuse(Refusal::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "unavailable",
                why,
            ));
        }
    }
    let workspace = server.workspace.clone();
    answer(&server, move |store| {
        store.undo_in(&workspace, &id, &options)
    })
    .await
}

/// Asks the store, on a thread where that may take its time. It goes on when whoever asked is gone.
async fn answer<T: Serialize + Send + 'static>(
    server: &Arc<Server>,
    ask: impl FnOnce(&UndoStore) -> UndoResult<T> + Send + 'static,
) -> Response {
    let Some(store) = server.undo.clone() else {
        return server.refuse(Refusal::new(
            StatusCode::NOT_FOUND,
            "not_found",
            "Nothing is kept for an undo here (undo.pointsMax is 0, or its store can not be opened)",
        ));
    };
    match spawn_blocking(move || ask(&store)).await {
        Ok(Ok(found)) => json_response(StatusCode::OK, &found),
        Ok(Err(error)) => server.refuse(refusal(server, &error)),
        Err(error) => server.refuse(Refusal::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal_error",
            redacted(server, &error.to_string()),
        )),
    }
}

fn refusal(server: &Server, error: &UndoError) -> Refusal {
    let (status, kind) = match error {
        UndoError::Unknown(_) => (StatusCode::NOT_FOUND, "not_found"),
        UndoError::AlsoTakesBack(_) => (StatusCode::CONFLICT, "also_takes_back"),
        UndoError::TakenBack { .. } => (StatusCode::CONFLICT, "taken_back"),
        UndoError::Running(_) | UndoError::Busy(_) => (StatusCode::CONFLICT, "running"),
        UndoError::Io { .. } | UndoError::Damaged(_) | UndoError::Over(_) => {
            (StatusCode::SERVICE_UNAVAILABLE, "unavailable")
        }
    };
    let mut said = error.to_string();
    if let UndoError::AlsoTakesBack(later) = error {
        let later: Vec<&str> = later.iter().map(|point| point.id.as_str()).collect();
        said = format!(
            "{said}: {}. Say also: true to take them back too",
            later.join(", ")
        );
    }
    Refusal::new(status, kind, redacted(server, &said))
}

fn id_in(request: &Request) -> String {
    let rest = request.uri().path().strip_prefix(PATH).unwrap_or_default();
    rest.trim_start_matches('/').to_owned()
}
