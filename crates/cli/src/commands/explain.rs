//! `holdfast explain`

use std::process::ExitCode;

use holdfast_contract::ErrorCode;
use holdfast_contract::time::rfc3339;
use holdfast_reliability::idempotency::record::{DedupeRecord, RecordState};
use holdfast_reliability::journal::{Journal, JournalEntry};
use holdfast_reliability::store::RecordFilter;
use serde_json::Value;

use crate::app::{App, runtime};
use crate::args::ExplainArgs;
use crate::fail::{Failure, Outcome};
use crate::output;
use crate::records::Records;

pub(super) fn run(app: &App, args: &ExplainArgs, json: bool) -> Outcome<ExitCode> {
    let state = app.open_state()?;
    let prefix = args.request.as_deref().unwrap_or_default();
    let limit = if prefix.is_empty() { args.limit } else { 2 };
    let entries = runtime()?.block_on(async {
        let mut entries = state.find(prefix, limit).await?;
        let exact = entries.iter().any(|entry| entry.request_id == prefix);
        if !exact {
            entries.extend(unanswered(app, prefix, &entries).await?);
            entries.sort_by_key(|entry| std::cmp::Reverse(entry.at_ms));
            entries.truncate(limit);
        }
        Ok::<_, Failure>(entries)
    })?;
    if prefix.is_empty() {
        list(app, &entries, json);
        return Ok(ExitCode::SUCCESS);
    }
    let exact = entries.iter().find(|entry| entry.request_id == prefix);
    let entry = match (exact, entries.as_slice()) {
        (Some(entry), _) | (None, [entry]) => entry,
        (None, []) => {
            return Err(Failure::failed(format!(
                "no call with the request id {prefix:?} is on record"
            ))
            .hint("`holdfast explain` without an id lists the last calls."));
        }
        (None, _) => {
            return Err(
                Failure::failed(format!("several request ids begin with {prefix:?}"))
                    .hint("Give more of it."),
            );
        }
    };
    if json {
        output::json(entry);
    } else {
        explain(entry);
    }
    Ok(ExitCode::SUCCESS)
}

/// Calls without an answer that anybody wrote down: those that run, and those whose process was
/// killed. What is known of them is in their records.
async fn unanswered(
    app: &App,
    prefix: &str,
    answered: &[JournalEntry],
) -> Outcome<Vec<JournalEntry>> {
    let records = app.open_records()?;
    let mut found = Vec::new();
    for state in [RecordState::Inflight, RecordState::Unknown] {
        let filter = RecordFilter {
            state: Some(state),
            ..RecordFilter::default()
        };
        for record in records.list(&filter).await? {
            let id = &record.request.request_id;
            let is_told = answered.iter().any(|entry| entry.request_id == *id);
            // Without an id the last calls are listed, and a call in doubt has been told by then.
            let is_asked = state == RecordState::Inflight || !prefix.is_empty();
            if id.starts_with(prefix) && is_asked && !is_told {
                found.push(of_record(app, &records, &record).await?);
            }
        }
    }
    Ok(found)
}

/// What the record of a call tells that nobody has answered.
async fn of_record(app: &App, records: &Records, record: &DedupeRecord) -> Outcome<JournalEntry> {
    let key = record.key.fingerprint().to_string();
    let is_running = record.state == RecordState::Inflight;
    let is_gone = is_running && records.is_abandoned(record.key).await?;
    let since = rfc3339(record.created_at_ms);
    let clear = format!(
        "Look whether its effect is there. If it is not, `holdfast dedupe clear {key}` lets the call run again."
    );
    let (status, code, why, hint) = match (is_running, is_gone, record.held) {
        (true, false, true) => (
            "waiting",
            None,
            format!("claimed at {since}; it waits for a person, and nothing has run"),
            "`holdfast approvals list` shows what waits for an answer.".to_owned(),
        ),
        (true, false, false) => (
            "running",
            None,
            format!("claimed at {since}, and its process is alive"),
            "Wait for it; a duplicate waits as well, and gets its answer.".to_owned(),
        ),
        (true, true, true) => (
            "abandoned",
            None,
            format!("claimed at {since}; its process ended while it waited for a person, so nothing has run"),
            "`holdfast approvals list` shows its request; once it is approved, `holdfast approvals resume` runs it."
                .to_owned(),
        ),
        (true, true, false) if record.repeat_safe => (
            "abandoned",
            None,
            format!("claimed at {since}; its process ended before it answered"),
            "It may be repeated: the same call simply runs again.".to_owned(),
        ),
        _ => (
            if is_running { "abandoned" } else { record.state.as_str() },
            Some(ErrorCode::OutcomeUnknown.as_str().to_owned()),
            format!(
                "claimed at {since}; its process ended before it answered, so its effect may have happened or not. \
                 The same call is not run again, and is answered with outcome_unknown"
            ),
            clear,
        ),
    };
    let redactor = app.config.redactor();
    let shown = |text: &str| redactor.redact_text(text).into_owned();
    Ok(JournalEntry {
        request_id: record.request.request_id.clone(),
        at_ms: record.updated_at_ms,
        tool: record.tool.to_string(),
        session_key: shown(&record.request.session_key),
        actor_id: shown(&record.request.actor_id),
        turn: None,
        tool_call_id: record.request.tool_call_id.clone(),
        model_id: None,
        args: Value::Null,
        status: status.to_owned(),
        from_cache: false,
        attempts: 0,
        duration_ms: 0,
        key_fingerprint: Some(key),
        error_code: code,
        error_message: None,
        hint: Some(hint),
        retries: Vec::new(),
        why: vec![why],
    })
}

fn list(app: &App, entries: &[JournalEntry], json: bool) {
    if json {
        output::json(&entries);
        return;
    }
    if entries.is_empty() {
        output::line("No calls on record yet.");
        return;
    }
    let now_ms = app.clock.now_ms();
    let rows = entries.iter().map(|entry| {
        vec![
            entry.request_id.clone(),
            entry.tool.clone(),
            entry.status.clone(),
            entry.error_code.clone().unwrap_or_default(),
            output::ago(entry.at_ms, now_ms),
        ]
    });
    output::line(&output::table(
        &["request", "tool", "status", "code", "when"],
        rows,
    ));
}

/// The same with what its caller chose to be called as it may stand in a line.
fn harmless(entry: &JournalEntry) -> JournalEntry {
    let mut shown = entry.clone();
    let names = [
        &mut shown.request_id,
        &mut shown.tool,
        &mut shown.session_key,
        &mut shown.actor_id,
    ];
    let others = [&mut shown.turn, &mut shown.model_id, &mut shown.error_code];
    for text in names.into_iter().chain(others.into_iter().flatten()) {
        *text = output::harmless_line(text);
    }
    let said = [&mut shown.error_message, &mut shown.hint];
    for text in shown.why.iter_mut().chain(said.into_iter().flatten()) {
        *text = output::harmless(text);
    }
    for retry in &mut shown.retries {
        retry.reason_code = output::harmless_line(&retry.reason_code);
    }
    shown
}

fn explain(entry: &JournalEntry) {
    let entry = &harmless(entry);
    let outcome = match &entry.error_code {
        Some(code) => format!("{} ({code})", entry.status),
        None => entry.status.clone(),
    };
    // A record holds a digest of the arguments only.
    let args = match &entry.args {
        Value::Null => String::new(),
        args => format!(" {args}"),
    };
    output::line(&format!("{}{args} — {outcome}", output::bold(&entry.tool)));
    let turn = entry
        .turn
        .as_deref()
        .map_or(String::new(), |turn| format!(", turn {turn}"));
    let model = entry
        .model_id
        .as_deref()
        .map_or(String::new(), |model| format!(", model {model}"));
    output::line(&output::dim(&format!(
        "request {}, {}, session {}, actor {}{turn}{model}",
        entry.request_id,
        rfc3339(entry.at_ms),
        entry.session_key,
        entry.actor_id
    )));
    let record = entry.key_fingerprint.as_deref();
    if entry.args.is_null() {
        output::line(&format!("no answer, record {}", record.unwrap_or("none")));
    } else {
        output::line(&format!(
            "{} in {}{}{}",
            output::counted(entry.attempts.into(), "attempt"),
            output::duration(entry.duration_ms),
            if entry.from_cache {
                ", answered from a record"
            } else {
                ""
            },
            record.map_or(String::new(), |key| format!(", record {key}")),
        ));
    }
    for retry in &entry.retries {
        output::line(&format!(
            "- attempt {} failed with {} after {}, waited {}",
            retry.attempt,
            retry.reason_code,
            output::duration(retry.latency_ms),
            output::duration(retry.delay_ms)
        ));
    }
    if entry.why.is_empty() && entry.error_message.is_none() {
        output::line("It ran and worked; no layer had anything to say about it.");
    }
    for why in &entry.why {
        output::line(&format!("- {why}"));
    }
    if let Some(message) = &entry.error_message {
        output::line(&format!("{} {message}", output::bold("message:")));
    }
    if let Some(hint) = &entry.hint {
        output::line(&format!("{} {hint}", output::dim("hint:")));
    }
}
