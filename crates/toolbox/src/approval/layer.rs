//! The layer that holds a call up until a person has answered.

use std::sync::Arc;
use std::time::Duration;

use holdfast_contract::{ApprovalRoute, ErrorCode, Gate, Need, Prompted, Shown};
use holdfast_reliability::call::{Call, Entry, Failure, Judged, Reply};
use holdfast_reliability::idempotency::{HeldClaim, LostTo};
use holdfast_reliability::observe::Event;
use holdfast_reliability::policy::Mode;
use holdfast_reliability::runtime::Runtime;
use holdfast_reliability::service::Service;
use holdfast_reliability::store::StoreError;
use serde_json::json;

use super::adopt::what_is_left;
use super::error::AnswerError;
use super::model::{ApprovalState, Subject, digest_of};
use super::own::has_claim;
use super::service::{Approvals, Seen};
use super::start::{begin, take};
use super::step::Action;
use super::stop::{SAID_NO, Stop, nobody_here, over};
use super::withdraw::Withdraw;
use crate::permit::{Decision, People, Permissions, decision, deny};

/// How often a waiting call looks for an answer that another process has taken.
pub const APPROVAL_POLL_MS: u64 = 100;

const CHANGED: &str = "what the call would touch has changed since it was approved";

/// Holds up what a person has to approve first.
pub struct Approve<S> {
    inner: S,
    approvals: Option<Arc<Approvals>>,
    config: Arc<Permissions>,
    runtime: Arc<Runtime>,
}

impl<S: Service> Approve<S> {
    /// Wraps the attempts. Without approvals nobody can be asked.
    pub fn new(
        inner: S,
        approvals: Option<Arc<Approvals>>,
        config: Arc<Permissions>,
        runtime: Arc<Runtime>,
    ) -> Self {
        Self {
            inner,
            approvals,
            config,
            runtime,
        }
    }

    async fn run_when_met(&self, call: &mut Call, need: Need) -> Reply {
        let route = call.session.approval.clone();
        let tool = call.envelope.tool_name.clone();
        let (Some(approvals), Some(route)) = (&self.approvals, route) else {
            if need.gate == Gate::Advisory {
                return self.run_unasked(call).await;
            }
            let why = format!("{}, and there is nobody to approve it", reasons(&need));
            return deny(call, &self.runtime, format!("{tool} needs approval: {why}"));
        };
        let met = if need.gate == Gate::Advisory {
            if let Err(stop) = self.close(call).await {
                return self.stopped(call, stop);
            }
            self.advise(approvals, call, &need, &route).await
        } else {
            self.wait(approvals, call, &need, &route).await
        };
        match met {
            Ok(()) => {}
            Err(stop) => return self.stopped(call, stop),
        }
        let session = call.session.clone();
        call.session = Arc::new((*session).clone().with_approval(&need));
        let reply = self.inner.call(call).await;
        // The approval was for this call's attempts and nothing else.
        call.session = session;
        reply
    }

    /// Nobody has to be asked.
    async fn run_unasked(&self, call: &mut Call) -> Reply {
        match self.close(call).await {
            Ok(()) => self.inner.call(call).await,
            Err(stop) => self.stopped(call, stop),
        }
    }

    /// Closes the request of a call that was entered again and needs no answer any more, before it runs:
    /// of several that find it open one does so.
    async fn close(&self, call: &mut Call) -> Result<(), Stop> {
        let (Some(resumes), Some(approvals)) = (&call.resumes, &self.approvals) else {
            return begin(call).await;
        };
        if approvals.is_not_its_any_more(call).await? {
            return Err(Stop::LetGo);
        }
        resumes.starts.starts().await;
        // That may have taken long: what was allowed then has to be allowed still.
        has_claim(call).await.map_err(|to| lost(call, to))?;
        match decision(&self.config.now(), call) {
            Decision::Allow => {}
            Decision::Ask(now) if !now.gate.waits() => {}
            Decision::Ask(_) => return Err(Stop::LetGo),
            Decision::Deny(rule) => return Err(Stop::Denied(rule)),
        }
        if !approvals.spend(&resumes.approval).await? {
            return Err(Stop::LetGo);
        }
        begin(call).await
    }

    /// Somebody is told, and the call goes on.
    async fn advise(
        &self,
        approvals: &Approvals,
        call: &mut Call,
        need: &Need,
        route: &ApprovalRoute,
    ) -> Result<(), Stop> {
        approvals
            .record(
                "approval.advised",
                json!({"tool": call.envelope.tool_name, "reasons": need.reasons,
                       "digest": digest_of(&call.envelope), "request": call.envelope.request_id,
                       "arguments": call.envelope.payload.params,
                       "session": call.session.session_id, "channel": route.channel}),
            )
            .await?;
        call.explain(format!(
            "ran with a note to {}: {}",
            route.channel,
            reasons(need)
        ));
        let draft = approvals.draft(call, need, route);
        // The call runs whether or not the note arrives.
        if let Err(error) = route
            .prompter
            .tell(&draft.prompt(route.prompter.audience(), &self.runtime.redactor))
            .await
        {
            call.explain(format!("the note could not be shown: {error}"));
        }
        Ok(())
    }

    async fn wait(
        &self,
        approvals: &Arc<Approvals>,
        call: &mut Call,
        need: &Need,
        route: &ApprovalRoute,
    ) -> Result<(), Stop> {
        // One that was entered again runs on its own request or not at all: a rule that its answer has made
        // would let it run beside it, time and again.
        if call.resumes.is_none() {
            if answered_before(approvals, call, need).await? == Before::Approved {
                return begin(call).await;
            }
            if self.config.now().approvals.people == People::Nobody {
                return Err(nobody_here(&call.envelope.tool_name, &reasons(need)));
            }
        }
        let deadline_at_ms = match call.entry {
            // Its caller is gone for long, and its request outlives this process too.
            Entry::Resumed => Some(0),
            Entry::New => call.envelope.control.deadline_at_ms,
        };
        let mut guard = Withdraw::new(approvals, deadline_at_ms, call.held_claim.clone());
        let Some(seen) = request(approvals, call, need, route, &mut guard).await? else {
            return begin(call).await;
        };
        call.explain(format!(
            "waited for the approval {}: {}",
            seen.approval.id,
            reasons(need)
        ));
        call.waiting_approval = Some(seen.approval.id.clone());
        approvals.tell_waits(&call.envelope.request_id, &seen.approval.id);
        let outcome = self
            .answered(approvals, seen, route, call, &mut guard)
            .await;
        call.waiting_approval = None;
        let taken = match outcome {
            Ok(approved) => self.take(approvals, &approved, call, need).await,
            Err(stop) => Err(stop),
        };
        // Until the approval is taken a call that goes away withdraws it: nobody else is to run on it.
        if !matches!(taken, Err(Stop::Trouble(_) | Stop::ClaimLost)) {
            // Taken, over or another's: there is nothing left to withdraw.
            guard.stand_down();
        }
        taken?;
        begin(call).await
    }

    /// Makes the approval this call's own, if all is still as it was when it was asked about.
    async fn take(
        &self,
        approvals: &Approvals,
        approved: &Seen,
        call: &mut Call,
        need: &Need,
    ) -> Result<(), Stop> {
        if let Some(resumes) = &call.resumes {
            // It may wait for long, so whatever can change meanwhile is looked at behind it.
            resumes.starts.starts().await;
            has_claim(call).await.map_err(|to| lost(call, to))?;
        }
        if let Err(changed) = self.unchanged(call, need) {
            // What was refused once must not run later, when things are back as they were.
            approvals.spend(&approved.approval.id).await?;
            return Err(changed);
        }
        take(approvals, approved, call).await
    }

    /// Waits for a yes, wherever it comes from.
    async fn answered(
        &self,
        approvals: &Approvals,
        mut seen: Seen,
        route: &ApprovalRoute,
        call: &Call,
        guard: &mut Withdraw,
    ) -> Result<Seen, Stop> {
        let id = seen.approval.id.clone();
        let intent = seen.document.group.clone();
        let audience = route.prompter.audience();
        let mut prompt = seen.approval.prompt(audience, &self.runtime.redactor);
        prompt.code = approvals.code(&seen.approval);
        let mut asking = Some(route.prompter.prompt(&prompt));
        loop {
            if seen.document.group != intent {
                // This call was silent for so long that it was taken for dead.
                return Err(Stop::TakenOver);
            }
            if let Some(to) = call.held_claim.as_ref().and_then(HeldClaim::lost) {
                return Err(lost(call, to));
            }
            let now_ms = self.runtime.clock.now_ms();
            match seen.approval.state_at(now_ms) {
                ApprovalState::Pending => {}
                ApprovalState::Approved { .. } => match has_claim(call).await {
                    Ok(()) => return Ok(seen),
                    // That one may be about to make this request its own.
                    Err(LostTo::Alike) => {}
                    Err(to) => return Err(lost(call, to)),
                },
                other => {
                    self.write_down(approvals, &seen).await?;
                    return Err(over(&id, &other));
                }
            }
            if let Some(mark) = &seen.approval.wanted_by {
                match call.entry {
                    Entry::Resumed if mark.is_fresh(approvals.marks_now_ms()) => {
                        return Err(Stop::LetGo);
                    }
                    Entry::Resumed => {}
                    Entry::New => {
                        seen = approvals.keep(seen).await;
                        if seen.document.group != intent {
                            continue;
                        }
                        guard.watch(&seen);
                    }
                }
            }
            let left_ms = seen.approval.request.expires_at_ms.saturating_sub(now_ms);
            let pause = Duration::from_millis(left_ms.clamp(1, APPROVAL_POLL_MS));
            let changed = approvals.changed().notified();
            let asked = async {
                match &mut asking {
                    Some(asking) => asking.await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                _ = tokio::time::timeout(pause, changed) => {}
                prompted = asked => {
                    asking = None;
                    if let Err(error) = &prompted {
                        let (channel, why) = (&route.channel, error.to_string());
                        approvals.not_delivered(&seen, channel, &why).await;
                    }
                    if let Ok(Prompted::Answered { by, answer }) = prompted
                        && prompt.shown == Shown::Whole
                    {
                        // One that is not taken leaves the request open for a better one.
                        match approvals.answer(&id, &answer, &by).await {
                            Ok(_) | Err(AnswerError::Refused { .. } | AnswerError::NotFound(_)) => {}
                            Err(trouble) => return Err(trouble.into()),
                        }
                    }
                }
            }
            match approvals.seen(&id).await {
                Ok(Some(newer)) => seen = newer,
                Ok(None) => return Err(Stop::Denied(format!("the approval {id} is gone"))),
                // A store that is away for a moment does not end a wait for a person.
                Err(error) => self.runtime.tell(&Event::StoreTrouble {
                    what: "approval",
                    error: &error,
                }),
            }
            guard.watch(&seen);
        }
    }

    /// What expired is put on record as expired, by whoever notices first.
    async fn write_down(&self, approvals: &Approvals, seen: &Seen) -> Result<(), Stop> {
        if let Ok(Ok(expired)) = approvals.advance(seen, Action::Expire).await {
            approvals
                .record(
                    "approval.expired",
                    json!({"approval": expired.id, "tool": expired.request.tool,
                           "digest": expired.request.digest}),
                )
                .await?;
        }
        Ok(())
    }

    /// The world may have changed while the person thought: a link that points elsewhere now, a
    /// policy that forbids it. What was approved is what runs, or nothing does.
    fn unchanged(&self, call: &Call, need: &Need) -> Result<(), Stop> {
        match decision(&self.config.now(), call) {
            Decision::Ask(now) if now.reasons == need.reasons && now.grants == need.grants => {
                Ok(())
            }
            Decision::Deny(rule) => Err(Stop::Denied(rule)),
            Decision::Ask(_) | Decision::Allow => Err(Stop::Denied(CHANGED.to_owned())),
        }
    }

    fn stopped(&self, call: &mut Call, stop: Stop) -> Reply {
        let why = match stop {
            Stop::Denied(why) => return deny(call, &self.runtime, why),
            Stop::ByPeople { why, next } => {
                let mut reply = deny(call, &self.runtime, why);
                if let Err(failure) = &mut reply.outcome {
                    failure.hint = Some(next.to_owned());
                }
                return reply;
            }
            Stop::Trouble(error) => return store_away(call, &self.runtime, &error),
            Stop::TakenOver => {
                "while it waited, this call was silent for so long that another goes on with its \
                 request; nothing ran here"
            }
            Stop::ClaimLost => {
                "while it waited, this call lost its key: the same call has ended elsewhere, or one \
                 with its content goes on; its request is over, and nothing ran here"
            }
            Stop::LetGo => "its caller is gone, and its request is over or another call's",
        };
        blocked(call, &self.runtime, ErrorCode::Cancelled, why.to_owned())
    }
}

/// Why a call does not run whose claim is lost. One that was entered again leaves its request as it is.
fn lost(call: &Call, to: LostTo) -> Stop {
    match call.resumes {
        Some(_) => Stop::LetGo,
        None => to.into(),
    }
}

/// What earlier answers say of a call.
#[derive(PartialEq, Eq)]
enum Before {
    Approved,
    Nothing,
}

/// Whether a person has answered for this call already: with a "no" a moment ago, or with a rule.
async fn answered_before(
    approvals: &Approvals,
    call: &mut Call,
    need: &Need,
) -> Result<Before, Stop> {
    let digest = digest_of(&call.envelope);
    let session = call.session.clone();
    let subject = Subject::of(&call.envelope, &session, &digest);
    if let Some(id) = approvals.fresh_denial(&subject).await? {
        let why = format!(
            "the same call was denied a moment ago (approval {id}); nobody was asked again"
        );
        return Err(Stop::ByPeople { why, next: SAID_NO });
    }
    let Some(rule) = approvals.covering_rule(&subject, need).await? else {
        return Ok(Before::Nothing);
    };
    approvals
        .record(
            "approval.used",
            json!({"rule": rule.id, "tool": rule.tool, "digest": digest,
                   "request": call.envelope.request_id, "session": session.session_id}),
        )
        .await?;
    call.explain(format!("approved by the rule {} of {}", rule.id, rule.by));
    Ok(Before::Approved)
}

/// The request that the call waits on: its own from before, one whose asker is gone, or a new one.
/// None where a rule has come meanwhile that covers it.
async fn request(
    approvals: &Approvals,
    call: &mut Call,
    need: &Need,
    route: &ApprovalRoute,
    guard: &mut Withdraw,
) -> Result<Option<Seen>, Stop> {
    if let Some(own) = approvals.own(call, need).await? {
        guard.watch(&own);
        return Ok(Some(own));
    }
    if approvals.is_not_its_any_more(call).await? {
        return Err(Stop::LetGo);
    }
    if let Some(ours) = what_is_left(approvals, call, need, route, guard).await? {
        return Ok(Some(ours));
    }
    // Looking may have taken long: a request that was waited for may have been answered, for all.
    if call.resumes.is_none() && answered_before(approvals, call, need).await? == Before::Approved {
        return Ok(None);
    }
    Ok(Some(approvals.open(call, need, route, guard).await?))
}

/// What has to be kept or looked up for an approval can not be.
fn store_away(call: &mut Call, runtime: &Runtime, error: &StoreError) -> Reply {
    runtime.tell(&Event::StoreTrouble {
        what: "approve",
        error,
    });
    let code = match error {
        StoreError::Full(_) => ErrorCode::StoreFull,
        StoreError::Unavailable(_) => ErrorCode::StoreUnavailable,
    };
    blocked(call, runtime, code, error.to_string())
}

fn blocked(call: &mut Call, runtime: &Runtime, code: ErrorCode, why: String) -> Reply {
    runtime.tell(&Event::Blocked {
        call,
        code: code.as_str(),
        why: &why,
        mode: Mode::Enforce,
    });
    call.explain(why.clone());
    Failure::before_start(code, why, Judged::Neutral).into()
}

fn reasons(need: &Need) -> String {
    let texts: Vec<&str> = need
        .reasons
        .iter()
        .map(|reason| reason.text.as_str())
        .collect();
    texts.join("; ")
}

impl<S: Service> Service for Approve<S> {
    async fn call(&self, call: &mut Call) -> Reply {
        match call.need.take() {
            None if call.resumes.is_none() => self.inner.call(call).await,
            None => Box::pin(self.run_unasked(call)).await,
            // Boxed: most calls need nothing, and must not carry the room for this.
            Some(need) => Box::pin(self.run_when_met(call, *need)).await,
        }
    }
}
