//! Sessions: scanned, repaired and checked, each on a thread of Node's pool and not on its event loop.

use std::path::{Path, PathBuf};

use holdfast_contract::clock::{Clock, SystemClock};
use holdfast_contract::redact::Redactor;
use holdfast_transcript::discover::candidates;
use holdfast_transcript::incident::{self, Taken};
use holdfast_transcript::live;
use holdfast_transcript::scan::{Action, Report, scan};
use holdfast_transcript::{PairingIssue, Strategy, validate_tool_result_pairing};
use napi::Result;
use napi::bindgen_prelude::AsyncTask;
use napi_derive::napi;
use serde_json::{Value, json};

use crate::safely::failed;
use crate::work::Work;

/// What a scan does about its findings.
#[napi(string_enum = "camelCase")]
#[derive(Debug)]
pub enum ScanAction {
    /// Only says so.
    Report,
    /// Repairs what nobody has open.
    Repair,
}

/// Scans files and folders; the promise is a JSON list, one report a file that has sessions or trouble.
#[napi(ts_return_type = "Promise<string>")]
pub fn scan_sessions(paths: Vec<String>, action: ScanAction, strategy: String) -> AsyncTask<Work> {
    Work::task(move || {
        let strategy = named(&strategy)?;
        let action = match action {
            ScanAction::Report => Action::Report,
            ScanAction::Repair => Action::Repair(strategy),
        };
        let redactor = Redactor::default();
        let mut reports = Vec::new();
        for path in paths {
            let mut unlisted = Vec::new();
            let found = candidates(Path::new(&path), &mut |path, error| {
                unlisted.push(json!({"file": path, "sessions": 0, "error": error.to_string()}));
            });
            reports.extend(unlisted);
            for file in found {
                let report = scan(&file, action, SystemClock.now_ms(), &redactor);
                if report.sessions > 0 || report.error.is_some() {
                    reports.push(in_json(&file.path, &report));
                }
            }
        }
        Ok(Value::Array(reports))
    })
}

/// Checks messages (a JSON list) that are about to be sent; the promise is a JSON list of issues.
#[napi(ts_return_type = "Promise<string>")]
pub fn check_messages(messages: String) -> AsyncTask<Work> {
    Work::task(move || {
        let messages: Vec<Value> = serde_json::from_str(&messages).map_err(failed)?;
        Ok(json!(validate_tool_result_pairing(&messages)))
    })
}

/// Which entries of a session in use (a JSON list) hold results that its host should leave out of what it
/// sends; the promise is a JSON list of their ids.
#[napi(ts_return_type = "Promise<string>")]
pub fn results_to_exclude(entries: String) -> AsyncTask<Work> {
    Work::task(move || {
        let entries: Vec<Value> = serde_json::from_str(&entries).map_err(failed)?;
        Ok(json!(live::results_to_exclude(&entries)))
    })
}

/// Writes an incident file for messages that were found broken before a run: the promise is where it is,
/// as JSON.
#[napi(ts_return_type = "Promise<string>")]
pub fn write_incident(
    openclaw_dir: String,
    session_key: String,
    messages: String,
) -> AsyncTask<Work> {
    Work::task(move || {
        let messages: Vec<Value> = serde_json::from_str(&messages).map_err(failed)?;
        let issues: Vec<PairingIssue> = validate_tool_result_pairing(&messages);
        let redactor = Redactor::default();
        let taken = Taken::DetectedAtRuntime;
        let now_ms = SystemClock.now_ms();
        let incident = incident::incident(&session_key, &issues, taken, now_ms, &redactor);
        let path = incident::log(&PathBuf::from(openclaw_dir), &incident).map_err(failed)?;
        Ok(json!(path))
    })
}

fn named(name: &str) -> Result<Strategy> {
    Strategy::ALL
        .into_iter()
        .find(|strategy| strategy.name() == name)
        .ok_or_else(|| failed(format!("there is no repair strategy {name:?}")))
}

fn in_json(path: &Path, report: &Report) -> Value {
    json!({
        "file": path,
        "sessions": report.sessions,
        "findings": report.findings,
        "repaired": report.repaired,
        "left": report.left,
        "backup": report.backup,
        "leftAlone": report.left_alone,
        "error": report.error,
    })
}
