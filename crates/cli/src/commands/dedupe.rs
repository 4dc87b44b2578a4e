//! `holdfast dedupe`

use std::process::ExitCode;

use holdfast_reliability::idempotency::key::StoredKey;
use holdfast_reliability::idempotency::record::{RecordState, SharedRecord};
use holdfast_reliability::store::sqlite::SqliteState;
use holdfast_reliability::store::{DedupeStore, RecordFilter};
use serde_json::{Value, json};

use crate::app::{App, runtime};
use crate::args::{DedupeCommand, RecordArgs, State};
use crate::fail::{Failure, Outcome};
use crate::output;

/// The shortest prefix of a stored key that is taken for one.
const KEY_PREFIX_MIN: usize = 6;

pub(super) fn run(app: &App, command: DedupeCommand, json: bool) -> Outcome<ExitCode> {
    let state = app.open_state()?;
    runtime()?.block_on(async {
        match command {
            DedupeCommand::List { filter, limit } => {
                list(app, &state, filter_of(filter, Some(limit)), json).await
            }
            DedupeCommand::Show { key, reveal } => show(app, &state, &key, reveal, json).await,
            DedupeCommand::Clear { key, force } => clear(&state, &key, force, json).await,
            DedupeCommand::Flush { filter, all } => {
                flush(&state, filter_of(filter, None), all, json).await
            }
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

fn filter_of(args: RecordArgs, limit: Option<usize>) -> RecordFilter {
    RecordFilter {
        session: args.session,
        tool: args.tool,
        state: args.state_is.map(|state| match state {
            State::Inflight => RecordState::Inflight,
            State::Done => RecordState::Done,
            State::Failed => RecordState::Failed,
            State::Cancelled => RecordState::Cancelled,
            State::Unknown => RecordState::Unknown,
        }),
        key_prefix: None,
        limit,
    }
}

/// A record, and whether the process behind it is gone.
struct Seen {
    record: SharedRecord,
    abandoned: bool,
}

async fn look(store: &SqliteState, record: SharedRecord) -> Outcome<Seen> {
    let running = record.state == RecordState::Inflight;
    let abandoned = running && store.is_abandoned(record.key).await?;
    Ok(Seen { record, abandoned })
}

/// A record for eyes: redacted, and without its output unless asked for.
fn view(app: &App, seen: &Seen, with_payload: bool) -> Value {
    let record = &seen.record;
    let redactor = app.config.redactor();
    let mut value = serde_json::to_value(&**record).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        // The owner's token would let anybody settle the claim.
        fields.remove("owner");
        if !with_payload {
            fields.remove("payload");
        }
    }
    redactor.redact_value_in_place(&mut value);
    // Digests and keys look like secrets to a redactor and are none.
    value["key"] = json!(record.key.to_string());
    value["request"]["paramsDigest"] = json!(record.request.params_digest);
    if seen.abandoned {
        value["abandoned"] = json!(true);
    }
    value
}

async fn list(app: &App, store: &SqliteState, filter: RecordFilter, json: bool) -> Outcome<()> {
    let mut found = Vec::new();
    for record in store.list(&filter).await? {
        found.push(look(store, record).await?);
    }
    if json {
        output::json(
            &found
                .iter()
                .map(|seen| view(app, seen, false))
                .collect::<Vec<_>>(),
        );
        return Ok(());
    }
    if found.is_empty() {
        output::line("No records.");
        return Ok(());
    }
    let now_ms = app.clock.now_ms();
    let redactor = app.config.redactor();
    let rows = found.iter().map(|Seen { record, abandoned }| {
        vec![
            record.key.fingerprint().to_string(),
            if *abandoned {
                "abandoned".to_owned()
            } else {
                record.state.as_str().to_owned()
            },
            record.tool.to_string(),
            redactor
                .redact_text(&record.request.session_key)
                .into_owned(),
            redactor.redact_text(&record.idempotency_key).into_owned(),
            output::ago(record.updated_at_ms, now_ms),
            output::duration(record.expires_at_ms.saturating_sub(now_ms)),
        ]
    });
    let header = [
        "record", "state", "tool", "session", "key", "changed", "kept for",
    ];
    output::line(&output::table(&header, rows));
    Ok(())
}

async fn show(app: &App, store: &SqliteState, key: &str, reveal: bool, json: bool) -> Outcome<()> {
    let record = find(store, key).await?;
    let value = if reveal {
        serde_json::to_value(&*record).unwrap_or_default()
    } else {
        view(app, &look(store, record).await?, true)
    };
    if json {
        output::json(&value);
    } else {
        output::pretty_json(&value);
    }
    Ok(())
}

async fn clear(store: &SqliteState, key: &str, force: bool, json: bool) -> Outcome<()> {
    let record = find(store, key).await?;
    let running = record.state == RecordState::Inflight && !store.is_abandoned(record.key).await?;
    if running && !force {
        return Err(Failure::failed(format!(
            "the call {} is running (request {}), and clearing it would let it run twice",
            record.key.fingerprint(),
            record.request.request_id
        ))
        .hint("Wait for it, or use --force when you know that it is gone."));
    }
    let cleared = store.clear(&record.key).await?;
    if json {
        output::json(&json!({"cleared": cleared, "key": record.key.to_string()}));
    } else {
        output::line(&format!(
            "Cleared {} ({}, {}). The call may run again.",
            record.key.fingerprint(),
            record.tool,
            record.state.as_str()
        ));
    }
    Ok(())
}

async fn flush(store: &SqliteState, filter: RecordFilter, all: bool, json: bool) -> Outcome<()> {
    if filter == RecordFilter::default() && !all {
        return Err(Failure::usage(
            "this would forget every ended call, so that each could run again",
        )
        .hint("Narrow it with --session, --tool or --state-is, or say --all."));
    }
    let flushed = store.flush(&filter).await?;
    if json {
        output::json(&json!({"flushed": flushed}));
    } else {
        output::line(&format!("Forgot {flushed} records. Running calls stay."));
    }
    Ok(())
}

/// Finds a record by its stored key, the beginning of it, or the key that the caller gave.
async fn find(store: &SqliteState, key: &str) -> Outcome<SharedRecord> {
    if let Ok(stored) = key.parse::<StoredKey>()
        && let Some(record) = store.get(&stored).await?
    {
        return Ok(record);
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
    match (found.next(), found.next()) {
        (Some(record), None) => Ok(record),
        (None, _) => Err(Failure::failed(format!("there is no record {key:?}"))
            .hint("`holdfast dedupe list` shows them.")),
        (Some(first), Some(second)) => Err(Failure::failed(format!(
            "{key:?} fits several records, such as {} and {}",
            first.key.fingerprint(),
            second.key.fingerprint()
        ))
        .hint("Give more of the stored key.")),
    }
}
