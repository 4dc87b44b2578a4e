//! Rate limits: each process's own, or one that all processes share.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use holdfast_contract::Clock;
use holdfast_reliability::rate::{
    LocalLimits, RateLimitOverrides, SharedRateLimits, Taken, ToolLimit,
};
use holdfast_reliability::store::StoreResult;
use holdfast_testkit::SeededEntropy;

use super::handle::Line;
use super::plan::{Happening, pick};
use super::planted::Bug;
use super::schedule::Stage;

/// Who counts the attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counted {
    ByEachProcess,
    ByAll,
}

/// A limit on the attempts of every tool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rate {
    pub(crate) calls: u32,
    pub(crate) window_ms: u64,
    pub(crate) burst: u32,
    pub(crate) max_wait_ms: u64,
    pub(crate) counted: Counted,
}

impl Rate {
    pub(crate) fn draw(dice: &SeededEntropy) -> Option<Self> {
        if !dice.chance(20) {
            return None;
        }
        let calls = [1, 2, 5][pick(dice, 3)];
        Some(Self {
            calls,
            window_ms: [10, 1_000, 10_000][pick(dice, 3)],
            burst: if dice.chance(50) { calls } else { 1 },
            max_wait_ms: [0, 100, 15_000][pick(dice, 3)],
            counted: if dice.chance(50) {
                Counted::ByAll
            } else {
                Counted::ByEachProcess
            },
        })
    }

    pub(crate) fn written(self) -> RateLimitOverrides {
        RateLimitOverrides {
            calls: Some(self.calls),
            window_ms: Some(self.window_ms),
            burst: Some(self.burst),
            max_wait_ms: Some(self.max_wait_ms),
        }
    }

    /// How many attempts may begin within a time.
    fn allowed(self, span_ms: u64) -> u64 {
        u64::from(self.burst) + span_ms * u64::from(self.calls) / self.window_ms
    }
}

/// A process's way to the places that all processes share.
pub(crate) struct LimitsHandle {
    pub(crate) line: Line,
    pub(crate) limits: Arc<LocalLimits>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) bug: Option<Bug>,
}

impl SharedRateLimits for LimitsHandle {
    fn take<'a>(
        &'a self,
        limits: &'a [ToolLimit],
        wait_max_us: u64,
    ) -> BoxFuture<'a, StoreResult<Taken>> {
        let apply = move || {
            let now_us = self.clock.now_ms().saturating_mul(1_000);
            if self.bug == Some(Bug::PlacesAreNotCounted) {
                return LocalLimits::default().take(limits, now_us, wait_max_us);
            }
            self.limits.take(limits, now_us, wait_max_us)
        };
        self.line.carry("rate limit", apply).boxed()
    }
}

/// No more attempts begin in any time than the limit allows.
pub(crate) fn check(stage: &Stage) {
    let Some(rate) = stage.plan.rate else { return };
    if !can_be_judged(stage, rate) {
        return;
    }
    let mut begun: BTreeMap<(Option<u64>, &str), Vec<u64>> = BTreeMap::new();
    for course in stage.courses.lock().iter() {
        let counter = (rate.counted == Counted::ByEachProcess).then_some(course.process);
        let tool = stage.plan.intents[course.plan.intent].nature.name();
        let runs = stage.ledger.world.runs_of(course.number);
        let times = begun.entry((counter, tool)).or_default();
        times.extend(runs.iter().map(|run| run.at_ms));
    }
    for ((_, tool), mut times) in begun {
        times.sort_unstable();
        for (first, from_ms) in times.iter().enumerate() {
            for (count, until_ms) in (1..).zip(&times[first..]) {
                let span_ms = until_ms - from_ms;
                if count > rate.allowed(span_ms) {
                    stage.ledger.broken(|| {
                        format!("rate: {count} attempts of {tool} began within {span_ms} ms")
                    });
                    return;
                }
            }
        }
    }
}

/// A place that was given is used when the process gets to it, so one that stalls, or hears late of
/// its place, begins several at once. A clock that jumps takes the places with it, and a limit that
/// can not be asked is kept by each process alone.
fn can_be_judged(stage: &Stage, rate: Rate) -> bool {
    let disturbs = |it: &Happening| match it {
        Happening::Stall { .. } | Happening::Jump { .. } => true,
        Happening::Outage { .. } => rate.counted == Counted::ByAll,
        Happening::Deliver(_) | Happening::Crash { .. } => false,
    };
    let faults = stage.plan.faults;
    let reliable = faults.slow + faults.fails + faults.answer_lost == 0;
    (reliable || rate.counted == Counted::ByEachProcess)
        && !stage.plan.happenings.iter().any(|(_, it)| disturbs(it))
}
