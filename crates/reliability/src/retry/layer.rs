//! The layer that tries again when that is safe, and says what is not known when it is not.

use std::sync::Arc;
use std::time::Duration;

use holdfast_contract::{CircuitBreakerState, ErrorCode, RetryNote, Status};

use super::{CallBudget, Classified, Evidence, GiveUp, Next, RetryBudget, RetryPolicy, decide};
use crate::call::{Call, Failure, Judged, Origin, Reply};
use crate::guard::FailureKind;
use crate::idempotency::{ends_in_doubt, repeat_safety};
use crate::observe::Event;
use crate::policy::Mode;
use crate::runtime::Runtime;
use crate::service::Service;

/// Tries again when that is safe.
pub struct Retry<S> {
    inner: S,
    /// Shared by all calls, so that retries stay a share of them.
    budget: RetryBudget,
    runtime: Arc<Runtime>,
}

impl<S: Service> Retry<S> {
    /// Wraps one attempt.
    pub fn new(inner: S, budget: RetryBudget, runtime: Arc<Runtime>) -> Self {
        Self {
            inner,
            budget,
            runtime,
        }
    }

    async fn attempts(&self, call: &mut Call) -> Reply {
        self.budget.deposit(self.runtime.clock.now_ms());
        if let Some(shared) = self.runtime.shared_retries() {
            shared.deposit();
        }
        let begun = tokio::time::Instant::now();
        let mut attempt_begun = begun;
        // Worked out at the first failure: a call that succeeds needs none.
        let mut policy: Option<RetryPolicy> = None;
        // The failure of the attempt before this one.
        let mut last: Option<Failure> = None;
        loop {
            let reply = self.inner.call(call).await;
            let Err(failure) = reply.outcome else {
                return reply;
            };
            // Both say when to ask again, and waiting for that is the caller's choice.
            if failure.is(ErrorCode::CircuitOpen) || failure.is(ErrorCode::RateLimited) {
                let failure = refused_on_the_way(failure, last);
                return honest(call, failure).into();
            }
            let policy = policy.get_or_insert_with(|| self.policy_of(call, elapsed_ms(begun)));
            // An open breaker refuses the next attempt, so nobody waits for it.
            let opened = failure.breaker_state == Some(CircuitBreakerState::Open);
            let next = if opened {
                call.explain("not retried: the circuit breaker has opened");
                self.next(call, &failure, &policy.once(), elapsed_ms(begun))
            } else {
                self.next(call, &failure, policy, elapsed_ms(begun))
            };
            let delay_ms = match next {
                Next::Retry { delay_ms } => delay_ms,
                Next::GiveUp(why) => return given_up(call, failure, why).into(),
            };
            if let Some(shared) = self.runtime.shared_retries()
                && !shared.withdraw().await
            {
                return given_up(call, failure, GiveUp::RetryBudgetEmpty).into();
            }
            let attempt = call.attempt_count();
            self.runtime.tell(&Event::Retry {
                call,
                attempt,
                delay_ms,
                reason_code: &failure.code,
                mode: Mode::Enforce,
            });
            call.retries.push(RetryNote {
                attempt,
                delay_ms,
                reason_code: failure.code.to_string(),
                latency_ms: elapsed_ms(attempt_begun),
            });
            last = Some(failure);
            tokio::time::sleep(Duration::from_millis(delay_ms)).await;
            attempt_begun = tokio::time::Instant::now();
        }
    }

    fn next(&self, call: &Call, failure: &Failure, policy: &RetryPolicy, elapsed_ms: u64) -> Next {
        let safety = repeat_safety(call);
        let classified = Classified {
            code: failure.code.clone(),
            retriable: failure.retriable,
            evidence: failure.evidence,
            counts_for_breaker: failure.counts_for_breaker,
            retry_after_ms: failure.retry_after_ms,
        };
        let mut withdraw = || self.budget.withdraw(self.runtime.clock.now_ms());
        let mut random = || self.runtime.entropy.next_u64();
        let attempt = call.attempt_count().max(1);
        decide(
            &classified,
            safety,
            attempt,
            elapsed_ms,
            policy,
            &mut withdraw,
            &mut random,
        )
    }

    /// What the tool's policy and the caller allow, whichever is less. A retry that would begin
    /// after the caller has left is not worth its wait.
    fn policy_of(&self, call: &Call, elapsed_ms: u64) -> RetryPolicy {
        let asked = call.envelope.transport.retry_budget;
        let begun_ms = self.runtime.clock.now_ms().saturating_sub(elapsed_ms);
        let left_ms = call
            .envelope
            .control
            .deadline_at_ms
            .map_or(u64::MAX, |deadline_ms| deadline_ms.saturating_sub(begun_ms));
        call.policy.retry.effective(CallBudget {
            max_attempts: asked.max_attempts,
            max_elapsed_ms: asked.max_elapsed_ms.min(left_ms),
        })
    }

    /// One attempt, as without this layer; a watching layer says what it would have done.
    async fn once(&self, call: &mut Call) -> Reply {
        let mut reply = self.inner.call(call).await;
        if let Err(failure) = &mut reply.outcome {
            if call.modes.retry == Mode::Shadow && failure.retriable {
                let (attempt, reason_code) = (call.attempt_count(), failure.code.as_ref());
                self.runtime.tell(&Event::Retry {
                    call,
                    attempt,
                    delay_ms: 0,
                    reason_code,
                    mode: Mode::Shadow,
                });
            }
            if failure.retriable && failure.status == Status::Error {
                failure.status = Status::RetriableError;
            }
        }
        reply
    }
}

impl<S: Service> Service for Retry<S> {
    async fn call(&self, call: &mut Call) -> Reply {
        match call.modes.retry {
            Mode::Enforce => self.attempts(call).await,
            Mode::Shadow | Mode::Off => self.once(call).await,
        }
    }
}

/// The breaker opened between two attempts, or the rate limit is used up: the last real failure is
/// the answer, with the refusal beside it. When nothing ran at all, the refusal is the answer.
fn refused_on_the_way(rejection: Failure, last: Option<Failure>) -> Failure {
    match last {
        None => rejection,
        Some(mut last) => {
            last.status = Status::RetryExhausted;
            last.breaker_state = rejection.breaker_state;
            last.retry_after_ms = rejection.retry_after_ms.or(last.retry_after_ms);
            last.message = format!("{} (not retried: {})", last.message, rejection.message);
            last
        }
    }
}

fn given_up(call: &mut Call, mut failure: Failure, why: GiveUp) -> Failure {
    match why {
        GiveUp::EffectMayHaveHappened => outcome_unknown(call, &failure),
        _ if ends_in_doubt(call) => outcome_unknown(call, &failure),
        GiveUp::Terminal => failure,
        GiveUp::AttemptsSpent | GiveUp::DeadlineReached | GiveUp::RetryBudgetEmpty => {
            let reason = match why {
                GiveUp::DeadlineReached => "no time is left for another",
                GiveUp::RetryBudgetEmpty => "this process has used up its retry budget",
                _ => "the attempts are used up",
            };
            call.explain(format!(
                "{} attempts failed and {reason}",
                call.attempt_count()
            ));
            // A call that only ever ran out of time says so; everything else is exhaustion.
            let timeout = ErrorCode::Timeout.as_str();
            let mut attempts = call.attempts.iter();
            let ran_out = attempts.all(|it| it.error_code.as_deref() == Some(timeout));
            if failure.status != Status::Timeout || !ran_out {
                failure.status = Status::RetryExhausted;
            }
            failure
        }
    }
}

/// A call that ends while an effect of one of its attempts may have happened says so.
fn honest(call: &mut Call, failure: Failure) -> Failure {
    if ends_in_doubt(call) {
        outcome_unknown(call, &failure)
    } else {
        failure
    }
}

/// The honest answer when an effect may have happened and a repeat could double it.
fn outcome_unknown(call: &mut Call, failure: &Failure) -> Failure {
    call.explain(format!(
        "not retried: after {} the effect of {} may have happened, and it is not safe to repeat",
        failure.code, call.envelope.tool_name
    ));
    let code = ErrorCode::OutcomeUnknown;
    Failure {
        status: Status::Error,
        code: code.as_str().into(),
        origin: Origin::Holdfast,
        message: format!(
            "the effect may or may not have happened ({}: {}); {}",
            failure.code,
            failure.message,
            tried(call.attempt_count())
        ),
        hint: Some(code.doc().next.to_owned()),
        retriable: false,
        terminal: true,
        evidence: Evidence::MayHaveHappened,
        judged: Judged::Counts(FailureKind::Retryable),
        counts_for_breaker: failure.counts_for_breaker,
        retry_after_ms: None,
        breaker_state: failure.breaker_state,
        besides: failure.besides.clone(),
    }
}

/// How often it was tried, in words that are true.
fn tried(attempts: u32) -> String {
    match attempts {
        0 | 1 => "it was not repeated".to_owned(),
        several => format!("it was tried {several} times and is not tried again"),
    }
}

fn elapsed_ms(since: tokio::time::Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}
