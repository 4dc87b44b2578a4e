//! Which schedules are run, and what a failure prints.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;

use super::trace::Detail;

/// How many schedules a run covers.
pub const SCHEDULES_ENV: &str = "HOLDFAST_SIM_SCHEDULES";
/// One seed to replay, with its trace.
pub const SEED_ENV: &str = "HOLDFAST_SIM_SEED";
/// The first seed of a run: a number, or `random`.
pub const BASE_ENV: &str = "HOLDFAST_SIM_BASE";

/// A promise that was not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The seed that shows it.
    pub seed: u64,
    /// Which promise, and by what.
    pub message: String,
    /// The hash of the schedule's trace.
    pub trace_hash: u64,
    /// The trace, when it was kept.
    pub lines: Vec<String>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.lines {
            writeln!(f, "{line}")?;
        }
        writeln!(f, "seed {}: {}", self.seed, self.message)?;
        write!(
            f,
            "replay with: {SEED_ENV}={} cargo test -p holdfast-toolbox --test it \
             every_promise_is_kept -- --nocapture",
            self.seed
        )
    }
}

/// How one schedule went: the hash of its trace, or what it broke.
pub type Schedule = Result<u64, Box<Violation>>;

/// The seeds of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seeds {
    /// The first.
    pub first: u64,
    /// How many.
    pub count: u64,
    /// Whether traces are kept as text.
    pub detail: Detail,
}

impl Seeds {
    /// The seeds that the environment asks for; without any wish, `count` from `first` on, so that
    /// two runs of one commit see the same schedules.
    pub fn from_env(first: u64, count: u64) -> Self {
        let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
        if let Some(seed) = number(SEED_ENV) {
            return Self {
                first: seed,
                count: 1,
                detail: Detail::Lines,
            };
        }
        let first = match std::env::var(BASE_ENV).as_deref() {
            Ok("random") => SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(first, |since| since.as_secs() << 24),
            _ => number(BASE_ENV).unwrap_or(first),
        };
        Self {
            first,
            count: number(SCHEDULES_ENV).unwrap_or(count),
            detail: Detail::Hash,
        }
    }

    /// A fixed range, whatever the environment says.
    pub fn fixed(first: u64, count: u64) -> Self {
        Self {
            first,
            count,
            detail: Detail::Hash,
        }
    }

    /// Runs every schedule on all processors. The violation with the lowest seed wins, so that the
    /// same run always reports the same one.
    pub fn run(
        &self,
        schedule: impl Fn(u64, Detail) -> Schedule + Sync,
    ) -> Result<u64, Box<Violation>> {
        let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let next = AtomicU64::new(0);
        let stop = AtomicBool::new(false);
        let worst: Mutex<Option<Box<Violation>>> = Mutex::new(None);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        if index >= self.count {
                            break;
                        }
                        let seed = self.first.wrapping_add(index);
                        let Err(violation) = schedule(seed, self.detail) else {
                            continue;
                        };
                        stop.store(true, Ordering::Relaxed);
                        let mut worst = worst.lock();
                        if worst.as_ref().is_none_or(|seen| violation.seed < seen.seed) {
                            *worst = Some(violation);
                        }
                    }
                });
            }
        });
        match worst.into_inner() {
            Some(violation) => Err(violation),
            None => Ok(self.count),
        }
    }
}
