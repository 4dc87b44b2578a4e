//! `holdfast watch`

use std::collections::{HashMap, HashSet};
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use holdfast_contract::redact::Redactor;
use holdfast_contract::{Clock, SystemClock};
use holdfast_transcript::discover::{Candidate, Homes};
use holdfast_transcript::scan::{Action, Report, scan};
use holdfast_transcript::{Fault, Finding};

use super::scan::{complain, files, homes, in_words, log_incident, show, strategy_alone};
use crate::args::{GlobalArgs, WatchArgs};
use crate::config::Config;
use crate::fail::Outcome;
use crate::output;

/// What a file was when it was last looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
struct State {
    size: u64,
    modified: Option<SystemTime>,
}

/// Looks at files that changed since the last time, for ever. A file is read once it has been
/// quiet for one interval, so that what is only half written is not taken for broken.
pub(super) fn run(global: &GlobalArgs, args: &WatchArgs, json: bool) -> Outcome<ExitCode> {
    if args.strategy.is_some() && !args.repair {
        return Err(strategy_alone().hint("Add --repair."));
    }
    let redactor = Config::load(global.config.as_deref())?.redactor();
    let action = if args.repair {
        Action::Repair(args.strategy.unwrap_or_default().into())
    } else {
        Action::Report
    };
    let mut watch = Watch {
        action,
        json,
        redactor,
        homes: homes(),
        known: HashMap::new(),
        complaints: HashSet::new(),
    };
    watch.announce(args);
    loop {
        watch.round(&args.paths);
        std::thread::sleep(Duration::from_millis(args.interval_ms));
    }
}

struct Watch {
    action: Action,
    json: bool,
    redactor: Redactor,
    homes: Homes,
    known: HashMap<PathBuf, Seen>,
    /// Paths that can not be looked at, and why, as far as that was said.
    complaints: HashSet<(PathBuf, String)>,
}

/// What is known of a file.
struct Seen {
    state: State,
    is_done: bool,
    /// What was said about it already.
    told: HashSet<Told>,
    /// Why it could not be read or mended, as far as that was said.
    said: Option<String>,
}

/// What makes a finding the same one as before, also when lines before it came or went: its session,
/// type and id, and which one it is of those; its place where there is no id.
type Told = (String, Fault, Option<String>, u64);

impl Watch {
    /// Says what is watched, and what will be done about it.
    fn announce(&self, args: &WatchArgs) {
        let folders = if args.paths.is_empty() {
            self.homes.session_folders()
        } else {
            args.paths.clone()
        };
        let names: Vec<String> = folders.iter().map(|it| it.display().to_string()).collect();
        let what = match self.action {
            Action::Repair(strategy) => format!("mending with {}", strategy.name()),
            _ => "saying what breaks, changing nothing".to_owned(),
        };
        if names.is_empty() {
            output::note(&format!(
                "no agent has sessions here yet; watching for the first ones, {what}"
            ));
            return;
        }
        let count = files(&args.paths, &mut |_, _| {}).len();
        let count = output::counted(count as u64, "file");
        let names = output::harmless(&names.join(", "));
        output::note(&format!("watching {names} ({count}), {what}"));
    }

    /// Looks at everything once.
    fn round(&mut self, paths: &[PathBuf]) {
        let complaints = &mut self.complaints;
        let found = files(paths, &mut |path, error| {
            let why = match error.kind() {
                ErrorKind::NotFound => "is not there yet; waiting for it".to_owned(),
                _ => error.to_string(),
            };
            if complaints.insert((path.to_owned(), why.clone())) {
                complain(path, &why);
            }
        });
        for file in found {
            if is_due(&mut self.known, &file) {
                let report = scan(&file, self.action, SystemClock.now_ms(), &self.redactor);
                self.tell(&file, &report);
            }
        }
    }

    /// Says what is new about a file.
    fn tell(&mut self, file: &Candidate, report: &Report) {
        let Some(seen) = self.known.get_mut(&file.path) else {
            return;
        };
        // A live file is looked at again when it is quiet.
        seen.is_done = !report.is_in_use;
        let said = [&report.error, &report.left_alone, &report.passed_over];
        let said = said.into_iter().flatten().next().cloned();
        if said.is_some() && !is_same_reason(said.as_deref(), seen.said.as_deref()) {
            complain(&file.path, said.as_deref().unwrap_or_default());
        }
        seen.said = said;
        let keys = keys(&report.findings);
        let mut is_new = false;
        for (finding, key) in report.findings.iter().zip(&keys) {
            if seen.told.contains(key) {
                continue;
            }
            is_new = true;
            if self.json {
                output::json(finding);
            } else {
                show(finding);
            }
        }
        // What is gone is told again should it come back.
        seen.told = self::keys(&report.left).into_iter().collect();
        if let Some(changes) = report.changes
            && !self.json
        {
            let repaired = report.repaired;
            output::line(&format!("  {repaired} repaired; {}", in_words(changes)));
        }
        if is_new || report.changes.is_some() {
            log_incident(&self.homes, report, &self.redactor);
        }
    }
}

/// Whether two reasons differ in their numbers at most: how long ago a file was written changes with
/// every look.
fn is_same_reason(one: Option<&str>, other: Option<&str>) -> bool {
    let plain = |text: Option<&str>| {
        let text = text.unwrap_or_default();
        text.replace(|sign: char| sign.is_ascii_digit(), "")
    };
    plain(one) == plain(other)
}

fn keys(findings: &[Finding]) -> Vec<Told> {
    let mut counts: HashMap<(&str, Fault, &str), u64> = HashMap::new();
    let mut keys = Vec::with_capacity(findings.len());
    for finding in findings {
        let which = match &finding.id {
            Some(id) => {
                let key = (finding.file.as_str(), finding.fault, id.as_str());
                let count = counts.entry(key).or_default();
                *count += 1;
                *count
            }
            None => finding.offset,
        };
        keys.push((
            finding.file.clone(),
            finding.fault,
            finding.id.clone(),
            which,
        ));
    }
    keys
}

/// Whether a file changed since it was last scanned, and not since the last look.
fn is_due(known: &mut HashMap<PathBuf, Seen>, file: &Candidate) -> bool {
    let Ok(meta) = std::fs::metadata(&file.path) else {
        known.remove(&file.path);
        return false;
    };
    let state = State {
        size: meta.len(),
        modified: meta.modified().ok(),
    };
    match known.get_mut(&file.path) {
        Some(seen) if seen.state == state => !seen.is_done,
        Some(seen) => {
            seen.state = state;
            seen.is_done = false;
            false
        }
        None => {
            let seen = Seen {
                state,
                is_done: false,
                told: HashSet::new(),
                said: None,
            };
            known.insert(file.path.clone(), seen);
            false
        }
    }
}
