use super::*;

const ANSWER: &str = "data: {\"choices\": [{\"index\": 0, \"delta\": {\"content\": \"Yes.\"}, \"finish_reason\": \"stop\"}]}\n\n";

/// A server that gives this answer to one question, then waits, or resets the connection.
async fn answered(answer: String, resets: bool, key: &str) -> Result<ModelReply, ModelError> {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}", listener.local_addr().unwrap());
    let heard = std::sync::Arc::new(tokio::sync::Notify::new());
    let heard_by_client = heard.clone();
    let served = tokio::spawn(async move {
        let (mut client, _) = listener.accept().await.unwrap();
        let mut asked = vec![0; 16 * 1024];
        let _ = client.read(&mut asked).await.unwrap();
        client.write_all(answer.as_bytes()).await.unwrap();
        if resets {
            client.set_zero_linger().unwrap();
            // A reset throws away what the client has not read yet.
            heard_by_client.notified().await;
        } else {
            std::future::pending::<()>().await;
        }
    });
    let model = HttpModel::new(&HttpModelConfig {
        base_url,
        model: "m".to_owned(),
        api_key: Some(key.to_owned()),
        http2: Http2::default(),
    });
    let request = ModelRequest {
        body: json!({"messages": []}),
        timeout_ms: 60_000,
        reports: super::super::Reports::default(),
    };
    let mut hear = |_: super::super::Piece<'_>| heard.notify_one();
    let reply = model.unwrap().stream(&request, &mut hear).await;
    served.abort();
    reply
}

/// One that waited for the connection's end would run into the test's own time limit.
#[tokio::test]
async fn a_stream_ends_where_its_server_says_so() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
    for (rest, resets) in [("data: [DONE]\n\n", false), ("", true)] {
        let answer = format!("{head}{ANSWER}{rest}");
        let reply = answered(answer, resets, "k").await.unwrap();
        assert_eq!(reply.content, "Yes.", "{resets}");
    }
    let half = ANSWER.replace("\"stop\"", "null");
    let broken = answered(format!("{head}{half}"), true, "k").await;
    assert!(
        matches!(broken, Err(ModelError::Unavailable(_))),
        "{broken:?}"
    );
}

/// A server that says a word, lets this much time pass, and says the next; after the last one it is
/// silent, or says that this was all. Time passes only here: the task that blocks keeps it from running
/// ahead of the sockets.
async fn with_pauses(
    pauses_ms: &'static [u64],
    ends: bool,
    limit_ms: u64,
) -> Result<ModelReply, ModelError> {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let (stopped, time) = std::sync::mpsc::channel::<()>();
    let blocks = tokio::task::spawn_blocking(move || time.recv().is_err());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}", listener.local_addr().unwrap());
    let (word_heard, mut listens) = tokio::sync::mpsc::unbounded_channel::<()>();
    let served = tokio::spawn(async move {
        let (mut client, _) = listener.accept().await.unwrap();
        let mut asked = vec![0; 16 * 1024];
        let _ = client.read(&mut asked).await.unwrap();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
        client.write_all(head.as_bytes()).await.unwrap();
        for pause_ms in pauses_ms {
            let word = ANSWER.replace("\"stop\"", "null");
            client.write_all(word.as_bytes()).await.unwrap();
            listens.recv().await.unwrap();
            tokio::time::advance(Duration::from_millis(*pause_ms)).await;
        }
        if ends {
            client.write_all(ANSWER.as_bytes()).await.unwrap();
            client.write_all(b"data: [DONE]\n\n").await.unwrap();
        }
        std::future::pending::<()>().await;
    });
    let model = HttpModel::new(&HttpModelConfig {
        base_url,
        model: "m".to_owned(),
        api_key: None,
        http2: Http2::default(),
    });
    let request = ModelRequest {
        body: json!({"messages": []}),
        timeout_ms: limit_ms,
        reports: super::super::Reports::default(),
    };
    let mut hear = |_: super::super::Piece<'_>| word_heard.send(()).unwrap_or_default();
    let reply = model.unwrap().stream(&request, &mut hear).await;
    served.abort();
    drop(stopped);
    blocks.await.unwrap();
    reply
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_still_speaks_is_not_cut_off() {
    let reply = with_pauses(&[40_000, 40_000, 59_000], true, 60_000).await;
    assert_eq!(reply.unwrap().content, "Yes.Yes.Yes.Yes.");
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_falls_silent_is_cut_off_and_said_to_be() {
    let error = with_pauses(&[40_000, 60_001], false, 60_000).await;
    let error = error.unwrap_err();
    assert!(error.may_pass());
    let why = error.to_string();
    assert!(
        why.ends_with("the answer broke off before its end: nothing more came for 60000 ms"),
        "{why}"
    );
}

#[tokio::test]
async fn a_server_that_is_busy_says_when_and_keeps_the_key_to_itself() {
    let body = "{\"error\": {\"message\": \"not for correct-horse-42\"}}";
    let answer = |status: &str| {
        let length = body.len();
        format!("HTTP/1.1 {status}\r\nretry-after: 4\r\ncontent-length: {length}\r\n\r\n{body}")
    };
    let busy = answered(answer("429 Too Many Requests"), false, "correct-horse-42").await;
    let error = busy.unwrap_err();
    assert_eq!(error.retry_after_ms(), Some(4_000));
    assert_eq!(
        error.to_string(),
        "the model server answered 429: not for [redacted]"
    );
    let barred = answered(answer("401 Unauthorized"), false, "correct-horse-42").await;
    let error = barred.unwrap_err();
    assert!(
        matches!(&error, ModelError::Barred(why) if !why.contains("horse")),
        "{error}"
    );
}

#[test]
fn a_server_is_asked_by_its_own_name_and_told_what_else_is_wanted() {
    let body = json!({"model": "gpt-oss", "messages": [], "stream": false, "seed": 7});
    let sent = |more: &[(&str, Value)]| {
        let amended = Amended {
            body: &body,
            model: "openai/gpt-oss-20b",
            more,
        };
        serde_json::to_string(&amended).unwrap()
    };
    let plain = sent(&[]);
    assert_eq!(plain.matches("\"model\"").count(), 1, "{plain}");
    let plain: Value = serde_json::from_str(&plain).unwrap();
    let named = json!({"model": "openai/gpt-oss-20b", "messages": [], "stream": false, "seed": 7});
    assert_eq!(plain, named);
    let live = sent(&[("stream", Value::Bool(true)), ("top_k", json!(1))]);
    assert_eq!(live.matches("\"stream\"").count(), 1, "{live}");
    let live: Value = serde_json::from_str(&live).unwrap();
    assert_eq!((&live["stream"], &live["top_k"]), (&json!(true), &json!(1)));
}

#[test]
fn addresses_are_read_as_people_write_them() {
    for (base, url) in [
        ("http://a:8000", "http://a:8000/v1/chat/completions"),
        ("http://a:8000/", "http://a:8000/v1/chat/completions"),
        ("http://a/v1/", "http://a/v1/chat/completions"),
        ("https://a/api/v3", "https://a/api/v3/chat/completions"),
    ] {
        assert_eq!(endpoint(base, "chat/completions").unwrap().as_str(), url);
    }
    for wrong in ["spark:8000", "file:///x", "", "http://"] {
        assert!(endpoint(wrong, "models").is_err(), "{wrong}");
    }
    for (bare, meant) in [
        ("spark:8000", Some("http://spark:8000")),
        ("127.0.0.1:8000", Some("http://127.0.0.1:8000")),
        ("127.0.0.1:8000/v1", Some("http://127.0.0.1:8000/v1")),
        ("[::1]:8000", Some("http://[::1]:8000")),
        ("localhost", Some("http://localhost")),
        // Nothing can be meant by these.
        ("file:///x", None),
        ("ftp://a:8000", None),
        ("", None),
        ("a b", None),
    ] {
        let why = endpoint(bare, "models").unwrap_err();
        let hint = why.split_once("; did you mean ").map(|(_, hint)| hint);
        assert_eq!(hint, meant.map(|it| format!("{it}?")).as_deref(), "{why}");
        assert!(why.contains("no address"), "{why}");
    }
}
