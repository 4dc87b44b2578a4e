//! What operators do at the command line, written down as a server writes down what it is asked.

use std::process::ExitCode;

use holdfast_contract::clock::{SystemEntropy, new_request_id};
use holdfast_toolbox::audit::AuditLog;
use serde_json::{Map, Value, json};

use super::remote::fields;
use crate::app::{App, runtime};
use crate::args::{BreakerCommand, DedupeCommand};
use crate::environment;
use crate::fail::{Failure, Outcome};
use crate::output;

/// Stands where a server names the address it was asked from.
const HERE: &str = "command line";

/// Who does it: as they say, else by their login name.
pub(super) fn name(given: Option<&str>) -> Option<String> {
    let given = given.map(str::to_owned);
    given.or_else(|| environment::get("USER"))
}

/// What a command changes, in the words of the server's actions; `None` for one that only looks.
pub(super) fn of_breakers(command: &BreakerCommand) -> Option<Value> {
    match command {
        BreakerCommand::List => None,
        BreakerCommand::Reset { key } => Some(json!({"action": "reset", "breaker": key})),
        BreakerCommand::ForceOpen { key, reason } => {
            Some(json!({"action": "force-open", "breaker": key, "reason": reason}))
        }
    }
}

/// The same for records.
pub(super) fn of_records(command: &DedupeCommand) -> Option<Value> {
    match command {
        DedupeCommand::List { .. } | DedupeCommand::Show { .. } | DedupeCommand::Export { .. } => {
            None
        }
        DedupeCommand::Clear { key, force } => {
            Some(json!({"action": "clear", "key": key, "force": force}))
        }
        DedupeCommand::Flush { filter, all } => {
            let mut action = fields(filter);
            action.insert("action".to_owned(), json!("flush"));
            action.insert("all".to_owned(), json!(all));
            Some(Value::Object(action))
        }
        DedupeCommand::Import { file } => Some(json!({"action": "import", "file": file})),
    }
}

/// Does it, with an entry before and one after. What can not be written down is not done.
pub(super) fn audited(
    app: &App,
    operator: Option<&str>,
    action: Option<Value>,
    work: impl FnOnce() -> Outcome<ExitCode>,
) -> Outcome<ExitCode> {
    let Some(action) = action else {
        return work();
    };
    let log = app.audit_log(app.open_state()?);
    let mut entry = Map::from_iter([
        (
            "id".to_owned(),
            json!(new_request_id(&*app.clock, &SystemEntropy)),
        ),
        ("peer".to_owned(), json!(HERE)),
        ("operator".to_owned(), json!(name(operator))),
        ("action".to_owned(), action),
    ]);
    write(&log, "admin.asked", &entry).map_err(|error| {
        Failure::failed(format!(
            "the audit log can not be written, so nothing was done: {}",
            error.message
        ))
    })?;
    let outcome = work();
    let (event, result) = match &outcome {
        Ok(_) => ("admin.done", json!({})),
        Err(failure) => ("admin.failed", json!({"error": failure.message})),
    };
    entry.insert("result".to_owned(), result);
    if let Err(error) = write(&log, event, &entry) {
        let why = error.message;
        output::note(&format!("the audit log could not be completed: {why}"));
    }
    outcome
}

fn write(log: &AuditLog, event: &str, entry: &Map<String, Value>) -> Outcome<()> {
    let written = runtime()?.block_on(log.append(event, entry.clone()));
    written
        .map(|_| ())
        .map_err(|error| Failure::failed(error.to_string()))
}
