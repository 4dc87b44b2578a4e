//! Claims that are on disk before the tool starts: how many a second, alone and together.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use holdfast_contract::SystemClock;
use holdfast_reliability::canonical::Digest;
use holdfast_reliability::idempotency::key::StoredKey;
use holdfast_reliability::idempotency::record::{Execution, RecordRequest};
use holdfast_reliability::idempotency::transition::{
    ClaimRequest, Ending, Finalisation, Hold, Lifetimes, OnRetriableFailure,
};
use holdfast_reliability::retry::RepeatSafety;
use holdfast_reliability::store::sqlite::{SqliteOptions, SqliteState};
use holdfast_reliability::store::{Claim, DedupeStore};
use serde::Serialize;

/// Tasks that claim at the same time.
pub const TOGETHER: usize = 64;

/// What was measured.
#[derive(Debug, Clone, Serialize)]
pub struct Durable {
    /// One small append and one sync at a time: what the disk allows without batching.
    pub syncs_per_second: f64,
    /// Calls of one task, one sync for each of their two steps.
    pub alone_per_second: f64,
    /// Calls of [`TOGETHER`] tasks.
    pub together_per_second: f64,
}

/// Turns that the three measurements take, so that whatever the machine does meanwhile happens to
/// all of them.
const TURNS: u32 = 5;

pub fn measure(span: Duration) -> io::Result<Durable> {
    let dir = tempfile::Builder::new()
        .prefix("claims-")
        .tempdir_in(env!("CARGO_MANIFEST_DIR"))?;
    let appended = dir.path().join("appended");
    let claims = Claims::open(&dir.path().join("state"))?;
    let turn = span / TURNS;
    let mut found: Vec<[f64; 3]> = Vec::new();
    for number in 0..=TURNS {
        let turn = [
            syncs(&appended, turn)?,
            claims.per_second(1, turn)?,
            claims.per_second(TOGETHER, turn)?,
        ];
        // The first turn fills caches and makes files; it is not counted.
        if number > 0 {
            found.push(turn);
        }
    }
    let median = |which: usize| {
        let mut figures: Vec<f64> = found.iter().map(|turn| turn[which]).collect();
        figures.sort_unstable_by(f64::total_cmp);
        figures[figures.len() / 2]
    };
    Ok(Durable {
        syncs_per_second: median(0),
        alone_per_second: median(1),
        together_per_second: median(2),
    })
}

fn syncs(path: &Path, span: Duration) -> io::Result<f64> {
    let mut file: File = OpenOptions::new().append(true).create(true).open(path)?;
    let begun = Instant::now();
    let mut count = 0_u32;
    while begun.elapsed() < span {
        file.write_all(&[b'x'; 256])?;
        file.sync_data()?;
        count += 1;
    }
    Ok(f64::from(count) / begun.elapsed().as_secs_f64())
}

struct Claims {
    runtime: tokio::runtime::Runtime,
    store: Arc<SqliteState>,
}

impl Claims {
    fn open(dir: &Path) -> io::Result<Self> {
        let store = SqliteState::open(dir, Arc::new(SystemClock), SqliteOptions::default())
            .map_err(io::Error::other)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?;
        Ok(Self { runtime, store })
    }

    fn per_second(&self, tasks: usize, span: Duration) -> io::Result<f64> {
        self.runtime
            .block_on(run_claims(self.store.clone(), tasks, span))
    }
}

static NUMBER: AtomicU64 = AtomicU64::new(0);

fn wish() -> ClaimRequest {
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let digest = Digest::of(&number.to_le_bytes());
    ClaimRequest {
        key: StoredKey::from_bytes(*digest.as_bytes()),
        content: None,
        tool: "send_message".into(),
        idempotency_key: "computed".into(),
        request: Arc::new(RecordRequest {
            session_key: "agent:main:session-0042".into(),
            workspace_id: None,
            actor_id: "user-17".into(),
            request_id: format!("0198c0de-0000-7000-8000-{number:012}"),
            tool_call_id: None,
            params_digest: digest,
            shadow: false,
        }),
        owner: format!("{number:032x}").into(),
        lifetimes: Lifetimes::default(),
        repeat: RepeatSafety::Unsafe,
        on_retriable_failure: OnRetriableFailure::Replay,
        hold: Hold::None,
    }
}

/// Calls per second of so many tasks: each claims, ends its claim, and only then goes on. Both
/// steps are on disk before they are answered, alone with a sync each.
async fn run_claims(store: Arc<dyn DedupeStore>, tasks: usize, span: Duration) -> io::Result<f64> {
    let begun = Instant::now();
    let running: Vec<_> = (0..tasks)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move {
                let mut count = 0_u32;
                while begun.elapsed() < span {
                    let wish = wish();
                    match store.claim(&wish).await {
                        Ok(Claim::Granted { .. }) => {}
                        other => return Err(io::Error::other(format!("{other:?}"))),
                    }
                    match store.finalise(done(wish)).await {
                        Ok(Ok(())) => count += 1,
                        other => return Err(io::Error::other(format!("{other:?}"))),
                    }
                }
                Ok(count)
            })
        })
        .collect();
    let mut count = 0.0;
    for task in running {
        count += f64::from(task.await.map_err(io::Error::other)??);
    }
    Ok(count / begun.elapsed().as_secs_f64())
}

fn done(wish: ClaimRequest) -> Finalisation {
    Finalisation {
        key: wish.key,
        owner: wish.owner,
        ending: Ending::DoneWithoutOutput,
        execution: Execution::default(),
        lifetimes: wish.lifetimes,
    }
}
