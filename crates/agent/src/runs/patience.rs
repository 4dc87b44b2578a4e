//! How patiently a state that does not answer is asked again.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use holdfast_contract::Entropy;
use holdfast_reliability::retry::{
    Classified, Evidence, Next, RepeatSafety, RetryOverrides, RetryPolicy, decide,
};
use tokio::time::Instant;

use super::{RUN_STORE_DELAY_MS_MAX, RUN_STORE_WAIT_MS};

/// Attempts are bounded by their time; this many do not fit into it.
const ATTEMPTS: u32 = 100;

/// The attempts at one write. Runs are written by one hand each, which knows its own writes again:
/// repeating one is safe.
pub(super) struct Patience {
    begun: Instant,
    attempt: u32,
    policy: RetryPolicy,
    entropy: Arc<dyn Entropy>,
}

impl Patience {
    pub(super) fn new(entropy: Arc<dyn Entropy>) -> Self {
        let standard = RetryPolicy::standard();
        let ours = RetryOverrides {
            max_attempts: Some(ATTEMPTS),
            max_retry_delay_ms: Some(RUN_STORE_DELAY_MS_MAX),
            max_elapsed_ms: Some(RUN_STORE_WAIT_MS),
            ..RetryOverrides::default()
        };
        Self {
            begun: Instant::now(),
            attempt: 1,
            policy: standard.with(&ours).unwrap_or(standard),
            entropy,
        }
    }

    /// Waits until it is time for the next attempt; says whether there is one.
    pub(super) async fn is_left(&mut self) -> bool {
        let away = Classified {
            code: Cow::Borrowed("store_unavailable"),
            retriable: true,
            evidence: Evidence::MayHaveHappened,
            counts_for_breaker: false,
            retry_after_ms: None,
        };
        let elapsed_ms = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let next = decide(
            &away,
            RepeatSafety::Safe,
            self.attempt,
            elapsed_ms,
            &self.policy,
            &mut || true,
            &mut || self.entropy.next_u64(),
        );
        let Next::Retry { delay_ms } = next else {
            return false;
        };
        self.attempt += 1;
        tokio::time::sleep(Duration::from_millis(delay_ms)).await;
        true
    }
}
