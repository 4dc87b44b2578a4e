//! `holdfast explain`

use std::process::ExitCode;

use holdfast_contract::time::rfc3339;
use holdfast_reliability::journal::{Journal, JournalEntry};

use crate::app::{App, runtime};
use crate::args::ExplainArgs;
use crate::fail::{Failure, Outcome};
use crate::output;

pub(super) fn run(app: &App, args: &ExplainArgs, json: bool) -> Outcome<ExitCode> {
    let state = app.open_state()?;
    let prefix = args.request.as_deref().unwrap_or_default();
    let limit = if prefix.is_empty() { args.limit } else { 2 };
    let entries = runtime()?.block_on(state.find(prefix, limit))?;
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
    output::line(&format!(
        "{} {} — {outcome}",
        output::bold(&entry.tool),
        entry.args
    ));
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
    output::line(&format!(
        "{} attempts in {}{}{}",
        entry.attempts,
        output::duration(entry.duration_ms),
        if entry.from_cache {
            ", answered from a record"
        } else {
            ""
        },
        entry
            .key_fingerprint
            .as_deref()
            .map_or(String::new(), |key| format!(", record {key}")),
    ));
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
