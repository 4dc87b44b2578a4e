//! One of the processes: takes deliveries from its standard input, 64 at a time, and says what
//! became of them.

use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use holdfast_contract::{
    Clock, Effect, PermissionTier, SessionContext, SystemClock, Tool, ToolCallEnvelope,
    ToolContext, ToolError, ToolResult,
};
use holdfast_reliability::idempotency::DedupeStores;
use holdfast_reliability::runtime::Runtime;
use holdfast_reliability::store::memory::MemoryGuardStore;
use holdfast_reliability::store::redis::{RedisOptions, RedisState};
use holdfast_toolbox::stack::{Parts, Stores, ToolStack};
use serde_json::{Map, Value, json};

use crate::redis_chaos::history::Recorded;

/// Where a worker is told what it works with; without it the test below is nothing.
pub(crate) const DIR: &str = "HOLDFAST_CHAOS_DIR";
pub(crate) const URL: &str = "HOLDFAST_CHAOS_URL";
/// Calls under way in one process.
pub(crate) const TASKS: usize = 64;
/// What each caller gives a call.
pub(crate) const DEADLINE_MS: u64 = 10_000;
const LEASE_MS: u64 = 4_000;

/// Has its effect in a file of its own, which nothing of ours reads or writes.
struct Append {
    dir: PathBuf,
}

#[async_trait]
impl Tool for Append {
    fn name(&self) -> &str {
        "append"
    }

    fn description(&self) -> &str {
        "Appends to a file."
    }

    fn parameters_schema(&self) -> Value {
        json!({"type": "object", "required": ["intent"], "properties": {"intent": {"type": "integer"}}})
    }

    fn permission_tier(&self) -> PermissionTier {
        PermissionTier::System
    }

    fn effect(&self) -> Effect {
        Effect::External
    }

    async fn execute(&self, params: &Value, _: &ToolContext) -> Result<ToolResult, ToolError> {
        let intent = params["intent"].as_u64().unwrap();
        // Before and after: a kill finds calls on both sides of their effect.
        tokio::time::sleep(Duration::from_millis(intent % 7)).await;
        // A disk that is busy holds up this call and no other.
        tokio::task::block_in_place(|| append(&self.dir.join(intent.to_string()), b"x"));
        tokio::time::sleep(Duration::from_millis(intent % 11)).await;
        Ok(ToolResult::new(json!({"intent": intent}), "Appended."))
    }
}

fn append(path: &Path, bytes: &[u8]) {
    let mut file = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .unwrap();
    file.write_all(bytes).unwrap();
}

fn stack(dir: &Path, url: &str) -> ToolStack {
    let runtime = Arc::new(Runtime::system());
    let options = RedisOptions {
        response_ms: 1_000,
        connect_ms: 1_000,
        ..RedisOptions::single(url)
    };
    let redis = RedisState::open(&options, runtime.clock.clone()).unwrap();
    let history = dir.join("history").join(std::process::id().to_string());
    let recorded = Arc::new(Recorded::new(redis.clone(), &history));
    let stores = Stores {
        dedupe: DedupeStores::single(recorded),
        breakers: redis,
        turns: Arc::new(MemoryGuardStore::new(runtime.clock.clone())),
    };
    let workspace = dir.to_owned();
    let sessions = Arc::new(move |_: &ToolCallEnvelope| {
        Arc::new(SessionContext::main("chaos", "worker", workspace.clone()))
    });
    let mut parts = Parts::new(runtime, stores, sessions);
    parts.reliability.ttl.lease_ms = Some(LEASE_MS);
    parts.tools.push(Arc::new(Append {
        dir: dir.join("effects"),
    }));
    ToolStack::new(parts).unwrap()
}

/// One delivery: `NUMBER INTENT`. Its answer says by how much it missed its deadline, beyond a bare
/// timer of the same length: a machine that is busy with other things is late by itself.
async fn deliver(stack: &ToolStack, line: &str) -> String {
    let (number, intent) = line.split_once(' ').unwrap();
    let params: Map<String, Value> =
        serde_json::from_value(json!({"intent": intent.parse::<u64>().unwrap()})).unwrap();
    let mut envelope = ToolCallEnvelope::new(
        format!("request-{number}"),
        "append",
        params,
        "chaos",
        "actor",
    );
    envelope.payload.idempotency_key = Some(format!("intent-{intent}"));
    envelope.target.turn_id = Some(number.to_owned());
    envelope.control.deadline_at_ms = Some(SystemClock.now_ms() + DEADLINE_MS);
    let begun = Instant::now();
    let timer = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(DEADLINE_MS)).await;
        begun.elapsed()
    });
    let result = stack.call(envelope).await;
    let took = begun.elapsed();
    let late = if took.as_millis() <= u128::from(DEADLINE_MS) {
        timer.abort();
        Duration::ZERO
    } else {
        took.saturating_sub(timer.await.unwrap())
    };
    let code = result
        .error
        .map_or_else(|| "success".to_owned(), |error| error.code);
    format!("{number} {code} {}", late.as_millis())
}

#[test]
fn worker_process() {
    let (Ok(dir), Ok(url)) = (std::env::var(DIR), std::env::var(URL)) else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let stack = Arc::new(stack(Path::new(&dir), &url));
        let (send, receive) = tokio::sync::mpsc::unbounded_channel::<String>();
        std::thread::spawn(move || {
            for line in std::io::stdin().lock().lines() {
                let Ok(line) = line else { return };
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        let receive = Arc::new(tokio::sync::Mutex::new(receive));
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..TASKS {
            let (stack, receive) = (stack.clone(), receive.clone());
            tasks.spawn(async move {
                loop {
                    let Some(line) = receive.lock().await.recv().await else {
                        return;
                    };
                    let answer = deliver(&stack, &line).await;
                    // One write: a killed process leaves whole lines.
                    let line = format!("answer {answer}\n");
                    std::io::stderr().write_all(line.as_bytes()).unwrap();
                }
            });
        }
        tasks.join_all().await;
    });
}
