//! The incident log: what was found wrong with an `OpenClaw` session, in a file of its own.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use holdfast_contract::redact::Redactor;
use serde_json::{Value, json};

use crate::checkpoint::write_whole;
use crate::values::PairingIssue;

/// What was done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// Found before a request.
    DetectedAtRuntime,
    /// Found by a scan.
    DetectedByScan,
    /// Found and mended.
    Repaired,
}

impl Taken {
    /// Its name in the log.
    pub const fn name(self) -> &'static str {
        match self {
            Self::DetectedAtRuntime => "detected_at_runtime",
            Self::DetectedByScan => "detected_by_scan",
            Self::Repaired => "repaired",
        }
    }
}

/// The incident as it is logged. Texts are redacted; ids are what they are, or nobody could find
/// the place.
pub fn incident(
    session_key: &str,
    issues: &[PairingIssue],
    taken: Taken,
    now_ms: u64,
    redactor: &Redactor,
) -> Value {
    let issues: Vec<Value> = issues
        .iter()
        .map(|issue| {
            json!({
                "type": issue.fault,
                "toolUseId": issue.tool_use_id,
                "messageIndex": issue.message_index,
                "description": redactor.redact_text(&issue.description),
            })
        })
        .collect();
    json!({
        "timestamp": holdfast_contract::time::rfc3339(now_ms),
        "sessionKey": redactor.redact_text(session_key),
        "issues": issues,
        "action": taken.name(),
    })
}

/// Writes an incident to `logs/l0-runtime-incident-{timestamp}.json` in `OpenClaw`'s directory, and
/// says where.
pub fn log(openclaw: &Path, incident: &Value) -> io::Result<PathBuf> {
    let logs = openclaw.join("logs");
    fs::create_dir_all(&logs)?;
    let stamp = incident["timestamp"].as_str().unwrap_or_default();
    let stamp = stamp.replace([':', '.'], "-");
    let mut path = logs.join(format!("l0-runtime-incident-{stamp}.json"));
    let mut number = 1;
    while path.exists() {
        number += 1;
        path = logs.join(format!("l0-runtime-incident-{stamp}-{number}.json"));
    }
    let text = serde_json::to_string_pretty(incident).map_err(io::Error::other)?;
    write_whole(&path, &(text + "\n"))?;
    Ok(path)
}
