//! `holdfast scan`

use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use holdfast_contract::redact::Redactor;
use holdfast_contract::{Clock, SystemClock};
use holdfast_transcript::discover::{Candidate, Homes, candidates};
use holdfast_transcript::incident::{self, Taken};
use holdfast_transcript::limits::TRANSCRIPT_BYTES_MAX;
use holdfast_transcript::plan::Changes;
use holdfast_transcript::scan::{Action, Report, Tail, scan, scan_tail};
use holdfast_transcript::{Fault, Finding, PairingIssue, Strategy};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};

use crate::args::{GlobalArgs, RepairStrategy, ScanArgs};
use crate::config::Config;
use crate::environment;
use crate::fail::{Failure, Outcome};
use crate::output;

impl From<RepairStrategy> for Strategy {
    fn from(typed: RepairStrategy) -> Self {
        match typed {
            RepairStrategy::RemoveOrphans => Self::RemoveOrphans,
            RepairStrategy::Reconstruct => Self::Reconstruct,
            RepairStrategy::Truncate => Self::Truncate,
        }
    }
}

pub(super) fn run(global: &GlobalArgs, args: &ScanArgs, json: bool) -> Outcome<ExitCode> {
    if args.strategy.is_some() && !args.repair && !args.dry_run {
        return Err(strategy_alone()
            .hint("Add --repair to mend, or --dry-run to see what a repair would change."));
    }
    let redactor = Config::load(global.config.as_deref())?.redactor();
    if args.paths.iter().any(|path| path.as_os_str() == "-") {
        return standard_input(args, json);
    }
    if args.complete {
        return Err(Failure::usage("--complete is for standard input: `-`"));
    }
    let strategy = args.strategy.unwrap_or_default().into();
    let action = match (args.repair, args.dry_run) {
        (_, true) => Action::DryRun(strategy),
        (true, false) => Action::Repair(strategy),
        (false, false) => Action::Report,
    };
    let mut totals = Totals::new(action, json);
    let files = files(&args.paths, &mut |path, error| {
        totals.errors += 1;
        complain(path, &error.to_string());
    });
    let jobs = args.jobs.map_or_else(
        || std::thread::available_parallelism().map_or(1, usize::from),
        usize::from,
    );
    let bar = progress(files.len(), json);
    let reports = scan_all(&files, jobs, action, &redactor, &bar);
    bar.finish_and_clear();
    let homes = homes();
    for (file, report) in files.iter().zip(reports) {
        if let Action::Repair(_) = action {
            log_incident(&homes, &report, &redactor);
        }
        totals.add(&file.path, report);
    }
    Ok(totals.finish())
}

/// Somebody who says how to mend means to mend.
pub(super) fn strategy_alone() -> Failure {
    Failure::usage("--strategy says how to mend, and nothing is to be mended")
}

/// Where this user's agents keep their things.
pub(super) fn homes() -> Homes {
    let dir = |name: &str| environment::get(name).map(PathBuf::from);
    Homes {
        home: dir("HOME"),
        openclaw_state: dir("OPENCLAW_STATE_DIR"),
        openclaw_home: dir("OPENCLAW_HOME"),
        claude: dir("CLAUDE_CONFIG_DIR"),
        codex: dir("CODEX_HOME"),
    }
}

/// The files to look at: those at the paths, or every known agent's.
pub(super) fn files(
    paths: &[PathBuf],
    failed: &mut impl FnMut(&Path, &std::io::Error),
) -> Vec<Candidate> {
    let paths = if paths.is_empty() {
        homes().session_folders()
    } else {
        paths.to_vec()
    };
    paths
        .iter()
        .flat_map(|path| candidates(path, failed))
        .collect()
}

/// A bar on a terminal, for people.
pub(super) fn progress(files: usize, json: bool) -> ProgressBar {
    let bar = ProgressBar::new(files as u64);
    if json || !std::io::stderr().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} files, {per_sec}");
    if let Ok(style) = style {
        bar.set_style(style);
    }
    bar
}

/// Scans files at once, and gives the reports back in their order.
fn scan_all(
    files: &[Candidate],
    jobs: usize,
    action: Action,
    redactor: &Redactor,
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
                    let report = scan(file, action, SystemClock.now_ms(), redactor);
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

/// What all files came to.
struct Totals {
    action: Action,
    json: bool,
    sessions: usize,
    found: usize,
    repaired: usize,
    left: usize,
    errors: usize,
    findings: Vec<Finding>,
    after: Vec<Finding>,
    repairs: Vec<Value>,
    passed_over: Vec<PathBuf>,
}

impl Totals {
    fn new(action: Action, json: bool) -> Self {
        Self {
            action,
            json,
            sessions: 0,
            found: 0,
            repaired: 0,
            left: 0,
            errors: 0,
            findings: Vec::new(),
            after: Vec::new(),
            repairs: Vec::new(),
            passed_over: Vec::new(),
        }
    }

    fn add(&mut self, path: &Path, report: Report) {
        self.sessions += report.sessions;
        self.found += report.findings.len();
        self.repaired += report.repaired;
        self.left += report.left.len();
        if !self.json {
            report.findings.iter().for_each(show);
            for line in &report.diff {
                output::line(&coloured(line));
            }
            self.recommend(&report);
            self.show_repair(&report);
        }
        if let Some(why) = &report.left_alone {
            complain(path, why);
        }
        if let Some(why) = &report.passed_over {
            complain(path, &format!("passed over: {why}"));
            self.passed_over.push(path.to_owned());
        }
        if let Some(error) = &report.error {
            self.errors += 1;
            complain(path, error);
        }
        if self.json {
            if let Some(changes) = &report.changes {
                let mut repair = json!({"file": path, "changes": changes});
                if let Some(backup) = &report.backup {
                    repair["backup"] = json!(backup);
                }
                self.repairs.push(repair);
            }
            self.findings.extend(report.findings);
            self.after.extend(report.would_leave.unwrap_or(report.left));
        }
    }

    /// Says what a repair changed, and what it left.
    fn show_repair(&self, report: &Report) {
        let Action::Repair(strategy) = self.action else {
            return;
        };
        if report.findings.is_empty() || report.left_alone.is_some() || report.error.is_some() {
            return;
        }
        match &report.changes {
            Some(changes) => output::line(&format!("  {}", in_words(*changes))),
            None => output::line(&format!("  {} changes nothing here", strategy.name())),
        }
        if let Some(backup) = &report.backup {
            let backup = output::harmless(&backup.display().to_string());
            output::line(&output::dim(&format!("  as it was: {backup}")));
        }
        if report.changes.is_some() {
            for finding in &report.left {
                let id = finding.id.as_deref().unwrap_or("(none)");
                output::line(&format!(
                    "  left: {} of {}",
                    output::yellow(finding.fault.name()),
                    output::harmless(id)
                ));
            }
        }
        if strategy == Strategy::RemoveOrphans && has_misplaced(report) {
            if let Some(backup) = &report.backup {
                let file = report.findings.first().map_or("FILE", |it| &it.file);
                let backup = backup.display().to_string();
                let [file, backup] = [file, &backup].map(|path| quoted(&output::harmless(path)));
                output::line(&format!(
                    "  a misplaced result was removed; to have it moved to its call instead:\n  \
                     cp -p {backup} {file} && holdfast scan --repair --strategy {} {file}",
                    Strategy::Reconstruct.name()
                ));
            }
        } else if !report.left.is_empty() {
            let other = Strategy::Reconstruct.name();
            output::line(&format!("  `--strategy {other}` mends what is left"));
        }
    }

    /// Before anything is changed: which strategy keeps a result that stands in the wrong place.
    fn recommend(&self, report: &Report) {
        let removes = matches!(
            self.action,
            Action::Report | Action::DryRun(Strategy::RemoveOrphans)
        );
        if removes && has_misplaced(report) {
            let [move_it, remove_it] = [Strategy::Reconstruct, Strategy::RemoveOrphans];
            output::line(&format!(
                "  `--strategy {}` moves a misplaced result to its call; {} removes it",
                move_it.name(),
                remove_it.name()
            ));
        }
    }

    fn finish(self) -> ExitCode {
        if self.json {
            let mut all = json!({
                "sessions": self.sessions,
                "issues": self.findings,
                "repaired": self.repaired,
            });
            if self.action != Action::Report {
                all["left"] = json!(self.after);
                all["repairs"] = json!(self.repairs);
            }
            if !self.passed_over.is_empty() {
                all["passedOver"] = json!(self.passed_over);
            }
            output::json(&all);
        } else {
            let summary = format!(
                "{} sessions, {} issues found, {} repaired",
                self.sessions, self.found, self.repaired
            );
            output::line(&output::bold(&summary));
        }
        match (self.errors, self.left) {
            (0, 0) => ExitCode::SUCCESS,
            (0, _) => ExitCode::from(1),
            _ => ExitCode::from(2),
        }
    }
}

/// A path as one word of a shell's command.
fn quoted(path: &str) -> String {
    format!("'{}'", path.replace('\'', r"'\''"))
}

fn has_misplaced(report: &Report) -> bool {
    let mut findings = report.findings.iter();
    findings.any(|it| it.fault == Fault::MisplacedToolResult)
}

/// What a repair changed, in one line.
pub(super) fn in_words(changes: Changes) -> String {
    let counted = [
        (changes.removed, "removed"),
        (changes.moved, "moved"),
        (changes.altered, "altered"),
        (changes.added, "added"),
    ];
    let parts: Vec<String> = counted
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    format!("entries: {}", parts.join(", "))
}

/// One line a finding.
pub(super) fn show(finding: &Finding) {
    // Lines count from 1, as in every editor; a store has rows with sequence numbers.
    let (place, at) = match finding.line {
        Some(line) => (format!("{}:{line}", finding.file), "byte"),
        None => (finding.file.clone(), "row"),
    };
    output::line(&format!(
        "{} {} ({at} {}): {}",
        output::bold(&output::harmless(&place)),
        output::yellow(finding.fault.name()),
        finding.offset,
        output::harmless(&finding.description)
    ));
}

fn coloured(line: &str) -> String {
    let line = output::harmless(line);
    match line.as_bytes().first() {
        Some(b'-') => output::red(&line),
        Some(b'+') => output::green(&line),
        _ => line,
    }
}

/// Says on standard error what could not be done with a file.
pub(super) fn complain(path: &Path, what: &str) {
    output::note(&format!("{}: {what}", path.display()));
}

/// Writes what was found wrong with `OpenClaw`'s sessions to its incident log.
pub(super) fn log_incident(homes: &Homes, report: &Report, redactor: &Redactor) {
    let Some(openclaw) = homes.openclaw() else {
        return;
    };
    let Some(first) = report.findings.first() else {
        return;
    };
    if !Path::new(&first.file).starts_with(&openclaw) {
        return;
    }
    let issues: Vec<PairingIssue> = report.findings.iter().map(PairingIssue::from).collect();
    let taken = if report.repaired > 0 {
        Taken::Repaired
    } else {
        Taken::DetectedByScan
    };
    let key = session_key(&openclaw, &first.file);
    let incident = incident::incident(&key, &issues, taken, SystemClock.now_ms(), redactor);
    if let Err(error) = incident::log(&openclaw, &incident) {
        complain(
            &openclaw.join("logs"),
            &format!("the incident was not logged: {error}"),
        );
    }
}

/// `agent:<agent>:<session>`, from where the session is kept.
fn session_key(openclaw: &Path, file: &str) -> String {
    let below = Path::new(file).strip_prefix(openclaw.join("agents"));
    let agent = below.ok().and_then(|path| path.iter().next());
    let agent = agent.map_or_else(|| "main".into(), |agent| agent.to_string_lossy());
    let session = if let Some((_, session)) = file.rsplit_once('#') {
        session.to_owned()
    } else {
        let stem = Path::new(file).file_stem().unwrap_or_default();
        stem.to_string_lossy().into_owned()
    };
    format!("agent:{agent}:{session}")
}

fn standard_input(args: &ScanArgs, json: bool) -> Outcome<ExitCode> {
    if args.repair || args.dry_run || args.paths.len() > 1 {
        return Err(Failure::usage(
            "standard input can only be checked, and only by itself",
        ));
    }
    let text = read_standard_input()?;
    let tail = if args.complete {
        Tail::Complete
    } else {
        Tail::MayRun
    };
    let report = scan_tail("-", &text, tail)
        .map_err(|error| Failure::usage(format!("standard input {error}")))?;
    let mut totals = Totals::new(Action::Report, json);
    totals.add(Path::new("-"), report);
    Ok(totals.finish())
}

/// All of standard input.
pub(super) fn read_standard_input() -> Outcome<Vec<u8>> {
    let mut text = Vec::new();
    std::io::stdin()
        .lock()
        .take(TRANSCRIPT_BYTES_MAX + 1)
        .read_to_end(&mut text)
        .map_err(|error| Failure::usage(format!("standard input can not be read: {error}")))?;
    if text.len() as u64 > TRANSCRIPT_BYTES_MAX {
        return Err(Failure::usage(format!(
            "standard input is longer than {TRANSCRIPT_BYTES_MAX} bytes"
        )));
    }
    Ok(text)
}
