//! A claim as the tests of this folder make it.

use std::sync::Arc;

use super::key::StoredKey;
use super::record::RecordRequest;
use super::transition::{ClaimRequest, Hold, Lifetimes, OnRetriableFailure};
use crate::canonical::Digest;
use crate::retry::RepeatSafety;

/// The lease of a claim that says nothing else.
pub(super) const LEASE_MS: u64 = 1_000;

pub(super) fn lifetimes(lease_ms: u64) -> Lifetimes {
    Lifetimes {
        lease_ms,
        ..Lifetimes::default()
    }
}

pub(super) fn wish(key: u8, owner: &str) -> ClaimRequest {
    ClaimRequest {
        key: StoredKey::from_bytes([key; 32]),
        content: None,
        tool: "message".into(),
        idempotency_key: "computed".into(),
        request: Arc::new(RecordRequest {
            session_key: "session".into(),
            workspace_id: None,
            actor_id: "actor".into(),
            request_id: "request".to_owned(),
            tool_call_id: None,
            params_digest: Digest::of(b"digest"),
            shadow: false,
        }),
        owner: owner.into(),
        lifetimes: lifetimes(LEASE_MS),
        repeat: RepeatSafety::Unsafe,
        on_retriable_failure: OnRetriableFailure::Replay,
        hold: Hold::None,
    }
}
