//! `GET /v1/models`: the names that a completion can be asked of.

use std::sync::Arc;

use axum::extract::Request;
use axum::response::Response;
use http::StatusCode;

use super::chat::{ChatError, MODELS, names};
use crate::respond::json_response;
use crate::server::Server;
use crate::shape::model::{ModelList, ModelShown};

/// All of them.
pub const PATH: &str = "/v1/models";
/// One of them.
pub const ONE: &str = "/v1/models/{id}";

pub(super) async fn list(server: Arc<Server>, _: Request) -> Response {
    let body = ModelList {
        object: "list",
        data: MODELS
            .iter()
            .map(|(name, _)| shown(&server, name))
            .collect(),
    };
    json_response(StatusCode::OK, &body)
}

pub(super) async fn show(server: Arc<Server>, request: Request) -> Response {
    let asked = request.uri().path().strip_prefix(PATH).unwrap_or_default();
    let asked = asked.trim_start_matches('/');
    match MODELS.iter().find(|(name, _)| *name == asked) {
        Some((name, _)) => json_response(StatusCode::OK, &shown(&server, name)),
        None => ChatError::no_such_model(&names()).respond(&server),
    }
}

fn shown<'a>(server: &Server, name: &'a str) -> ModelShown<'a> {
    ModelShown {
        id: name,
        object: "model",
        created: server.started_at_ms / 1000,
        owned_by: "holdfast",
    }
}
