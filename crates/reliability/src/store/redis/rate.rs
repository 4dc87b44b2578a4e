//! The rate limits of all processes together.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use redis::Value;

use super::link::surprise;
use super::{RedisState, Shared};
use crate::rate::{SharedRateLimits, Taken, ToolLimit};
use crate::store::{StoreError, StoreResult};

/// Limits that live on the server; see [`RedisState::rate_limits`].
pub struct RedisRateLimits {
    shared: Arc<Shared>,
}

impl RedisState {
    /// The limits that all processes with this prefix share.
    pub fn rate_limits(&self) -> Arc<RedisRateLimits> {
        Arc::new(RedisRateLimits {
            shared: self.shared.clone(),
        })
    }
}

impl RedisRateLimits {
    /// One script, one round trip. All limits live in one place, so that a call with two of them
    /// takes both or none, also on a cluster.
    async fn ask(&self, limits: &[ToolLimit], wait_max_us: u64) -> StoreResult<Taken> {
        let shared = &self.shared;
        let now_us = shared.link.script_time_ms().saturating_mul(1_000);
        let mut numbers = vec![now_us, wait_max_us];
        for ToolLimit { limit, .. } in limits {
            let (interval_us, burst_us) = (limit.interval_us(), limit.burst_us());
            let ahead_max_us = burst_us + limit.max_wait_ms() * 1_000;
            numbers.extend([interval_us, burst_us, ahead_max_us]);
        }
        let keys: Vec<String> = limits
            .iter()
            .map(|limit| shared.names.single(&format!("limit:{}", limit.name)))
            .collect();
        let keys: Vec<&[u8]> = keys.iter().map(String::as_bytes).collect();
        let args: Vec<String> = numbers.iter().map(u64::to_string).collect();
        let args: Vec<&[u8]> = args.iter().map(String::as_bytes).collect();
        read(shared.link.eval(&shared.scripts.rate, &keys, &args).await?)
    }
}

fn read(answer: Value) -> StoreResult<Taken> {
    let unreadable = || surprise("a rate limit");
    let Value::Array(numbers) = answer else {
        return Err(unreadable());
    };
    let number = |value: &Value| match value {
        Value::Int(number) => u64::try_from(*number).map_err(|_| unreadable()),
        _ => Err(unreadable()),
    };
    let [granted, wait_us, ahead @ ..] = &*numbers else {
        return Err(unreadable());
    };
    Ok(Taken {
        granted: number(granted)? == 1,
        wait_us: number(wait_us)?,
        ahead_us: ahead
            .iter()
            .map(number)
            .collect::<Result<_, StoreError>>()?,
    })
}

impl SharedRateLimits for RedisRateLimits {
    fn take<'a>(
        &'a self,
        limits: &'a [ToolLimit],
        wait_max_us: u64,
    ) -> BoxFuture<'a, StoreResult<Taken>> {
        self.ask(limits, wait_max_us).boxed()
    }
}
