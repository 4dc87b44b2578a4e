//! The layer that cuts loops off.
//!
//! It sits outside everything that can refuse a call, because a model loops on refusals most of
//! all.

use std::fmt::Write as _;
use std::sync::Arc;

use holdfast_contract::{ErrorCode, Escalation, ResultOutput, SessionKind, TurnStand};
use serde_json::Value;

use super::hash::Hash64;
use super::receipt::record_of;
use super::{
    Advice, Block, BlockCode, CallIdentity, ExitDigest, GuardAction, GuardConfig, GuardStore,
    Observation, OutputDigest, RecordMark, Sent, TurnKey, Verdict, decorate_error,
};
use crate::call::{Call, Failure, Judged, Reply};
use crate::exchange::Exchanged;
use crate::guard::attribution_log::AttributionLog;
use crate::observe::Event;
use crate::policy::Mode;
use crate::runtime::Runtime;
use crate::service::Service;

/// Watches a turn and refuses what repeats itself without progress.
pub struct Guard<S> {
    inner: S,
    config: Arc<Exchanged<GuardConfig>>,
    store: Arc<dyn GuardStore>,
    attribution: Option<Arc<AttributionLog>>,
    runtime: Arc<Runtime>,
}

impl<S: Service> Guard<S> {
    /// Wraps everything that can refuse a call.
    pub fn new(
        inner: S,
        config: Arc<Exchanged<GuardConfig>>,
        store: Arc<dyn GuardStore>,
        attribution: Option<Arc<AttributionLog>>,
        runtime: Arc<Runtime>,
    ) -> Self {
        Self {
            inner,
            config,
            store,
            attribution,
            runtime,
        }
    }

    /// The verdict on a call. A store that can not answer lets it pass: the guard saves money, and
    /// must not become the outage.
    async fn verdict(
        &self,
        turn: &TurnKey,
        identity: &CallIdentity<'_>,
        config: &GuardConfig,
    ) -> (Verdict, Option<u32>, Vec<RecordMark>) {
        match self.store.check(turn, identity, config).await {
            Ok(checked) => (
                checked.verdict,
                Some(checked.failures_seen),
                checked.superseded,
            ),
            Err(error) => {
                self.runtime.tell(&Event::StoreTrouble {
                    what: "guard check",
                    error: &error,
                });
                (Verdict::Run, None, Vec::new())
            }
        }
    }

    /// The finished answer that a caller's own key stands for. A turn that is over must not hide
    /// from its host that the payment went through.
    async fn recorded(&self, call: &mut Call) -> Option<Reply> {
        call.envelope.payload.idempotency_key.as_ref()?;
        call.only_from_record = true;
        let reply = self.inner.call(call).await;
        call.only_from_record = false;
        (reply.outcome.is_ok() && reply.cache.is_some()).then_some(reply)
    }

    fn refuse(&self, call: &mut Call, block: Block) -> Reply {
        let code = match block.code {
            BlockCode::LoopDetected => ErrorCode::LoopDetected,
            BlockCode::ToolErrorLimit => ErrorCode::ToolErrorLimit,
        };
        let (code_text, why) = (code.as_str(), block.why.as_str());
        self.runtime.tell(&Event::Blocked {
            call,
            code: code_text,
            why,
            mode: Mode::Enforce,
        });
        call.explain(block.why);
        Failure::before_start(code, block.text, Judged::BlockedByGuard).into()
    }

    async fn learn(
        &self,
        call: &mut Call,
        turn: &TurnKey,
        identity: &CallIdentity<'_>,
        config: &GuardConfig,
        began_ms: u64,
        mut reply: Reply,
    ) -> Reply {
        let took_ms = self.runtime.clock.now_ms().saturating_sub(began_ms);
        let observation = observation_of(call, &reply);
        // What came from a record is the answer of a call that ended long ago.
        let record = record_of(call).filter(|_| reply.cache.is_none());
        let identity = &identity.recorded(record);
        let advice = match self
            .store
            .observe(turn, identity, observation, took_ms, config)
            .await
        {
            Ok(advice) => advice,
            Err(error) => {
                self.runtime.tell(&Event::StoreTrouble {
                    what: "guard observe",
                    error: &error,
                });
                Advice::default()
            }
        };
        if let (Some(log), Some(failure)) = (&self.attribution, reply.failure())
            && failure.judged != Judged::Neutral
            && !call.redelivered
        {
            // A guard that only watches has done nothing.
            let action = match call.modes.guard {
                Mode::Enforce => advice.action,
                Mode::Shadow | Mode::Off => GuardAction::Continue,
            };
            log.record(call, failure, action, self.runtime.clock.now_ms());
        }
        if call.modes.guard == Mode::Enforce {
            if advice.wrong_attempts >= config.validation_attempts_max {
                self.name_field(call, &mut reply).await;
            }
            apply(call, &mut reply, &advice, config);
        }
        reply
    }

    /// What goes up names the argument at fault. A call that was refused unseen is looked at for it, and
    /// ends before anything is claimed or run.
    async fn name_field(&self, call: &mut Call, reply: &mut Reply) {
        let Err(failure) = &mut reply.outcome else {
            return;
        };
        if failure.judged != Judged::BlockedByGuard {
            return;
        }
        call.only_from_record = true;
        let seen = Box::pin(self.inner.call(call)).await;
        call.only_from_record = false;
        let besides = seen.outcome.err().and_then(|seen| seen.besides);
        if let Some(field) = besides.and_then(|besides| besides.field) {
            failure.besides.get_or_insert_default().field = Some(field);
        }
    }
}

impl<S: Service> Service for Guard<S> {
    async fn call(&self, call: &mut Call) -> Reply {
        // A call is learned of by the limits that let it pass.
        let config = self.config.now();
        if call.modes.guard == Mode::Off || !config.enabled {
            return self.inner.call(call).await;
        }
        let turn = turn_of(call);
        let name = call.envelope.tool_name.clone();
        let identity = call.identity(&name);
        let began_ms = self.runtime.clock.now_ms();
        let mut sent = Sent {
            response: response_of(call),
            failures_seen: None,
            mutating: call.policy.mutating,
            at_ms: Some(began_ms),
        };
        let identity = identity.sent(sent);
        let (verdict, failures_seen, superseded) = self.verdict(&turn, &identity, &config).await;
        call.superseded = superseded;
        sent.failures_seen = failures_seen;
        let identity = identity.sent(sent);
        let reply = match (verdict, call.modes.guard) {
            (Verdict::Block(block), Mode::Enforce) => match self.recorded(call).await {
                // Nothing runs, and the caller learns what its key stands for.
                Some(reply) => return reply,
                None => self.refuse(call, block),
            },
            (Verdict::Block(block), _) => {
                let (code, why) = (block.code.as_str(), block.why.as_str());
                self.runtime.tell(&Event::Blocked {
                    call,
                    code,
                    why,
                    mode: Mode::Shadow,
                });
                call.explain(format!(
                    "only watched: the guard would have refused it: {why}"
                ));
                self.inner.call(call).await
            }
            (Verdict::Run, _) => self.inner.call(call).await,
        };
        self.learn(call, &turn, &identity, &config, began_ms, reply)
            .await
    }
}

/// The model's response that a call came in: its step within its run.
fn response_of(call: &Call) -> Option<u64> {
    let step = call.envelope.payload.tool_step?;
    let run = call.envelope.target.run_id.as_deref().unwrap_or_default();
    let name = [run.as_bytes(), &step.iteration.to_le_bytes()].concat();
    Some(Hash64::of(&name).0)
}

/// Sessions of one actor are told apart by their key; a watching guard keeps its own turns.
pub(super) fn turn_of(call: &Call) -> TurnKey {
    let target = &call.envelope.target;
    let prefix = if call.modes.guard == Mode::Shadow {
        "shadow\u{0}"
    } else {
        ""
    };
    let tenant = target.tenant_id.as_deref().unwrap_or_default();
    TurnKey {
        session: [
            prefix,
            tenant,
            "\u{0}",
            target.workspace_id.as_deref().unwrap_or_default(),
            "\u{0}",
            &target.actor_id,
            "\u{0}",
            &target.session_key,
        ]
        .concat(),
        turn: target.turn_id.clone().or_else(|| target.run_id.clone()),
    }
}

fn observation_of<'a>(call: &Call, reply: &'a Reply) -> Observation<'a> {
    match &reply.outcome {
        // The same delivery again is the transport's doing, not the model's.
        _ if call.redelivered => Observation::Neutral,
        Ok(output) => match exit_code(output) {
            Some(_) => Observation::NonZeroExit {
                polls: call.policy.polls,
                output: ExitDigest::of(&output.content),
            },
            None => Observation::Succeeded {
                // An answer from a record changed nothing now.
                mutating: call.policy.mutating && reply.cache.is_none(),
                polls: call.policy.polls,
                output: OutputDigest::of(&output.content),
            },
        },
        Err(failure) => match failure.judged {
            Judged::Counts(kind) => Observation::Failed {
                kind,
                error: &failure.message,
            },
            Judged::BlockedByGuard => Observation::Blocked,
            Judged::Neutral => Observation::Neutral,
        },
    }
}

fn exit_code(output: &ResultOutput) -> Option<&Value> {
    output.metadata.as_ref()?.get("exitCode")
}

/// The model does not get the call right. What it hears is that it is over; who runs it reads the
/// mark and hands the failure up. A main session has nobody above it but the person it talks to.
fn escalate(call: &Call, failure: &mut Failure, reason: String, attempts: u32) {
    let (words, hint) = match call.session.kind {
        SessionKind::Main => (
            "tell the user what is wrong instead of trying again.",
            "The model does not get the call right, and there is no parent session: it is for the \
             user. At a prompt, `--turn NEW` starts afresh.",
        ),
        SessionKind::Branch | SessionKind::Worker => (
            "this error goes to the parent session.",
            "The model does not get the call right: hand the task back to the parent session. At a \
             prompt, `--turn NEW` starts afresh.",
        ),
    };
    // Writing to a string can not fail.
    let _ = write!(
        failure.message,
        "\nIt was called wrongly {attempts} times: {words}"
    );
    failure.hint = Some(hint.to_owned());
    mark(call, failure, reason, attempts);
}

fn mark(call: &Call, failure: &mut Failure, reason: String, attempts: u32) {
    let besides = failure.besides.get_or_insert_default();
    besides.escalation = Some(Escalation {
        tool: call.envelope.tool_name.clone(),
        field: besides.field.clone(),
        reason,
        attempts,
    });
}

/// The texts reach the model: in the error's message, or beside the output as `advisory`.
fn apply(call: &mut Call, reply: &mut Reply, advice: &Advice, config: &GuardConfig) {
    if advice.is_silent() {
        return;
    }
    match &mut reply.outcome {
        Ok(output) => {
            if !advice.texts.is_empty() {
                let texts = advice.texts.iter().cloned().map(Value::String).collect();
                output
                    .metadata
                    .get_or_insert_default()
                    .insert("advisory".to_owned(), Value::Array(texts));
            }
        }
        Err(failure) => {
            let reason = failure.message.clone();
            failure.message = decorate_error(&failure.message, advice);
            if advice.stop_turn {
                failure.besides.get_or_insert_default().turn = TurnStand::Ended;
            }
            if advice.escalate_to_parent {
                escalate(call, failure, reason, advice.wrong_attempts);
            } else if advice.wrong_attempts >= config.validation_attempts_max {
                // The same wrong call once more, refused unseen: its text says all there is to say.
                mark(call, failure, reason, advice.wrong_attempts);
            }
        }
    }
    for text in &advice.texts {
        call.explain(format!("guard: {}", text.replace('\n', " ")));
    }
}
