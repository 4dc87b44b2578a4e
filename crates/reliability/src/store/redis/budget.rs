//! The retry budget of all processes together.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use redis::Value;

use super::{RedisState, Shared};
use crate::retry::{RetryBudgetPolicy, SharedRetryBudget};
use crate::store::StoreResult;

/// How often calls are told of when nobody retries.
const TELL_EVERY: Duration = Duration::from_secs(1);

/// A budget that lives on the server; see [`RedisState::retry_budget`].
pub struct RedisRetryBudget {
    shared: Arc<Shared>,
    policy: RetryBudgetPolicy,
    /// Calls that the server has not been told of.
    calls: AtomicU64,
}

impl RedisState {
    /// The retry budget that all processes with this policy and prefix share.
    pub fn retry_budget(&self, policy: RetryBudgetPolicy) -> Arc<RedisRetryBudget> {
        let budget = Arc::new(RedisRetryBudget {
            shared: self.shared.clone(),
            policy,
            calls: AtomicU64::new(0),
        });
        if let Some(runtime) = &self.runtime {
            let weak = Arc::downgrade(&budget);
            runtime.spawn(async move {
                loop {
                    tokio::time::sleep(TELL_EVERY).await;
                    let Some(budget) = weak.upgrade() else { return };
                    if budget.calls.load(Ordering::Relaxed) > 0 {
                        // What could not be told is told with the next ones.
                        let _ = budget.tell(false).await;
                    }
                }
            });
        }
        budget
    }
}

impl RedisRetryBudget {
    /// Tells of the calls so far and, where asked, takes the place of a retry.
    async fn tell(&self, retry: bool) -> StoreResult<bool> {
        let calls = self.calls.swap(0, Ordering::Relaxed);
        let args = [
            calls,
            u64::from(retry),
            self.policy.window_ms(),
            u64::from(self.policy.retry_percent()),
            self.policy.reserve(),
        ]
        .map(|number| number.to_string());
        let args = args.each_ref().map(String::as_bytes);
        let key = self.shared.names.single("retries");
        let answer = self
            .shared
            .link
            .eval(&self.shared.scripts.budget, &[key.as_bytes()], &args)
            .await;
        if answer.is_err() {
            self.calls.fetch_add(calls, Ordering::Relaxed);
        }
        Ok(answer? == Value::Int(1))
    }
}

impl SharedRetryBudget for RedisRetryBudget {
    fn deposit(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    fn withdraw(&self) -> BoxFuture<'_, bool> {
        // A server that is away must not end retries that the process itself allows.
        async move { self.tell(true).await.unwrap_or(true) }.boxed()
    }
}
