//! A model server that always says the same, after as long as it is told to take.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

use crate::Failed;

const COMPLETION: &str = r#"{"id":"chatcmpl-0","object":"chat.completion","created":1794700000,"model":"gpt-oss","choices":[{"index":0,"message":{"role":"assistant","content":"Hello from the model.","refusal":null,"tool_calls":[]},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120}}"#;
const MODELS: &str = r#"{"object":"list","data":[{"id":"gpt-oss","object":"model","created":1794700000,"owned_by":"bench"}]}"#;

/// Prints the port and serves until the standard input ends.
pub async fn serve(delay_ms: u64) -> Result<(), Failed> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?.port());
    let end = async {
        let mut rest = Vec::new();
        let _ = tokio::io::stdin().read_to_end(&mut rest).await;
    };
    tokio::select! {
        () = end => Ok(()),
        failed = accept(&listener, Duration::from_millis(delay_ms)) => failed,
    }
}

async fn accept(listener: &TcpListener, delay: Duration) -> Result<(), Failed> {
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(async move {
            let service = service_fn(move |request| answer(request, delay));
            // Whoever goes away goes away.
            let _ = http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    delay: Duration,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let is_models = request.uri().path().ends_with("/models");
    let _ = request.into_body().collect().await;
    if !is_models && !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    let body = if is_models { MODELS } else { COMPLETION };
    let mut response = Response::new(Full::new(Bytes::from_static(body.as_bytes())));
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    Ok(response)
}
