//! `holdfast audit-log`

use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};
use std::path::Path;
use std::process::ExitCode;

use holdfast_contract::time::rfc3339;
use holdfast_reliability::store::sqlite::DATABASE_FILE;
use holdfast_toolbox::audit::{AuditLine, AuditLog, files, verify};
use serde_json::json;

use crate::app::{App, runtime};
use crate::args::approvals::AuditLogCommand;
use crate::fail::{Failure, Outcome};
use crate::output;

pub(super) fn run(app: &App, command: &AuditLogCommand, json: bool) -> Outcome<ExitCode> {
    // A check of the wrong place must not make one that is in order, nor anything else.
    let is_empty = |path: &Path| -> Outcome<bool> {
        let found = files(path).map_err(|error| no_log(app, &error.to_string()))?;
        Ok(found.is_empty())
    };
    if !app.state_dir.join(DATABASE_FILE).exists() {
        return Err(no_log(app, "there is no state of Holdfast"));
    }
    let log = app.audit_log(app.open_state()?);
    if matches!(command, AuditLogCommand::Verify)
        && is_empty(log.path())?
        && runtime()?
            .block_on(log.head())
            .is_ok_and(|head| head.seq == 0)
    {
        return Err(no_log(app, "nothing has been recorded there yet"));
    }
    match command {
        AuditLogCommand::Show { limit } => show(&log, *limit, json),
        AuditLogCommand::Verify => check(&log, json),
    }
}

fn no_log(app: &App, why: &str) -> Failure {
    let dir = app.state_dir.display();
    Failure::failed(format!("there is no audit log in {dir}: {why}")).hint(
        "--state DIR or HOLDFAST_STATE names the state directory. An empty one proves nothing.",
    )
}

/// The log, with the files that were set aside; an empty one where none has been written yet.
fn open(log: &AuditLog) -> Outcome<Box<dyn BufRead>> {
    let failed = |error: std::io::Error| unreadable(log, &error);
    let mut all: Box<dyn BufRead> = Box::new(std::io::empty());
    for path in files(log.path()).map_err(failed)? {
        let file = File::open(path).map_err(failed)?;
        all = Box::new(all.chain(BufReader::new(file)));
    }
    Ok(all)
}

fn unreadable(log: &AuditLog, error: &std::io::Error) -> Failure {
    let path = log.path().display();
    Failure::failed(format!("the audit log {path} can not be read: {error}"))
}

/// The fields that a table shows, where an entry has them.
const SHOWN: [&str; 9] = [
    "approval", "rule", "tool", "answer", "by", "session", "action", "operator", "peer",
];

fn show(log: &AuditLog, limit: usize, json: bool) -> Outcome<ExitCode> {
    let mut last = std::collections::VecDeque::new();
    for line in open(log)?.lines() {
        let line = line.map_err(|error| unreadable(log, &error))?;
        if last.len() == limit {
            last.pop_front();
        }
        last.push_back(line);
    }
    if json {
        for line in last.iter().take(limit) {
            output::line(line);
        }
        return Ok(ExitCode::SUCCESS);
    }
    if last.is_empty() {
        output::line("Nothing has been recorded yet.");
        return Ok(ExitCode::SUCCESS);
    }
    let rows = last.iter().take(limit).map(|text| {
        let Ok(line) = serde_json::from_str::<AuditLine>(text) else {
            return vec![
                String::new(),
                String::new(),
                "not an entry".to_owned(),
                String::new(),
            ];
        };
        let fields: Vec<String> = SHOWN
            .iter()
            .filter_map(|name| {
                let value = line.fields.get(*name)?;
                let text = match value {
                    serde_json::Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                Some(format!("{name}={text}"))
            })
            .collect();
        vec![
            line.seq.to_string(),
            rfc3339(line.at_ms),
            line.event,
            output::harmless(&fields.join(" ")),
        ]
    });
    output::line(&output::table(&["entry", "when", "what", ""], rows));
    Ok(ExitCode::SUCCESS)
}

fn check(log: &AuditLog, json: bool) -> Outcome<ExitCode> {
    let head = runtime()?
        .block_on(log.head())
        .map_err(|error| Failure::failed(error.to_string()))?;
    let report = verify(open(log)?, &head).map_err(|error| unreadable(log, &error))?;
    let intact = report.problems.is_empty();
    if json {
        output::json(
            &json!({"intact": intact, "lines": report.lines, "problems": report.problems}),
        );
    } else {
        for problem in &report.problems {
            output::line(&format!("line {}: {}", problem.line, problem.what));
        }
        output::line(&if intact {
            format!("{} entries, all as they were written.", report.lines)
        } else {
            format!(
                "{} lines, {} problems.",
                report.lines,
                report.problems.len()
            )
        });
    }
    Ok(if intact {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    })
}
