//! The layer that holds a call up until a person has answered.

use std::sync::Arc;
use std::time::Duration;

use holdfast_contract::{ApprovalRoute, ErrorCode, Gate, Need, Prompted, Shown};
use holdfast_reliability::call::{Call, Entry, Failure, Judged, Reply};
use holdfast_reliability::idempotency::HeldClaim;
use holdfast_reliability::observe::Event;
use holdfast_reliability::policy::Mode;
use holdfast_reliability::runtime::Runtime;
use holdfast_reliability::service::Service;
use holdfast_reliability::store::StoreError;
use serde_json::json;

use super::adopt::what_is_left;
use super::error::AnswerError;
use super::model::{ApprovalState, Subject, digest_of};
use super::own::has_lost_claim;
use super::service::{Approvals, Lost, Seen};
use super::step::{Action, Refused};
use super::withdraw::Withdraw;
use crate::audit::AuditError;
use crate::permit::{Decision, Permissions, decision, deny};

/// How often a waiting call looks for an answer that another process has taken.
pub const APPROVAL_POLL_MS: u64 = 100;

/// Holds up what a person has to approve first.
pub struct Approve<S> {
    inner: S,
    approvals: Option<Arc<Approvals>>,
    config: Arc<Permissions>,
    runtime: Arc<Runtime>,
}

/// Why a call does not run, besides "no".
enum Stop {
    /// No, and why.
    Denied(String),
    /// Something that has to be kept can not be.
    Trouble(StoreError),
    /// The claim went to somebody else while this call waited.
    ClaimLost,
    /// Somebody else goes on with the request, and this call only stood in for an asker that is gone.
    LetGo,
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Self::Trouble(error)
    }
}

impl From<AuditError> for Stop {
    fn from(error: AuditError) -> Self {
        Self::Trouble(match error {
            AuditError::Store(error) => error,
            file @ AuditError::File { .. } => StoreError::Unavailable(file.to_string()),
        })
    }
}

impl From<AnswerError> for Stop {
    fn from(error: AnswerError) -> Self {
        match error {
            AnswerError::Store(error) => error.into(),
            AnswerError::Audit(error) => error.into(),
            other => Self::Denied(other.to_string()),
        }
    }
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
                return self.inner.call(call).await;
            }
            let why = format!("{}, and there is nobody to approve it", reasons(&need));
            return deny(call, &self.runtime, format!("{tool} needs approval: {why}"));
        };
        let met = if need.gate == Gate::Advisory {
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
        if answered_before(approvals, call, need).await? == Before::Approved {
            return begin(call).await;
        }
        let deadline_at_ms = match call.entry {
            // Its caller is gone for long, and its request outlives this process too.
            Entry::Resumed => Some(0),
            Entry::New => call.envelope.control.deadline_at_ms,
        };
        let mut guard = Withdraw::new(approvals, deadline_at_ms);
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
        if !matches!(outcome, Err(Stop::Trouble(_))) {
            // Answered or over: there is nothing left to withdraw.
            guard.stand_down();
        }
        let approved = outcome?;
        if let Err(changed) = self.unchanged(call, need) {
            // What was refused once must not run later, when things are back as they were.
            approvals.spend(&approved.approval.id).await?;
            return Err(changed);
        }
        take(approvals, &approved, call).await?;
        begin(call).await
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
            let is_lost = call.held_claim.as_ref().is_some_and(HeldClaim::is_lost);
            if is_lost || seen.document.group != intent {
                // This call was silent for so long that it was taken for dead.
                return Err(Stop::ClaimLost);
            }
            let now_ms = self.runtime.clock.now_ms();
            match seen.approval.state_at(now_ms) {
                ApprovalState::Pending => {}
                ApprovalState::Approved { .. } => {
                    // What is another call's by now is not this one's to use, nor to take back.
                    if has_lost_claim(call).await {
                        return Err(Stop::ClaimLost);
                    }
                    return Ok(seen);
                }
                other => {
                    self.write_down(approvals, &seen).await?;
                    return Err(Stop::Denied(refusal(&id, &other)));
                }
            }
            if let Some(mark) = &seen.approval.wanted_by {
                match call.entry {
                    Entry::Resumed if mark.is_fresh(now_ms) => return Err(Stop::LetGo),
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
            Decision::Ask(_) | Decision::Allow => Err(Stop::Denied(
                "what the call would touch has changed since it was approved".to_owned(),
            )),
        }
    }

    fn stopped(&self, call: &mut Call, stop: Stop) -> Reply {
        let (code, why) = match stop {
            Stop::Denied(why) => return deny(call, &self.runtime, why),
            Stop::ClaimLost => (
                ErrorCode::Cancelled,
                "while this call waited, its key was cleared or claimed by another".to_owned(),
            ),
            Stop::LetGo => (
                ErrorCode::Cancelled,
                "its caller is gone, and its request is over or another call's".to_owned(),
            ),
            Stop::Trouble(error) => return store_away(call, &self.runtime, &error),
        };
        blocked(call, &self.runtime, code, why)
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
        return Err(Stop::Denied(why));
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
    if answered_before(approvals, call, need).await? == Before::Approved {
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

/// Makes the approval this call's own. Of several calls that want it one gets it.
async fn take(approvals: &Approvals, approved: &Seen, call: &mut Call) -> Result<(), Stop> {
    let (id, digest) = (&approved.approval.id, digest_of(&call.envelope));
    use_up(approvals, approved, &digest).await?;
    approvals
        .record(
            "approval.used",
            json!({"approval": id, "tool": call.envelope.tool_name, "digest": digest,
                   "request": call.envelope.request_id}),
        )
        .await?;
    call.explain(format!("approved ({id})"));
    Ok(())
}
/// Uses an approval for the one run it is for.
async fn use_up(approvals: &Approvals, approved: &Seen, digest: &str) -> Result<(), Stop> {
    let id = &approved.approval.id;
    let mut seen = approved.clone();
    loop {
        match approvals.advance(&seen, Action::Use { digest }).await? {
            Ok(_) => return Ok(()),
            Err(Lost::Changed(newer)) if newer.document.group != approved.document.group => {
                return Err(Stop::ClaimLost);
            }
            Err(Lost::Changed(newer)) => seen = *newer,
            Err(Lost::Gone) => return Err(Stop::Denied(format!("the approval {id} is gone"))),
            Err(Lost::Refused(why)) => {
                let why = match why {
                    Refused::Over("used") => "another run has used it".to_owned(),
                    other => other.to_string(),
                };
                let why = format!("the approval {id} can not be used: {why}");
                return Err(Stop::Denied(why));
            }
        }
    }
}

/// Puts on record that the call starts: from here on its effect may happen.
async fn begin(call: &Call) -> Result<(), Stop> {
    match &call.held_claim {
        None => Ok(()),
        Some(claim) => claim.begin().await?.map_err(|_| Stop::ClaimLost),
    }
}

fn reasons(need: &Need) -> String {
    let texts: Vec<&str> = need
        .reasons
        .iter()
        .map(|reason| reason.text.as_str())
        .collect();
    texts.join("; ")
}

fn refusal(id: &str, state: &ApprovalState) -> String {
    match state {
        ApprovalState::Denied { by, reason, .. } => match reason {
            Some(reason) => format!("{by} denied it (approval {id}): {reason}"),
            None => format!("{by} denied it (approval {id})"),
        },
        ApprovalState::Expired { .. } => {
            format!("nobody approved it in time (approval {id}), and silence means no")
        }
        ApprovalState::Used { .. } => format!("another run has used the approval {id}"),
        other => format!("the approval {id} is {}", other.as_str()),
    }
}

impl<S: Service> Service for Approve<S> {
    async fn call(&self, call: &mut Call) -> Reply {
        match call.need.take() {
            None => self.inner.call(call).await,
            // Boxed: most calls need nothing, and must not carry the room for this.
            Some(need) => Box::pin(self.run_when_met(call, *need)).await,
        }
    }
}
