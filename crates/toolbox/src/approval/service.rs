//! Keeps requests, takes answers, knows the rules.

use std::sync::Arc;

use holdfast_contract::{Answer, ApprovalRoute, Need, Scope};
use holdfast_reliability::call::Call;
use holdfast_reliability::runtime::Runtime;
use holdfast_reliability::store::documents::{
    Created, Document, DocumentFilter, DocumentStore, NewDocument, Replaced, Replacement,
    all_documents,
};
use holdfast_reliability::store::{StoreError, StoreResult};
use serde_json::{Map, Value, json};
use tokio::sync::Notify;

use super::error::AnswerError;
use super::model::{Approval, ApprovalRequest, ApprovalState, Rule, Subject, digest_of};
use super::own::intent_of;
use super::step::{Action, Refused, step};
use super::unread::Unread;
use super::waiting::Notes;
use super::withdraw::{Withdraw, Withdrawals};
use crate::audit::{AuditError, AuditLog};
use crate::permit::Permissions;
use crate::token::Token;

pub(super) const KIND: &str = "approval";
const RULE_KIND: &str = "approval-rule";
const DENIAL_KIND: &str = "approval-denial";
/// How long an ended request can still be looked at.
pub const APPROVAL_KEPT_MS: u64 = 30 * 24 * 60 * 60 * 1000;
/// Arguments of an ended request that are kept; of larger ones only the digest is.
pub const ENDED_ARGUMENTS_BYTES_MAX: usize = 64 * 1024;
/// How long an answer "for this session" counts.
pub const SESSION_RULE_MS: u64 = 24 * 60 * 60 * 1000;
/// Requests of one store that wait for an answer; one more is denied.
pub const APPROVALS_OPEN_MAX: usize = 1_000;
/// How often a withdrawal that the store did not hear is said again.
pub const WITHDRAWN_AGAIN_MS: u64 = 500;
/// Characters of an id.
const ID_CHARS: u32 = 8;
/// Letters and digits that are not taken for each other.
const ID_ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// A request, and the version it was seen at.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) approval: Approval,
    pub(super) document: Document,
}

/// The approvals of one state.
pub struct Approvals {
    pub(super) store: Arc<dyn DocumentStore>,
    audit: Option<Arc<AuditLog>>,
    pub(super) runtime: Arc<Runtime>,
    pub(super) config: Arc<Permissions>,
    pub(super) codes: Option<Token>,
    /// Wakes those of this process who wait; other processes look at the store.
    changed: Notify,
    pub(super) withdrawals: Withdrawals,
    pub(super) notes: Notes,
    pub(super) unread: Unread,
}

impl Approvals {
    /// The approvals in this store. Without an audit log nothing is recorded of them.
    pub fn new(
        store: Arc<dyn DocumentStore>,
        audit: Option<Arc<AuditLog>>,
        runtime: Arc<Runtime>,
        config: Arc<Permissions>,
    ) -> Self {
        Self {
            store,
            audit,
            runtime,
            config,
            codes: None,
            changed: Notify::new(),
            withdrawals: Withdrawals::default(),
            notes: Notes::default(),
            unread: Unread::default(),
        }
    }

    pub(super) fn now_ms(&self) -> u64 {
        self.runtime.clock.now_ms()
    }

    /// The time by which marks on requests are compared: the store's, where several machines share it.
    pub(super) fn marks_now_ms(&self) -> u64 {
        self.store.time_ms().unwrap_or_else(|| self.now_ms())
    }

    pub(super) fn changed(&self) -> &Notify {
        &self.changed
    }

    /// Records what happened. Whatever must not happen unrecorded is done after this succeeded.
    pub(super) async fn record(&self, event: &str, fields: Value) -> Result<(), AuditError> {
        let Some(audit) = &self.audit else {
            return Ok(());
        };
        let fields = match fields {
            Value::Object(fields) => fields,
            other => Map::from_iter([("value".to_owned(), other)]),
        };
        audit.append(event, fields).await.map(|_| ())
    }

    /// One request.
    pub async fn get(&self, id: &str) -> StoreResult<Option<Approval>> {
        Ok(self.seen(id).await?.map(|seen| seen.approval))
    }

    pub(super) async fn seen(&self, id: &str) -> StoreResult<Option<Seen>> {
        match self.store.document(KIND, id).await? {
            Some(document) => self.known(document).map(Some),
            None => Ok(None),
        }
    }

    /// All requests that are kept and can be read, the newest first.
    pub async fn list(&self) -> StoreResult<Vec<Approval>> {
        let found = all_documents(&*self.store, DocumentFilter::of(KIND)).await?;
        let mut approvals: Vec<Approval> = found
            .into_iter()
            .filter_map(|document| self.readable(document))
            .map(|seen| seen.approval)
            .collect();
        approvals.sort_by_key(|it| std::cmp::Reverse(it.request.requested_at_ms));
        Ok(approvals)
    }

    /// Requests on which a call can still come to run: those that wait for an answer, and those
    /// that were approved and not used.
    pub async fn open_requests(&self) -> StoreResult<Vec<Approval>> {
        let now_ms = self.now_ms();
        let mut found = self.list().await?;
        found.retain(|approval| approval.is_open(now_ms));
        Ok(found)
    }

    /// Whether a request still waits for an answer or for its call.
    pub fn is_open(&self, approval: &Approval) -> bool {
        approval.is_open(self.now_ms())
    }

    /// The rules that answers have made.
    pub async fn rules(&self) -> StoreResult<Vec<Rule>> {
        let found = all_documents(&*self.store, DocumentFilter::of(RULE_KIND)).await?;
        found
            .into_iter()
            .map(|document| parse(document.body))
            .collect()
    }

    /// Takes a rule back; says whether it was there.
    pub async fn revoke(&self, id: &str, by: &str) -> Result<bool, AnswerError> {
        let removed = self.store.remove(RULE_KIND, id).await?;
        if removed {
            self.record("approval.rule_revoked", json!({"rule": id, "by": by}))
                .await?;
        }
        Ok(removed)
    }

    /// Takes a person's answer. Of several at once the first one counts.
    pub async fn answer(
        &self,
        id: &str,
        answer: &Answer,
        by: &str,
    ) -> Result<Approval, AnswerError> {
        let mut seen = self
            .seen(id)
            .await?
            .ok_or_else(|| AnswerError::NotFound(id.to_owned()))?;
        let action = Action::Answer {
            answer,
            by,
            use_within_ms: self.config.now().approvals.use_within_ms,
        };
        let refused = |why| AnswerError::Refused {
            id: id.to_owned(),
            why,
        };
        step(&seen.approval, action, self.now_ms()).map_err(refused)?;
        let request = &seen.approval.request;
        let told = json!({"approval": id, "answer": answer, "by": by, "tool": request.tool,
                          "digest": request.digest, "session": request.origin_session});
        self.record("approval.answered", told.clone()).await?;
        let lost = loop {
            match self.advance(&seen, action).await? {
                Ok(next) => {
                    self.keep_consequences(&next, answer, by).await?;
                    return Ok(next);
                }
                Err(Lost::Refused(why)) => break refused(why),
                Err(Lost::Changed(newer)) => seen = *newer,
                Err(Lost::Gone) => break AnswerError::NotFound(id.to_owned()),
            }
        };
        // It is on record, and somebody else was faster.
        self.record("approval.answer_not_taken", told).await?;
        Err(lost)
    }

    /// What an answer means for later calls.
    async fn keep_consequences(
        &self,
        approval: &Approval,
        answer: &Answer,
        by: &str,
    ) -> Result<(), AnswerError> {
        match answer {
            Answer::Approve { scope: Scope::Once } => {}
            Answer::Approve { scope } => {
                let rule = self.rule_of(approval, *scope, by);
                let session = rule.session.is_some();
                self.record("approval.rule_added", json!({"rule": rule}))
                    .await?;
                let new = NewDocument {
                    kind: RULE_KIND.to_owned(),
                    id: rule.id.clone(),
                    group: rule.tool.clone(),
                    body: json!(rule),
                    expires_at_ms: session.then(|| self.now_ms().saturating_add(SESSION_RULE_MS)),
                };
                self.store.create(new).await?;
            }
            Answer::Deny { .. } => self.remember_denial(approval).await?,
        }
        Ok(())
    }

    fn rule_of(&self, approval: &Approval, scope: Scope, by: &str) -> Rule {
        let request = &approval.request;
        Rule {
            id: self.new_id(),
            tool: request.tool.clone(),
            reasons: request.reasons.clone(),
            session: (scope == Scope::Session).then(|| request.origin_session.clone()),
            actor: request.envelope.target.actor_id.clone(),
            agent: request.agent.clone(),
            workspace_root: request.workspace_root.clone(),
            from_approval: approval.id.clone(),
            by: by.to_owned(),
            at_ms: self.now_ms(),
        }
    }

    async fn remember_denial(&self, approval: &Approval) -> StoreResult<()> {
        let request = &approval.request;
        let new = NewDocument {
            kind: DENIAL_KIND.to_owned(),
            id: request.subject().fingerprint(),
            group: request.origin_session.clone(),
            body: json!({"approval": approval.id}),
            expires_at_ms: Some(
                self.now_ms()
                    .saturating_add(self.config.now().approvals.denial_ms),
            ),
        };
        self.store.create(new).await.map(|_| ())
    }

    /// The request that was denied a moment ago for the identical call.
    pub(super) async fn fresh_denial(&self, subject: &Subject<'_>) -> StoreResult<Option<String>> {
        let found = self
            .store
            .document(DENIAL_KIND, &subject.fingerprint())
            .await?;
        Ok(found.and_then(|document| Some(document.body["approval"].as_str()?.to_owned())))
    }

    /// The rule that covers a call.
    pub(super) async fn covering_rule(
        &self,
        subject: &Subject<'_>,
        need: &Need,
    ) -> StoreResult<Option<Rule>> {
        let filter = DocumentFilter::of(RULE_KIND).group(subject.tool);
        for document in all_documents(&*self.store, filter).await? {
            let rule: Rule = parse(document.body)?;
            if rule.covers(subject, need) {
                return Ok(Some(rule));
            }
        }
        Ok(None)
    }

    /// A new request.
    pub(super) async fn open(
        &self,
        call: &Call,
        need: &Need,
        route: &ApprovalRoute,
        guard: &mut Withdraw,
    ) -> Result<Seen, AnswerError> {
        let open = self.count_open().await?;
        if open >= APPROVALS_OPEN_MAX {
            let why = format!("{open} approval requests wait for answers");
            return Err(StoreError::Full(why).into());
        }
        self.create(call, need, route, intent_of(call), guard).await
    }

    /// A request as it would be asked now.
    pub(super) fn draft(&self, call: &Call, need: &Need, route: &ApprovalRoute) -> Approval {
        let now_ms = self.now_ms();
        let tool = call.envelope.tool_name.clone();
        Approval {
            id: self.new_id(),
            request: ApprovalRequest {
                tier: need.tier,
                gate: need.gate,
                reasons: need.reasons.clone(),
                grants: need.grants.clone(),
                digest: digest_of(&call.envelope),
                envelope: call.envelope.clone(),
                hook_key: call.hook_key.clone(),
                agent: call.session.agent_id.clone(),
                origin_session: call.session.session_id.clone(),
                asked_session: route.asked_session.clone(),
                channel: route.channel.clone(),
                workspace_root: call.session.workspace_root.clone(),
                requested_at_ms: now_ms,
                expires_at_ms: now_ms.saturating_add(self.config.now().wait_ms(&tool)),
                tool,
            },
            state: ApprovalState::Pending,
            undelivered: None,
            wanted_by: None,
        }
    }

    async fn create(
        &self,
        call: &Call,
        need: &Need,
        route: &ApprovalRoute,
        group: String,
        guard: &mut Withdraw,
    ) -> Result<Seen, AnswerError> {
        let mut approval = self.draft(call, need, route);
        let kept_until_ms = approval
            .request
            .expires_at_ms
            .saturating_add(APPROVAL_KEPT_MS);
        loop {
            let new = NewDocument {
                kind: KIND.to_owned(),
                id: approval.id.clone(),
                group: group.clone(),
                body: json!(approval),
                expires_at_ms: Some(kept_until_ms),
            };
            let document = Document::first(&new, self.now_ms());
            let mut seen = Seen { approval, document };
            self.mark_open(&seen.approval).await?;
            guard.watch(&seen);
            let Created::New(document) = self.store.create(new).await? else {
                // Somebody has this id already.
                guard.stand_down();
                approval = seen.approval;
                approval.id = self.new_id();
                continue;
            };
            seen.document = document;
            guard.watch(&seen);
            let approval = &seen.approval;
            let request = &approval.request;
            self.record(
                "approval.requested",
                json!({"approval": approval.id, "tool": request.tool, "tier": request.tier,
                       "gate": request.gate, "reasons": request.reasons, "digest": request.digest,
                       "arguments": request.envelope.payload.params,
                       "request": request.envelope.request_id,
                       "actor": request.envelope.target.actor_id,
                       "session": request.origin_session, "asked": request.asked_session,
                       "channel": request.channel, "workspace": request.workspace_root,
                       "expiresAtMs": request.expires_at_ms}),
            )
            .await?;
            return Ok(seen);
        }
    }

    /// Takes one step, if the request still stands as it was seen.
    pub(super) async fn advance(
        &self,
        seen: &Seen,
        action: Action<'_>,
    ) -> StoreResult<Result<Approval, Lost>> {
        let next = match step(&seen.approval, action, self.now_ms()) {
            Ok(state) => ended_small(Approval {
                state,
                ..seen.approval.clone()
            }),
            Err(why) => return Ok(Err(Lost::Refused(why))),
        };
        let change = Replacement::of(&seen.document, json!(next));
        let replaced = self.store.replace(change).await?;
        self.changed.notify_waiters();
        if is_over(&next) && matches!(replaced, Replaced::Done(_)) {
            self.no_longer_open(&next.id).await;
        }
        Ok(match replaced {
            Replaced::Done(_) => Ok(next),
            Replaced::Changed(document) => Err(Lost::Changed(Box::new(self.known(document)?))),
            Replaced::Gone => Err(Lost::Gone),
        })
    }

    /// Short enough to be typed. Not a secret: an answer needs more than the id.
    fn new_id(&self) -> String {
        let random = self.runtime.entropy.next_u64();
        (0..ID_CHARS)
            .map(|place| {
                let at = (random >> (5 * place)) & 31;
                char::from(*ID_ALPHABET.get(at as usize).unwrap_or(&b'0'))
            })
            .collect()
    }
}

/// Why a step was not taken.
#[derive(Debug)]
pub(super) enum Lost {
    /// The rules say no.
    Refused(Refused),
    /// It has changed meanwhile.
    Changed(Box<Seen>),
    /// It is not there any more.
    Gone,
}

/// Whether no call can come to run on it, whatever the time.
pub(super) fn is_over(approval: &Approval) -> bool {
    !matches!(
        approval.state,
        ApprovalState::Pending | ApprovalState::Approved { .. }
    )
}

/// A request that is over is only looked at: large arguments go, their digest stays. Nobody can go on
/// with it.
pub(super) fn ended_small(mut approval: Approval) -> Approval {
    let is_over = is_over(&approval);
    if is_over {
        approval.wanted_by = None;
    }
    let params = &mut approval.request.envelope.payload.params;
    if is_over && params.to_string().len() > ENDED_ARGUMENTS_BYTES_MAX {
        *params = json!({"leftOut": format!("{} bytes", params.to_string().len())});
    }
    approval
}

pub(super) fn read(document: Document) -> StoreResult<Seen> {
    match serde_json::from_value(document.body.clone()) {
        Ok(approval) => Ok(Seen { approval, document }),
        Err(error) => {
            let id = &document.id;
            let why = format!("the approval {id} can not be read: {error}");
            Err(StoreError::Unavailable(why))
        }
    }
}

fn parse<T: serde::de::DeserializeOwned>(body: Value) -> StoreResult<T> {
    serde_json::from_value(body)
        .map_err(|error| StoreError::Unavailable(format!("a rule can not be read: {error}")))
}
