//! A request for a person's answer, and the rules that answers make.

use std::borrow::Cow;
use std::path::PathBuf;

use holdfast_contract::redact::{Hidden, Redactor};
use holdfast_contract::{
    ApprovalPrompt, Audience, Gate, Need, PathGrant, PermissionTier, Reason, Scope, SessionContext,
    Shown, ToolCallEnvelope, visible,
};
use holdfast_reliability::canonical::{CanonicalOptions, Digest, write_canonical};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Where a request stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    tag = "state",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
pub enum ApprovalState {
    /// Nobody has answered.
    Pending,
    /// A person said yes, and the call has not started.
    Approved {
        /// How far the answer reaches.
        scope: Scope,
        /// Who.
        by: String,
        /// When.
        at_ms: u64,
        /// From then on it counts for nothing.
        use_by_ms: u64,
    },
    /// The call was started on it. Nothing else ever is.
    Used {
        /// Who approved.
        by: String,
        /// When it was started.
        at_ms: u64,
    },
    /// A person said no.
    Denied {
        /// Who.
        by: String,
        /// When.
        at_ms: u64,
        /// Why, when the person said so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Nobody answered in time, which means no.
    Expired {
        /// When.
        at_ms: u64,
    },
    /// The caller went away.
    Withdrawn {
        /// When.
        at_ms: u64,
    },
}

impl ApprovalState {
    /// The word for it.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved { .. } => "approved",
            Self::Used { .. } => "used",
            Self::Denied { .. } => "denied",
            Self::Expired { .. } => "expired",
            Self::Withdrawn { .. } => "withdrawn",
        }
    }
}

/// What a person is asked, captured when the call asked for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalRequest {
    /// The tool.
    pub tool: String,
    /// The tier the call needs.
    pub tier: PermissionTier,
    /// How strictly it is asked for.
    pub gate: Gate,
    /// Why.
    pub reasons: Vec<Reason>,
    /// Paths that come with the answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<PathGrant>,
    /// Over the tool and its exact arguments; checked again when the call starts.
    pub digest: String,
    /// The whole call, as it passed the hooks.
    pub envelope: ToolCallEnvelope,
    /// The key a hook gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook_key: Option<String>,
    /// The agent.
    pub agent: String,
    /// The session the call comes from.
    pub origin_session: String,
    /// The session whose people are asked.
    pub asked_session: String,
    /// The channel they are asked on.
    pub channel: String,
    /// Where the call works.
    pub workspace_root: PathBuf,
    /// When it asked.
    pub requested_at_ms: u64,
    /// When silence becomes "no".
    pub expires_at_ms: u64,
}

impl ApprovalRequest {
    /// Who asked for what.
    pub fn subject(&self) -> Subject<'_> {
        Subject {
            tool: &self.tool,
            session: &self.origin_session,
            actor: &self.envelope.target.actor_id,
            agent: &self.agent,
            workspace_root: &self.workspace_root,
            digest: &self.digest,
        }
    }
}

/// A request and where it stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    /// What to name in an answer.
    pub id: String,
    /// What is asked.
    pub request: ApprovalRequest,
    /// Where it stands.
    #[serde(flatten)]
    pub state: ApprovalState,
    /// Why nobody was shown the request on its channel, when nobody was: then it waits for whoever
    /// looks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undelivered: Option<String>,
    /// A call like it, which asks whether the asker of this one lives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted_by: Option<Wanted>,
}

/// The mark of a call that would go on with a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Wanted {
    /// The call's key.
    pub key: String,
    /// When it last said so, by the store's time where it has one.
    pub at_ms: u64,
}

impl Approval {
    /// Where it stands now: a request nobody answered in time has expired, whether or not
    /// anybody has written that down.
    pub fn state_at(&self, now_ms: u64) -> ApprovalState {
        match &self.state {
            ApprovalState::Pending if self.request.expires_at_ms <= now_ms => {
                ApprovalState::Expired {
                    at_ms: self.request.expires_at_ms,
                }
            }
            ApprovalState::Approved { use_by_ms, .. } if *use_by_ms <= now_ms => {
                ApprovalState::Expired { at_ms: *use_by_ms }
            }
            state => state.clone(),
        }
    }

    /// Whether a call can still come to run on it.
    pub fn is_open(&self, now_ms: u64) -> bool {
        matches!(
            self.state_at(now_ms),
            ApprovalState::Pending | ApprovalState::Approved { .. }
        )
    }

    /// The request as programs see it that show it to such people.
    pub fn view(&self, audience: Audience, redactor: &Redactor, now_ms: u64) -> Value {
        let state = self.state_at(now_ms);
        let mut value = json!(self.prompt(audience, redactor));
        value["state"] = json!(state.as_str());
        value["detail"] = json!(state);
        value["digest"] = json!(self.request.digest);
        value["requestId"] = json!(self.request.envelope.request_id);
        value["askedSession"] = json!(self.request.asked_session);
        value["channel"] = json!(self.request.channel);
        value["requestedAtMs"] = json!(self.request.requested_at_ms);
        if let Some(why) = &self.undelivered {
            value["undelivered"] = json!(why);
        }
        // The prompt's own fields are to be seen already; what stands beside them is shown as well.
        for field in [
            "detail",
            "requestId",
            "askedSession",
            "channel",
            "undelivered",
        ] {
            if let Some(shown) = value.get_mut(field) {
                show_every_sign(shown);
            }
        }
        value
    }

    /// What such people see. Whoever answers sees what runs: nothing is left out because of what it
    /// looks like, since a call can be written so that its worst part looks like a secret.
    pub fn prompt(&self, audience: Audience, redactor: &Redactor) -> ApprovalPrompt {
        let request = &self.request;
        let mut arguments = request.envelope.payload.params.clone();
        let hidden = match audience {
            Audience::Approver => Hidden::Nothing,
            Audience::Readers => redactor.hide_known_in(&mut arguments),
        };
        let text = |text: &str| match audience {
            Audience::Approver => visible::line(text).into_owned(),
            Audience::Readers => visible::line(&redactor.hide_known(text)).into_owned(),
        };
        let reason = |reason: &Reason| Reason {
            code: reason.code.clone(),
            subject: text(&reason.subject),
            text: text(&reason.text),
            // For comparing, and nothing that helps a person.
            digest: None,
        };
        ApprovalPrompt {
            id: self.id.clone(),
            tool: text(&request.tool),
            tier: request.tier,
            gate: request.gate,
            arguments: visible::json(&arguments),
            shown: match hidden {
                Hidden::Nothing => Shown::Whole,
                Hidden::Something => Shown::Partly,
            },
            reasons: request.reasons.iter().map(reason).collect(),
            origin_session: text(&request.origin_session),
            actor: text(&request.envelope.target.actor_id),
            workspace: text(&request.workspace_root.display().to_string()),
            expires_at_ms: request.expires_at_ms,
            code: None,
        }
    }
}

/// Spells out what a person would not see in the texts of a flat value.
fn show_every_sign(value: &mut Value) {
    let show = |text: &mut String| {
        if let Cow::Owned(seen) = visible::line(text) {
            *text = seen;
        }
    };
    match value {
        Value::String(text) => show(text),
        Value::Object(members) => {
            for member in members.values_mut() {
                if let Value::String(text) = member {
                    show(text);
                }
            }
        }
        _ => {}
    }
}

/// Later calls that an answer covers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rule {
    /// What to name to revoke it.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// The reasons it covers: a call with any other reason is asked about.
    pub reasons: Vec<Reason>,
    /// Only this session, for an answer that was for the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Only this actor.
    pub actor: String,
    /// Only this agent.
    pub agent: String,
    /// Only in this workspace.
    pub workspace_root: PathBuf,
    /// The request whose answer made it.
    pub from_approval: String,
    /// Who answered.
    pub by: String,
    /// When.
    pub at_ms: u64,
}

impl Rule {
    /// Whether it covers a call. Never one behind a strict gate.
    pub fn covers(&self, asked: &Subject<'_>, need: &Need) -> bool {
        need.gate != Gate::Strict
            && self.tool == asked.tool
            && self.actor == asked.actor
            && self.agent == asked.agent
            && self.workspace_root == asked.workspace_root
            && self
                .session
                .as_ref()
                .is_none_or(|session| session == asked.session)
            && need
                .reasons
                .iter()
                .all(|reason| self.reasons.iter().any(|known| known.covers(reason)))
    }
}

/// Who asks for what, as far as rules and denials care.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The tool.
    pub tool: &'a str,
    /// The session.
    pub session: &'a str,
    /// The actor.
    pub actor: &'a str,
    /// The agent.
    pub agent: &'a str,
    /// Where it works.
    pub workspace_root: &'a std::path::Path,
    /// Over the tool and its exact arguments.
    pub digest: &'a str,
}

impl<'a> Subject<'a> {
    /// Who asks for what in a call whose arguments have this digest.
    pub fn of(
        envelope: &'a ToolCallEnvelope,
        session: &'a SessionContext,
        digest: &'a str,
    ) -> Self {
        Self {
            tool: &envelope.tool_name,
            session: &session.session_id,
            actor: &envelope.target.actor_id,
            agent: &session.agent_id,
            workspace_root: &session.workspace_root,
            digest,
        }
    }

    /// Names the identical call: whoever repeats it after a "no" gets the same "no".
    pub fn fingerprint(&self) -> String {
        let whole = json!([
            self.tool,
            self.session,
            self.actor,
            self.agent,
            self.workspace_root,
            self.digest
        ]);
        Digest::of(whole.to_string().as_bytes()).to_string()
    }
}

/// The digest of a tool and its exact arguments.
pub fn digest_of(envelope: &ToolCallEnvelope) -> String {
    digest_of_value(&json!([
        envelope.tool_namespace,
        envelope.tool_name,
        envelope.payload.params
    ]))
}

/// The digest of a value, however it was written down.
pub(crate) fn digest_of_value(value: &Value) -> String {
    let mut canonical = Vec::new();
    write_canonical(value, &CanonicalOptions::EXACT, &mut canonical);
    Digest::of(&canonical).to_string()
}
