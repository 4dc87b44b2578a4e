//! Breakers that all processes share.
//!
//! All of them live in one hash, each as the value that [`step`] works on, changed by
//! compare-and-set. A process keeps a copy: an attempt that a closed breaker lets pass, or an open one
//! refuses, asks nobody. Every change of state is said on the channel, and the copy is compared
//! with the server twice a second in any case. Who wants to probe has to win on the server, so
//! there is one probe at a time among all.
//!
//! Successes of a breaker that has seen no failure lately are counted here and written with the
//! next failure: a healthy tool costs no round trip.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use parking_lot::Mutex;
use redis::Value;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::link::surprise;
use super::options::BREAKER_REFRESH_MS;
use super::{RedisState, Shared};
use crate::breaker::{
    Admission, AttemptResult, BREAKERS_MAX, BreakerKey, BreakerOp, BreakerPolicy, BreakerState,
    BreakerStore, CircuitBreakerState, StepOutcome, Told, step,
};
use crate::store::{StoreError, StoreFuture, StoreResult};

/// A copy older than this is not answered from.
const FRESH: Duration = Duration::from_millis(2 * BREAKER_REFRESH_MS);
/// Rounds of compare-and-set before giving up; each lost one means that somebody else won.
const ROUNDS_MAX: u32 = 64;

/// One breaker as last seen.
#[derive(Default, Clone)]
struct Seen {
    /// As it stands on the server; empty when it does not.
    raw: Vec<u8>,
    state: BreakerState,
    /// Successes that are not on the server: nobody needs them as long as nothing fails.
    successes: u32,
}

#[derive(Default)]
struct Copy {
    by_key: HashMap<String, Seen>,
    /// The server's count of changes, and when it was read.
    changes: Option<Vec<u8>>,
    read_at: Option<Instant>,
}

/// A process's copy of all breakers.
pub(super) struct Breakers {
    hash: String,
    copy: Mutex<Copy>,
    stale: Notify,
}

impl Breakers {
    pub(super) fn new(hash: String) -> Self {
        Self {
            hash,
            copy: Mutex::default(),
            stale: Notify::new(),
        }
    }

    /// Somebody changed something.
    pub(super) fn refresh_soon(&self) {
        self.stale.notify_one();
    }
}

/// Keeps the copy fresh for as long as the store lives.
pub(super) async fn keep_fresh(shared: Arc<Shared>) {
    shared.link.up().await;
    let mut rounds = 0_u32;
    loop {
        // Without an answer the copy grows old, and is not answered from.
        let _ = shared.refresh_breakers().await;
        if rounds.is_multiple_of(20) {
            shared.link.watch_time().await;
        }
        rounds = rounds.wrapping_add(1);
        let pause = Duration::from_millis(BREAKER_REFRESH_MS);
        let _ = tokio::time::timeout(pause, shared.breakers.stale.notified()).await;
    }
}

impl Shared {
    /// Reads the count of changes, and everything when it is another one.
    async fn refresh_breakers(&self) -> StoreResult<()> {
        let asked_at = Instant::now();
        let mut cmd = redis::cmd("HGET");
        cmd.arg(&self.breakers.hash).arg("");
        let changes = match self.link.send(&cmd).await? {
            Value::BulkString(changes) => Some(changes),
            _ => None,
        };
        if changes != self.breakers.copy.lock().changes {
            let mut cmd = redis::cmd("HGETALL");
            cmd.arg(&self.breakers.hash);
            let all: Vec<(String, Vec<u8>)> = redis::from_redis_value(self.link.send(&cmd).await?)
                .map_err(|_| surprise("HGETALL"))?;
            let mut copy = self.breakers.copy.lock();
            // Somebody flushed the server.
            copy.by_key
                .retain(|key, _| all.iter().any(|(found, _)| found == key));
            for (key, raw) in all.into_iter().filter(|(key, _)| !key.is_empty()) {
                see(&mut copy, &key, raw);
            }
            copy.changes = changes;
        }
        self.breakers.copy.lock().read_at = Some(asked_at);
        Ok(())
    }

    async fn apply(
        &self,
        key: &BreakerKey,
        op: &BreakerOp,
        policy: &BreakerPolicy,
    ) -> StoreResult<StepOutcome> {
        let name = key.to_string();
        // What an operator wants is done for all, or not at all: success must not be said of what
        // the others will never see.
        if matches!(op, BreakerOp::ForceOpen { .. } | BreakerOp::Reset) {
            return self.apply_there(&name, op, policy).await;
        }
        match self.apply_here(&name, op, policy) {
            Some(outcome) => Ok(outcome),
            None => match self.apply_there(&name, op, policy).await {
                // Away: the copy goes on by itself, and the server's word counts when it is back.
                Err(StoreError::Unavailable(_)) => {
                    let mut copy = self.breakers.copy.lock();
                    let seen = copy.by_key.entry(name).or_default();
                    Ok(step(
                        &mut seen.state,
                        op.clone(),
                        policy,
                        self.link.now_ms(),
                    ))
                }
                answer => answer,
            },
        }
    }

    /// What the copy can answer: everything that changes nothing.
    fn apply_here(
        &self,
        name: &str,
        op: &BreakerOp,
        policy: &BreakerPolicy,
    ) -> Option<StepOutcome> {
        let mut copy = self.breakers.copy.lock();
        if copy.read_at.is_none_or(|at| at.elapsed() > FRESH) {
            return None;
        }
        let seen = copy.by_key.entry(name.to_owned()).or_default();
        let mut after = seen.state.clone();
        let outcome = step(&mut after, op.clone(), policy, self.link.now_ms());
        if !outcome.changed {
            return Some(outcome);
        }
        let is_plain_success = matches!(
            op,
            BreakerOp::Record {
                result: AttemptResult::Success,
                ..
            }
        ) && seen.state.circuit() == CircuitBreakerState::Closed
            && seen.state.snapshot(policy, self.link.now_ms()).failures == 0;
        if is_plain_success {
            seen.successes = seen.successes.saturating_add(1);
            return Some(StepOutcome {
                changed: false,
                ..outcome
            });
        }
        None
    }

    /// Compare-and-set on the server.
    async fn apply_there(
        &self,
        name: &str,
        op: &BreakerOp,
        policy: &BreakerPolicy,
    ) -> StoreResult<StepOutcome> {
        let mut seen = self.load_breaker(name).await?;
        for _ in 0..ROUNDS_MAX {
            let now_ms = self.link.now_ms();
            let mut state = seen.state.clone();
            catch_up(&mut state, seen.successes, policy, now_ms);
            let outcome = step(&mut state, op.clone(), policy, now_ms);
            if !outcome.changed && !seen.raw.is_empty() {
                return Ok(outcome);
            }
            match self
                .compare_and_set(name, &seen.raw, &state, outcome.transition.is_some())
                .await?
            {
                None => return Ok(outcome),
                Some(there) => {
                    seen.state = read(&there);
                    seen.raw = there;
                }
            }
        }
        Err(StoreError::Unavailable(format!(
            "the breaker {name} changed {ROUNDS_MAX} times while it was being changed"
        )))
    }

    async fn load_breaker(&self, name: &str) -> StoreResult<Seen> {
        let mut cmd = redis::cmd("HGET");
        cmd.arg(&self.breakers.hash).arg(name);
        let raw = match self.link.send(&cmd).await? {
            Value::BulkString(raw) => raw,
            Value::Nil => Vec::new(),
            _ => return Err(surprise("HGET")),
        };
        let mut copy = self.breakers.copy.lock();
        see(&mut copy, name, raw);
        Ok(copy.by_key.get(name).cloned().unwrap_or_default())
    }

    /// `None` when it was stored, else what is there instead.
    async fn compare_and_set(
        &self,
        name: &str,
        seen: &[u8],
        state: &BreakerState,
        tell: bool,
    ) -> StoreResult<Option<Vec<u8>>> {
        let raw = serde_json::to_vec(state).unwrap_or_default();
        // One field of the hash is the count of changes.
        let most = (BREAKERS_MAX + 1).to_string();
        let channel = if tell {
            self.breakers_channel.as_str()
        } else {
            ""
        };
        let args: [&[u8]; 5] = [
            name.as_bytes(),
            seen,
            &raw,
            most.as_bytes(),
            channel.as_bytes(),
        ];
        let answer = self
            .link
            .eval(
                &self.scripts.compare,
                &[self.breakers.hash.as_bytes()],
                &args,
            )
            .await?;
        let Value::Array(parts) = answer else {
            return Err(surprise("a breaker's step"));
        };
        let mut parts = parts.into_iter();
        match (parts.next(), parts.next()) {
            (Some(Value::Int(1)), _) => {
                let mut copy = self.breakers.copy.lock();
                let known = copy.by_key.entry(name.to_owned()).or_default();
                known.successes = 0;
                see(&mut copy, name, raw);
                Ok(None)
            }
            (Some(Value::Int(0)), Some(Value::BulkString(there))) => Ok(Some(there)),
            (Some(Value::Int(0)), _) => Ok(Some(Vec::new())),
            (Some(Value::Int(-1)), _) => Err(StoreError::Full(format!(
                "{BREAKERS_MAX} circuit breakers are kept already"
            ))),
            _ => Err(surprise("a breaker's step")),
        }
    }
}

/// Takes over what stands on the server, unless the copy has it.
fn see(copy: &mut Copy, name: &str, raw: Vec<u8>) {
    let seen = copy.by_key.entry(name.to_owned()).or_default();
    if seen.raw != raw || raw.is_empty() {
        seen.state = read(&raw);
        seen.raw = raw;
    }
}

/// What can not be read any more is a breaker that has seen nothing: closed.
fn read(raw: &[u8]) -> BreakerState {
    serde_json::from_slice(raw).unwrap_or_default()
}

/// Adds the successes that only this process has counted, at most as many as could matter.
fn catch_up(state: &mut BreakerState, successes: u32, policy: &BreakerPolicy, now_ms: u64) {
    use crate::breaker::ProbeId;
    for _ in 0..successes.min(policy.rate_window_calls()) {
        let prober = ProbeId::new(0);
        let admitted = step(state, BreakerOp::Admit { prober }, policy, now_ms).admission;
        let Some(Admission::Pass(permit)) =
            admitted.filter(|_| state.circuit() == CircuitBreakerState::Closed)
        else {
            return;
        };
        let result = AttemptResult::Success;
        let op = BreakerOp::Record {
            permit,
            result,
            part: None,
        };
        let _ = step(state, op, policy, now_ms);
    }
}

impl BreakerStore for RedisState {
    fn apply<'a>(
        &'a self,
        key: &'a BreakerKey,
        op: BreakerOp,
        policy: &'a BreakerPolicy,
    ) -> StoreFuture<'a, StepOutcome> {
        async move { self.shared.apply(key, &op, policy).await }
            .boxed()
            .into()
    }

    fn apply_detached(
        &self,
        key: &BreakerKey,
        op: BreakerOp,
        policy: &BreakerPolicy,
        told: Option<Told>,
    ) {
        let (shared, key, policy) = (self.shared.clone(), key.clone(), policy.clone());
        if let Some(runtime) = &self.runtime {
            // What is not said in time is settled by the probe's lease.
            runtime.spawn(async move {
                let applied = shared.apply(&key, &op, &policy).await;
                if let (Ok(outcome), Some(told)) = (applied, told) {
                    told(&outcome);
                }
            });
        }
    }

    fn breakers(&self) -> StoreFuture<'_, Vec<(BreakerKey, BreakerState)>> {
        async move {
            self.shared.breakers.copy.lock().changes = Some(b"read it all".to_vec());
            self.shared.refresh_breakers().await?;
            let copy = self.shared.breakers.copy.lock();
            let mut all: Vec<(BreakerKey, BreakerState)> = copy
                .by_key
                .iter()
                // A key of a newer version is passed over rather than failing the whole list.
                .filter_map(|(key, seen)| Some((key.parse().ok()?, seen.state.clone())))
                .collect();
            all.sort_by(|(a, _), (b, _)| a.cmp(b));
            Ok(all)
        }
        .boxed()
        .into()
    }
}
