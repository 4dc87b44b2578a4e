//! `/debug/tool-reliability`: the reliability layer, looked at and changed.
//!
//! `POST` does something ([`action`]); everything else only looks.

pub mod action;

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{Query, Request};
use axum::response::Response;
use holdfast_reliability::admin::{self, FoundRecord, Payload};
use holdfast_reliability::breaker::CircuitBreakerState;
use holdfast_reliability::idempotency::key::StoredKey;
use holdfast_reliability::idempotency::record::{RecordState, SharedRecord};
use holdfast_reliability::store::{RecordFilter, StoreError, StoreResult, UnreadRecord};
use http::StatusCode;
use serde_json::{Map, Value, json};

use crate::limits::{ADMIN_BODY_BYTES_MAX, LISTED_RECORDS_MAX, PAGE_AUDIT_MAX, PAGE_RECORDS_MAX};
use crate::respond::{Refusal, json_response};
use crate::server::{Peer, Server};
use crate::shape::tools::{
    AuditList, BreakerList, Done, InFlight, OpenNow, Overview, RecordList, StoreShown,
};

use action::{Action, Asked};

/// Actions, and the overview.
pub const PATH: &str = "/debug/tool-reliability";
/// The breakers.
pub const BREAKERS: &str = "/debug/tool-reliability/breakers";
/// The records, a page at a time.
pub const RECORDS: &str = "/debug/tool-reliability/records";
/// One record.
pub const RECORD: &str = "/debug/tool-reliability/records/{key}";
/// Who did what.
pub const AUDIT: &str = "/debug/tool-reliability/audit";

/// Records on a page unless asked for otherwise.
const PAGE_RECORDS: usize = 50;

/// Does what was asked, and writes down who asked, what, and how it ended.
pub(super) async fn act(server: Arc<Server>, request: Request) -> Response {
    let peer = request.extensions().get::<Peer>().copied();
    let body = match server.read_json(request, ADMIN_BODY_BYTES_MAX).await {
        Ok(body) => body,
        Err(refusal) => return server.refuse(refusal),
    };
    let Asked { action, operator } = match action::read(&body) {
        Ok(asked) => asked,
        Err(reason) => return server.refuse(Refusal::invalid(redacted(&server, &reason))),
    };
    let runtime = server.stack.runtime();
    let mut described = serde_json::to_value(&action).unwrap_or_default();
    runtime.redactor.redact_value_in_place(&mut described);
    let entry = json!({
        "id": runtime.token().to_string(),
        "fingerprint": server.gate.tokens().admin.fingerprint(),
        "peer": peer.map_or_else(String::new, |Peer(peer)| peer.to_string()),
        "operator": operator,
        "action": described,
    });
    let asked = server.audit.append("admin.asked", fields(entry.clone()));
    if asked.await.is_err() {
        return unavailable("the audit log can not be written, so nothing was done".to_owned());
    }
    // Whoever asked may be gone by now; what was begun is done and written down all the same.
    let done = tokio::spawn(async move { carry_out(&server, action, entry).await });
    done.await
        .unwrap_or_else(|_| unavailable("the action was cut off".to_owned()))
}

async fn carry_out(server: &Server, action: Action, mut entry: Value) -> Response {
    let outcome = action::perform(server, action).await;
    let (event, result) = match &outcome {
        Ok(done) => ("admin.done", done.clone()),
        Err(refusal) => ("admin.failed", json!({"error": refusal.message})),
    };
    entry["result"] = result;
    let id = entry["id"].clone();
    let written = server.audit.append(event, fields(entry)).await;
    match outcome {
        Ok(done) => {
            let mut what = fields(done);
            if written.is_err() {
                let warning = json!("the audit log could not be completed");
                what.insert("warning".to_owned(), warning);
            }
            let done = Done {
                ok: true,
                audit_id: id,
                what,
            };
            json_response(StatusCode::OK, &done)
        }
        Err(refusal) => server.refuse(refusal),
    }
}

/// Modes, stores, breakers and trouble at a glance.
pub(super) async fn overview(server: Arc<Server>, _: Request) -> Response {
    let runtime = server.stack.runtime();
    let condition = server.health.condition().await;
    // While the store is away this is what people look at: what is not known is left out.
    let breakers = breaker_list(&server).await.ok();
    let states = breakers.map(|breakers| {
        let count = |wanted: &str| breakers.iter().filter(|it| it["state"] == wanted).count();
        let all = CircuitBreakerState::ALL.map(CircuitBreakerState::as_str);
        all.map(|state| (state, count(state))).into()
    });
    let body = Overview {
        version: env!("CARGO_PKG_VERSION"),
        pid: std::process::id(),
        started_at_ms: server.started_at_ms,
        modes: json!(server.stack.modes()),
        degraded: json!(condition.degraded()),
        last_trouble: json!(server.health.watch().last()),
        store: StoreShown {
            kind: &server.store_name,
            durable: json!(condition.durable.as_ref().ok()),
            memory: json!(condition.memory),
        },
        breakers: states,
        calls: InFlight {
            in_flight: server.calls_in_flight(),
            max: server.settings.calls_max,
        },
        connections: OpenNow {
            open: server.http.connections.get(),
            max: server.settings.connections_max,
        },
        timestamp: holdfast_contract::time::rfc3339(runtime.clock.now_ms()),
    };
    json_response(StatusCode::OK, &body)
}

async fn breaker_list(server: &Server) -> StoreResult<Vec<Value>> {
    let known = server.stores.breakers.breakers().await?;
    let held = server.stack.policies().held_open();
    let now_ms = server.stack.runtime().clock.now_ms();
    Ok(admin::breaker_views(&known, &held, now_ms))
}

/// Every breaker.
pub(super) async fn breakers(server: Arc<Server>, _: Request) -> Response {
    let runtime = server.stack.runtime();
    match breaker_list(&server).await {
        Ok(mut list) => {
            for view in &mut list {
                runtime.redactor.redact_value_in_place(view);
            }
            json_response(StatusCode::OK, &BreakerList { breakers: list })
        }
        Err(error) => store_away(&server, &error),
    }
}

/// Records, newest first, a page at a time and without their outputs.
pub(super) async fn records(server: Arc<Server>, request: Request) -> Response {
    let page = match Page::read(&request) {
        Ok(page) => page,
        Err(refusal) => return server.refuse(refusal),
    };
    let (mut found, unread) = match list(&server, &page.filter()).await {
        Ok(found) => found,
        Err(error) => return store_away(&server, &error),
    };
    let more = found.len() > page.offset + page.limit;
    let redactor = &server.stack.runtime().redactor;
    let mut views: Vec<Value> = found
        .drain(..)
        .skip(page.offset)
        .take(page.limit)
        .map(|record| admin::record_view(&record, redactor, Payload::Hidden))
        .collect();
    // What can not be read is told on the first page, beside what can.
    if page.offset == 0 {
        views.extend(unread.iter().map(|it| admin::unread_view(it, redactor)));
    }
    let next = more.then_some(page.offset + page.limit);
    json_response(
        StatusCode::OK,
        &RecordList {
            records: views,
            next_offset: next,
        },
    )
}

/// One record, its output redacted.
pub(super) async fn record(server: Arc<Server>, request: Request) -> Response {
    let path = request.uri().path();
    let key = path.strip_prefix(RECORDS).unwrap_or_default();
    let key = decoded(key.trim_start_matches('/'));
    let redactor = &server.stack.runtime().redactor;
    match find(&server, &key).await {
        Ok(Found::Record(record)) => {
            let view = admin::record_view(&record, redactor, Payload::Shown);
            json_response(StatusCode::OK, &view)
        }
        Ok(Found::Unread(unread)) => {
            json_response(StatusCode::OK, &admin::unread_view(&unread, redactor))
        }
        Err(refusal) => server.refuse(refusal),
    }
}

/// Who did what, newest first.
pub(super) async fn audit(server: Arc<Server>, request: Request) -> Response {
    let page = match Page::read(&request) {
        Ok(page) => page,
        Err(refusal) => return server.refuse(refusal),
    };
    match server.audit.last().await {
        Ok(mut entries) => {
            entries.truncate(page.limit.min(PAGE_AUDIT_MAX));
            json_response(
                StatusCode::OK,
                &AuditList {
                    entries: entries.iter().map(|entry| json!(entry)).collect(),
                },
            )
        }
        Err(error) => unavailable(redacted(&server, &error.to_string())),
    }
}

/// Which page of a listing.
struct Page {
    limit: usize,
    offset: usize,
    session: Option<String>,
    tool: Option<String>,
    state: Option<RecordState>,
}

impl Page {
    fn read(request: &Request) -> Result<Self, Refusal> {
        let Query(mut asked) = Query::<HashMap<String, String>>::try_from_uri(request.uri())
            .map_err(|_| Refusal::invalid("The query can not be read"))?;
        let mut number = |name: &str, default: usize| match asked.remove(name) {
            None => Ok(default),
            Some(text) => text
                .parse()
                .map_err(|_| Refusal::invalid(format!("{name} has to be a number"))),
        };
        let (limit, offset) = (number("limit", PAGE_RECORDS)?, number("offset", 0)?);
        if !(1..=PAGE_RECORDS_MAX).contains(&limit) {
            return Err(Refusal::invalid(format!(
                "limit has to be between 1 and {PAGE_RECORDS_MAX}"
            )));
        }
        if offset > LISTED_RECORDS_MAX {
            return Err(Refusal::invalid(format!(
                "offset has to be at most {LISTED_RECORDS_MAX}; narrow it by session, tool or state"
            )));
        }
        let state = match asked.remove("state") {
            None => None,
            Some(text) => Some(action::record_state(&text).map_err(Refusal::invalid)?),
        };
        let page = Self {
            limit,
            offset,
            session: asked.remove("session"),
            tool: asked.remove("tool"),
            state,
        };
        // A misspelt filter must not be taken for none.
        if asked.is_empty() {
            Ok(page)
        } else {
            Err(Refusal::invalid(
                "Only limit, offset, session, tool and state can be asked for",
            ))
        }
    }

    /// One more than the page, to know whether there is a next.
    fn filter(&self) -> RecordFilter {
        RecordFilter {
            session: self.session.clone(),
            tool: self.tool.clone(),
            state: self.state,
            key_prefix: None,
            limit: Some(self.offset + self.limit + 1),
        }
    }
}

/// The records of both stores, newest first, and those that can not be read.
async fn list(
    server: &Server,
    filter: &RecordFilter,
) -> Result<(Vec<SharedRecord>, Vec<UnreadRecord>), StoreError> {
    let stores = &server.stores.dedupe;
    let listing = stores.durable.listing(filter).await?;
    let mut found = listing.records;
    if !Arc::ptr_eq(&stores.durable, &stores.memory) {
        found.extend(stores.memory.list(filter).await?);
        found.sort_by_key(|record| std::cmp::Reverse(record.updated_at_ms));
    }
    Ok((found, listing.unread))
}

/// The record that was named.
enum Found {
    Record(SharedRecord),
    Unread(UnreadRecord),
}

/// Finds one record in either store.
async fn find(server: &Server, key: &str) -> Result<Found, Refusal> {
    let stores = &server.stores.dedupe;
    let mut found = FoundRecord::Nothing;
    for store in [&stores.durable, &stores.memory] {
        found = admin::find_record(&**store, key)
            .await
            .map_err(|error| store_refusal(server, &error))?;
        if !matches!(found, FoundRecord::Nothing) {
            break;
        }
    }
    match found {
        FoundRecord::One(record) => Ok(Found::Record(record)),
        FoundRecord::Unread(unread) => Ok(Found::Unread(unread)),
        FoundRecord::Nothing => Err(Refusal::new(
            StatusCode::NOT_FOUND,
            "not_found",
            "There is no such record",
        )),
        FoundRecord::Several(first, second) => Err(ambiguous(&first.key, &second.key)),
        FoundRecord::SeveralUnread(first, second) => Err(ambiguous(&first, &second)),
    }
}

fn ambiguous(first: &StoredKey, second: &StoredKey) -> Refusal {
    Refusal::new(
        StatusCode::CONFLICT,
        "ambiguous",
        format!(
            "That fits several records, such as {} and {}",
            first.fingerprint(),
            second.fingerprint()
        ),
    )
}

/// An object's members, as the audit log takes them.
pub(super) fn fields(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

pub(super) fn redacted(server: &Server, text: &str) -> String {
    server
        .stack
        .runtime()
        .redactor
        .redact_text(text)
        .into_owned()
}

pub(super) fn store_refusal(server: &Server, error: &StoreError) -> Refusal {
    Refusal::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "store_unavailable",
        redacted(server, &error.to_string()),
    )
    .after(crate::limits::RETRY_AFTER_S)
}

fn store_away(server: &Server, error: &StoreError) -> Response {
    server.refuse(store_refusal(server, error))
}

fn unavailable(message: String) -> Response {
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", message).into_response()
}

/// A path segment without its percent signs.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|_| *first == b'%');
        let value = digits
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        (bytes, rest) = match value {
            Some(value) => (pushed(bytes, value), &after[2..]),
            None => (pushed(bytes, *first), after),
        };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn pushed(mut bytes: Vec<u8>, byte: u8) -> Vec<u8> {
    bytes.push(byte);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_signs_are_read() {
        for (text, expected) in [
            ("abc", "abc"),
            ("order%2017", "order 17"),
            ("a%2Fb%", "a/b%"),
            ("%zz%4", "%zz%4"),
            ("%C3%BC", "ü"),
        ] {
            assert_eq!(decoded(text), expected);
        }
    }
}
