//! What finding, checking and vouching for a call costs, what a command costs, and what the file tools
//! cost on large files, each next to a peer.
//!
//! Run by `bench/tools/run`. Subjects take turns, so that whatever the machine does meanwhile
//! happens to all of them.

mod commands;
mod dispatch;
mod files;

use std::time::Instant;

use serde::Serialize;

pub type Failed = Box<dyn std::error::Error>;

/// One subject's times.
#[derive(Serialize)]
pub struct Subject {
    section: &'static str,
    name: &'static str,
    p50_us: f64,
    p99_us: f64,
    all_ns: Vec<u64>,
}

/// A subject that is being measured.
pub struct Meter {
    section: &'static str,
    name: &'static str,
    all_ns: Vec<u64>,
}

impl Meter {
    pub fn new(section: &'static str, name: &'static str) -> Self {
        Self {
            section,
            name,
            all_ns: Vec::new(),
        }
    }

    /// Notes what `calls` of them took since `from`, per call.
    pub fn note(&mut self, from: Instant, calls: u64) {
        let spent_ns = u64::try_from(from.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.all_ns.push(spent_ns / calls.max(1));
    }

    pub fn done(mut self) -> Subject {
        self.all_ns.sort_unstable();
        let at = |share: f64| {
            let last = self.all_ns.len().saturating_sub(1);
            let place = (last as f64 * share).round() as usize;
            self.all_ns.get(place).copied().unwrap_or(0) as f64 / 1_000.0
        };
        Subject {
            section: self.section,
            name: self.name,
            p50_us: at(0.5),
            p99_us: at(0.99),
            all_ns: self.all_ns,
        }
    }
}

#[derive(Serialize)]
struct Report {
    machine: serde_json::Value,
    subjects: Vec<Subject>,
}

fn main() -> Result<(), Failed> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (rounds, machine, out) = match arguments[..] {
        ["--machine", machine, "--out", out] => (200, machine, out),
        ["--quick", "--machine", machine, "--out", out] => (20, machine, out),
        _ => return Err("run bench/tools/run".into()),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let mut subjects = runtime.block_on(dispatch::measure(rounds))?;
    subjects.extend(runtime.block_on(commands::measure(rounds))?);
    subjects.extend(runtime.block_on(files::measure(rounds.div_ceil(10)))?);
    for subject in &subjects {
        println!(
            "{:<10} {:<58} p50 {:>12.2} us   p99 {:>12.2} us",
            subject.section, subject.name, subject.p50_us, subject.p99_us
        );
    }
    let report = Report {
        machine: serde_json::from_str(machine)?,
        subjects,
    };
    std::fs::write(out, serde_json::to_string(&report)?)?;
    Ok(())
}
