//! `GET /v1/models`: the names that a completion can be asked of.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::Request;
use axum::response::Response;
use holdfast_agent::settings::RunSettings;
use http::StatusCode;

use super::chat::ChatError;
use crate::executor::Served;
use crate::respond::json_response;
use crate::server::Server;
use crate::shape::model::{ModelList, ModelShown};

/// All of them.
pub const PATH: &str = "/v1/models";
/// One of them.
pub const ONE: &str = "/v1/models/{id}";

pub(super) async fn list(server: Arc<Server>, _: Request) -> Response {
    let models = models(&server);
    let body = ModelList {
        object: "list",
        data: models
            .iter()
            .map(|model| shown(&server, &model.name))
            .collect(),
    };
    json_response(StatusCode::OK, &body)
}

pub(super) async fn show(server: Arc<Server>, request: Request) -> Response {
    let asked = request.uri().path().strip_prefix(PATH).unwrap_or_default();
    let asked = asked.trim_start_matches('/');
    let models = models(&server);
    match models.iter().find(|model| model.name == asked) {
        Some(model) => json_response(StatusCode::OK, &shown(&server, &model.name)),
        None => ChatError::no_such_model(&models).respond(&server),
    }
}

/// The models; without a model server their names are known all the same.
fn models(server: &Server) -> Arc<[Served]> {
    match &server.executor {
        Some(executor) => executor.models(),
        None => Served::all(&RunSettings::default(), &BTreeMap::new()).into(),
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
