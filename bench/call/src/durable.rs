//! Claims that are on disk before the tool starts: how many a second, alone and together.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;

/// Tasks that claim at the same time.
pub const TOGETHER: usize = 64;

/// What was measured.
#[derive(Debug, Clone, Serialize)]
pub struct Durable {
    /// One small append and one sync at a time: what the disk allows without batching.
    pub syncs_per_second: f64,
    /// Claims of one task, one sync each. Absent when built without the `durable` feature.
    pub alone_per_second: Option<f64>,
    /// Claims of [`TOGETHER`] tasks.
    pub together_per_second: Option<f64>,
}

pub fn measure(span: Duration) -> io::Result<Durable> {
    let dir = tempfile::Builder::new()
        .prefix("claims-")
        .tempdir_in(env!("CARGO_MANIFEST_DIR"))?;
    let syncs_per_second = syncs(&dir.path().join("appended"), span)?;
    let claims = claims(dir.path(), span)?;
    Ok(Durable {
        syncs_per_second,
        alone_per_second: claims.map(|claims| claims.0),
        together_per_second: claims.map(|claims| claims.1),
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

#[cfg(not(feature = "durable"))]
#[expect(clippy::unnecessary_wraps, reason = "the other one can fail")]
fn claims(_: &Path, _: Duration) -> io::Result<Option<(f64, f64)>> {
    Ok(None)
}

#[cfg(feature = "durable")]
fn claims(dir: &Path, span: Duration) -> io::Result<Option<(f64, f64)>> {
    use holdfast_contract::SystemClock;
    use holdfast_reliability::store::sqlite::{SqliteOptions, SqliteState};
    use std::sync::Arc;

    let store = SqliteState::open(
        &dir.join("state"),
        Arc::new(SystemClock),
        SqliteOptions::default(),
    )
    .map_err(io::Error::other)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let alone = runtime.block_on(with_claims::claimed(store.clone(), 1, span))?;
    let together = runtime.block_on(with_claims::claimed(store, TOGETHER, span))?;
    Ok(Some((alone, together)))
}

#[cfg(feature = "durable")]
mod with_claims {
    use std::io;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::{Duration, Instant};

    use holdfast_reliability::canonical::Digest;
    use holdfast_reliability::idempotency::key::StoredKey;
    use holdfast_reliability::idempotency::record::RecordRequest;
    use holdfast_reliability::idempotency::transition::{
        ClaimRequest, Hold, Lifetimes, OnRetriableFailure,
    };
    use holdfast_reliability::retry::RepeatSafety;
    use holdfast_reliability::store::{Claim, DedupeStore};

    /// Claims held at the end of a measurement: each keeps a file open.
    const HELD_MAX: usize = 4096;

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
                session_key: "agent:main:session-0042".to_owned(),
                actor_id: "user-17".to_owned(),
                request_id: format!("0198c0de-0000-7000-8000-{number:012}"),
                tool_call_id: None,
                params_digest: digest,
            }),
            owner: format!("{number:032x}").into(),
            lifetimes: Lifetimes::default(),
            repeat: RepeatSafety::Unsafe,
            on_retriable_failure: OnRetriableFailure::Replay,
            hold: Hold::None,
        }
    }

    /// Claims per second of so many tasks, each waiting for its claim before the next.
    pub(super) async fn claimed(
        store: Arc<dyn DedupeStore>,
        tasks: usize,
        span: Duration,
    ) -> io::Result<f64> {
        let begun = Instant::now();
        let running: Vec<_> = (0..tasks)
            .map(|_| {
                let store = store.clone();
                tokio::spawn(async move {
                    let mut held = Vec::new();
                    while begun.elapsed() < span && held.len() < HELD_MAX / tasks {
                        let wish = wish();
                        match store.claim(&wish).await {
                            Ok(Claim::Granted { .. }) => held.push(wish),
                            other => return Err(io::Error::other(format!("{other:?}"))),
                        }
                    }
                    Ok(held)
                })
            })
            .collect();
        let mut held = Vec::new();
        for task in running {
            held.extend(task.await.map_err(io::Error::other)??);
        }
        let seconds = begun.elapsed().as_secs_f64();
        let count = u32::try_from(held.len()).unwrap_or(u32::MAX);
        // Given back together, after the clock has stopped.
        let given_back = held
            .iter()
            .map(|wish| store.release(&wish.key, &wish.owner));
        futures_util::future::join_all(given_back).await;
        Ok(f64::from(count) / seconds)
    }
}
