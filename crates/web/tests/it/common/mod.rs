//! A server on a loopback port that says what a test tells it to.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use holdfast_contract::{CallContext, Clock, SessionContext, SessionKind, ToolContext};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// What it was asked.
#[derive(Debug, Clone, Default)]
pub(crate) struct Asked {
    pub(crate) path: String,
    pub(crate) head: String,
    pub(crate) body: String,
}

type Answers = Arc<HashMap<&'static str, String>>;

pub(crate) struct Double {
    pub(crate) address: SocketAddr,
    pub(crate) asked: Arc<Mutex<Vec<Asked>>>,
}

/// An answer with a body.
pub(crate) fn answer(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

impl Double {
    /// Serves these answers by path; `{port}` in one is its own port. Others get 404.
    pub(crate) async fn start(answers: Vec<(&'static str, String)>) -> Self {
        let here = std::net::Ipv4Addr::LOCALHOST.into();
        Self::start_at(here, 0, answers).await
    }

    /// The same on this address and port; 0 is any that is free.
    pub(crate) async fn start_at(
        host: std::net::IpAddr,
        port: u16,
        answers: Vec<(&'static str, String)>,
    ) -> Self {
        let listener = TcpListener::bind((host, port)).await.expect("binds");
        let address = listener.local_addr().expect("an address");
        let answers: Answers = Arc::new(answers.into_iter().collect());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = asked.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (answers, seen) = (answers.clone(), seen.clone());
                tokio::spawn(async move {
                    let Some(asked) = read(&mut stream).await else {
                        return;
                    };
                    let path = asked.path.split('?').next().unwrap_or_default().to_owned();
                    seen.lock().expect("no panic").push(asked);
                    let missing = answer("404 Not Found", "", "");
                    let found = answers.get(path.as_str()).cloned().unwrap_or(missing);
                    let found = found.replace("{port}", &address.port().to_string());
                    let _ = stream.write_all(found.as_bytes()).await;
                    let _ = stream.shutdown().await;
                });
            }
        });
        Self { address, asked }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.address.port())
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("no panic").clone()
    }
}

async fn read(stream: &mut tokio::net::TcpStream) -> Option<Asked> {
    let mut bytes = Vec::new();
    loop {
        let mut chunk = [0; 4096];
        let count = stream
            .read(&mut chunk)
            .await
            .ok()
            .filter(|count| *count > 0)?;
        bytes.extend_from_slice(&chunk[..count]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            let is_it = name.eq_ignore_ascii_case("content-length");
            is_it.then(|| value.trim().parse::<usize>().ok())?
        });
        if body.len() >= length.unwrap_or(0) {
            let path = head.split(' ').nth(1)?.to_owned();
            return Some(Asked {
                path,
                head: head.to_ascii_lowercase(),
                body: body.to_owned(),
            });
        }
    }
}

/// Seven seconds before the date that the examples of HTTP use.
struct Before;

impl Clock for Before {
    fn now_ms(&self) -> u64 {
        784_111_770_000
    }
}

pub(crate) fn clock() -> Arc<dyn Clock> {
    Arc::new(Before)
}

/// A call of a session of this kind.
pub(crate) fn context(kind: SessionKind, key: Option<&str>) -> ToolContext {
    let session = SessionContext::of_kind(kind, "session", "agent", "/nowhere".into());
    ToolContext {
        session: Arc::new(session),
        call: CallContext {
            idempotency_key: key.map(str::to_owned),
            ..CallContext::default()
        },
    }
}
