//! The load: at a fixed rate, as much as goes through, or all at once.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Request, Uri};
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::Failed;

/// Connections that share a fixed rate.
const RATE_CONNECTIONS: usize = 64;

/// Whom to ask, and what.
#[derive(Clone)]
pub struct Target {
    authority: String,
    path: String,
    key: String,
    body: Bytes,
}

type Sender = SendRequest<Full<Bytes>>;

impl Target {
    pub fn new(url: &str, model: &str, key: &str) -> Result<Self, Failed> {
        let uri: Uri = url.parse()?;
        let body = json!({"model": model, "max_tokens": 100, "temperature": 0,
                          "messages": [{"role": "user", "content": "Say hello, please."}]});
        Ok(Self {
            authority: uri.authority().ok_or("an address has a host")?.to_string(),
            path: uri.path().to_owned(),
            key: key.to_owned(),
            body: Bytes::from(body.to_string()),
        })
    }

    async fn connect(&self) -> Result<Sender, Failed> {
        let stream = TcpStream::connect(&self.authority).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(sender)
    }

    async fn ask(&self, sender: &mut Sender) -> Result<(), Failed> {
        sender.ready().await?;
        let request = Request::post(&self.path)
            .header("host", &self.authority)
            .header("content-type", "application/json")
            .header("authorization", format!("Bearer {}", self.key))
            // Portkey's gateway is told by headers whom to ask; the others ignore them.
            .header("x-portkey-provider", "openai")
            .header(
                "x-portkey-custom-host",
                std::env::var("BENCH_UPSTREAM").unwrap_or_default(),
            )
            .body(Full::new(self.body.clone()))?;
        let answer = sender.send_request(request).await?;
        let status = answer.status();
        let body = answer.into_body().collect().await?.to_bytes();
        if status.is_success() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&body);
        Err(format!("{status}: {}", text.chars().take(300).collect::<String>()).into())
    }
}

/// A connection that is kept, and made anew when it was lost.
struct Kept {
    target: Target,
    sender: Option<Sender>,
}

impl Kept {
    async fn new(target: &Target) -> Result<Self, Failed> {
        Ok(Self {
            target: target.clone(),
            sender: Some(target.connect().await?),
        })
    }

    /// One request. A failed one is counted as that, and the next one has a new connection.
    async fn ask(&mut self) -> Result<(), String> {
        let mut sender = match self.sender.take() {
            Some(sender) if !sender.is_closed() => sender,
            _ => self.target.connect().await.map_err(|it| it.to_string())?,
        };
        let asked = self.target.ask(&mut sender).await;
        self.sender = asked.is_ok().then_some(sender);
        asked.map_err(|error| error.to_string())
    }
}

/// What came of the requests.
#[derive(Default)]
struct Tally {
    times: Vec<Duration>,
    errors: usize,
    why: Option<String>,
}

impl Tally {
    fn add(&mut self, asked: Result<Duration, String>) {
        match asked {
            Ok(time) => self.times.push(time),
            Err(why) => {
                self.errors += 1;
                self.why = Some(why);
            }
        }
    }

    fn join(&mut self, other: Self) {
        self.times.extend(other.times);
        self.errors += other.errors;
        self.why = other.why.or(self.why.take());
    }

    /// Only what was answered counts as a request.
    fn report(mut self, took: Duration) {
        self.times.sort_unstable();
        let at = |share: f64| {
            let place = ((self.times.len() as f64 - 1.0) * share).round();
            let found = self.times.get(place as usize);
            found.map_or(0.0, |it| it.as_secs_f64() * 1000.0)
        };
        let per_second = self.times.len() as f64 / took.as_secs_f64();
        println!(
            "{}",
            json!({"requests": self.times.len(), "requestsPerSecond": per_second,
                   "p50Ms": at(0.5), "p99Ms": at(0.99), "maxMs": at(1.0),
                   "errors": self.errors, "why": self.why})
        );
    }
}

/// Requests at a fixed rate; prints percentiles of the time since each was due.
pub async fn rate(target: &Target, per_second: u32, seconds: u64) -> Result<(), Failed> {
    let count = u64::from(per_second) * seconds;
    let every = Duration::from_secs(1) / per_second;
    let (due, waiting) = mpsc::unbounded_channel::<Instant>();
    let waiting = Arc::new(tokio::sync::Mutex::new(waiting));
    let (say, mut told) = mpsc::unbounded_channel::<Result<Duration, String>>();
    for _ in 0..RATE_CONNECTIONS {
        let (waiting, say) = (waiting.clone(), say.clone());
        let mut kept = Kept::new(target).await?;
        tokio::spawn(async move {
            loop {
                let next = waiting.lock().await.recv().await;
                let Some(at) = next else { return };
                let asked = kept.ask().await;
                let _ = say.send(asked.map(|()| at.elapsed()));
            }
        });
    }
    drop(say);
    let begun = Instant::now();
    // On a thread of its own: the runtime's timers are a millisecond apart, as are the requests.
    let pace = std::thread::spawn(move || {
        for number in 0..count {
            let at = begun + every * u32::try_from(number).unwrap_or(u32::MAX);
            std::thread::sleep(at.saturating_duration_since(Instant::now()));
            let _ = due.send(at);
        }
    });
    let mut tally = Tally::default();
    while let Some(one) = told.recv().await {
        tally.add(one);
    }
    pace.join().map_err(|_| "the pace was lost")?;
    tally.report(begun.elapsed());
    Ok(())
}

/// As many requests as go through on so many connections.
pub async fn flood(target: &Target, connections: usize, seconds: u64) -> Result<(), Failed> {
    let mut all = Vec::new();
    for _ in 0..connections {
        all.push(Kept::new(target).await?);
    }
    let begun = Instant::now();
    let end = begun + Duration::from_secs(seconds);
    let workers = all.into_iter().map(|mut kept| {
        tokio::spawn(async move {
            let mut tally = Tally::default();
            while Instant::now() < end {
                let at = Instant::now();
                let asked = kept.ask().await;
                tally.add(asked.map(|()| at.elapsed()));
            }
            tally
        })
    });
    let workers: Vec<_> = workers.collect();
    let mut tally = Tally::default();
    for worker in workers {
        tally.join(worker.await?);
    }
    tally.report(begun.elapsed());
    Ok(())
}

/// All at once. Says when all are on their way, and ends when all are answered.
pub async fn hold(target: &Target, requests: usize) -> Result<(), Failed> {
    let sent = Arc::new(AtomicUsize::new(0));
    let mut workers = Vec::new();
    for _ in 0..requests {
        let (target, sent) = (target.clone(), sent.clone());
        let mut sender = target.connect().await?;
        workers.push(tokio::spawn(async move {
            sent.fetch_add(1, Ordering::SeqCst);
            target.ask(&mut sender).await
        }));
    }
    while sent.load(Ordering::SeqCst) < requests {
        tokio::task::yield_now().await;
    }
    println!("held");
    let mut answered = 0;
    let mut failed = None;
    for worker in workers {
        match worker.await? {
            Ok(()) => answered += 1,
            Err(why) => failed = Some(why.to_string()),
        }
    }
    println!(
        "{}",
        json!({"answered": answered, "failed": requests - answered, "why": failed})
    );
    Ok(())
}

/// Asks until the address answers well, for five minutes at most, and while the process is there.
pub async fn ready(url: &str, pid: &str) -> Result<(), Failed> {
    let process = Path::new("/proc").join(pid);
    let target = Target::new(url, "", "")?;
    let until = Instant::now() + Duration::from_secs(300);
    while Instant::now() < until && process.exists() {
        if let Ok(mut sender) = target.connect().await {
            let request = Request::get(&target.path)
                .header("host", &target.authority)
                .body(Full::default())?;
            let asked = tokio::time::timeout(Duration::from_secs(2), sender.send_request(request));
            if let Ok(Ok(answer)) = asked.await
                && answer.status().is_success()
            {
                return Ok(());
            }
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Err(format!("{url} did not get ready").into())
}
