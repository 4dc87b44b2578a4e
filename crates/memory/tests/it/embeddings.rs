//! The client of an embedding endpoint against a real server on loopback, scripted to misbehave.

use std::sync::Arc;

use holdfast_contract::{
    MemoryQuery, MemoryRead, MemoryStore, MemoryType, MemoryWrite, NewMemory, Trust,
};
use holdfast_memory::conformance::Meaning;
use holdfast_memory::embed::Purpose;
use holdfast_memory::reindex::Scope;
use holdfast_memory::{
    EmbedError, Embedder, EmbeddingConfig, Memory, OpenAiEmbedder, SqliteMemory,
    SqliteMemoryOptions,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;

/// A request as it arrived.
#[derive(Debug, Clone)]
struct Asked {
    head: String,
    body: Value,
}

/// What the server does next.
#[derive(Debug, Clone)]
enum Does {
    Answer,
    Say(u16, String),
    Hang,
    HangUp,
    SendForever,
    RefuseTexts(&'static str),
}

/// A server with one behaviour at a time.
struct Server {
    url: String,
    does: Arc<Mutex<Does>>,
    asked: Arc<Mutex<Vec<Asked>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    async fn start(does: Does) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let does = Arc::new(Mutex::new(does));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let shared = (does.clone(), asked.clone());
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (does, asked) = shared.clone();
                tokio::spawn(async move { serve(stream, &does, &asked).await });
            }
        });
        Self {
            url,
            does,
            asked,
            task,
        }
    }

    async fn set(&self, does: Does) {
        *self.does.lock().await = does;
    }

    async fn asked(&self) -> Vec<Asked> {
        self.asked.lock().await.clone()
    }

    fn config(&self) -> EmbeddingConfig {
        EmbeddingConfig::new(&self.url, "meaning-1")
    }

    fn client(&self) -> OpenAiEmbedder {
        OpenAiEmbedder::new(self.config(), None).unwrap()
    }
}

async fn serve(mut stream: TcpStream, does: &Mutex<Does>, asked: &Mutex<Vec<Asked>>) {
    let Some(request) = read_request(&mut stream).await else {
        return;
    };
    let texts: Vec<String> = serde_json::from_value(request.body["input"].clone()).unwrap();
    asked.lock().await.push(request);
    let does = does.lock().await.clone();
    let (status, body) = match does {
        Does::Say(status, body) => (status, body),
        Does::RefuseTexts(word) if texts.iter().any(|text| text.contains(word)) => {
            let said = json!({"error": {"message": "input is too long"}});
            (400, said.to_string())
        }
        Does::Answer | Does::RefuseTexts(_) => (200, vectors(&texts).to_string()),
        Does::HangUp => return,
        Does::Hang => {
            // Until the client has enough and goes.
            let _ = stream.read(&mut [0; 1]).await;
            return;
        }
        Does::SendForever => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
            while stream.write_all(&[b' '; 8192]).await.is_ok() {}
            return;
        }
    };
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\nlocation: http://127.0.0.1:1/\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all(head.as_bytes()).await;
    let _ = stream.write_all(body.as_bytes()).await;
}

async fn read_request(stream: &mut TcpStream) -> Option<Asked> {
    let mut bytes = Vec::new();
    let end = loop {
        let mut part = [0; 4096];
        let count = stream.read(&mut part).await.ok()?;
        if count == 0 {
            return None;
        }
        bytes.extend_from_slice(&part[..count]);
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let length: usize = head
        .lines()
        .find_map(|line| {
            line.to_lowercase()
                .strip_prefix("content-length: ")?
                .parse()
                .ok()
        })
        .unwrap();
    let mut body = bytes[end..].to_vec();
    let have = body.len();
    body.resize(length, 0);
    stream.read_exact(&mut body[have..]).await.ok()?;
    Some(Asked {
        head,
        body: serde_json::from_slice(&body).unwrap(),
    })
}

/// Out of order, as the standard allows.
fn vectors(texts: &[String]) -> Value {
    let data: Vec<Value> = texts
        .iter()
        .enumerate()
        .rev()
        .map(|(index, text)| json!({"index": index, "embedding": Meaning::vector(text)}))
        .collect();
    json!({"object": "list", "data": data, "model": "meaning-1", "usage": {"total_tokens": 1}})
}

async fn embed(client: &OpenAiEmbedder, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
    let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
    client.embed(&texts, Purpose::Record).await
}

#[tokio::test]
async fn texts_become_vectors_in_their_order_and_in_batches() {
    let server = Server::start(Does::Answer).await;
    let config = EmbeddingConfig {
        batch_size: 2,
        dimensions: Some(8),
        query_prefix: "query: ".to_owned(),
        record_prefix: "passage: ".to_owned(),
        api_key_env: Some("KEY".to_owned()),
        ..server.config()
    };
    let client = OpenAiEmbedder::new(config, Some("sk-secret\n")).unwrap();
    assert_eq!(client.model(), "meaning-1@8");
    let found = embed(&client, &["a cat", "a beach", "an invoice"])
        .await
        .unwrap();
    let expected: Vec<_> = ["passage: a cat", "passage: a beach", "passage: an invoice"]
        .map(Meaning::vector)
        .into();
    assert_eq!(found, expected);
    client
        .embed(&["a cat".to_owned()], Purpose::Query)
        .await
        .unwrap();
    let asked = server.asked().await;
    assert_eq!(asked.len(), 3);
    assert!(
        asked[0]
            .head
            .starts_with("POST /v1/embeddings HTTP/1.1\r\n")
    );
    let head = asked[0].head.to_lowercase();
    assert!(
        head.contains("authorization: bearer sk-secret\r\n"),
        "{head}"
    );
    assert_eq!(asked[0].body["model"], "meaning-1");
    assert_eq!(asked[0].body["dimensions"], 8);
    assert_eq!(
        asked[0].body["input"],
        json!(["passage: a cat", "passage: a beach"])
    );
    assert_eq!(asked[2].body["input"], json!(["query: a cat"]));
    // A key is not for eyes.
    assert!(!format!("{client:?}").contains("sk-secret"));
}

#[tokio::test]
async fn every_way_to_fail_has_a_name() {
    let server = Server::start(Does::Answer).await;
    let client = server.client();
    let refusal = |status| {
        Does::Say(
            status,
            json!({"error": {"message": "say please"}}).to_string(),
        )
    };
    for status in [400, 401, 404, 429, 500, 503] {
        server.set(refusal(status)).await;
        let refused = EmbedError::Refused {
            status,
            message: "say please".to_owned(),
        };
        assert_eq!(embed(&client, &["a"]).await, Err(refused));
    }
    // A redirect is not followed: the key is for one server.
    server.set(refusal(302)).await;
    assert!(matches!(
        embed(&client, &["a"]).await,
        Err(EmbedError::Refused { status: 302, .. })
    ));
    for nonsense in [
        "",
        "hello",
        "{}",
        r#"{"data": []}"#,
        r#"{"data": [{"embedding": [0, 0]}]}"#,
    ] {
        server.set(Does::Say(200, nonsense.to_owned())).await;
        let failed = embed(&client, &["a"]).await;
        assert!(
            matches!(failed, Err(EmbedError::Nonsense(_))),
            "{nonsense:?}: {failed:?}"
        );
    }
    server.set(Does::HangUp).await;
    assert!(matches!(
        embed(&client, &["a"]).await,
        Err(EmbedError::Unreachable(_))
    ));
    server.set(Does::SendForever).await;
    let failed = embed(&client, &["a"]).await;
    assert!(
        matches!(&failed, Err(EmbedError::Nonsense(why)) if why.contains("larger")),
        "{failed:?}"
    );
}

#[tokio::test]
async fn a_server_that_is_silent_or_gone_is_told_apart() {
    let server = Server::start(Does::Hang).await;
    let config = EmbeddingConfig {
        timeout_ms: 50,
        ..server.config()
    };
    let client = OpenAiEmbedder::new(config, None).unwrap();
    assert_eq!(embed(&client, &["a"]).await, Err(EmbedError::TimedOut(50)));
    // A port that was just free: nobody listens there.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let client = OpenAiEmbedder::new(EmbeddingConfig::new(url, "m"), None).unwrap();
    match embed(&client, &["a"]).await {
        Err(EmbedError::Unreachable(why)) => assert!(why.contains("refused"), "{why}"),
        other => panic!("{other:?}"),
    }
}

fn new(content: &str) -> NewMemory {
    NewMemory {
        memory_type: MemoryType::Fact,
        content: content.to_owned(),
        metadata: None,
        session_id: "s".to_owned(),
        trust: Trust::User,
    }
}

#[tokio::test]
async fn a_memory_goes_on_without_its_endpoint_and_makes_up_for_it() {
    let server = Server::start(Does::Say(503, "busy".to_owned())).await;
    let dir = tempfile::tempdir().unwrap();
    let open = || {
        let backend = SqliteMemory::new(dir.path(), SqliteMemoryOptions::default());
        Memory::new(Arc::new(backend)).with_embedder(Arc::new(server.client()))
    };
    let memory = open();
    let stored = memory.remember(new("The kitten sleeps.")).await.unwrap();
    let why = stored.embedding_missing.unwrap();
    assert!(why.contains("status 503: busy"), "{why}");
    let found = memory.search(&MemoryQuery::new("kitten")).await.unwrap();
    assert_eq!(found.hits.len(), 1);
    assert!(found.note.unwrap().contains("words alone"));
    // It failed once, so it was asked once: the search did not wait for it again.
    assert_eq!(server.asked().await.len(), 1);
    let stopped = memory.reindex(Scope::Missing, |_| ()).await.unwrap_err();
    assert!(stopped.to_string().contains("503"), "{stopped}");

    server.set(Does::RefuseTexts("endless")).await;
    let memory = open();
    let mut endless = memory.get(&stored.id).await.unwrap().unwrap();
    endless.id = "endless".to_owned();
    endless.content = "An endless story.".to_owned();
    memory.insert(vec![endless]).await.unwrap();
    let done = memory.reindex(Scope::Missing, |_| ()).await.unwrap();
    assert_eq!(done.embedded, 1);
    assert_eq!(done.refused.len(), 1);
    assert_eq!(done.refused[0].0, "endless");
    assert!(done.refused[0].1.contains("too long"));
    let found = memory.search(&MemoryQuery::new("feline")).await.unwrap();
    assert_eq!(found.hits[0].record.content, "The kitten sleeps.");
    assert!(found.used_vectors);
    assert!(found.note.unwrap().contains("1 of 2"));
}
