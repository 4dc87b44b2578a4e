//! What an operator sees of records and breakers, and how one is named.
//!
//! The command line and the HTTP server show and find the same things the same way.

use holdfast_contract::redact::Redactor;
use serde_json::{Value, json};

use crate::breaker::{
    BreakerKey, BreakerOp, BreakerPolicy, BreakerState, BreakerStore, BreakerTarget, step,
};
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
fn breaker_view(key: &BreakerKey, state: &BreakerState, now_ms: u64) -> Value {
    let snapshot = state.snapshot(&BreakerPolicy::standard(), now_ms);
    let mut value = serde_json::to_value(snapshot).unwrap_or_default();
    value["key"] = json!(key.to_string());
    value["name"] = json!(key.called(state.names()));
    if !state.names().is_empty() {
        value["parts"] = json!(state.names());
    }
    value
}

/// A breaker that the configuration holds open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldOpen {
    /// Which one.
    pub key: BreakerKey,
    /// Why.
    pub reason: String,
}

impl HeldOpen {
    /// Whether calls that this breaker judges are refused by it.
    fn is_for(&self, key: &BreakerKey) -> bool {
        key.context().is_empty() && key.tool_name() == self.key.tool_name()
    }
}

/// All breakers for eyes: those that a store knows, and those that the configuration holds open,
/// whatever the store says of them.
pub fn breaker_views(
    known: &[(BreakerKey, BreakerState)],
    held: &[HeldOpen],
    now_ms: u64,
) -> Vec<Value> {
    let is_held = |key: &BreakerKey| held.iter().any(|it| it.key == *key);
    let known = known.iter().filter(|(key, _)| !is_held(key));
    let mut views: Vec<Value> = held
        .iter()
        .map(|it| {
            let mut state = BreakerState::default();
            let reason = it.reason.clone();
            let force = BreakerOp::ForceOpen { reason };
            let _ = step(&mut state, force, &BreakerPolicy::standard(), now_ms);
            let mut view = breaker_view(&it.key, &state, now_ms);
            // When that was written nobody knows.
            view["sinceMs"] = json!(0);
            view["heldBy"] = json!("configuration");
            view
        })
        .collect();
    views.extend(known.map(|(key, state)| breaker_view(key, state, now_ms)));
    views
}

/// A breaker that a name led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundBreaker {
    /// Its key.
    pub key: BreakerKey,
    /// What people call it.
    pub name: String,
}

impl From<BreakerKey> for FoundBreaker {
    fn from(key: BreakerKey) -> Self {
        let name = key.called(&[]);
        Self { key, name }
    }
}

/// The name that stands for every breaker.
pub const ALL_BREAKERS: &str = "all";

/// All breakers that a name stands for: [`ALL_BREAKERS`], a breaker's own key, a tool with the parts of
/// what it reaches, or one of those parts as people call it: a host.
pub async fn find_breakers(store: &dyn BreakerStore, name: &str) -> StoreResult<Vec<FoundBreaker>> {
    let known = store.breakers().await?.into_iter();
    let found = |(key, state): (BreakerKey, BreakerState)| FoundBreaker {
        name: key.called(state.names()),
        key,
    };
    if let Ok(key) = name.parse::<BreakerKey>() {
        let one = known.map(found).find(|it| it.key == key);
        return Ok(vec![one.unwrap_or_else(|| key.into())]);
    }
    let stands_for = |(key, state): &(BreakerKey, BreakerState)| {
        let is_named = key.tool_name() == Some(name) || state.names().iter().any(|it| it == name);
        name == ALL_BREAKERS || (key.context().is_empty() && is_named)
    };
    Ok(known.filter(stands_for).map(found).collect())
}

/// Why a reset would close nothing: what the configuration holds open among these.
pub fn first_held(found: &[FoundBreaker], held: &[HeldOpen]) -> Option<String> {
    let mut both = found
        .iter()
        .filter_map(|it| Some((it, held.iter().find(|held| held.is_for(&it.key))?)));
    let (found, held) = both.next()?;
    let (name, reason) = (&found.name, &held.reason);
    Some(format!(
        "the configuration holds the circuit breaker {name} open: {reason}; take its `forcedOpen` out"
    ))
}

/// A breaker's own key, or the name of a tool whose breaker is known. A host's name is not taken: a
/// caller could have given a host the name of a tool.
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
    use crate::breaker::{Admission, AttemptResult, PART_NAMES_MAX, ProbeId};
    use crate::store::memory::MemoryBreakerStore;

    async fn asked_for(store: &MemoryBreakerStore, key: &BreakerKey, host: &str) {
        let policy = BreakerPolicy::standard();
        let prober = ProbeId::new(1);
        let admit = BreakerOp::Admit { prober };
        let outcome = store.apply(key, admit, &policy).await.unwrap();
        let Some(Admission::Pass(permit)) = outcome.admission else {
            panic!("it is closed");
        };
        let record = BreakerOp::Record {
            permit,
            result: AttemptResult::Success,
            part: Some(host.into()),
        };
        let _ = store.apply(key, record, &policy).await.unwrap();
    }

    fn names(found: &[FoundBreaker]) -> Vec<&str> {
        found.iter().map(|it| it.name.as_str()).collect()
    }

    #[tokio::test]
    async fn tools_and_hosts_stand_for_the_breakers_of_parts() {
        let store = MemoryBreakerStore::new(Arc::new(SystemClock));
        asked_for(&store, &BreakerKey::part("web_fetch", 3), "docs.rs").await;
        asked_for(&store, &BreakerKey::part("web_fetch", 18), "b.example").await;
        asked_for(&store, &BreakerKey::part("web_fetch", 18), "a.example").await;
        asked_for(&store, &BreakerKey::part("web_search", 3), "docs.rs").await;
        let keys = [
            BreakerKey::tool("web", "web_fetch"),
            BreakerKey::tool("web", "web_fetch").in_context(BreakerKey::SHADOW),
        ];
        for key in &keys {
            let reason = "maintenance".to_owned();
            let op = BreakerOp::ForceOpen { reason };
            let policy = BreakerPolicy::standard();
            let _ = store.apply(key, op, &policy).await.unwrap();
        }
        let found = find_breakers(&store, "web_fetch").await.unwrap();
        let expected = [
            "web_fetch",
            "web_fetch (docs.rs)",
            "web_fetch (a.example, b.example)",
        ];
        assert_eq!(names(&found), expected);
        let found = find_breakers(&store, "b.example").await.unwrap();
        assert_eq!(names(&found), ["web_fetch (a.example, b.example)"]);
        let found = find_breakers(&store, "docs.rs").await.unwrap();
        assert_eq!(
            names(&found),
            ["web_fetch (docs.rs)", "web_search (docs.rs)"]
        );
        let found = find_breakers(&store, "part:web_fetch/3").await.unwrap();
        assert_eq!(names(&found), ["web_fetch (docs.rs)"]);
        assert_eq!(find_breakers(&store, ALL_BREAKERS).await.unwrap().len(), 5);
        assert!(find_breakers(&store, "nothing").await.unwrap().is_empty());
        assert_eq!(find_breaker(&store, "docs.rs").await.unwrap(), None);
    }

    #[tokio::test]
    async fn view_names_few_hosts_and_configuration_outweighs_the_store() {
        let store = MemoryBreakerStore::new(Arc::new(SystemClock));
        let part = BreakerKey::part("web_fetch", 18);
        for host in ["a", "b", "c", "d", "e", "b"] {
            asked_for(&store, &part, host).await;
        }
        let tool = BreakerKey::tool("web", "web_fetch");
        let held = [HeldOpen {
            key: tool.clone(),
            reason: "vendor incident".to_owned(),
        }];
        let admit = BreakerOp::Admit {
            prober: ProbeId::new(1),
        };
        let policy = BreakerPolicy::standard();
        let _ = store.apply(&tool, admit, &policy).await.unwrap();
        let known = store.breakers().await.unwrap();
        let views = breaker_views(&known, &held, 1);
        assert_eq!(views.len(), 2);
        assert_eq!(views[0]["name"], "web_fetch");
        assert_eq!(views[0]["state"], "FORCED_OPEN");
        assert_eq!(views[0]["forcedReason"], "vendor incident");
        assert_eq!(views[0]["heldBy"], "configuration");
        assert_eq!(views[0]["wouldAdmit"], false);
        assert_eq!(views[1]["name"], "web_fetch (b, e, d, c)");
        assert_eq!(views[1]["key"], "part:web_fetch/18");
        assert_eq!(views[1]["parts"].as_array().unwrap().len(), PART_NAMES_MAX);
    }
}
