//! Scanning: a file or store in, findings and repairs out.

use std::fs::File;
use std::io;
use std::path::Path;

use holdfast_contract::redact::Redactor;

use crate::adapter::adapter;
use crate::check::check;
use crate::discover::Candidate;
use crate::finding::{Finding, Words, describe};
use crate::format::Format;
use crate::plan::{Strategy, plan};
use crate::read::{self, ReadError};
use crate::store::{Store, StoreError, is_store, repair_store};
use crate::write::{self, repair_file};

/// What to do about findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Action {
    /// Only say so.
    #[default]
    Report,
    /// Show what a repair would change.
    DryRun(Strategy),
    /// Repair.
    Repair(Strategy),
}

/// What came of a file.
#[derive(Debug, Default)]
pub struct Report {
    /// Sessions in it: one in a file, many in a store.
    pub sessions: usize,
    /// What was found wrong.
    pub findings: Vec<Finding>,
    /// How many of them were mended.
    pub repaired: usize,
    /// What a repair would change.
    pub diff: Vec<String>,
    /// Where the file as it was is kept.
    pub backup: Option<std::path::PathBuf>,
    /// Why findings were not mended.
    pub left_alone: Option<String>,
    /// Why it could not be read, or not be repaired.
    pub error: Option<String>,
}

/// Scans one file.
pub fn scan(candidate: &Candidate, action: Action, now_ms: u64, redactor: &Redactor) -> Report {
    let path = &candidate.path;
    let mut report = Report::default();
    let result = match is_store(path) {
        Ok(true) => scan_store(path, action, now_ms, redactor, &mut report),
        Ok(false) => scan_file(path, action, now_ms, redactor, &mut report),
        Err(error) => Err(format!("can not be read: {error}")),
    };
    match result {
        Ok(()) => {}
        // In a directory there is much that is no transcript.
        Err(error) if !candidate.is_named && error == not_one() => {}
        Err(error) => report.error = Some(error),
    }
    report
}

fn not_one() -> String {
    ReadError::UnknownFormat.to_string()
}

fn said(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn scan_file(
    path: &Path,
    action: Action,
    now_ms: u64,
    redactor: &Redactor,
    report: &mut Report,
) -> Result<(), String> {
    let mut file = File::open(path).map_err(|error| said(ReadError::Io(error)))?;
    let is_empty = file
        .metadata()
        .is_ok_and(|meta| meta.is_file() && meta.len() == 0);
    if is_empty {
        // A session that nothing was said in yet.
        report.sessions = 1;
        return Ok(());
    }
    let (shape, index) = read::index(&file).map_err(said)?;
    report.sessions = 1;
    let pairing = adapter(shape.format).pairing();
    let found = check(&index, pairing);
    if found.is_empty() {
        return Ok(());
    }
    let name = path.display().to_string();
    report.findings = describe(&name, shape, &index, &found, &mut file).map_err(said)?;
    match action {
        Action::Report => {}
        Action::DryRun(strategy) => {
            let plan = plan(&index, pairing, strategy);
            let shape = shape
                .writable()
                .map_err(|error| format!("not repaired: {error}"))?;
            report.diff = write::diff(shape, &index, &plan, &mut file, redactor).map_err(said)?;
        }
        Action::Repair(strategy) => match repair_file(path, strategy, now_ms, &|_| {}) {
            Ok(Some(repaired)) => {
                report.repaired = found.len().saturating_sub(repaired.left.len());
                report.backup = Some(repaired.backup);
            }
            Ok(None) => {}
            Err(error) if error.is_live() => report.left_alone = Some(said(error)),
            Err(error) => return Err(format!("not repaired: {error}")),
        },
    }
    Ok(())
}

fn scan_store(
    path: &Path,
    action: Action,
    now_ms: u64,
    redactor: &Redactor,
    report: &mut Report,
) -> Result<(), String> {
    let store = match Store::open(path) {
        Ok(store) => store,
        Err(StoreError::NoTranscripts) => return Err(not_one()),
        Err(error) => return Err(said(error)),
    };
    for id in store.sessions().map_err(said)? {
        let session = store.session(&id).map_err(said)?;
        report.sessions += 1;
        let file = format!("{}#{id}", path.display());
        let words = Words {
            file: &file,
            format: Format::OpenClaw,
            index: &session.index,
        };
        let found = session.check();
        let findings = found
            .iter()
            .map(|found| words.finding(*found, session.text(found.entry)));
        report.findings.extend(findings);
        if let (Action::DryRun(strategy), false) = (action, found.is_empty()) {
            let plan = session.plan(strategy);
            let texts = &mut session.texts();
            let lines =
                write::diff::lines(Format::OpenClaw, &session.index, &plan, texts, redactor);
            report.diff.extend(lines.map_err(said)?);
        }
    }
    drop(store);
    if let (Action::Repair(strategy), false) = (action, report.findings.is_empty()) {
        match repair_store(path, strategy, now_ms) {
            Ok(Some(repaired)) => {
                let left = |id: &str| repaired.left.get(id).map(Vec::len);
                let mut mended = 0;
                let mut seen = std::collections::HashMap::<&str, usize>::new();
                for finding in &report.findings {
                    let id = finding.file.rsplit_once('#').map_or("", |(_, id)| id);
                    *seen.entry(id).or_default() += 1;
                }
                for (id, before) in seen {
                    mended += left(id).map_or(0, |after| before.saturating_sub(after));
                }
                report.repaired = mended;
                report.backup = Some(repaired.backup);
            }
            Ok(None) => {}
            Err(error @ StoreError::Live(_)) => report.left_alone = Some(said(error)),
            Err(error) => return Err(format!("not repaired: {error}")),
        }
    }
    Ok(())
}

/// Scans a transcript that comes over a stream.
pub fn scan_bytes(name: &str, text: &[u8]) -> Result<Report, ReadError> {
    let mut report = Report {
        sessions: 1,
        ..Report::default()
    };
    if text.iter().all(u8::is_ascii_whitespace) {
        return Ok(report);
    }
    let (shape, index) = read::index(text)?;
    let found = check(&index, adapter(shape.format).pairing());
    report.findings = describe(name, shape, &index, &found, &mut io::Cursor::new(text))?;
    Ok(report)
}
