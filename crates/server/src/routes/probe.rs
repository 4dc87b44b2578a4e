//! `GET /health`, `/ready` and `/metrics`: for those who watch.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use axum::response::Response;
use holdfast_contract::time::rfc3339;
use holdfast_reliability::breaker::CircuitBreakerState;
use http::StatusCode;
use http::header::HeaderValue;
use serde_json::json;

use crate::executor::Reached;
use crate::limits::PROBE_MS_MAX;
use crate::respond::{bytes_response, json_response};
use crate::server::{Server, Stage};
use crate::shape::tools::{HealthShown, ReadyShown};

/// How the server is.
pub const HEALTH: &str = "/health";
/// Whether to send requests here.
pub const READY: &str = "/ready";
/// What is counted.
pub const METRICS: &str = "/metrics";

/// What the page of metrics is written in.
const OPEN_METRICS: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");

/// How the server is: `ok` with 200, `degraded` with 503 while calls can not be protected, or while
/// the model that was configured is away.
pub(super) async fn health(server: Arc<Server>, _: Request) -> Response {
    let condition = server.health.condition().await;
    let degraded = condition.degraded();
    let reached = match &server.executor {
        Some(executor) => Some((executor.reached().await, executor.gateway)),
        None => None,
    };
    let away = matches!(reached, Some((Reached::Unreachable, _)));
    let status = if degraded.is_some() || away {
        StatusCode::SERVICE_UNAVAILABLE
    } else {
        StatusCode::OK
    };
    let body = HealthShown {
        status: if degraded.is_some() || away {
            "degraded"
        } else {
            "ok"
        },
        version: env!("CARGO_PKG_VERSION"),
        mode: json!(server.stack.runtime().switches.mode()),
        store: &server.store_name,
        timestamp: rfc3339(server.stack.runtime().clock.now_ms()),
        gpt_oss: reached.map(|_| if away { "unreachable" } else { "connected" }),
        gateway: reached.map(|(_, gateway)| gateway.as_str()),
        // Paths and causes are for those with the admin token.
        reason: degraded.map(|_| "the record store has trouble"),
    };
    json_response(status, &body)
}

/// Whether to send requests here.
pub(super) async fn ready(server: Arc<Server>, _: Request) -> Response {
    let state = if *server.stage.borrow() >= Stage::Draining {
        "draining"
    } else if server.health.condition().await.degraded().is_some() {
        "degraded"
    } else {
        "ready"
    };
    let status = if state == "ready" {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    json_response(status, &ReadyShown { status: state })
}

/// What is counted.
pub(super) async fn metrics(server: Arc<Server>, _: Request) -> Response {
    let patience = Duration::from_millis(PROBE_MS_MAX);
    let known = tokio::time::timeout(patience, server.stores.breakers.breakers()).await;
    // While the store is away the last states stay.
    if let Ok(Ok(known)) = known {
        let held = server.stack.policies().held_open().into_iter();
        let known = known
            .iter()
            .map(|(key, state)| (key.clone(), state.circuit()));
        let held = held.map(|it| (it.key, CircuitBreakerState::ForcedOpen));
        server.metrics.set_breakers(known.chain(held));
    }
    let page = server.http.page(&server.metrics);
    bytes_response(StatusCode::OK, OPEN_METRICS, page.into_bytes())
}
