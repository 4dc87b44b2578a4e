//! Looking at files: at many at once, and again at those that somebody used.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use holdfast_contract::redact::Redactor;
use holdfast_contract::{Clock, SystemClock};
use holdfast_transcript::discover::Candidate;
use holdfast_transcript::scan::{Action, How, InUse, Report, Tail, scan_as};
use indicatif::ProgressBar;

use crate::args::ScanArgs;
use crate::output;

/// How a file is looked at.
#[derive(Clone, Copy)]
pub(super) struct Look<'l> {
    pub(super) action: Action,
    pub(super) how: How,
    pub(super) redactor: &'l Redactor,
}

impl Look<'_> {
    fn at(self, file: &Candidate) -> Report {
        let now_ms = SystemClock.now_ms();
        scan_as(file, self.action, self.how, now_ms, self.redactor)
    }
}

/// What was typed about the files.
pub(super) fn how(args: &ScanArgs) -> How {
    How {
        tail: tail(args),
        in_use: match args.include_live_after {
            None => InUse::OpenOrRecent,
            Some(quiet) => InUse::WrittenWithin {
                quiet_ms: u64::try_from(quiet.as_millis()).unwrap_or(u64::MAX),
            },
        },
    }
}

pub(super) const fn tail(args: &ScanArgs) -> Tail {
    if args.complete {
        Tail::Complete
    } else {
        Tail::MayRun
    }
}

/// How often files that are in use are looked at again.
const WAIT_STEP: Duration = Duration::from_millis(100);

/// Looks again at files that were in use, until none is or the time is over.
pub(super) fn wait_for(
    files: &[Candidate],
    reports: &mut [Report],
    look: Look<'_>,
    wait: Duration,
) {
    let began = Instant::now();
    let count = reports.iter().filter(|report| report.is_in_use).count();
    if count > 0 {
        let count = output::counted(count as u64, "file");
        output::note(&format!("waiting for {count} in use"));
    }
    loop {
        let left = wait.saturating_sub(began.elapsed());
        let is_in_use = reports.iter().any(|report| report.is_in_use);
        if !is_in_use || left.is_zero() {
            return;
        }
        std::thread::sleep(WAIT_STEP.min(left));
        let both = files.iter().zip(reports.iter_mut());
        for (file, report) in both.filter(|(_, report)| report.is_in_use) {
            *report = look.at(file);
        }
    }
}

/// Scans files at once, and gives the reports back in their order.
pub(super) fn scan_all(
    files: &[Candidate],
    jobs: usize,
    look: Look<'_>,
    bar: &ProgressBar,
) -> Vec<Report> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(files.len()));
    std::thread::scope(|scope| {
        for _ in 0..jobs.min(files.len()) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(file) = files.get(at) else { break };
                    let report = look.at(file);
                    bar.inc(1);
                    if let Ok(mut done) = done.lock() {
                        done.push((at, report));
                    }
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_default();
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, report)| report).collect()
}
