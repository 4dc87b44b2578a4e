//! `GET /openapi.json`: all routes, for programs.

use std::sync::{Arc, LazyLock};

use axum::extract::Request;
use axum::response::Response;
use http::StatusCode;
use serde_json::Value;

use crate::respond::json_response;
use crate::server::Server;

/// The path.
pub const PATH: &str = "/openapi.json";

/// Made once: it says the same to everybody.
static DOCUMENT: LazyLock<Value> = LazyLock::new(crate::openapi::document);

pub(super) async fn show(_: Arc<Server>, _: Request) -> Response {
    json_response(StatusCode::OK, &*DOCUMENT)
}
