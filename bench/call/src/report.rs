//! The table for people and the raw data for later.

use std::fmt::Write as _;

use serde::Serialize;

use crate::durable::{Durable, TOGETHER};
use crate::memory::Memory;
use crate::sample::Subject;

/// Calls a second of two callers on two worker threads.
#[derive(Debug, Clone, Serialize)]
pub struct TwoThreads {
    pub name: &'static str,
    /// One figure a round.
    pub calls_per_second: Vec<f64>,
}

/// Everything one run found.
#[derive(Serialize)]
pub struct Report {
    pub machine: serde_json::Value,
    pub argument_bytes: usize,
    pub calls_per_round: usize,
    pub subjects: Vec<Subject>,
    pub two_threads: Vec<TwoThreads>,
    pub memory: Memory,
    pub durable: Durable,
}

/// A figure beside what it was meant to be.
struct Aim {
    what: String,
    figure: String,
    aim: &'static str,
    met: Option<bool>,
}

impl Report {
    fn subject(&self, name: &str) -> Option<&Subject> {
        self.subjects.iter().find(|subject| subject.name == name)
    }

    fn ratio(&self, a: &str, b: &str) -> f64 {
        match (self.subject(a), self.subject(b)) {
            (Some(a), Some(b)) => a.mean_ns() / b.mean_ns(),
            _ => f64::NAN,
        }
    }

    fn at_most(&self, a: &str, b: &str, most: f64, aim: &'static str) -> Aim {
        let ratio = self.ratio(a, b);
        Aim {
            what: format!("{a} / {b}"),
            figure: format!("{ratio:.2}x"),
            aim,
            met: Some(ratio <= most),
        }
    }

    fn told(&self, a: &str, b: &str) -> Aim {
        Aim {
            what: format!("{a} / {b}"),
            figure: format!("{:.2}x", self.ratio(a, b)),
            aim: "told, no aim",
            met: None,
        }
    }

    fn tail(&self, name: &str) -> Aim {
        let p99_ns = self.subject(name).map_or(u64::MAX, Subject::p99_ns);
        Aim {
            what: format!("{name}, p99"),
            figure: format!("{} ns", p99_ns),
            aim: "at most 50 us",
            met: Some(p99_ns <= 50_000),
        }
    }

    fn aims(&self) -> Vec<Aim> {
        let node = 1.0 / self.ratio("stack, mutating, log", "node, log");
        let memory = &self.memory;
        let grown = memory.full_bytes.saturating_sub(memory.before_bytes);
        let grown_again = memory
            .after_as_many_again_bytes
            .saturating_sub(memory.full_bytes);
        let mut aims = vec![
            self.at_most("stack, mutating", "floor", 3.0, "at most 3x"),
            self.at_most("stack, read-only", "floor", 3.0, "at most 3x"),
            self.told("stack, mutating, log", "floor"),
            self.told("stack, read-only, log", "floor"),
            self.told("stack, mutating", "tower"),
            Aim {
                what: "stack, mutating, log: calls/s against node, log".to_owned(),
                figure: format!("{node:.1}x"),
                aim: "at least 5x",
                met: Some(node >= 5.0),
            },
            self.tail("open breaker, log"),
            self.tail("guard, log"),
            Aim {
                what: format!("memory of {} records with 1 KB output", memory.records),
                figure: megabytes(grown),
                aim: "told",
                met: None,
            },
            Aim {
                what: "memory of as many again".to_owned(),
                figure: format!("+{}", megabytes(grown_again)),
                aim: "bounded: at most +10 %",
                met: Some(grown_again * 10 <= grown),
            },
        ];
        aims.push(self.durable_aim());
        aims
    }

    fn durable_aim(&self) -> Aim {
        let durable = &self.durable;
        let (alone, together) = (durable.alone_per_second, durable.together_per_second);
        Aim {
            what: format!("durable claims, {TOGETHER} at once against one sync each"),
            figure: format!("{:.1}x ({together:.0}/s, {alone:.0}/s)", together / alone),
            aim: "at least 30x",
            met: Some(together / alone >= 30.0),
        }
    }

    pub fn table(&self) -> String {
        let mut out = String::new();
        // Writing to a string can not fail.
        let _ = writeln!(
            out,
            "{:<24} {:>9} {:>9} {:>9} {:>11}",
            "one thread", "ns/call", "p50 ns", "p99 ns", "calls/s"
        );
        for subject in &self.subjects {
            let _ = writeln!(
                out,
                "{:<24} {:>9.0} {:>9} {:>9} {:>11.0}",
                subject.name,
                subject.mean_ns(),
                subject.p50_ns(),
                subject.p99_ns(),
                subject.calls_per_second()
            );
        }
        let _ = writeln!(out, "\n{:<24} {:>41}", "two threads", "calls/s");
        for row in &self.two_threads {
            let best = row.calls_per_second.iter().copied().fold(0.0, f64::max);
            let _ = writeln!(out, "{:<24} {best:>41.0}", row.name);
        }
        let _ = writeln!(
            out,
            "\none append and sync at a time: {:.0}/s\n",
            self.durable.syncs_per_second
        );
        for Aim {
            what,
            figure,
            aim,
            met,
        } in self.aims()
        {
            let verdict = match met {
                Some(true) => "pass",
                Some(false) => "MISS",
                None => "-",
            };
            let _ = writeln!(out, "{what:<56} {figure:>26}  {aim:<24} {verdict}");
        }
        out
    }
}

#[expect(clippy::cast_precision_loss, reason = "memory far below 2^53 bytes")]
fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}
