//! Whether the log is as it was written.

use std::io::BufRead;

use serde::Serialize;

use super::line::{AuditLine, NO_HASH};
use super::log::Head;

/// Problems told at most; one change rarely comes alone.
const PROBLEMS_MAX: usize = 100;

/// Something that is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// The line in the file, from 1; the one after the last for a cut end.
    pub line: u64,
    /// What is wrong.
    pub what: String,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Lines read.
    pub lines: u64,
    /// What is wrong with them.
    pub problems: Vec<Problem>,
}

/// Checks a log against the newest line that the database knows.
pub fn verify(log: impl BufRead, head: &Head) -> std::io::Result<Report> {
    let mut report = Report::default();
    let mut last = Head {
        seq: 0,
        hash: NO_HASH.to_owned(),
    };
    for text in log.split(b'\n') {
        report.lines += 1;
        let number = report.lines;
        for what in check(&text?, &mut last) {
            if report.problems.len() < PROBLEMS_MAX {
                report.problems.push(Problem { line: number, what });
            }
        }
    }
    if let Some(what) = check_end(&last, head) {
        report.problems.push(Problem {
            line: report.lines + 1,
            what,
        });
    }
    Ok(report)
}

/// Checks one line against the one before it, and makes it the one before the next.
fn check(text: &[u8], last: &mut Head) -> Vec<String> {
    let mut problems = Vec::new();
    let Ok(line) = serde_json::from_slice::<AuditLine>(text) else {
        return vec!["it is not a line of the audit log".to_owned()];
    };
    let seq = line.seq;
    if line.hash != line.right_hash() || line.text().as_bytes() != text {
        problems.push(format!("entry {seq} was changed: its hash does not fit it"));
    }
    if seq > last.seq + 1 {
        let (from, to) = (last.seq + 1, seq - 1);
        problems.push(if from == to {
            format!("entry {from} was removed before entry {seq}")
        } else {
            format!("entries {from} to {to} were removed before entry {seq}")
        });
    } else if seq <= last.seq {
        problems.push(format!(
            "entry {seq} stands after entry {}: lines were moved or repeated",
            last.seq
        ));
    } else if line.prev != last.hash {
        problems.push(format!(
            "entry {seq} does not follow the entry {} before it",
            last.seq
        ));
    }
    *last = Head {
        seq: seq.max(last.seq),
        hash: line.hash,
    };
    problems
}

fn check_end(last: &Head, head: &Head) -> Option<String> {
    if last.seq < head.seq {
        let (from, to) = (last.seq + 1, head.seq);
        Some(format!(
            "the end was cut off: entries {from} to {to} are missing"
        ))
    } else if last.seq == head.seq && last.hash != head.hash {
        Some(format!(
            "entry {} is not the one that was written last",
            last.seq
        ))
    } else if last.seq > head.seq + 1 {
        // One more is what a process leaves that dies between the file and the database.
        let (from, to) = (head.seq + 1, last.seq);
        Some(format!(
            "entries {from} to {to} were added by something else than Holdfast"
        ))
    } else {
        None
    }
}
