//! The load: at a fixed rate, as much as goes through, or all at once.

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
use tokio::time::{Instant, sleep_until};

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

/// Requests at a fixed rate; prints percentiles of the time since each was due.
pub async fn rate(target: &Target, per_second: u32, seconds: u64) -> Result<(), Failed> {
    let count = u64::from(per_second) * seconds;
    let every = Duration::from_secs(1) / per_second;
    let (due, waiting) = mpsc::unbounded_channel::<Instant>();
    let waiting = Arc::new(tokio::sync::Mutex::new(waiting));
    let (say, mut told) = mpsc::unbounded_channel::<Result<Duration, String>>();
    for _ in 0..RATE_CONNECTIONS {
        let (target, waiting, say) = (target.clone(), waiting.clone(), say.clone());
        let mut sender = target.connect().await?;
        tokio::spawn(async move {
            loop {
                let next = waiting.lock().await.recv().await;
                let Some(at) = next else { return };
                let asked = target.ask(&mut sender).await;
                let _ = say.send(asked.map(|()| at.elapsed()).map_err(|it| it.to_string()));
            }
        });
    }
    drop(say);
    let begun = Instant::now();
    let pace = tokio::spawn(async move {
        for number in 0..count {
            let at = begun + every * u32::try_from(number).unwrap_or(u32::MAX);
            sleep_until(at).await;
            let _ = due.send(at);
        }
    });
    let mut times = Vec::new();
    while let Some(one) = told.recv().await {
        times.push(one?);
    }
    pace.await?;
    let took = begun.elapsed();
    report(&mut times, took);
    Ok(())
}

/// As many requests as go through on so many connections.
pub async fn flood(target: &Target, connections: usize, seconds: u64) -> Result<(), Failed> {
    let end = Instant::now() + Duration::from_secs(seconds);
    let begun = Instant::now();
    let mut workers = Vec::new();
    for _ in 0..connections {
        let target = target.clone();
        let mut sender = target.connect().await?;
        workers.push(tokio::spawn(async move {
            let mut times = Vec::new();
            while Instant::now() < end {
                let at = Instant::now();
                target.ask(&mut sender).await?;
                times.push(at.elapsed());
            }
            Ok::<_, Failed>(times)
        }));
    }
    let mut times = Vec::new();
    for worker in workers {
        times.extend(worker.await??);
    }
    report(&mut times, begun.elapsed());
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

/// Asks until the address answers well, for two minutes at most.
pub async fn ready(url: &str) -> Result<(), Failed> {
    let target = Target::new(url, "", "")?;
    let until = Instant::now() + Duration::from_secs(120);
    while Instant::now() < until {
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

fn report(times: &mut [Duration], took: Duration) {
    times.sort_unstable();
    let at = |share: f64| {
        let place = ((times.len() as f64 - 1.0) * share).round();
        times
            .get(place as usize)
            .map_or(0.0, |it| it.as_secs_f64() * 1000.0)
    };
    let per_second = times.len() as f64 / took.as_secs_f64();
    println!(
        "{}",
        json!({"requests": times.len(), "requestsPerSecond": per_second,
               "p50Ms": at(0.5), "p99Ms": at(0.99), "maxMs": at(1.0)})
    );
}
