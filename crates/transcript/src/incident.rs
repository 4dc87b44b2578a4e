//! The incident log: what was found wrong with an `OpenClaw` session, in a file of its own.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use holdfast_contract::redact::Redactor;
use serde_json::{Value, json};

use crate::checkpoint::write_whole;
use crate::limits::INCIDENTS_MAX;
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

const PREFIX: &str = "l0-runtime-incident-";
const SUFFIX: &str = ".json";

/// Writes an incident to `logs/l0-runtime-incident-{timestamp}.json` in `OpenClaw`'s directory, and
/// says where. Of more than [`INCIDENTS_MAX`] the oldest is removed.
pub fn log(openclaw: &Path, incident: &Value) -> io::Result<PathBuf> {
    let logs = openclaw.join("logs");
    fs::create_dir_all(&logs)?;
    let stamp = incident["timestamp"].as_str().unwrap_or_default();
    let text = serde_json::to_string_pretty(incident).map_err(io::Error::other)?;
    let path = reserve(&logs, &stamp.replace([':', '.'], "-"))?;
    write_whole(&path, &(text + "\n"))?;
    // What can not be removed now is removed after the next one.
    let _ = remove_oldest(&logs);
    Ok(path)
}

/// A file with this stamp that is nobody else's: others may find something in the same millisecond.
fn reserve(logs: &Path, stamp: &str) -> io::Result<PathBuf> {
    let mut number = 1;
    loop {
        let nth = (number > 1).then(|| format!("-{number}"));
        let path = logs.join(format!(
            "{PREFIX}{stamp}{}{SUFFIX}",
            nth.unwrap_or_default()
        ));
        let mut fresh = OpenOptions::new();
        match fresh.write(true).create_new(true).mode(0o600).open(&path) {
            Ok(_) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(error),
        }
    }
}

fn remove_oldest(logs: &Path) -> io::Result<()> {
    let mut all = Vec::new();
    for entry in fs::read_dir(logs)? {
        let name = entry?.file_name();
        all.extend(age(&name.to_string_lossy()).map(|age| (age, name)));
    }
    all.sort();
    let too_many = all.len().saturating_sub(INCIDENTS_MAX);
    for (_, name) in all.drain(..too_many) {
        match fs::remove_file(logs.join(name)) {
            // Another process was faster.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            removed => removed?,
        }
    }
    Ok(())
}

/// What a file's name says of its age: smaller is older. Nothing where it is not one of ours.
fn age(name: &str) -> Option<(String, u64)> {
    let stamp = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
    match stamp.rsplit_once("Z-") {
        Some((stamp, number)) => Some((format!("{stamp}Z"), number.parse().ok()?)),
        None => Some((stamp.to_owned(), 1)),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::thread;

    use super::*;

    fn found(now_ms: u64) -> Value {
        let redactor = Redactor::default();
        incident("s", &[], Taken::DetectedByScan, now_ms, &redactor)
    }

    #[test]
    fn what_many_find_in_the_same_millisecond_is_in_a_file_each() {
        let home = tempfile::tempdir().unwrap();
        let each = || {
            let log = || log(home.path(), &found(1_790_000_000_123));
            thread::scope(|scope| {
                let finders: Vec<_> = (0..8).map(|_| scope.spawn(log)).collect();
                let paths = finders.into_iter().map(|finder| finder.join().unwrap());
                paths.collect::<io::Result<Vec<_>>>().unwrap()
            })
        };
        let paths: Vec<_> = (0..10).flat_map(|_| each()).collect();
        let distinct: HashSet<_> = paths.iter().collect();
        assert_eq!(distinct.len(), 80);
        for path in &paths {
            let text = fs::read_to_string(path).unwrap();
            assert!(serde_json::from_str::<Value>(&text).is_ok(), "{text}");
        }
        let left = fs::read_dir(home.path().join("logs")).unwrap().count();
        assert_eq!(left, 80, "nothing else is left behind");
    }

    #[test]
    fn only_the_newest_are_kept() {
        let home = tempfile::tempdir().unwrap();
        let logs = home.path().join("logs");
        fs::create_dir_all(&logs).unwrap();
        fs::write(logs.join("l0-runtime-incident-by-hand.json.txt"), "").unwrap();
        fs::write(logs.join("gateway.log"), "").unwrap();
        // Twelve in a millisecond: `-10` is newer than `-9`.
        let stamp = |n: usize| format!("2026-09-21T12-00-00-{:03}Z", n / 12);
        let mut paths: Vec<_> = (0..INCIDENTS_MAX)
            .map(|n| reserve(&logs, &stamp(n)).unwrap())
            .collect();
        paths.extend((0..18).map(|_| log(home.path(), &found(1_800_000_000_000)).unwrap()));
        let (old, new) = paths.split_at(18);
        assert!(old.iter().all(|path| !path.exists()), "{old:?}");
        assert!(new.iter().all(|path| path.exists()), "{new:?}");
        assert_eq!(fs::read_dir(&logs).unwrap().count(), INCIDENTS_MAX + 2);
    }
}
