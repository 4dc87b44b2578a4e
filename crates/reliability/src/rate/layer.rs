//! The layer that keeps attempts to the configured rate.

use std::sync::Arc;
use std::time::Duration;

use holdfast_contract::ErrorCode;

use super::{LocalLimits, Taken, ToolLimit};
use crate::call::{Call, Failure, Judged, Reply};
use crate::guard::FailureKind;
use crate::observe::Event;
use crate::policy::Mode;
use crate::runtime::Runtime;
use crate::service::Service;

/// What is in front of the name of a limit that only watches.
const SHADOW_PREFIX: &str = "shadow@";

/// Lets an attempt begin when its turn comes, and refuses it when that is too late.
pub struct RateLimited<S> {
    inner: S,
    local: LocalLimits,
    runtime: Arc<Runtime>,
}

impl<S: Service> RateLimited<S> {
    /// Wraps one attempt.
    pub fn new(inner: S, runtime: Arc<Runtime>) -> Self {
        Self {
            inner,
            local: LocalLimits::default(),
            runtime,
        }
    }

    /// Asks for a place: first here, which costs nothing, then where all processes count.
    async fn take(&self, call: &mut Call, limits: &[ToolLimit], wait_max_us: u64) -> Taken {
        let now_us = self.runtime.clock.now_ms().saturating_mul(1_000);
        let Some(shared) = self.runtime.shared_limits() else {
            return self.local.take(limits, now_us, wait_max_us);
        };
        let ours = self.local.peek(limits, now_us, wait_max_us);
        if !ours.granted {
            return ours;
        }
        match shared.take(limits, wait_max_us).await {
            Ok(taken) => {
                self.local.learn(limits, now_us, &taken);
                taken
            }
            // The limit protects what is behind the tool, not the effect: each process keeps to it
            // by itself until the others can be asked again.
            Err(error) => {
                self.runtime.tell(&Event::StoreTrouble {
                    what: "rate limit",
                    error: &error,
                });
                call.explain(format!(
                    "the rate limit is counted by this process alone: {error}"
                ));
                self.local.take(limits, now_us, wait_max_us)
            }
        }
    }

    /// How long the attempt may wait: as its limits say, and never past the caller's deadline.
    fn wait_max_us(&self, call: &Call, limits: &[ToolLimit]) -> u64 {
        let limits_ms = limits.iter().map(|limit| limit.limit.max_wait_ms()).min();
        let deadline_ms = call
            .envelope
            .control
            .deadline_at_ms
            .map_or(u64::MAX, |at_ms| {
                at_ms.saturating_sub(self.runtime.clock.now_ms())
            });
        limits_ms
            .unwrap_or(0)
            .min(deadline_ms)
            .saturating_mul(1_000)
    }

    async fn enforce(&self, call: &mut Call) -> Result<(), Failure> {
        let policy = call.policy.clone();
        let wait_max_us = self.wait_max_us(call, &policy.limits);
        let taken = self.take(call, &policy.limits, wait_max_us).await;
        let wait_ms = taken.wait_us.div_ceil(1_000);
        if !taken.granted {
            return Err(self.refuse(call, &policy.limits, wait_ms));
        }
        if wait_ms > 0 {
            call.explain(format!(
                "waited {wait_ms} ms for the rate limit of {}",
                names(&policy.limits)
            ));
            tokio::time::sleep(Duration::from_millis(wait_ms)).await;
        }
        Ok(())
    }

    fn refuse(&self, call: &mut Call, limits: &[ToolLimit], wait_ms: u64) -> Failure {
        let code = ErrorCode::RateLimited;
        let why = format!(
            "the rate limit of {} is used up; the next call may begin in {wait_ms} ms",
            names(limits)
        );
        self.runtime.tell(&Event::Blocked {
            call,
            code: code.as_str(),
            why: &why,
            mode: Mode::Enforce,
        });
        call.explain(why.clone());
        let judged = Judged::Counts(FailureKind::Retryable);
        let mut failure = Failure::before_start(code, why, judged);
        failure.retry_after_ms = Some(wait_ms);
        failure
    }

    /// Counts under names of its own, says what it would have done, and lets everything through.
    async fn watch(&self, call: &mut Call) {
        let shadows: Vec<ToolLimit> = call.policy.limits.iter().map(shadow_of).collect();
        let wait_max_us = self.wait_max_us(call, &shadows);
        if !self.take(call, &shadows, wait_max_us).await.granted {
            self.runtime.tell(&Event::Blocked {
                call,
                code: ErrorCode::RateLimited.as_str(),
                why: "the rate limit would be used up",
                mode: Mode::Shadow,
            });
        }
    }
}

fn shadow_of(limit: &ToolLimit) -> ToolLimit {
    ToolLimit {
        name: format!("{SHADOW_PREFIX}{}", limit.name).into(),
        limit: limit.limit,
    }
}

/// The limits of a call, for people.
fn names(limits: &[ToolLimit]) -> String {
    let one = |limit: &ToolLimit| format!("{} ({})", limit.name, limit.limit);
    limits.iter().map(one).collect::<Vec<_>>().join(" and ")
}

impl<S: Service> Service for RateLimited<S> {
    async fn call(&self, call: &mut Call) -> Reply {
        if call.policy.limits.is_empty() {
            return self.inner.call(call).await;
        }
        match call.modes.rate {
            Mode::Off => {}
            Mode::Shadow => self.watch(call).await,
            Mode::Enforce => {
                if let Err(failure) = self.enforce(call).await {
                    return failure.into();
                }
            }
        }
        self.inner.call(call).await
    }
}
