//! What a claim and its last word cost on Redis, next to two plain `SET`s through the same client.
//!
//! Everything runs in one process against one server that this program starts. Rounds of both
//! kinds take turns, so that a busy machine is busy for both; the median share counts.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use holdfast_contract::{ResultOutput, SystemClock};
use holdfast_reliability::canonical::Digest;
use holdfast_reliability::idempotency::key::StoredKey;
use holdfast_reliability::idempotency::record::{Execution, RecordRequest};
use holdfast_reliability::idempotency::transition::{
    ClaimRequest, Ending, Finalisation, Hold, Lifetimes, OnRetriableFailure,
};
use holdfast_reliability::retry::RepeatSafety;
use holdfast_reliability::store::redis::{RedisOptions, RedisState};
use holdfast_reliability::store::{Claim, DedupeStore};
use holdfast_testkit::redis::{Persistence, RedisServer};
use serde_json::{Value, json};

const TASKS: u64 = 64;
const PAYLOAD_BYTES: usize = 128;

type Error = Box<dyn std::error::Error + Send + Sync>;

fn wish(number: u64) -> ClaimRequest {
    let mut key = [0; 32];
    let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    key[..8].copy_from_slice(&mixed.to_be_bytes());
    key[8..16].copy_from_slice(&number.to_be_bytes());
    ClaimRequest {
        key: StoredKey::from_bytes(key),
        content: None,
        tool: "message".into(),
        idempotency_key: "computed".into(),
        request: Arc::new(RecordRequest {
            session_key: format!("session-{}", number % 64).into(),
            workspace_id: None,
            actor_id: "actor-1".into(),
            request_id: format!("01890000-0000-7000-8000-{number:012x}"),
            tool_call_id: None,
            params_digest: Digest::of(b"{}"),
            shadow: false,
        }),
        owner: format!("{number:032x}").into(),
        lifetimes: Lifetimes::default(),
        repeat: RepeatSafety::Unsafe,
        on_retriable_failure: OnRetriableFailure::Replay,
        hold: Hold::None,
    }
}

fn last_word(wish: &ClaimRequest) -> Finalisation {
    Finalisation {
        key: wish.key,
        owner: wish.owner.clone(),
        ending: Ending::Done(ResultOutput {
            content: Arc::new(json!("x".repeat(PAYLOAD_BYTES))),
            metadata: None,
        }),
        execution: Execution::default(),
        lifetimes: wish.lifetimes,
    }
}

static NUMBER: AtomicU64 = AtomicU64::new(0);

/// Pairs of claim and last word per second.
async fn pairs(store: &Arc<RedisState>, time: Duration) -> Result<f64, Error> {
    let begun = Instant::now();
    let tasks: Vec<_> = (0..TASKS)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move {
                let mut count = 0_u64;
                while begun.elapsed() < time {
                    let wish = wish(NUMBER.fetch_add(1, Ordering::Relaxed));
                    match store.claim(&wish).await? {
                        Claim::Granted { .. } => {}
                        other => return Err(format!("not granted: {other:?}").into()),
                    }
                    store
                        .finalise(last_word(&wish))
                        .await?
                        .map_err(|refused| format!("{refused:?}"))?;
                    count += 1;
                }
                Ok::<u64, Error>(count)
            })
        })
        .collect();
    sum(tasks, begun).await
}

async fn sum(
    tasks: Vec<tokio::task::JoinHandle<Result<u64, Error>>>,
    begun: Instant,
) -> Result<f64, Error> {
    let mut count = 0;
    for task in tasks {
        count += task.await??;
    }
    Ok(count as f64 / begun.elapsed().as_secs_f64())
}

/// Pairs of plain `SET`s of the same two values per second.
async fn sets(conn: &redis::aio::MultiplexedConnection, time: Duration) -> Result<f64, Error> {
    let begun = Instant::now();
    let tasks: Vec<_> = (0..TASKS)
        .map(|_| {
            let mut conn = conn.clone();
            tokio::spawn(async move {
                let (first, second) = ("x".repeat(400), "x".repeat(400 + PAYLOAD_BYTES));
                let mut count = 0_u64;
                while begun.elapsed() < time {
                    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
                    let key = format!("plain:{number:064x}");
                    for value in [&first, &second] {
                        redis::cmd("SET")
                            .arg(&key)
                            .arg(value)
                            .query_async::<()>(&mut conn)
                            .await?;
                    }
                    count += 1;
                }
                Ok::<u64, Error>(count)
            })
        })
        .collect();
    sum(tasks, begun).await
}

/// Commands that clients have sent, by name. Commands inside scripts count as well, so only those
/// that a client of ours sends are asked for.
fn sent(server: &RedisServer) -> Result<BTreeMap<String, u64>, Error> {
    let info = server.command(&["INFO", "commandstats"])?;
    let mut found = BTreeMap::new();
    for line in info.lines() {
        let Some((name, rest)) = line
            .trim()
            .strip_prefix("cmdstat_")
            .and_then(|l| l.split_once(':'))
        else {
            continue;
        };
        let calls = rest
            .split(',')
            .find_map(|part| part.strip_prefix("calls="))
            .and_then(|calls| calls.parse().ok());
        found.insert(name.to_owned(), calls.unwrap_or(0));
    }
    Ok(found)
}

/// How often the server has read something from a connection.
fn reads(server: &RedisServer) -> Result<u64, Error> {
    let info = server.command(&["INFO", "stats"])?;
    let line = info
        .lines()
        .find_map(|line| line.trim().strip_prefix("total_reads_processed:"));
    Ok(line.ok_or("the server does not count its reads")?.parse()?)
}

/// Messages that arrived at the server for a number of pairs, one after the other, and the commands
/// that they were made of, also those inside the scripts.
async fn round_trips(server: &RedisServer, store: &Arc<RedisState>) -> Result<Value, Error> {
    const PAIRS: u64 = 1_000;
    server.command(&["CONFIG", "RESETSTAT"])?;
    let before = reads(server)?;
    for _ in 0..PAIRS {
        let wish = wish(NUMBER.fetch_add(1, Ordering::Relaxed));
        store.claim(&wish).await?;
        store
            .finalise(last_word(&wish))
            .await?
            .map_err(|refused| format!("{refused:?}"))?;
    }
    let trips = reads(server)?.saturating_sub(before);
    let mut found = sent(server)?;
    // Once in half a second, for the breakers; and this program's own questions.
    for own in ["info", "config|resetstat", "hget", "hgetall", "command"] {
        found.remove(own);
    }
    // A few more for the breakers, which are looked at twice a second, and for this question.
    let per_pair = (trips as f64 / PAIRS as f64 * 100.0).round() / 100.0;
    Ok(json!({"pairs": PAIRS, "reads": trips, "perPair": per_pair, "commands": found}))
}

/// What the server's own tool reaches with as many requests under way on one connection.
fn redis_benchmark(port: u16) -> Option<f64> {
    let output = Command::new("redis-benchmark")
        .args(["-h", "127.0.0.1", "-p", &port.to_string()])
        .args([
            "-t", "set", "-c", "1", "-P", "64", "-n", "300000", "-d", "464", "-r", "1000000",
            "--csv",
        ])
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let line = text.lines().find(|line| line.starts_with("\"SET\""))?;
    line.split(',').nth(1)?.trim_matches('"').parse().ok()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

async fn measure(persistence: Persistence, rounds: usize, time: Duration) -> Result<Value, Error> {
    let server = RedisServer::start(persistence, &[])?;
    let store = RedisState::open(&RedisOptions::single(server.url()), Arc::new(SystemClock))?;
    let conn = redis::Client::open(server.url())?
        .get_multiplexed_async_connection()
        .await?;
    pairs(&store, time / 4).await?;
    sets(&conn, time / 4).await?;
    let (mut ours, mut plain, mut shares) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        let set = sets(&conn, time).await?;
        let pair = pairs(&store, time).await?;
        ours.push(pair);
        plain.push(set);
        shares.push(pair / set);
    }
    let (share, ours, plain) = (median(shares), median(ours), median(plain));
    println!(
        "{:28} {ours:>10.0} pairs/s {plain:>10.0} pairs of SET/s {:>6.1} %",
        match persistence {
            Persistence::None => "no persistence",
            Persistence::Always => "appendfsync always",
        },
        share * 100.0
    );
    let trips = round_trips(&server, &store).await?;
    let benchmark = redis_benchmark(server.port());
    println!("{:28} {}", "round trips a pair", trips["perPair"]);
    if let Some(benchmark) = benchmark {
        println!(
            "{:28} {:>10.0} pairs of SET/s",
            "redis-benchmark -c 1 -P 64",
            benchmark / 2.0
        );
    }
    Ok(json!({
        "persistence": format!("{persistence:?}"), "tasks": TASKS, "payloadBytes": PAYLOAD_BYTES,
        "pairsPerSecond": ours, "setPairsPerSecond": plain, "share": share,
        "roundTrips": trips, "redisBenchmarkSetsPerSecond": benchmark,
    }))
}

fn main() -> Result<(), Error> {
    let args: Vec<String> = std::env::args().collect();
    let after = |name: &str| {
        let at = args.iter().position(|arg| arg == name)?;
        args.get(at + 1).cloned()
    };
    let quick = args.iter().any(|arg| arg == "--quick");
    let (rounds, time) = if quick {
        (3, Duration::from_millis(700))
    } else {
        (9, Duration::from_secs(2))
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let mut results = Vec::new();
    for persistence in [Persistence::None, Persistence::Always] {
        results.push(runtime.block_on(measure(persistence, rounds, time))?);
    }
    if let Some(out) = after("--out") {
        let machine: Value = serde_json::from_str(&after("--machine").unwrap_or("null".into()))?;
        let all = json!({"machine": machine, "quick": quick, "results": results});
        std::fs::write(out, format!("{all:#}\n"))?;
    }
    Ok(())
}
