//! Others who watch calls, or have a say before one begins.
//!
//! An *admit* hook sees a call before anything is keyed, validated or approved; it may supply a
//! key, change the arguments or refuse. *Observing* hooks see every attempt before and after it,
//! and a call that was answered without any attempt once; they change nothing.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use holdfast_contract::envelope::IDEMPOTENCY_KEY_BYTES_MAX;
use holdfast_contract::{ErrorCode, Status, ToolCallEnvelope};
use serde::Serialize;
use serde_json::Value;

use crate::call::{Call, Entry, Failure, Judged, Reply};
use crate::guard::FailureKind;
use crate::runtime::Runtime;
use crate::service::Service;

pub mod command;

/// What an admit hook wants.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AdmitAnswer {
    /// A key for this intent; the caller's own wins over it.
    pub idempotency_key: Option<String>,
    /// Other arguments, in the place of the caller's.
    pub params: Option<Value>,
    /// Why the call is refused.
    pub refuse: Option<String>,
}

/// Has a say before a call begins.
pub trait AdmitHook: Send + Sync {
    /// Its name, for messages.
    fn name(&self) -> &str;
    /// Decides. An error refuses the call: a gate that can not be asked stays shut.
    fn admit<'a>(
        &'a self,
        envelope: &'a ToolCallEnvelope,
    ) -> BoxFuture<'a, Result<AdmitAnswer, String>>;
}

/// When an observing hook is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Phase {
    /// An attempt is about to run, or the call was answered without one.
    Before,
    /// The attempt has ended.
    After,
}

/// What an observing hook is told.
#[derive(Clone, Copy)]
pub struct HookEvent<'a> {
    /// When.
    pub phase: Phase,
    /// The call.
    pub call: &'a Call,
    /// From 1; 0 when no attempt was made.
    pub attempt: u32,
    /// How it ended, in the after phase.
    pub reply: Option<&'a Reply>,
}

impl HookEvent<'_> {
    /// Why no attempt was made: `cached`, or the error code.
    pub fn short_circuit(&self) -> Option<String> {
        if self.attempt > 0 {
            return None;
        }
        Some(match self.reply {
            Some(reply) => match &reply.outcome {
                _ if reply.cache.is_some() => "cached".to_owned(),
                Err(failure) => failure.code.to_string(),
                Ok(_) => "answered".to_owned(),
            },
            None => "answered".to_owned(),
        })
    }
}

/// Watches calls.
pub trait ObserveHook: Send + Sync {
    /// Takes note. What it returns changes nothing.
    fn observe<'a>(&'a self, event: HookEvent<'a>) -> BoxFuture<'a, ()>;
}

/// The hooks of a stack.
#[derive(Default, Clone)]
pub struct Hooks {
    /// Asked in order; the first refusal ends it.
    pub admit: Vec<Arc<dyn AdmitHook>>,
    /// Told in order.
    pub observe: Vec<Arc<dyn ObserveHook>>,
}

impl Hooks {
    async fn tell(&self, event: HookEvent<'_>) {
        for hook in &self.observe {
            hook.observe(event).await;
        }
    }
}

/// How long after the caller's deadline observing hooks may still be told of it.
pub const HOOK_GRACE_MS: u64 = 1_000;

/// Asks the admit hooks, and tells the observing ones of calls that ended without an attempt.
pub struct AdmitHooks<S> {
    inner: S,
    hooks: Hooks,
    runtime: Arc<Runtime>,
}

impl<S: Service> AdmitHooks<S> {
    /// Wraps everything that keys, validates or judges a call.
    pub fn new(inner: S, hooks: Hooks, runtime: Arc<Runtime>) -> Self {
        Self {
            inner,
            hooks,
            runtime,
        }
    }

    /// Asks within the time that the caller has: its deadline wins over a hook's own limit.
    async fn admit_in_time(&self, call: &mut Call) -> Result<(), Failure> {
        // A resumed call has been admitted before, and is not changed any more.
        if self.hooks.admit.is_empty() || call.entry == Entry::Resumed {
            return Ok(());
        }
        let Some(deadline_at_ms) = call.envelope.control.deadline_at_ms else {
            return self.admit(call).await;
        };
        let left_ms = deadline_at_ms.saturating_sub(self.runtime.clock.now_ms());
        match tokio::time::timeout(Duration::from_millis(left_ms), self.admit(call)).await {
            Ok(admitted) => admitted,
            Err(_) => Err(Failure::before_start(
                ErrorCode::Timeout,
                "the caller's deadline passed while an admit hook was asked",
                Judged::Neutral,
            )
            .with_status(Status::Timeout)),
        }
    }

    /// Tells the observing hooks what they have not been told yet, within the caller's deadline and
    /// a grace, since they may only hear of the deadline when it has passed.
    async fn tell_in_time(&self, call: &mut Call, reply: &Reply) {
        let Some(deadline_at_ms) = call.envelope.control.deadline_at_ms else {
            return self.tell_the_rest(call, reply).await;
        };
        let left_ms = deadline_at_ms.saturating_sub(self.runtime.clock.now_ms());
        let limit = Duration::from_millis(left_ms.saturating_add(HOOK_GRACE_MS));
        let told = self.tell_the_rest(call, reply);
        if tokio::time::timeout(limit, told).await.is_err() {
            call.explain("an observing hook was cut off after the caller's deadline");
        }
    }

    async fn tell_the_rest(&self, call: &mut Call, reply: &Reply) {
        // Cut off by the caller's deadline: who was told of the beginning is told of the end.
        let begun = call.observed_attempt.take();
        let begun = begun.map(|attempt| (Phase::After, attempt));
        let short_circuit = if call.attempts.is_empty() {
            [Some((Phase::Before, 0)), Some((Phase::After, 0))]
        } else {
            [None, None]
        };
        for (phase, attempt) in begun.into_iter().chain(short_circuit.into_iter().flatten()) {
            let event = HookEvent {
                phase,
                call,
                attempt,
                reply: Some(reply),
            };
            self.hooks.tell(event).await;
        }
    }

    async fn admit(&self, call: &mut Call) -> Result<(), Failure> {
        for hook in &self.hooks.admit {
            let answer = hook.admit(&call.envelope).await;
            let refusal = match answer {
                Ok(AdmitAnswer {
                    refuse: Some(reason),
                    ..
                }) => reason,
                Ok(answer) => match accept(call, hook.name(), answer) {
                    Ok(()) => continue,
                    Err(reason) => reason.to_owned(),
                },
                Err(trouble) => format!("it could not be asked: {trouble}"),
            };
            return Err(refused(call, hook.name(), &refusal));
        }
        Ok(())
    }
}

/// Takes what a hook gave, or says why not.
fn accept(call: &mut Call, hook: &str, answer: AdmitAnswer) -> Result<(), &'static str> {
    if let Some(params) = answer.params {
        if !params.is_object() {
            return Err("it gave arguments that are not an object");
        }
        call.explain(format!("the hook {hook} changed the arguments"));
        *call.params_mut() = params;
    }
    let Some(key) = answer.idempotency_key.filter(|key| !key.trim().is_empty()) else {
        return Ok(());
    };
    // By the same rules as a caller's.
    if key.len() > IDEMPOTENCY_KEY_BYTES_MAX || key.contains('\0') {
        return Err("it gave a key that is too long or holds a NUL");
    }
    if call.hook_key.is_none() {
        call.hook_key = Some(key);
    }
    Ok(())
}

fn refused(call: &mut Call, hook: &str, reason: &str) -> Failure {
    let why = format!("refused by the hook {hook}: {reason}");
    call.explain(why.clone());
    Failure::before_start(
        ErrorCode::RefusedByHook,
        why,
        Judged::Counts(FailureKind::Permission),
    )
}

impl<S: Service> Service for AdmitHooks<S> {
    async fn call(&self, call: &mut Call) -> Reply {
        let reply = match self.admit_in_time(call).await {
            Ok(()) => self.inner.call(call).await,
            Err(failure) => failure.into(),
        };
        if !self.hooks.observe.is_empty() {
            self.tell_in_time(call, &reply).await;
        }
        reply
    }
}

/// Tells the observing hooks of each attempt.
pub struct ObservingHooks<S> {
    inner: S,
    hooks: Hooks,
}

impl<S: Service> ObservingHooks<S> {
    /// Wraps one attempt.
    pub fn new(inner: S, hooks: Hooks) -> Self {
        Self { inner, hooks }
    }
}

impl<S: Service> Service for ObservingHooks<S> {
    async fn call(&self, call: &mut Call) -> Reply {
        if self.hooks.observe.is_empty() {
            return self.inner.call(call).await;
        }
        let attempt = call.attempt_count() + 1;
        self.hooks
            .tell(HookEvent {
                phase: Phase::Before,
                call,
                attempt,
                reply: None,
            })
            .await;
        call.observed_attempt = Some(attempt);
        let reply = self.inner.call(call).await;
        call.observed_attempt = None;
        self.hooks
            .tell(HookEvent {
                phase: Phase::After,
                call,
                attempt,
                reply: Some(&reply),
            })
            .await;
        reply
    }
}
