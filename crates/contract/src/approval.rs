//! What a call needs before it may run, and how a person is asked for it.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool::PermissionTier;

/// How strictly a person stands between a call and its tool.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum Gate {
    /// Nobody is asked.
    None,
    /// Somebody is told, and the call runs.
    Advisory,
    /// The call waits for an answer, which may also cover later calls like it.
    Required,
    /// The call waits for an answer, which covers this call alone.
    Strict,
}

impl Gate {
    /// Whether the call waits for an answer.
    pub fn waits(self) -> bool {
        self >= Self::Required
    }
}

/// Why a call needs more than its tool's declared tier, or a person's answer.
///
/// The code, the subject and the digest together are what an answer for later calls covers; the
/// text is for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Reason {
    /// The rule, for example `outside_workspace`.
    pub code: String,
    /// What the rule found: a path, a command, a tool.
    pub subject: String,
    /// One sentence for people.
    pub text: String,
    /// Over what the subject does not say: the part of it that was cut off, where it happens, the
    /// arguments. Only an equal one is covered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

impl Reason {
    /// A reason whose subject says all.
    pub fn new(code: &str, subject: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            code: code.to_owned(),
            subject: subject.into(),
            text: text.into(),
            digest: None,
        }
    }

    /// The same reason, bound to what its subject does not say.
    #[must_use]
    pub fn bound_to(mut self, digest: impl Into<String>) -> Self {
        self.digest = Some(digest.into());
        self
    }

    /// Whether an answer that covered `self` also covers `other`.
    pub fn covers(&self, other: &Self) -> bool {
        self.code == other.code && self.subject == other.subject && self.digest == other.digest
    }
}

/// One path outside the workspace that an approved call may touch, and nothing beside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PathGrant {
    /// The argument as it was written.
    pub asked: String,
    /// The nearest directory above it that exists, by its real name.
    pub root: PathBuf,
    /// The rest of the path beneath it.
    pub relative: PathBuf,
}

/// What a tool says about one call's arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TierVerdict {
    /// The tier this call needs: the declared one, or a higher one.
    pub tier: PermissionTier,
    /// Why it is higher.
    pub reasons: Vec<Reason>,
    /// Why it is higher, where an answer covers later calls with the very same arguments only.
    pub exact: Vec<Reason>,
    /// Why it is higher where the workspace's state is not kept, so that nothing can be undone.
    pub unless_undone: Vec<Reason>,
    /// Paths the call needs besides the workspace, to be granted with the approval.
    pub grants: Vec<PathGrant>,
    /// What nobody can approve: the call reaches for what guards the calls.
    pub forbidden: Option<Reason>,
}

impl TierVerdict {
    /// The declared tier, with nothing to add.
    pub fn declared(tier: PermissionTier) -> Self {
        Self {
            tier,
            reasons: Vec::new(),
            exact: Vec::new(),
            unless_undone: Vec::new(),
            grants: Vec::new(),
            forbidden: None,
        }
    }

    /// Raises the tier to Elevated, for a reason that says too little of the call for an answer to
    /// cover another one.
    pub fn raise_exact(&mut self, reason: Reason) {
        self.tier = PermissionTier::Elevated;
        if !self.exact.iter().any(|known| known.covers(&reason)) {
            self.exact.push(reason);
        }
    }

    /// Every reason why it is higher.
    pub fn all_reasons(&self) -> impl Iterator<Item = &Reason> {
        self.reasons.iter().chain(&self.exact)
    }

    /// Raises the tier to Elevated, for a reason.
    pub fn raise(&mut self, reason: Reason) {
        self.tier = PermissionTier::Elevated;
        if !self.reasons.iter().any(|known| known.covers(&reason)) {
            self.reasons.push(reason);
        }
    }
}

/// What a call needs before it may start. Set by the permission layer, met by the approval layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// The tier.
    pub tier: PermissionTier,
    /// How strictly it is asked for.
    pub gate: Gate,
    /// Why.
    pub reasons: Vec<Reason>,
    /// Paths that come with the approval.
    pub grants: Vec<PathGrant>,
}

/// What an answer covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Scope {
    /// This call.
    Once,
    /// This call and later ones of its session with the same reasons.
    Session,
    /// This call and later ones of its agent and workspace with the same reasons: a rule that can
    /// be listed and revoked.
    Policy,
}

/// A person's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "answer", rename_all = "camelCase")]
pub enum Answer {
    /// Yes.
    Approve {
        /// How far it reaches.
        scope: Scope,
    },
    /// No.
    Deny {
        /// Why, when the person said so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

/// How much of a request is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Shown {
    /// Exactly what runs.
    Whole,
    /// Something is missing: a value that is known to be secret, what did not fit. It can not be
    /// answered from this.
    Partly,
}

/// A request as it is shown to a person. Every sign in it is to be seen: see
/// [`visible`](crate::visible).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalPrompt {
    /// What to name in the answer.
    pub id: String,
    /// The tool.
    pub tool: String,
    /// The tier.
    pub tier: PermissionTier,
    /// The gate: a strict one takes an answer for this call only.
    pub gate: Gate,
    /// The exact arguments as JSON on one line. Nothing is taken out for what it looks like.
    pub arguments: String,
    /// Whether that is all of them.
    pub shown: Shown,
    /// Why the person is asked.
    pub reasons: Vec<Reason>,
    /// The session the call comes from.
    pub origin_session: String,
    /// On whose behalf.
    pub actor: String,
    /// Where it would run.
    pub workspace: String,
    /// When silence becomes "no".
    pub expires_at_ms: u64,
    /// What a reply on a channel has to hold besides the id. Shown on channels, and nowhere else.
    #[serde(skip)]
    pub code: Option<String>,
}
