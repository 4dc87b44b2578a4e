//! From a call to the claim it makes.

use std::borrow::Cow;
use std::sync::Arc;

use holdfast_contract::DedupeMode;

use super::key::{
    Identity, KeyParts, KeySource, Place, Scope, content_key, identity_of, stored_key,
};
use super::record::RecordRequest;
use super::repeated;
use super::transition::{ClaimRequest, ContentLookup, Hold, Lifetimes, OnRetriableFailure};
use crate::call::Call;
use crate::canonical::{CanonicalOptions, Digest, FieldNames, Whitespace, digest, is_collapsed};
use crate::policy::{DeriveKeys, Mode, Repeats};
use crate::retry::RepeatSafety;
use crate::runtime::Runtime;

/// Lease of a call that waits for a person's answer; from its start on it has its tool's.
pub const HELD_LEASE_MS_MAX: u64 = 15_000;

/// What is known about a call's key before it is claimed.
pub(super) struct Derived {
    pub(super) wish: ClaimRequest,
    pub(super) key: DerivedKey,
}

/// Where its key comes from.
pub(super) enum DerivedKey {
    /// The caller or a hook gave it.
    Given(String),
    /// It was computed from the call's place in a run or turn, and its content.
    Computed,
    /// It was computed from the id of the request alone.
    Request,
}

/// The call's key and claim, or `None` when it is not deduplicated.
pub(super) fn derive(call: &mut Call, mode: Mode, runtime: &Runtime) -> Option<Derived> {
    if !is_keyed(call, runtime) {
        return None;
    }
    let exact = call.take_canonical().digest();
    Some(derive_with(call, exact, mode, runtime))
}

fn is_keyed(call: &Call, runtime: &Runtime) -> bool {
    call.envelope.transport.dedupe_mode != DedupeMode::Disabled
        && (!call.is_unnamed() || runtime.switches.derive_keys() == DeriveKeys::On)
}

fn derive_with(call: &Call, exact: Digest, mode: Mode, runtime: &Runtime) -> Derived {
    let envelope = &call.envelope;
    let given = envelope.payload.idempotency_key.as_deref();
    let hook = call.hook_key.as_deref();
    let policy = &call.policy;
    let parts = parts_of(call, mode);
    let is_computed = given.is_none() && hook.is_none();
    // A caller's key is compared with the exact arguments only.
    let may_collapse =
        policy.whitespace == Whitespace::Collapse || policy.collapse_fields != FieldNames::EMPTY;
    let identifying = if is_computed && may_collapse {
        collapsed_digest(call).unwrap_or(exact)
    } else {
        exact
    };
    let identity = identity(call);
    let source = KeySource::choose(given, hook, identity, identifying);
    // A caller that names its intents means each of them; only unnamed ones can be echoes.
    let content = match (&source, policy.content_windows) {
        (KeySource::Computed { .. }, Some(windows)) => Some(ContentLookup {
            key: content_key(&parts, identifying),
            unknown_window_ms: windows.unknown_ms,
            echo_window_ms: windows.echo_ms,
        }),
        _ => None,
    };
    let key = match (given.or(hook), identity) {
        (Some(key), _) => DerivedKey::Given(key.to_owned()),
        (None, Identity::Step(..)) => DerivedKey::Computed,
        (None, Identity::Request(_)) => DerivedKey::Request,
    };
    // A layer that only watches holds nothing up, so there is nothing to begin.
    let waits = call.waits_for_approval() || call.resumes.is_some();
    let hold = if mode == Mode::Enforce && waits {
        Hold::Held
    } else {
        Hold::None
    };
    let wish = ClaimRequest {
        key: stored_key(&parts, &source),
        content,
        tool: call.policy.tool.clone(),
        idempotency_key: match given.or(hook) {
            Some(key) => Cow::Owned(key.to_owned()),
            None => Cow::Borrowed("computed"),
        },
        request: Arc::new(RecordRequest {
            session_key: repeated::session(&envelope.target.session_key),
            workspace_id: envelope
                .target
                .workspace_id
                .as_deref()
                .map(repeated::workspace),
            actor_id: repeated::actor(&envelope.target.actor_id),
            request_id: envelope.request_id.clone(),
            tool_call_id: envelope.tool_call_id.clone(),
            params_digest: exact,
            shadow: mode == Mode::Shadow,
        }),
        owner: runtime.token(),
        lifetimes: while_it_waits(policy.lifetimes, hold),
        repeat: repeat_safety_with(call, Keyed::Yes),
        on_retriable_failure: if envelope.transport.dedupe_mode == DedupeMode::BestEffort {
            OnRetriableFailure::RunAgain
        } else {
            OnRetriableFailure::Replay
        },
        hold,
    };
    Derived { wish, key }
}

/// A call that waits ran nothing, so it can be given up on soon; and whoever asks the same waits
/// until it is.
fn while_it_waits(lifetimes: Lifetimes, hold: Hold) -> Lifetimes {
    match hold {
        Hold::None => lifetimes,
        Hold::Held => Lifetimes {
            lease_ms: lifetimes.lease_ms.min(HELD_LEASE_MS_MAX),
            ..lifetimes
        },
    }
}

/// Whether a call may be repeated when nobody knows how it ended.
pub(crate) fn repeat_safety(call: &Call) -> RepeatSafety {
    let keyed = match call.stored_key {
        Some(_) => Keyed::Yes,
        // No deduplication, or no store: the downstream can not tell a repeat from a new call.
        None => Keyed::No,
    };
    repeat_safety_with(call, keyed)
}

/// Whether a call that is given up on may be made anew when nobody knows how it ended. A downstream
/// that honours keys knows a repeat by its key, and who asks again later comes with another.
pub(crate) fn safety_when_given_up(call: &Call) -> RepeatSafety {
    repeat_safety_with(call, Keyed::No)
}

/// Whether the effect of a call that is given up on may have happened, and would happen again.
pub(crate) fn ends_in_doubt(call: &Call) -> bool {
    call.started.may_have_effect() && safety_when_given_up(call) == RepeatSafety::Unsafe
}

/// Whether the tool is handed a key.
enum Keyed {
    Yes,
    No,
}

fn repeat_safety_with(call: &Call, keyed: Keyed) -> RepeatSafety {
    let vouched = call.envelope.hints().expected_retry_safe == Some(true);
    match (call.policy.repeats, keyed) {
        (Repeats::Harmless, _) | (Repeats::HarmlessWithKey, Keyed::Yes) => RepeatSafety::Safe,
        _ if vouched => RepeatSafety::Safe,
        (Repeats::HarmlessWithKey, Keyed::No) | (Repeats::Harmful, _) => RepeatSafety::Unsafe,
    }
}

pub(super) fn parts_of(call: &Call, mode: Mode) -> KeyParts<'_> {
    let envelope = &call.envelope;
    KeyParts {
        scope: if mode == Mode::Shadow {
            Scope::SHADOW
        } else {
            call.policy.scope
        },
        tenant: envelope.target.tenant_id.as_deref(),
        workspace: envelope.target.workspace_id.as_deref(),
        namespace: &envelope.tool_namespace,
        tool: &envelope.tool_name,
        session: &envelope.target.session_key,
        actor: &envelope.target.actor_id,
    }
}

/// Whether a call is known by its id within a turn or run. Servers reuse those.
pub(crate) fn is_known_by_call_id(call: &Call) -> bool {
    let place = identity(call);
    call.is_unnamed() && matches!(place, Identity::Step(_, Place::ToolCall(_)))
}

fn identity(call: &Call) -> Identity<'_> {
    let envelope = &call.envelope;
    identity_of(
        envelope.target.run_id.as_deref(),
        envelope.target.turn_id.as_deref(),
        envelope.payload.tool_step,
        envelope.tool_call_id.as_deref(),
        &envelope.request_id,
    )
}

/// The digest with whitespace collapsed; `None` when there is nothing to collapse.
fn collapsed_digest(call: &Call) -> Option<Digest> {
    let params = &call.envelope.payload.params;
    if is_collapsed(params) {
        return None;
    }
    let policy = &call.policy;
    let options = CanonicalOptions {
        volatile_fields: &policy.volatile_fields,
        whitespace: policy.whitespace,
        exact_fields: &policy.exact_fields,
        collapse_fields: &policy.collapse_fields,
        ..CanonicalOptions::EXACT
    };
    Some(digest(params, &options))
}
