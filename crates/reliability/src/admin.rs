//! What an operator sees of records and breakers, and how one is named.
//!
//! The command line and the HTTP server show and find the same things the same way.

use holdfast_contract::redact::Redactor;
use serde_json::{Value, json};

use crate::breaker::{BreakerKey, BreakerPolicy, BreakerState, BreakerStore, BreakerTarget};
use crate::idempotency::key::StoredKey;
use crate::idempotency::record::{DedupeRecord, SharedRecord};
use crate::store::{DedupeStore, Listing, RecordFilter, StoreResult, UnreadRecord};

/// The shortest prefix of a stored key that is taken for one.
pub const KEY_PREFIX_MIN: usize = 6;

/// Whether a view of a record holds its output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Payload {
    /// Redacted like the rest.
    Shown,
    /// Left out.
    Hidden,
}

/// A record for eyes: redacted, and without its output unless asked for.
pub fn record_view(record: &DedupeRecord, redactor: &Redactor, payload: Payload) -> Value {
    let mut value = serde_json::to_value(record).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        // The owner's token would let anybody settle the claim.
        fields.remove("owner");
        if payload == Payload::Hidden {
            fields.remove("payload");
        }
    }
    redactor.redact_value_in_place(&mut value);
    // Digests and keys look like secrets to a redactor and are none.
    value["key"] = json!(record.key.to_string());
    value["request"]["paramsDigest"] = json!(record.request.params_digest);
    value
}

/// A record that can not be read, for eyes: what is known of it in the places of [`record_view`], and
/// `unreadable` says why there is no more.
pub fn unread_view(unread: &UnreadRecord, redactor: &Redactor) -> Value {
    let mut value = json!({
        "tool": unread.tool,
        "state": unread.state,
        "request": {"sessionKey": unread.session},
        "updatedAtMs": unread.updated_at_ms,
        "expiresAtMs": unread.expires_at_ms,
        "unreadable": unread.why,
    });
    redactor.redact_value_in_place(&mut value);
    value["key"] = json!(unread.key.to_string());
    value
}

/// What a name for a record leads to.
#[derive(Debug, Clone)]
pub enum FoundRecord {
    /// One record.
    One(SharedRecord),
    /// One record, which can not be read.
    Unread(UnreadRecord),
    /// Nothing.
    Nothing,
    /// More than one; the first two of them.
    Several(SharedRecord, SharedRecord),
    /// More than one, and not all of them can be read; two of them.
    SeveralUnread(StoredKey, StoredKey),
}

/// Finds a record by its stored key, the beginning of it, or the key that the caller gave.
pub async fn find_record(store: &dyn DedupeStore, key: &str) -> StoreResult<FoundRecord> {
    if let Ok(stored) = key.parse::<StoredKey>()
        && let Ok(Some(record)) = store.get(&stored).await
    {
        return Ok(FoundRecord::One(record));
    }
    // Where it is there and can not be read, its place still tells of it.
    let is_prefix = key.len() >= KEY_PREFIX_MIN && key.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut found = Listing::default();
    if is_prefix {
        let filter = RecordFilter {
            key_prefix: Some(key.to_owned()),
            limit: Some(2),
            ..RecordFilter::default()
        };
        found = store.listing(&filter).await?;
    }
    if found.records.is_empty() && found.unread.is_empty() {
        found = store.given(key, 2).await?;
    }
    Ok(match (found.records.as_slice(), found.unread.as_slice()) {
        ([], []) => FoundRecord::Nothing,
        ([one], []) => FoundRecord::One(one.clone()),
        ([], [one]) => FoundRecord::Unread(one.clone()),
        ([first, second, ..], _) => FoundRecord::Several(first.clone(), second.clone()),
        ([first], [second, ..]) => FoundRecord::SeveralUnread(first.key, second.key),
        ([], [first, second, ..]) => FoundRecord::SeveralUnread(first.key, second.key),
    })
}

/// A breaker for eyes. An open one tells its own cooldown; the rest is the standard policy's view.
pub fn breaker_view(key: &BreakerKey, state: &BreakerState, now_ms: u64) -> Value {
    let snapshot = state.snapshot(&BreakerPolicy::standard(), now_ms);
    let mut value = serde_json::to_value(snapshot).unwrap_or_default();
    value["key"] = json!(key.to_string());
    value
}

/// All breakers that a name stands for: a breaker's own key, or a tool with the parts of what it reaches.
pub async fn find_breakers(store: &dyn BreakerStore, name: &str) -> StoreResult<Vec<BreakerKey>> {
    if let Ok(key) = name.parse::<BreakerKey>() {
        return Ok(vec![key]);
    }
    let known = store.breakers().await?.into_iter().map(|(key, _)| key);
    let is_of_tool = |key: &BreakerKey| {
        let tool = match key.target() {
            BreakerTarget::Tool { name: tool, .. } | BreakerTarget::Part { tool, .. } => Some(tool),
            BreakerTarget::Dependency { .. } | BreakerTarget::Global => None,
        };
        key.context().is_empty() && tool.is_some_and(|tool| tool == name)
    };
    Ok(known.filter(is_of_tool).collect())
}

/// A breaker's own key, or the name of a tool whose breaker is known.
pub async fn find_breaker(store: &dyn BreakerStore, name: &str) -> StoreResult<Option<BreakerKey>> {
    if let Ok(key) = name.parse::<BreakerKey>() {
        return Ok(Some(key));
    }
    let known = store.breakers().await?;
    Ok(known.into_iter().map(|(key, _)| key).find(|key| {
        key.context().is_empty()
            && matches!(key.target(), BreakerTarget::Tool { name: tool, .. } if tool == name)
    }))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use holdfast_contract::SystemClock;

    use super::*;
    use crate::breaker::BreakerOp;
    use crate::store::memory::MemoryBreakerStore;

    #[tokio::test]
    async fn a_tools_name_stands_for_its_parts_too() {
        let store = MemoryBreakerStore::new(Arc::new(SystemClock));
        let keys = [
            BreakerKey::part("web_fetch", 3),
            BreakerKey::part("web_fetch", 18),
            BreakerKey::tool("web", "web_fetch"),
            BreakerKey::part("web_search", 3),
            BreakerKey::tool("web", "web_fetch").in_context(BreakerKey::SHADOW),
        ];
        for key in &keys {
            let reason = "maintenance".to_owned();
            let op = BreakerOp::ForceOpen { reason };
            let policy = BreakerPolicy::standard();
            let _ = store.apply(key, op, &policy).await.unwrap();
        }
        let found = find_breakers(&store, "web_fetch").await.unwrap();
        let mut expected = keys[..3].to_vec();
        expected.sort();
        assert_eq!(found, expected);
        let one = find_breakers(&store, "part:web_fetch/3").await.unwrap();
        assert_eq!(one, keys[..1]);
        assert!(find_breakers(&store, "nothing").await.unwrap().is_empty());
    }
}
