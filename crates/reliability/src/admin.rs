//! What an operator sees of records and breakers, and how one is named.
//!
//! The command line and the HTTP server show and find the same things the same way.

use holdfast_contract::redact::Redactor;
use serde_json::{Value, json};

use crate::breaker::{BreakerKey, BreakerPolicy, BreakerState, BreakerStore, BreakerTarget};
use crate::idempotency::key::StoredKey;
use crate::idempotency::record::{DedupeRecord, SharedRecord};
use crate::store::{DedupeStore, RecordFilter, StoreResult};

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

/// What a name for a record leads to.
#[derive(Debug, Clone)]
pub enum FoundRecord {
    /// One record.
    One(SharedRecord),
    /// Nothing.
    Nothing,
    /// More than one; the first two of them.
    Several(SharedRecord, SharedRecord),
}

/// Finds a record by its stored key, the beginning of it, or the key that the caller gave.
pub async fn find_record(store: &dyn DedupeStore, key: &str) -> StoreResult<FoundRecord> {
    if let Ok(stored) = key.parse::<StoredKey>()
        && let Some(record) = store.get(&stored).await?
    {
        return Ok(FoundRecord::One(record));
    }
    let is_prefix = key.len() >= KEY_PREFIX_MIN && key.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut found = Vec::new();
    if is_prefix {
        let filter = RecordFilter {
            key_prefix: Some(key.to_owned()),
            limit: Some(2),
            ..RecordFilter::default()
        };
        found = store.list(&filter).await?;
    }
    if found.is_empty() {
        // The caller's own key is no column: it is looked for in all records.
        found = store.list(&RecordFilter::default()).await?;
        found.retain(|record| record.idempotency_key == key);
    }
    let mut found = found.into_iter();
    Ok(match (found.next(), found.next()) {
        (Some(record), None) => FoundRecord::One(record),
        (None, _) => FoundRecord::Nothing,
        (Some(first), Some(second)) => FoundRecord::Several(first, second),
    })
}

/// A breaker for eyes. Cooldowns differ by class and tool; this is the standard one's view.
pub fn breaker_view(key: &BreakerKey, state: &BreakerState, now_ms: u64) -> Value {
    let snapshot = state.snapshot(&BreakerPolicy::standard(), now_ms);
    let mut value = serde_json::to_value(snapshot).unwrap_or_default();
    value["key"] = json!(key.to_string());
    value
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
