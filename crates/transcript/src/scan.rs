//! Scanning: a file or store in, findings and repairs out.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::Path;

use holdfast_contract::redact::Redactor;

use crate::adapter::adapter;
use crate::check::check;
use crate::discover::{Candidate, Claim};
use crate::finding::{Finding, describe};
use crate::plan::{Changes, Strategy, plan};
use crate::read::{self, ReadError};
use crate::store::{Store, StoreError, is_store, repair_store};
use crate::unread::{self, Unread};
use crate::write::{self, repair_file_as};
pub use crate::write::{How, InUse, Tail};

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
    /// How many of the findings were mended.
    pub repaired: usize,
    /// What is wrong now: the findings that were not mended, and what mending brought to light, such
    /// as a call whose misplaced result was removed. Another scan finds the same.
    pub left: Vec<Finding>,
    /// What a repair would change.
    pub diff: Vec<String>,
    /// What would be wrong after the repair that a dry run shows; none where that is not known.
    pub would_leave: Option<Vec<Finding>>,
    /// What a repair changed, or would change.
    pub changes: Option<Changes>,
    /// Where the file as it was is kept.
    pub backup: Option<std::path::PathBuf>,
    /// Why findings were not mended.
    pub left_alone: Option<String>,
    /// Whether that is because somebody uses the file: later it can be mended.
    pub is_in_use: bool,
    /// Why a file that is named like a session was not looked at. Nothing is wrong with it.
    pub passed_over: Option<String>,
    /// Why it could not be read, or not be repaired.
    pub error: Option<String>,
}

impl Report {
    /// Takes what is wrong after a repair. A finding was mended when nothing of its type is wrong
    /// with its id any more.
    fn settle(&mut self, left: Vec<Finding>) {
        type Key<'f> = (&'f str, crate::Fault, Option<&'f str>);
        fn key(finding: &Finding) -> Key<'_> {
            (&finding.file, finding.fault, finding.id.as_deref())
        }
        let mut after: HashMap<Key<'_>, usize> = HashMap::new();
        for finding in &left {
            *after.entry(key(finding)).or_default() += 1;
        }
        self.repaired = 0;
        for finding in &self.findings {
            match after.get_mut(&key(finding)) {
                Some(count) if *count > 0 => *count -= 1,
                _ => self.repaired += 1,
            }
        }
        self.left = left;
    }

    /// Nothing was mended.
    fn leave(&mut self) {
        self.left.clone_from(&self.findings);
    }

    /// Nothing was mended, because somebody uses the file.
    fn in_use(&mut self, why: String) {
        self.left_alone = Some(why);
        self.is_in_use = true;
    }
}

/// Why a file gave no report.
enum Trouble {
    /// It is a database that holds no transcripts.
    OtherDatabase,
    /// It is in no known format.
    UnknownFormat,
    /// Anything else, in words.
    Said(String),
}

impl From<ReadError> for Trouble {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::UnknownFormat => Self::UnknownFormat,
            error => Self::Said(error.to_string()),
        }
    }
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NoTranscripts => Self::OtherDatabase,
            error => Self::Said(error.to_string()),
        }
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        ReadError::Io(error).into()
    }
}

/// Scans one file.
pub fn scan(candidate: &Candidate, action: Action, now_ms: u64, redactor: &Redactor) -> Report {
    scan_as(candidate, action, How::default(), now_ms, redactor)
}

/// The same, when more is known of the file.
pub fn scan_as(
    candidate: &Candidate,
    action: Action,
    how: How,
    now_ms: u64,
    redactor: &Redactor,
) -> Report {
    let path = &candidate.path;
    let mut report = Report::default();
    let scanning = Scanning {
        path,
        action,
        how,
        now_ms,
        redactor,
    };
    let result = match is_store(path) {
        Ok(true) => scanning.store(&mut report),
        Ok(false) => scanning.file(&mut report),
        Err(error) => Err(error.into()),
    };
    let result = match result {
        Err(Trouble::UnknownFormat) => scan_unread(candidate, action, &mut report),
        result => result,
    };
    match result {
        Ok(()) => {}
        // In a directory there is much that is no transcript.
        Err(Trouble::OtherDatabase | Trouble::UnknownFormat) => {
            if candidate.claim == Claim::Named {
                report.error = Some(ReadError::UnknownFormat.to_string());
            }
        }
        Err(Trouble::Said(error)) => {
            report.leave();
            report.error = Some(error);
        }
    }
    report
}

/// A file that is scanned, and what is done with it.
#[derive(Clone, Copy)]
struct Scanning<'s> {
    path: &'s Path,
    action: Action,
    how: How,
    now_ms: u64,
    redactor: &'s Redactor,
}

impl Scanning<'_> {
    fn file(self, report: &mut Report) -> Result<(), Trouble> {
        let mut file = File::open(self.path)?;
        let is_empty = file
            .metadata()
            .is_ok_and(|meta| meta.is_file() && meta.len() == 0);
        if is_empty {
            // A session that nothing was said in yet.
            report.sessions = 1;
            return Ok(());
        }
        let (shape, mut index) = match self.action {
            Action::DryRun(_) => read::index_to_repair(&file)?,
            Action::Report | Action::Repair(_) => read::index(&file)?,
        };
        self.how.tail.close(&mut index);
        report.sessions = 1;
        let pairing = adapter(shape.format).pairing();
        let found = check(&index, pairing);
        if found.is_empty() {
            return Ok(());
        }
        let name = self.path.display().to_string();
        report.findings = describe(&name, shape, &index, &found, &mut file)?;
        report.leave();
        match self.action {
            Action::Report => {}
            Action::DryRun(strategy) => {
                let plan = plan(&index, pairing, strategy);
                let shape = shape.writable().map_err(not_repaired)?;
                report.diff = write::diff(shape, &index, &plan, &mut file, self.redactor)?;
                if !plan.is_empty() {
                    let left = write::left_by(&name, shape, &index, &plan, &mut file)?;
                    report.would_leave = Some(left);
                    report.changes = Some(Changes::of(&plan, &index));
                }
            }
            Action::Repair(strategy) => {
                match repair_file_as(self.path, strategy, self.how, self.now_ms, &|_| {}) {
                    Ok(Some(repaired)) => {
                        report.settle(repaired.left);
                        report.changes = Some(repaired.changes);
                        report.backup = Some(repaired.backup);
                    }
                    Ok(None) => {}
                    Err(error) if error.is_live() => report.in_use(error.to_string()),
                    Err(error) => return Err(not_repaired(error)),
                }
            }
        }
        Ok(())
    }

    fn store(self, report: &mut Report) -> Result<(), Trouble> {
        let store = Store::open(self.path)?;
        let mut of_session: HashMap<String, Vec<Finding>> = HashMap::new();
        for id in store.sessions()? {
            let session = store.session(&id)?.ending(self.how.tail);
            report.sessions += 1;
            let findings = session.findings(self.path)?;
            if findings.is_empty() {
                continue;
            }
            if let Action::DryRun(strategy) = self.action {
                let plan = session.plan(strategy);
                let texts = &mut session.texts();
                let index = &session.index;
                let lines = write::diff::lines(store.format(), index, &plan, texts, self.redactor);
                report.diff.extend(lines?);
                if !plan.is_empty() {
                    *report.changes.get_or_insert_default() += Changes::of(&plan, index);
                }
            }
            report.findings.extend(findings.iter().cloned());
            of_session.insert(id, findings);
        }
        drop(store);
        report.leave();
        let Action::Repair(strategy) = self.action else {
            return Ok(());
        };
        if report.findings.is_empty() {
            return Ok(());
        }
        match repair_store(self.path, strategy, self.how.tail, self.now_ms) {
            Ok(Some(repaired)) => {
                of_session.extend(repaired.left);
                let mut left: Vec<(String, Vec<Finding>)> = of_session.into_iter().collect();
                left.sort_by(|(one, _), (other, _)| one.cmp(other));
                let left = left.into_iter().flat_map(|(_, findings)| findings);
                report.settle(left.collect());
                report.changes = Some(repaired.changes);
                report.backup = Some(repaired.backup);
            }
            Ok(None) => {}
            Err(error @ StoreError::Live(_)) => report.in_use(error.to_string()),
            Err(error @ StoreError::OnlyRead) => report.left_alone = Some(error.to_string()),
            Err(error) => return Err(not_repaired(error)),
        }
        Ok(())
    }
}

fn not_repaired(error: impl std::fmt::Display) -> Trouble {
    Trouble::Said(format!("not repaired: {error}"))
}

/// A file that is in no known format: was it a session?
fn scan_unread(candidate: &Candidate, action: Action, report: &mut Report) -> Result<(), Trouble> {
    match unread::look(candidate)? {
        Unread::Blank => report.sessions = 1,
        Unread::Broken(findings) => {
            report.sessions = 1;
            report.findings = findings;
            report.leave();
            if action != Action::Report {
                report.left_alone = Some(
                    "not repaired: nothing in it can be read; `holdfast session reset` archives it \
                     and begins it anew"
                        .to_owned(),
                );
            }
        }
        Unread::Rest(why) => return Err(Trouble::Said(why.to_owned())),
        Unread::SomethingElse if candidate.claim == Claim::Session => {
            report.passed_over = Some(ReadError::UnknownFormat.to_string());
        }
        Unread::SomethingElse => return Err(Trouble::UnknownFormat),
    }
    Ok(())
}

/// Scans a transcript that comes over a stream.
pub fn scan_bytes(name: &str, text: &[u8]) -> Result<Report, ReadError> {
    scan_tail(name, text, Tail::MayRun)
}

/// The same, when it is known what its end is.
pub fn scan_tail(name: &str, text: &[u8], tail: Tail) -> Result<Report, ReadError> {
    let mut report = Report {
        sessions: 1,
        ..Report::default()
    };
    if text.iter().all(u8::is_ascii_whitespace) {
        return Ok(report);
    }
    let (shape, mut index) = read::index(text)?;
    tail.close(&mut index);
    let found = check(&index, adapter(shape.format).pairing());
    report.findings = describe(name, shape, &index, &found, &mut io::Cursor::new(text))?;
    report.leave();
    Ok(report)
}
