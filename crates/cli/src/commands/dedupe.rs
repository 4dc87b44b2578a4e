//! `holdfast dedupe`

use std::process::ExitCode;

use holdfast_contract::time::rfc3339;
use holdfast_reliability::admin::{self, FoundRecord, Payload};
use holdfast_reliability::idempotency::record::{DedupeRecord, RecordState, SharedRecord};
use holdfast_reliability::store::{ClearIf, Cleared, RecordFilter, UnreadRecord};
use serde_json::{Value, json};

use crate::app::{App, runtime};
use crate::args::{DedupeCommand, RecordArgs, State};
use crate::fail::{Failure, Outcome};
use crate::output;
use crate::records::Records;

/// The columns of a listing.
pub(super) const HEADER: [&str; 8] = [
    "record",
    "state",
    "tool",
    "session",
    "key",
    "workspace",
    "changed",
    "kept for",
];

pub(super) fn run(app: &App, command: DedupeCommand, json: bool) -> Outcome<ExitCode> {
    let state = app.open_records()?;
    runtime()?.block_on(async {
        match command {
            DedupeCommand::List { filter, limit } => {
                list(app, &state, &filter, limit.get(), json).await
            }
            DedupeCommand::Show { key, reveal } => show(app, &state, &key, reveal, json).await,
            DedupeCommand::Clear { key, force } => clear(&state, &key, force, json).await,
            DedupeCommand::Flush { filter, all } => flush(&state, &filter, all, json).await,
            DedupeCommand::Export { file } => {
                super::transfer::export(app, &*state, &file, json).await
            }
            DedupeCommand::Import { file } => {
                super::transfer::import(app, &*state, &file, json).await
            }
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn filter_of(args: &RecordArgs, limit: Option<usize>) -> RecordFilter {
    RecordFilter {
        session: args.session.clone(),
        tool: args.tool.clone(),
        state: args.state_is.map(|state| match state {
            State::Inflight | State::Abandoned => RecordState::Inflight,
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

async fn look(store: &Records, record: SharedRecord) -> Outcome<Seen> {
    let running = record.state == RecordState::Inflight;
    let abandoned = running && store.is_abandoned(record.key).await?;
    Ok(Seen { record, abandoned })
}

/// A record for eyes, with what only this machine knows about it.
fn view(app: &App, seen: &Seen, payload: Payload) -> Value {
    let mut value = admin::record_view(&seen.record, &app.config.redactor(), payload);
    if seen.abandoned {
        value["abandoned"] = json!(true);
    }
    value
}

async fn list(
    app: &App,
    store: &Records,
    args: &RecordArgs,
    limit: usize,
    json: bool,
) -> Outcome<()> {
    let only_abandoned = args.state_is == Some(State::Abandoned);
    // No store can tell them apart, so all in flight are looked at. One more than asked for tells
    // whether there are more.
    let filter = filter_of(args, (!only_abandoned).then_some(limit.saturating_add(1)));
    let listing = store.listing(&filter).await?;
    let mut found = Vec::new();
    for record in listing.records {
        let seen = look(store, record).await?;
        if seen.abandoned || !only_abandoned {
            found.push(seen);
        }
    }
    let is_cut = found.len() > limit;
    found.truncate(limit);
    if json {
        output::json(
            &found
                .iter()
                .map(|seen| view(app, seen, Payload::Hidden))
                .chain(unread_views(app, &listing.unread))
                .collect::<Vec<_>>(),
        );
        return Ok(());
    }
    if found.is_empty() && listing.unread.is_empty() {
        output::line("No records.");
        return Ok(());
    }
    let now_ms = app.clock.now_ms();
    let redactor = app.config.redactor();
    let rows = found.iter().map(|Seen { record, abandoned }| {
        vec![
            record.key.fingerprint().to_string(),
            state_words(record, *abandoned),
            record.tool.to_string(),
            redactor
                .redact_text(&record.request.session_key)
                .into_owned(),
            redactor.redact_text(&record.idempotency_key).into_owned(),
            redactor
                .redact_text(record.request.workspace_id.as_deref().unwrap_or_default())
                .into_owned(),
            output::ago(record.updated_at_ms, now_ms),
            output::duration(record.expires_at_ms.saturating_sub(now_ms)),
        ]
    });
    if !found.is_empty() {
        output::line(&output::table(&HEADER, rows));
    }
    for unread in unread_views(app, &listing.unread) {
        output::line(&unread_line(&unread));
    }
    if is_cut {
        output::line(&more_line(limit));
    }
    Ok(())
}

/// How a record stands. One of a call that was only watched answers for nobody.
fn state_words(record: &DedupeRecord, abandoned: bool) -> String {
    let state = if abandoned {
        "abandoned"
    } else {
        record.state.as_str()
    };
    if record.request.shadow {
        format!("{state} (shadow)")
    } else {
        state.to_owned()
    }
}

/// Below a listing that was cut off.
pub(super) fn more_line(limit: usize) -> String {
    format!("These are the newest {limit}; there are more (--limit).")
}

/// What is known of the records that can not be read.
fn unread_views(app: &App, unread: &[UnreadRecord]) -> Vec<Value> {
    let redactor = app.config.redactor();
    let views = unread.iter();
    views
        .map(|unread| admin::unread_view(unread, &redactor))
        .collect()
}

/// A record that can not be read, below the table of those that can.
pub(super) fn unread_line(view: &Value) -> String {
    let text = |name: &str| view[name].as_str().unwrap_or_default().to_owned();
    format!(
        "{} ({}, {}) can not be read: {}",
        text("key"),
        text("tool"),
        text("state"),
        text("unreadable")
    )
}

async fn show(app: &App, store: &Records, key: &str, reveal: bool, json: bool) -> Outcome<()> {
    let value = match find(store, key).await? {
        Found::Unread(unread) => admin::unread_view(&unread, &app.config.redactor()),
        Found::Record(record) if reveal => serde_json::to_value(&*record).unwrap_or_default(),
        Found::Record(record) => view(app, &look(store, record).await?, Payload::Shown),
    };
    if json {
        output::json(&value);
    } else {
        output::pretty_json(&value);
    }
    Ok(())
}

async fn clear(store: &Records, key: &str, force: bool, json: bool) -> Outcome<()> {
    let record = match find(store, key).await? {
        Found::Record(record) => record,
        Found::Unread(unread) => return clear_unread(store, &unread, force, json).await,
    };
    let running = record.state == RecordState::Inflight && !store.is_abandoned(record.key).await?;
    if running && !force {
        return Err(Failure::failed(format!(
            "the call {} is running (request {}), and clearing it would let it run twice",
            record.key.fingerprint(),
            record.request.request_id
        ))
        .hint("Wait for it, or use --force when you know that it is gone."));
    }
    let when = if force {
        ClearIf::There
    } else {
        ClearIf::Unchanged(&record)
    };
    let cleared = store.clear(&record.key, when).await?;
    if cleared == Cleared::Changed {
        return Err(Failure::failed(format!(
            "the record {} changed while it was looked at, and was left alone",
            record.key.fingerprint()
        ))
        .hint("`holdfast dedupe show` tells what it is now."));
    }
    if json {
        let cleared = cleared == Cleared::Forgotten;
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

/// Clears what can not be read. Whether its process is gone can not be seen either.
async fn clear_unread(
    store: &Records,
    unread: &UnreadRecord,
    force: bool,
    json: bool,
) -> Outcome<()> {
    let key = unread.key.fingerprint();
    if unread.is_in_flight() && !force {
        return Err(Failure::failed(format!(
            "the record {key} can not be read ({}), and its call may be running",
            unread.why
        ))
        .hint("Use --force when you know that it is gone."));
    }
    let cleared = store.clear(&unread.key, ClearIf::There).await?;
    if json {
        let cleared = cleared == Cleared::Forgotten;
        output::json(&json!({"cleared": cleared, "key": unread.key.to_string()}));
    } else {
        let (tool, state) = (&unread.tool, &unread.state);
        output::line(&format!(
            "Cleared {key} ({tool}, {state}). The call may run again."
        ));
    }
    Ok(())
}

async fn flush(store: &Records, args: &RecordArgs, all: bool, json: bool) -> Outcome<()> {
    if let Some(State::Inflight | State::Abandoned) = args.state_is {
        return Err(Failure::usage("only ended records are flushed").hint(
            "What was in flight when its process died may have had its effect: look at each with \
             `holdfast dedupe show`, then `holdfast dedupe clear` lets it run again.",
        ));
    }
    let filter = filter_of(args, None);
    if filter == RecordFilter::default() && !all {
        return Err(too_wide());
    }
    let flushed = store.flush(&filter).await?;
    if json {
        output::json(&json!({"flushed": flushed}));
    } else {
        output::line(&forgot(flushed));
    }
    Ok(())
}

pub(super) fn forgot(records: u64) -> String {
    let records = output::counted(records, "record");
    format!("Forgot {records}. Running calls stay.")
}

/// Flushing without saying what.
pub(super) fn too_wide() -> Failure {
    Failure::usage("this would forget every ended call, so that each could run again")
        .hint("Narrow it with --session, --tool or --state-is, or say --all.")
}

/// What tells a record from others.
fn in_short(record: &SharedRecord) -> String {
    let key = record.key.fingerprint();
    let place = record.request.workspace_id.as_deref();
    let place = place.map_or_else(String::new, |place| {
        format!(" in {}", output::harmless(place))
    });
    format!(
        "{key} ({}{place}, {})",
        record.tool,
        rfc3339(record.updated_at_ms)
    )
}

/// The record that was named.
enum Found {
    Record(SharedRecord),
    Unread(UnreadRecord),
}

/// Finds a record by its stored key, the beginning of it, or the key that the caller gave.
async fn find(store: &Records, key: &str) -> Outcome<Found> {
    match admin::find_record(&**store, key).await? {
        FoundRecord::One(record) => Ok(Found::Record(record)),
        FoundRecord::Unread(unread) => Ok(Found::Unread(unread)),
        FoundRecord::SeveralUnread(first, second) => Err(Failure::failed(format!(
            "{key:?} fits several records, such as {first} and {second}"
        ))
        .hint("Look at each with `holdfast dedupe show`, then give the stored key.")),
        FoundRecord::Nothing => Err(Failure::failed(format!("there is no record {key:?}"))
            .hint("`holdfast dedupe list` shows them.")),
        FoundRecord::Several(first, second) => Err(Failure::failed(format!(
            "{key:?} fits several records, such as {} and {}",
            in_short(&first),
            in_short(&second)
        ))
        .hint(
            "Look at each with `holdfast dedupe show`, then give the stored key. One key is several records where it was \
             used in several workspaces, sessions or tools.",
        )),
    }
}
