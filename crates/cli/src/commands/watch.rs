//! `holdfast watch`

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use holdfast_contract::{Clock, SystemClock};
use holdfast_transcript::discover::Candidate;
use holdfast_transcript::scan::{Action, scan};

use super::scan::{complain, files, homes, log_incident, show};
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
    let redactor = Config::load(global.config.as_deref())?.redactor();
    let action = if args.repair {
        Action::Repair(args.strategy.into())
    } else {
        Action::Report
    };
    let homes = homes();
    let mut known: HashMap<PathBuf, Seen> = HashMap::new();
    loop {
        let found = files(&args.paths, &mut |_, _| {});
        for file in found {
            if !is_due(&mut known, &file) {
                continue;
            }
            let report = scan(&file, action, SystemClock.now_ms(), &redactor);
            let is_waiting = report.left_alone.is_some();
            if let Some(seen) = known.get_mut(&file.path) {
                // A live file is looked at again when it is quiet.
                seen.is_done = !is_waiting;
                if seen.told == report.findings.len() && is_waiting {
                    continue;
                }
                seen.told = report.findings.len();
            }
            if let Some(error) = &report.error {
                complain(&file.path, error);
            }
            if let Some(why) = &report.left_alone {
                complain(&file.path, why);
            }
            if report.findings.is_empty() {
                continue;
            }
            for finding in &report.findings {
                if json {
                    output::json(finding);
                } else {
                    show(finding);
                }
            }
            log_incident(&homes, &report, &redactor);
            if args.repair && !json && !is_waiting {
                output::line(&format!("{} repaired", report.repaired));
            }
        }
        std::thread::sleep(Duration::from_millis(args.interval_ms));
    }
}

struct Seen {
    state: State,
    is_done: bool,
    told: usize,
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
            known.insert(
                file.path.clone(),
                Seen {
                    state,
                    is_done: false,
                    told: 0,
                },
            );
            false
        }
    }
}
