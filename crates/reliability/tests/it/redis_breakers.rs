//! Breakers that many share: each store here has its own connections and its own copy, as each
//! process has.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use holdfast_contract::{Entropy, SystemClock, SystemEntropy};
use holdfast_reliability::breaker::{
    Admission, AttemptResult, BreakerKey, BreakerOp, BreakerOverrides, BreakerPolicy, BreakerStore,
    CircuitBreakerState, Permit, ProbeId,
};
use holdfast_reliability::retry::{RetryBudgetOverrides, RetryBudgetPolicy, SharedRetryBudget};
use holdfast_reliability::store::StoreError;
use holdfast_reliability::store::redis::{RedisOptions, RedisState};
use holdfast_testkit::redis::{Persistence, RedisServer};

const PROCESSES: usize = 8;
/// What the requirement says.
const WITHIN: Duration = Duration::from_secs(1);

fn open(server: &RedisServer) -> Arc<RedisState> {
    RedisState::open(&RedisOptions::single(server.url()), Arc::new(SystemClock)).unwrap()
}

fn key() -> BreakerKey {
    BreakerKey::tool("holdfast.tools", "message")
}

fn policy(cooldown_ms: u64) -> BreakerPolicy {
    let changes = BreakerOverrides {
        open_cooldown_ms: Some(cooldown_ms),
        ..BreakerOverrides::default()
    };
    BreakerPolicy::standard().with(&changes).unwrap()
}

fn prober() -> ProbeId {
    ProbeId::new(u128::from(SystemEntropy.next_u64()))
}

async fn admit(store: &RedisState, policy: &BreakerPolicy) -> Admission {
    let op = BreakerOp::Admit { prober: prober() };
    let outcome = store.apply(&key(), op, policy).await.unwrap();
    outcome.admission.unwrap()
}

async fn record(store: &RedisState, permit: Permit, result: AttemptResult, policy: &BreakerPolicy) {
    let op = BreakerOp::Record {
        permit,
        result,
        part: None,
    };
    let _ = store.apply(&key(), op, policy).await.unwrap();
}

async fn attempt(store: &RedisState, result: AttemptResult, policy: &BreakerPolicy) {
    let Admission::Pass(permit) = admit(store, policy).await else {
        panic!("it is closed");
    };
    record(store, permit, result, policy).await;
}

fn is_refused(admission: &Admission, by: CircuitBreakerState) -> bool {
    matches!(admission, Admission::Rejected { state, .. } if *state == by)
}

/// Asks everybody until all give this answer; says how long that took.
async fn until_all(
    stores: &[Arc<RedisState>],
    policy: &BreakerPolicy,
    right: impl Fn(&Admission) -> bool,
) -> Duration {
    let begun = Instant::now();
    for store in stores {
        while !right(&admit(store, policy).await) {
            assert!(
                begun.elapsed() < Duration::from_secs(30),
                "it never arrives"
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    begun.elapsed()
}

async fn crowd(server: &RedisServer, policy: &BreakerPolicy) -> Vec<Arc<RedisState>> {
    let stores: Vec<_> = (0..PROCESSES).map(|_| open(server)).collect();
    for store in &stores {
        // Everybody has a copy, and in it the breaker is closed.
        attempt(store, AttemptResult::Success, policy).await;
    }
    stores
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_seen_by_one_is_known_to_all_within_a_second() {
    let server = RedisServer::start(Persistence::None, &[]).unwrap();
    let policy = policy(60_000);
    let stores = crowd(&server, &policy).await;
    for _ in 0..policy.consecutive_failures() {
        attempt(&stores[0], AttemptResult::Failure, &policy).await;
    }
    let open = |admission: &Admission| is_refused(admission, CircuitBreakerState::Open);
    let took = until_all(&stores, &policy, open).await;
    assert!(took <= WITHIN, "it took {took:?}");

    // And so is what an operator does, also when the channel is deaf.
    let _ = stores[1]
        .apply(&key(), BreakerOp::Reset, &policy)
        .await
        .unwrap();
    let closed = |admission: &Admission| matches!(admission, Admission::Pass(_));
    assert!(until_all(&stores, &policy, closed).await <= WITHIN);
    server
        .command(&["CLIENT", "KILL", "TYPE", "pubsub"])
        .unwrap();
    let op = BreakerOp::ForceOpen {
        reason: "a test".to_owned(),
    };
    let _ = stores[2].apply(&key(), op, &policy).await.unwrap();
    let forced = |admission: &Admission| is_refused(admission, CircuitBreakerState::ForcedOpen);
    assert!(until_all(&stores, &policy, forced).await <= WITHIN);
    let all = stores[3].breakers().await.unwrap();
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].1.circuit(), CircuitBreakerState::ForcedOpen);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_probe_at_a_time_among_all() {
    let server = RedisServer::start(Persistence::None, &[]).unwrap();
    let policy = policy(1_000);
    let stores = crowd(&server, &policy).await;
    for _ in 0..policy.consecutive_failures() {
        attempt(&stores[0], AttemptResult::Failure, &policy).await;
    }
    let (probing, probes, most) = (
        Arc::new(AtomicUsize::new(0)),
        Arc::new(AtomicUsize::new(0)),
        Arc::new(AtomicUsize::new(0)),
    );
    let mut tasks = tokio::task::JoinSet::new();
    for store in stores
        .iter()
        .flat_map(|store| std::iter::repeat_n(store, 4))
    {
        let (store, policy) = (store.clone(), policy.clone());
        let (probing, probes, most) = (probing.clone(), probes.clone(), most.clone());
        tasks.spawn(async move {
            let begun = Instant::now();
            // Until a regular call passes: the probes have closed it again.
            loop {
                assert!(begun.elapsed() < Duration::from_secs(30), "nobody probes");
                match admit(&store, &policy).await {
                    Admission::Pass(permit) if permit.is_probe() => {
                        let now = probing.fetch_add(1, Ordering::SeqCst) + 1;
                        most.fetch_max(now, Ordering::SeqCst);
                        probes.fetch_add(1, Ordering::SeqCst);
                        tokio::time::sleep(Duration::from_millis(50)).await;
                        probing.fetch_sub(1, Ordering::SeqCst);
                        record(&store, permit, AttemptResult::Success, &policy).await;
                    }
                    Admission::Pass(permit) => {
                        record(&store, permit, AttemptResult::Neutral, &policy).await;
                        return;
                    }
                    Admission::Rejected { .. } => {
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                }
            }
        });
    }
    tasks.join_all().await;
    assert_eq!(most.load(Ordering::SeqCst), 1, "one at a time");
    assert_eq!(
        probes.load(Ordering::SeqCst),
        policy.close_after_successes() as usize
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn separate_short_lived_processes_share_what_they_saw() {
    let server = RedisServer::start(Persistence::None, &[]).unwrap();
    let policy = policy(60_000);
    for _ in 0..policy.consecutive_failures() {
        let store = open(&server);
        attempt(&store, AttemptResult::Failure, &policy).await;
    }
    let refused = admit(&open(&server), &policy).await;
    assert!(
        is_refused(&refused, CircuitBreakerState::Open),
        "{refused:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_healthy_tool_costs_no_round_trip() {
    let server = RedisServer::start(Persistence::None, &[]).unwrap();
    let policy = policy(60_000);
    let store = open(&server);
    attempt(&store, AttemptResult::Success, &policy).await;
    // The copy is read in the background.
    tokio::time::sleep(Duration::from_millis(100)).await;
    server.command(&["CONFIG", "RESETSTAT"]).unwrap();
    for _ in 0..200 {
        attempt(&store, AttemptResult::Success, &policy).await;
    }
    let stats = server.command(&["INFO", "commandstats"]).unwrap();
    assert!(!stats.contains("cmdstat_evalsha:"), "{stats}");
    // They still count: five failures among twenty calls are no outage.
    for _ in 0..policy.consecutive_failures() - 1 {
        attempt(&store, AttemptResult::Failure, &policy).await;
    }
    let all = store.breakers().await.unwrap();
    let seen = all[0].1.snapshot(&policy, u64::MAX / 2);
    assert_eq!(seen.state, CircuitBreakerState::Closed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_processes_draw_on_one_retry_budget() {
    let server = RedisServer::start(Persistence::None, &[]).unwrap();
    let written = RetryBudgetOverrides {
        window_ms: Some(60_000),
        retry_percent: Some(20),
        min_retries_per_second: Some(0),
    };
    let policy = RetryBudgetPolicy::try_from(written).unwrap();
    let stores: Vec<_> = (0..PROCESSES).map(|_| open(&server)).collect();
    let budgets: Vec<_> = stores
        .iter()
        .map(|store| store.retry_budget(policy))
        .collect();
    for call in 0..100 {
        budgets[call % PROCESSES].deposit();
    }
    // Each tells of its calls at the latest when it asks.
    let mut taken = 0;
    for _ in 0..10 {
        for budget in &budgets {
            taken += u32::from(budget.withdraw().await);
        }
    }
    assert_eq!(taken, 20, "a fifth of all calls");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_operator_wants_is_not_done_by_halves_while_redis_is_away() {
    let mut server = RedisServer::start(Persistence::None, &[]).unwrap();
    let policy = policy(60_000);
    let store = open(&server);
    attempt(&store, AttemptResult::Success, &policy).await;
    server.kill().unwrap();
    let force = BreakerOp::ForceOpen {
        reason: "a test".to_owned(),
    };
    for op in [force, BreakerOp::Reset] {
        let outcome = store.apply(&key(), op, &policy).await;
        assert!(
            matches!(outcome, Err(StoreError::Unavailable(_))),
            "{outcome:?}"
        );
    }
    // Calls go on by the copy.
    attempt(&store, AttemptResult::Success, &policy).await;
}
