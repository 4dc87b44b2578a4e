//! What will happen in a schedule, all of it drawn from the seed.

use holdfast_contract::DedupeMode;
use holdfast_reliability::config::UNKNOWN_WINDOW_MS;
use holdfast_testkit::SeededEntropy;
use holdfast_testkit::sim::{Nature, Weather};

use super::people::People;
use super::rates::Rate;

/// How badly a process's stores behave; percentages of operations.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Faults {
    /// Operations that take their time, before or after they are applied.
    pub(crate) slow: u64,
    pub(crate) slow_ms_max: u64,
    /// Operations that fail before they are applied.
    pub(crate) fails: u64,
    /// Operations that are applied and whose answer is lost.
    pub(crate) answer_lost: u64,
    /// Last words of dropped calls that never arrive.
    pub(crate) drop_lost: u64,
    /// Renewals that never come back.
    pub(crate) renewal_hangs: u64,
}

/// One thing a caller wants.
#[derive(Debug, Clone)]
pub(crate) struct Intent {
    pub(crate) nature: Nature,
    /// The caller's own key; without one the key is computed.
    pub(crate) key: Option<String>,
    /// Equal for intents that echo each other.
    pub(crate) content: u64,
    pub(crate) protection: Protection,
}

/// Whether the caller wants its intent protected at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protection {
    Protected,
    /// `dedupeMode: disabled`: every delivery is on its own.
    Disabled,
}

/// One arrival of an intent at a process.
#[derive(Debug, Clone)]
pub(crate) struct Delivery {
    pub(crate) intent: usize,
    pub(crate) process: usize,
    pub(crate) mode: DedupeMode,
    /// Other arguments under the same key.
    pub(crate) other_arguments: bool,
    pub(crate) deadline_ms: Option<u64>,
    /// The caller goes away after this long.
    pub(crate) cancel_ms: Option<u64>,
    pub(crate) turn: u64,
}

#[derive(Debug, Clone)]
pub(crate) enum Happening {
    Deliver(Delivery),
    Crash {
        process: usize,
        restart_after_ms: Option<u64>,
    },
    /// The process does not run at all for a while.
    Stall {
        process: usize,
        ms: u64,
    },
    /// Its stores can not be reached for a while.
    Outage {
        process: usize,
        ms: u64,
    },
    /// The wall clock of the machine jumps.
    Jump {
        ms: i64,
    },
}

#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) processes: usize,
    pub(crate) lease_ms: u64,
    pub(crate) weather: Weather,
    pub(crate) faults: Faults,
    /// A breaker that opens early, to see it open at all.
    pub(crate) touchy_breaker: bool,
    /// How long an unknown message answers for its echo.
    pub(crate) unknown_window_ms: u64,
    /// Whether every call waits for a person.
    pub(crate) people: People,
    /// How many attempts may begin in a time.
    pub(crate) rate: Option<Rate>,
    pub(crate) intents: Vec<Intent>,
    /// By time.
    pub(crate) happenings: Vec<(u64, Happening)>,
}

impl Plan {
    pub(crate) fn draw(dice: &SeededEntropy) -> Self {
        let processes = 1 + pick(dice, 3);
        let lease_ms = [2_000, 5_000, 20_000, 120_000][pick(dice, 4)];
        let horizon_ms = [50, 2_000, 15_000, 120_000][pick(dice, 4)];
        let intents = draw_intents(dice);
        let mut happenings = Vec::new();
        for (number, intent) in intents.iter().enumerate() {
            for _ in 0..2 + dice.below(4) {
                let delivery = draw_delivery(dice, number, intent, processes, lease_ms);
                happenings.push((dice.below(horizon_ms), Happening::Deliver(delivery)));
            }
        }
        draw_troubles(dice, processes, lease_ms, horizon_ms, &mut happenings);
        // Stable: what falls on the same millisecond happens in the order it was drawn.
        happenings.sort_by_key(|(at_ms, _)| *at_ms);
        Self {
            processes,
            lease_ms,
            weather: draw_weather(dice),
            faults: draw_faults(dice, lease_ms),
            touchy_breaker: dice.chance(40),
            unknown_window_ms: [500, 5_000, UNKNOWN_WINDOW_MS][pick(dice, 3)],
            // Last, so that schedules without people and limits are what they were before them.
            people: if dice.chance(25) {
                People::Asked
            } else {
                People::NotAsked
            },
            rate: Rate::draw(dice),
            intents,
            happenings,
        }
    }

    pub(crate) fn jumps_back(&self) -> bool {
        let back = |happening: &Happening| matches!(happening, Happening::Jump { ms } if *ms < 0);
        self.happenings.iter().any(|(_, it)| back(it))
    }
}

pub(crate) fn pick(dice: &SeededEntropy, count: usize) -> usize {
    usize::try_from(dice.below(count as u64)).unwrap_or(0)
}

fn draw_intents(dice: &SeededEntropy) -> Vec<Intent> {
    let mut intents: Vec<Intent> = Vec::new();
    for number in 0..=dice.below(3) {
        let nature = Nature::ALL[pick(dice, Nature::ALL.len())];
        let key = dice.chance(40).then(|| format!("key-{number}"));
        let protection = if dice.chance(4) {
            Protection::Disabled
        } else {
            Protection::Protected
        };
        let intent = Intent {
            nature,
            key,
            content: number,
            protection,
        };
        // A model that asks again under a new id: equal content, another intent.
        if nature == Nature::Message && intent.key.is_none() && dice.chance(60) {
            for _ in 0..=dice.below(2) {
                intents.push(intent.clone());
            }
        }
        intents.push(intent);
    }
    intents
}

fn draw_delivery(
    dice: &SeededEntropy,
    number: usize,
    intent: &Intent,
    processes: usize,
    lease_ms: u64,
) -> Delivery {
    let mode = match intent.protection {
        Protection::Disabled => DedupeMode::Disabled,
        Protection::Protected if dice.chance(25) => DedupeMode::BestEffort,
        Protection::Protected => DedupeMode::Enforced,
    };
    let span = |chance| {
        dice.chance(chance)
            .then(|| 1 + dice.below([20, 500, 5_000, lease_ms * 2][pick(dice, 4)]))
    };
    Delivery {
        intent: number,
        process: pick(dice, processes),
        mode,
        other_arguments: intent.key.is_some() && dice.chance(8),
        deadline_ms: span(30),
        cancel_ms: span(20),
        turn: dice.below(3),
    }
}

fn draw_troubles(
    dice: &SeededEntropy,
    processes: usize,
    lease_ms: u64,
    horizon_ms: u64,
    happenings: &mut Vec<(u64, Happening)>,
) {
    let at = || dice.below(horizon_ms + horizon_ms / 4 + 1);
    let process = || pick(dice, processes);
    if dice.chance(35) {
        for _ in 0..=dice.below(2) {
            let restart_after_ms = dice.chance(70).then(|| dice.below(3_000));
            let crash = Happening::Crash {
                process: process(),
                restart_after_ms,
            };
            happenings.push((at(), crash));
        }
    }
    if dice.chance(25) {
        let ms = dice.below(lease_ms * 3);
        let process = process();
        happenings.push((at(), Happening::Stall { process, ms }));
    }
    if dice.chance(15) {
        let ms = dice.below(20_000);
        let process = process();
        happenings.push((at(), Happening::Outage { process, ms }));
    }
    if dice.chance(15) {
        for _ in 0..=dice.below(2) {
            // Far less than the 24 hours after which a record may be forgotten.
            let size = i64::try_from(dice.below(lease_ms * 3)).unwrap_or(0);
            let ms = if dice.chance(50) { size } else { -size };
            happenings.push((at(), Happening::Jump { ms }));
        }
    }
}

fn draw_weather(dice: &SeededEntropy) -> Weather {
    let [refused, lost, hangs, panics, wrong] = match dice.below(4) {
        // Fair, mixed, a dependency that is down, and one that loses answers.
        0 => [0, 0, 0, 0, 0],
        1 => [20, 15, 5, 4, 6],
        2 => [85, 5, 0, 0, 0],
        _ => [5, 50, 10, 5, 0],
    };
    Weather {
        refused,
        lost,
        hangs,
        panics,
        wrong,
        latency_ms_max: [0, 30, 800, 6_000][pick(dice, 4)],
        timeout_ms: [500, 3_000, 15_000][pick(dice, 3)],
        reconciles: dice.chance(50),
    }
}

fn draw_faults(dice: &SeededEntropy, lease_ms: u64) -> Faults {
    if dice.chance(40) {
        return Faults::default();
    }
    let some = |chance: u64, percent: u64| if dice.chance(chance) { percent } else { 0 };
    Faults {
        slow: some(80, 40),
        slow_ms_max: [3, 50, 1_000, lease_ms * 2][pick(dice, 4)],
        fails: some(40, 8),
        answer_lost: some(40, 8),
        drop_lost: some(30, 20),
        renewal_hangs: some(20, 30),
    }
}
