//! What is measured of a subject in one round, and what is made of all rounds.

use std::time::{Duration, Instant};

use serde::Serialize;

/// One round of one subject.
#[derive(Debug, Clone, Serialize)]
pub struct Round {
    /// Time of a call in the median batch: a batch is shorter than a turn of the scheduler, so a
    /// neighbour on the same core spoils some batches and leaves the others alone.
    pub mean_ns: f64,
    /// Median of single calls.
    pub p50_ns: u64,
    /// The slowest of a hundred single calls.
    pub p99_ns: u64,
}

/// All rounds of one subject.
#[derive(Debug, Clone, Serialize)]
pub struct Subject {
    pub name: &'static str,
    /// What is inside the timed part.
    pub what: &'static str,
    pub rounds: Vec<Round>,
}

impl Subject {
    pub fn new(name: &'static str, what: &'static str) -> Self {
        Self {
            name,
            what,
            rounds: Vec::new(),
        }
    }

    /// The best round: what the code costs when no neighbour disturbs it.
    pub fn mean_ns(&self) -> f64 {
        self.rounds
            .iter()
            .map(|round| round.mean_ns)
            .fold(f64::INFINITY, f64::min)
    }

    pub fn calls_per_second(&self) -> f64 {
        1e9 / self.mean_ns()
    }

    pub fn p50_ns(&self) -> u64 {
        self.rounds
            .iter()
            .map(|round| round.p50_ns)
            .min()
            .unwrap_or(0)
    }

    /// The median of the rounds: a tail has no best case.
    pub fn p99_ns(&self) -> u64 {
        let mut tails: Vec<u64> = self.rounds.iter().map(|round| round.p99_ns).collect();
        tails.sort_unstable();
        tails.get(tails.len() / 2).copied().unwrap_or(0)
    }
}

/// Collects one round.
#[derive(Default)]
pub struct Meter {
    batches_ns: Vec<f64>,
    each_ns: Vec<u64>,
}

impl Meter {
    pub fn add_batch(&mut self, took: Duration, calls: usize) {
        #[expect(
            clippy::cast_precision_loss,
            reason = "counts and times far below 2^53"
        )]
        self.batches_ns
            .push(nanos(took) as f64 / calls.max(1) as f64);
    }

    pub fn add_each(&mut self, begun: Instant) {
        self.each_ns.push(nanos(begun.elapsed()));
    }

    pub fn add_each_ns(&mut self, each_ns: Vec<u64>) {
        self.each_ns.extend(each_ns);
    }

    pub fn round(mut self) -> Round {
        self.each_ns.sort_unstable();
        let at = |share: usize| {
            let index = self.each_ns.len() * share / 100;
            self.each_ns.get(index).copied().unwrap_or(0)
        };
        self.batches_ns.sort_unstable_by(f64::total_cmp);
        let median = self.batches_ns.get(self.batches_ns.len() / 2);
        Round {
            mean_ns: median.copied().unwrap_or(0.0),
            p50_ns: at(50),
            p99_ns: at(99),
        }
    }
}

pub fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
