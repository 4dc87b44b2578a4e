//! HTTP/2 with model servers: where the configuration says so, and where a server may offer it.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

use h2::RecvStream;
use h2::server::SendResponse;
use holdfast_agent::config::ExecutorConfig;
use holdfast_agent::model::{
    Http2, HttpModel, HttpModelConfig, Model, ModelError, ModelRequest, Piece, Reports, Upstreams,
};
use holdfast_contract::SystemClock;
use http::{Request, Response};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

type Bytes = Cursor<Vec<u8>>;

/// What a server was asked, and on which of its connections.
type Asked = Arc<Mutex<Vec<(usize, Value)>>>;

/// A server that speaks HTTP/2 from the first byte on, and nothing else.
async fn server() -> (String, Asked) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let asked = Asked::default();
    let all = asked.clone();
    tokio::spawn(async move {
        for number in 0_usize.. {
            let (socket, _) = listener.accept().await.expect("a connection");
            let asked = all.clone();
            tokio::spawn(async move {
                let shaken = h2::server::Builder::new().handshake::<_, Bytes>(socket);
                let Ok(mut connection) = shaken.await else {
                    return;
                };
                while let Some(Ok((request, respond))) = connection.accept().await {
                    tokio::spawn(answer(number, request, respond, asked.clone()));
                }
            });
        }
    });
    (url, asked)
}

async fn answer(
    number: usize,
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    asked: Asked,
) {
    let mut body = Vec::new();
    let mut parts = request.into_body();
    while let Some(Ok(part)) = parts.data().await {
        body.extend_from_slice(&part);
    }
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let streams = body["stream"] == true;
    asked.lock().push((number, body));
    let (kind, text) = if streams {
        let event = json!({"choices": [{"delta": {"content": "Yes."}, "finish_reason": "stop"}]});
        (
            "text/event-stream",
            format!("data: {event}\n\ndata: [DONE]\n\n"),
        )
    } else {
        let message = json!({"message": {"content": "Yes."}, "finish_reason": "stop"});
        (
            "application/json",
            json!({"choices": [message]}).to_string(),
        )
    };
    let head = Response::builder().header("content-type", kind);
    let head = head.body(()).expect("a response");
    let mut body = respond.send_response(head, false).expect("sends");
    body.send_data(Cursor::new(text.into_bytes()), true)
        .expect("sends");
}

fn question() -> ModelRequest {
    ModelRequest {
        body: json!({"model": "gpt-oss", "messages": []}),
        timeout_ms: 30_000,
        reports: Reports::default(),
    }
}

/// The model of a file with this server.
fn configured(url: &str, http2: &str) -> Upstreams {
    let text = format!("executor:\n  gpt_oss_url: {url}\n  http2: {http2}\n");
    let none = BTreeMap::<String, String>::new();
    let read = ExecutorConfig::read(&text, Path::new("."), &none).expect("a configuration");
    Upstreams::connect(&read.models["gpt-oss"], Arc::new(SystemClock)).expect("a client")
}

/// One connection for all of them is what HTTP/2 is for.
#[tokio::test]
async fn a_server_without_tls_is_spoken_to_as_the_configuration_says() {
    let (url, asked) = server().await;
    let model = configured(&url, "always");
    let question = question();
    assert_eq!(model.reach().await, Ok(()));
    let both = futures_util::future::join(model.complete(&question), model.complete(&question));
    let (one, two) = both.await;
    assert_eq!(one.expect("an answer").content, "Yes.");
    assert_eq!(two.expect("an answer").content, "Yes.");
    let mut heard = String::new();
    let mut hear = |piece: Piece<'_>| {
        if let Piece::Content(text) = piece {
            heard.push_str(text);
        }
    };
    let streamed = model.stream(&question, &mut hear).await;
    assert_eq!(streamed.expect("an answer").content, "Yes.");
    assert_eq!(heard, "Yes.");
    let asked = asked.lock().clone();
    assert_eq!(asked.len(), 4, "{asked:?}");
    assert!(asked.iter().all(|(connection, _)| *connection == 0));
    assert_eq!(asked[1].1["model"], "gpt-oss");
    // Nobody can ask for it without TLS, so unless it is said the server is spoken to in HTTP/1.1.
    let model = configured(&url, "negotiated");
    let refused = model.complete(&question).await;
    assert!(
        matches!(refused, Err(ModelError::Unavailable(_))),
        "{refused:?}"
    );
}

/// What a client can speak is in the first bytes that it sends, before anything is secret.
#[tokio::test]
async fn a_server_with_tls_is_offered_both_unless_it_is_never_to_be_http2() {
    let both: &[u8] = b"\x02h2\x08http/1.1";
    let hello = hello(Http2::Negotiated).await;
    assert!(offers(&hello, both), "{}", String::from_utf8_lossy(&hello));
    let none = BTreeMap::<String, String>::new();
    let text = "executor:\n  http2: never\n";
    let read = ExecutorConfig::read(text, Path::new("."), &none).expect("a configuration");
    let never = read.models["gpt-oss"].http2;
    assert_eq!(never, Http2::Never);
    let hello = self::hello(never).await;
    // A list of nine bytes, with one entry.
    assert!(!offers(&hello, both) && offers(&hello, b"\x00\x09\x08http/1.1"));
}

fn offers(hello: &[u8], protocols: &[u8]) -> bool {
    hello.windows(protocols.len()).any(|part| part == protocols)
}

/// The first bytes that such a client sends.
async fn hello(http2: Http2) -> Vec<u8> {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let base_url = format!("https://{}", listener.local_addr().expect("an address"));
    let model = HttpModel::new(&HttpModelConfig {
        base_url,
        model: "m".to_owned(),
        api_key: None,
        http2,
    });
    let model = model.expect("a client");
    let hello = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.expect("a connection");
        let mut hello = vec![0; 16 * 1024];
        let length = socket.read(&mut hello).await.expect("reads");
        hello.truncate(length);
        hello
    });
    assert!(model.reach().await.is_err());
    hello.await.expect("no panic")
}
