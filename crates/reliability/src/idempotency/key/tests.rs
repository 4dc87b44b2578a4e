use std::collections::HashSet;

use super::{
    Access, Identity, KeyParts, KeySource, Origin, Place, Scope, ToolStep, content_key,
    identity_of, stored_key,
};
use crate::canonical::Digest;

const PARTS: KeyParts<'static> = KeyParts {
    scope: Scope::SESSION,
    tenant: None,
    workspace: None,
    namespace: "agents.tools",
    tool: "message",
    session: "s1",
    actor: "a1",
};

fn caller(parts: &KeyParts<'_>) -> String {
    stored_key(parts, &KeySource::Caller("k")).to_string()
}

#[test]
fn every_part_separates_keys() {
    let variants = [
        PARTS,
        KeyParts {
            tenant: Some(""),
            ..PARTS
        },
        KeyParts {
            tenant: Some("x"),
            ..PARTS
        },
        KeyParts {
            workspace: Some(""),
            ..PARTS
        },
        KeyParts {
            workspace: Some("x"),
            ..PARTS
        },
        KeyParts {
            namespace: "agents.tools.m",
            tool: "essage",
            ..PARTS
        },
        KeyParts {
            namespace: "",
            ..PARTS
        },
        KeyParts { tool: "", ..PARTS },
        KeyParts {
            session: "s1a",
            actor: "1",
            ..PARTS
        },
        KeyParts {
            session: "",
            ..PARTS
        },
        KeyParts { actor: "", ..PARTS },
        KeyParts {
            scope: Scope::global(Access::ReadOnly).unwrap(),
            ..PARTS
        },
    ];
    let keys: HashSet<String> = variants.iter().map(caller).collect();
    assert_eq!(keys.len(), variants.len());
}

#[test]
fn a_global_key_is_shared_by_sessions_and_actors_but_not_tenants() {
    let global = KeyParts {
        scope: Scope::global(Access::ReadOnly).unwrap(),
        ..PARTS
    };
    let elsewhere = KeyParts {
        session: "s2",
        actor: "a2",
        ..global
    };
    assert_eq!(caller(&global), caller(&elsewhere));
    assert_ne!(
        caller(&global),
        caller(&KeyParts {
            tenant: Some("t"),
            ..global
        })
    );
}

#[test]
fn sources_never_collide() {
    let identity = Identity::Request("k");
    let keys = [
        stored_key(&PARTS, &KeySource::Caller("k")),
        stored_key(&PARTS, &KeySource::Hook("k")),
        stored_key(
            &PARTS,
            &KeySource::Computed {
                identity,
                params: Digest::of(b"k"),
            },
        ),
        content_key(&PARTS, Digest::of(b"k")),
    ];
    assert_eq!(keys.iter().collect::<HashSet<_>>().len(), keys.len());
}

#[test]
fn precedence_is_caller_then_hook_then_computed() {
    let identity = Identity::Request("r");
    let key = |caller, hook| {
        stored_key(
            &PARTS,
            &KeySource::choose(caller, hook, identity, Digest::of(b"{}")),
        )
    };
    assert_eq!(
        key(Some("c"), Some("h")),
        stored_key(&PARTS, &KeySource::Caller("c"))
    );
    assert_eq!(
        key(None, Some("h")),
        stored_key(&PARTS, &KeySource::Hook("h"))
    );
    let computed = KeySource::Computed {
        identity,
        params: Digest::of(b"{}"),
    };
    assert_eq!(key(None, None), stored_key(&PARTS, &computed));
}

#[test]
fn identity_prefers_run_and_step_and_needs_both_halves() {
    let step = ToolStep {
        iteration: 2,
        index: 0,
    };
    let run = Identity::Step(Origin::Run("r"), Place::Step(step));
    assert_eq!(
        identity_of(Some("r"), Some("t"), Some(step), Some("call_0"), "q"),
        run
    );
    let turn = Identity::Step(Origin::Turn("t"), Place::ToolCall("call_0"));
    assert_eq!(
        identity_of(Some(""), Some("t"), None, Some("call_0"), "q"),
        turn
    );
    let request = Identity::Request("q");
    assert_eq!(identity_of(None, None, None, Some("call_0"), "q"), request);
    assert_eq!(identity_of(None, None, Some(step), None, "q"), request);
    assert_eq!(
        identity_of(Some("r"), Some("t"), None, Some(""), "q"),
        request
    );
}

#[test]
fn a_new_intent_with_the_same_content_has_a_new_key() {
    let key = |identity| {
        let source = KeySource::Computed {
            identity,
            params: Digest::of(b"{}"),
        };
        stored_key(&PARTS, &source)
    };
    let at = |iteration| {
        Place::Step(ToolStep {
            iteration,
            index: 0,
        })
    };
    let identities = [
        Identity::Request("x"),
        Identity::Step(Origin::Run("x"), at(0)),
        Identity::Step(Origin::Run("x"), at(1)),
        Identity::Step(Origin::Turn("x"), at(0)),
        Identity::Step(Origin::Run("x"), Place::ToolCall("0")),
    ];
    let keys: HashSet<_> = identities.into_iter().map(key).collect();
    assert_eq!(keys.len(), identities.len());
}

#[test]
fn content_is_part_of_a_steps_key_and_not_of_a_requests() {
    let key = |identity, params: &[u8]| {
        let params = Digest::of(params);
        stored_key(&PARTS, &KeySource::Computed { identity, params })
    };
    let step = Identity::Step(Origin::Turn("t"), Place::ToolCall("call_0"));
    assert_ne!(key(step, b"a"), key(step, b"b"));
    let request = Identity::Request("r");
    assert_eq!(key(request, b"a"), key(request, b"b"));
}

/// Records outlive a release: if this changes, so must the version in the domain.
#[test]
fn the_layout_is_pinned() {
    let pinned = "d0eb28707305ab9b449c7b7fa12bbba97587a65a157263748f7bb79142476c41";
    assert_eq!(caller(&PARTS), pinned);
}

#[test]
fn text_and_serde_carry_the_whole_key_and_debug_does_not() {
    let key = content_key(&PARTS, Digest::of(b"{}"));
    assert_eq!(key.to_string().parse(), Ok(key));
    let json = serde_json::to_string(&key).unwrap();
    assert_eq!(json, format!("\"{key}\""));
    assert_eq!(
        serde_json::from_str::<super::StoredKey>(&json).unwrap(),
        key
    );
    assert!(!format!("{key:?}").contains(&key.to_string()));
}

#[test]
fn an_intent_and_its_content_are_of_one_family() {
    let key = stored_key(&PARTS, &KeySource::Caller("order-17"));
    assert_eq!(
        key.family(),
        content_key(&PARTS, Digest::of(b"{}")).family()
    );
    let elsewhere = KeyParts {
        session: "another",
        ..PARTS
    };
    let other = stored_key(&elsewhere, &KeySource::Caller("order-17"));
    assert_ne!(key.family(), other.family());
}
