//! `holdfast scan`

mod look;
mod still;

use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use holdfast_contract::redact::Redactor;
use holdfast_contract::{Clock, SystemClock};
use holdfast_transcript::discover::{Candidate, Homes, candidates};
use holdfast_transcript::incident::{self, Taken};
use holdfast_transcript::limits::TRANSCRIPT_BYTES_MAX;
use holdfast_transcript::plan::Changes;
use holdfast_transcript::scan::{Action, Report, scan_tail};
use holdfast_transcript::{Fault, Finding, PairingIssue, Strategy};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};

use crate::args::{GlobalArgs, RepairStrategy, ScanArgs};
use crate::config::Config;
use crate::environment;
use crate::fail::{Failure, Outcome};
use crate::output;
use look::{Look, how, scan_all, tail, wait_for};
use still::Still;

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
    let look = Look {
        action,
        how: how(args),
        redactor: &redactor,
    };
    let mut reports = scan_all(&files, jobs, look, &bar);
    bar.finish_and_clear();
    if let Some(wait) = args.wait {
        wait_for(&files, &mut reports, look, wait);
    }
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
    left_alone: Vec<Value>,
    still: Still,
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
            left_alone: Vec::new(),
            still: Still::default(),
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
            let (why, in_use) = (why, report.is_in_use);
            self.left_alone
                .push(json!({"file": path, "why": why, "inUse": in_use}));
        }
        if let Action::Repair(strategy) = self.action {
            self.still.add(path, strategy, &report);
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
    }

    /// Before anything is changed: which strategy mends a result that stands in the wrong place.
    fn recommend(&self, report: &Report) {
        let removes = matches!(
            self.action,
            Action::Report | Action::DryRun(Strategy::RemoveOrphans)
        );
        if removes && has_misplaced(report) {
            let [move_it, leave_it] = [Strategy::Reconstruct, Strategy::RemoveOrphans];
            output::line(&format!(
                "  `--strategy {}` moves a misplaced result to its call; {} leaves it where it is",
                move_it.name(),
                leave_it.name()
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
            if !self.left_alone.is_empty() {
                all["leftAlone"] = json!(self.left_alone);
            }
            output::json(&all);
        } else {
            self.still.show();
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
    let report = scan_tail("-", &text, tail(args))
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
