//! Rate limits that several processes share through one Redis: together they do not pass it, and
//! without the server each keeps to it alone.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use holdfast_contract::{
    Effect, PermissionTier, SessionContext, Tool, ToolCallEnvelope, ToolContext, ToolError,
    ToolResult, ToolResultEnvelope,
};
use holdfast_reliability::runtime::Runtime;
use holdfast_reliability::store::memory::MemoryLimits;
use holdfast_reliability::store::redis::{RedisOptions, RedisState};
use holdfast_testkit::redis::{Persistence, RedisServer};
use holdfast_toolbox::stack::{Parts, Stores, ToolStack};
use serde_json::{Map, Value, json};

const DIR: &str = "HOLDFAST_RATES_DIR";
const URL: &str = "HOLDFAST_RATES_URL";
const PROCESSES: u32 = 4;
const TASKS: u32 = 8;
const CALLS: u32 = 40;
const WINDOW_MS: u32 = 1_000;
const BURST: u32 = 10;
/// How long each process keeps asking.
const ASKING: Duration = Duration::from_secs(2);

/// Leaves a mark in a file that nothing of ours reads.
struct Mark(PathBuf);

#[async_trait]
impl Tool for Mark {
    fn name(&self) -> &str {
        "mark"
    }

    fn description(&self) -> &str {
        "Leaves a mark."
    }

    fn parameters_schema(&self) -> Value {
        json!({"type": "object"})
    }

    fn permission_tier(&self) -> PermissionTier {
        PermissionTier::System
    }

    fn effect(&self) -> Effect {
        Effect::External
    }

    fn dependency(&self) -> Option<&str> {
        Some("file")
    }

    async fn execute(&self, _: &Value, _: &ToolContext) -> Result<ToolResult, ToolError> {
        let mut options = std::fs::OpenOptions::new();
        let mut file = options.create(true).append(true).open(&self.0).unwrap();
        file.write_all(b"x").unwrap();
        Ok(ToolResult::new(json!(null), "Marked."))
    }
}

/// A stack whose limits are shared; everything else is its own, so that only they can hold it back.
fn stack(dir: &Path, url: &str) -> (Arc<RedisState>, ToolStack) {
    let runtime = Arc::new(Runtime::system());
    let options = RedisOptions {
        response_ms: 10_000,
        ..RedisOptions::single(url)
    };
    let redis = RedisState::open(&options, runtime.clock.clone()).unwrap();
    runtime.share_limits(redis.rate_limits());
    let stores = Stores::memory(&runtime, MemoryLimits::default());
    let workspace = dir.to_owned();
    let sessions = Arc::new(move |_: &ToolCallEnvelope| {
        Arc::new(SessionContext::main("rates", "worker", workspace.clone()))
    });
    let mut parts = Parts::new(runtime, stores, sessions);
    let limit = json!({"calls": CALLS, "windowMs": WINDOW_MS, "burst": BURST});
    parts.reliability =
        serde_json::from_value(json!({"dependencies": {"file": {"rateLimit": limit}}})).unwrap();
    parts.tools.push(Arc::new(Mark(dir.join("marks"))));
    (redis, ToolStack::new(parts).unwrap())
}

async fn mark(stack: &ToolStack, name: String) -> ToolResultEnvelope {
    let params = Map::from_iter([("name".to_owned(), json!(name))]);
    let mut envelope = ToolCallEnvelope::new(&name, "mark", params, "rates", "actor");
    // A turn each: this is not about loops.
    envelope.target.turn_id = Some(name);
    stack.call(envelope).await
}

fn is_limited(result: &ToolResultEnvelope) -> bool {
    let error = result.error.as_ref().expect("it was refused");
    assert!(error.retry_after_ms.is_some_and(|wait_ms| wait_ms > 0));
    error.code == "rate_limited"
}

fn marks(dir: &Path) -> u32 {
    let written = std::fs::read(dir.join("marks")).unwrap_or_default();
    u32::try_from(written.len()).unwrap()
}

/// What the limit allows within a time that is at least as long as the attempts took.
fn allowed(elapsed: Duration) -> u32 {
    let intervals = elapsed.as_millis() * u128::from(CALLS) / u128::from(WINDOW_MS);
    BURST + u32::try_from(intervals).unwrap() + 1
}

#[test]
fn worker_process() {
    let (Ok(dir), Ok(url)) = (std::env::var(DIR), std::env::var(URL)) else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let (redis, stack) = stack(Path::new(&dir), &url);
        assert!(redis.connected(Duration::from_secs(10)).await);
        let (stack, begun) = (Arc::new(stack), Instant::now());
        let mut tasks = tokio::task::JoinSet::new();
        for task in 0..TASKS {
            let stack = stack.clone();
            tasks.spawn(async move {
                for number in 0_u64.. {
                    if begun.elapsed() > ASKING {
                        return;
                    }
                    let name = format!("{}-{task}-{number}", std::process::id());
                    let result = mark(&stack, name).await;
                    assert!(result.error.is_none() || is_limited(&result), "{result:?}");
                    // Asks far more often than it may, and lets the others ask too.
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
            });
        }
        tasks.join_all().await;
    });
}

fn worker(dir: &Path, url: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["redis_rates::worker_process", "--exact", "--nocapture"])
        .env(DIR, dir)
        .env(URL, url)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn several_processes_together_do_not_pass_a_shared_limit() {
    let server = RedisServer::start(Persistence::None, &[]).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let begun = Instant::now();
    let workers: Vec<Child> = (0..PROCESSES)
        .map(|_| worker(dir.path(), &server.url()))
        .collect();
    for mut worker in workers {
        assert!(worker.wait().unwrap().success());
    }
    let (marks, allowed) = (marks(dir.path()), allowed(begun.elapsed()));
    assert!(marks <= allowed, "{marks} effects, {allowed} allowed");
    // They did use what there was.
    assert!(marks > BURST, "{marks} effects");
    let left = server.command(&["KEYS", "*limit*"]).unwrap();
    assert!(
        left.contains("limit:dependency:file") || left.trim().is_empty(),
        "{left}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_server_each_process_keeps_to_the_limit_alone() {
    let mut server = RedisServer::start(Persistence::None, &[]).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let (redis, stack) = stack(dir.path(), &server.url());
    assert!(redis.connected(Duration::from_secs(10)).await);
    let begun = Instant::now();
    assert!(mark(&stack, "first".to_owned()).await.error.is_none());
    server.kill().unwrap();
    let mut ran = 1;
    for number in 0..3 * BURST {
        let result = mark(&stack, format!("away-{number}")).await;
        match &result.error {
            None => ran += 1,
            Some(_) => assert!(is_limited(&result)),
        }
    }
    assert!(
        ran > 1,
        "a limit that can not be asked is not a reason to refuse"
    );
    assert!(redis.health().degraded.is_some());
    let (marks, allowed) = (marks(dir.path()), allowed(begun.elapsed()));
    assert_eq!(marks, ran);
    assert!(marks <= allowed, "{marks} effects, {allowed} allowed");
}
