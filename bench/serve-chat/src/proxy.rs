//! The least that stands between a client and a model server: axum takes the request, reqwest asks on, and
//! nothing is looked at. What it adds is the price of being in between, whoever does it.

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{StatusCode, header::CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use reqwest::Client;
use tokio::net::TcpListener;

use crate::Failed;

/// The model server, and the connections to it.
#[derive(Clone)]
struct Upstream {
    client: Client,
    url: String,
}

/// Serves on a port before a model server, until it is ended.
pub async fn serve(port: &str, upstream: &str) -> Result<(), Failed> {
    let listener = TcpListener::bind(format!("127.0.0.1:{port}")).await?;
    let upstream = Upstream {
        client: holdfast_client::builder().build()?,
        url: format!("{upstream}/chat/completions"),
    };
    let router = Router::new()
        .route("/ready", get(|| async { "ready" }))
        .route("/v1/chat/completions", post(pass))
        .with_state(upstream);
    axum::serve(listener, router).await?;
    Ok(())
}

async fn pass(State(upstream): State<Upstream>, body: Bytes) -> Response {
    match ask(&upstream, body).await {
        Ok((status, body)) => (status, [(CONTENT_TYPE, "application/json")], body).into_response(),
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    }
}

async fn ask(upstream: &Upstream, body: Bytes) -> Result<(StatusCode, Bytes), reqwest::Error> {
    let asked = upstream.client.post(&upstream.url).body(body);
    let answer = asked
        .header(CONTENT_TYPE, "application/json")
        .send()
        .await?;
    Ok((answer.status(), answer.bytes().await?))
}
