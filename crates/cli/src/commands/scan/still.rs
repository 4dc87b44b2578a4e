//! What is still broken after a repair, and what to do about it.

use std::collections::BTreeMap;
use std::path::Path;

use holdfast_transcript::Strategy;
use holdfast_transcript::scan::Report;

use crate::output;

/// One line a file, and one that says what to do.
#[derive(Default)]
pub(super) struct Still {
    count: usize,
    lines: Vec<String>,
}

impl Still {
    /// Takes what is left of a file.
    pub(super) fn add(&mut self, path: &Path, strategy: Strategy, report: &Report) {
        if report.left.is_empty() {
            return;
        }
        self.count += report.left.len();
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for finding in &report.left {
            *counts.entry(finding.fault.name()).or_default() += 1;
        }
        let counts: Vec<String> = counts
            .into_iter()
            .map(|(name, count)| format!("{count} {name}"))
            .collect();
        let file = path.display().to_string();
        let place = output::harmless(&file);
        self.lines.push(format!("  {place}: {}", counts.join(", ")));
        self.lines
            .push(format!("    {}", advice(&file, strategy, report)));
    }

    /// Shows it to people.
    pub(super) fn show(&self) {
        if self.count == 0 {
            return;
        }
        let issues = output::counted(self.count as u64, "issue");
        output::line(&output::bold(&format!("{issues} left:")));
        self.lines.iter().for_each(|line| output::line(line));
    }
}

/// What to do about what is left of a file.
fn advice(file: &str, strategy: Strategy, report: &Report) -> String {
    let file = quoted(&output::harmless(file));
    let why = |why: &Option<String>| why.as_deref().map(output::harmless);
    if let Some(why) = why(&report.left_alone) {
        if !report.is_in_use {
            return why;
        }
        let strategy = strategy.name();
        return format!(
            "{why}; end its agent, or wait for it: holdfast scan --repair --strategy {strategy} --wait {file}"
        );
    }
    if let Some(why) = why(&report.error) {
        return format!("{why}; go back to a checkpoint: holdfast session rollback {file}");
    }
    let other = Strategy::Reconstruct.name();
    format!(
        "move results to their calls, and answer calls that have none: holdfast scan --repair --strategy {other} {file}"
    )
}

/// A path as one word of a shell's command.
fn quoted(path: &str) -> String {
    format!("'{}'", path.replace('\'', r"'\''"))
}
