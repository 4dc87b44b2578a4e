//! The whole stack under a seeded simulation.
//!
//! One seed is one schedule: some processes, each with a real [`ToolStack`], share one store of
//! records, breakers and turns, and act on one world. Under virtual time, calls are delivered
//! several times and in several places, processes crash, stall and restart, stores are slow, away
//! or lose answers, wall clocks jump, callers go away, and tools fail before and after their
//! effect. Then every promise is checked (`answers`, `ledger`, `end`).
//!
//! | variable | meaning |
//! |---|---|
//! | `HOLDFAST_SIM_SCHEDULES` | how many schedules; a few thousand without it |
//! | `HOLDFAST_SIM_SEED` | replay this one and print its trace |
//! | `HOLDFAST_SIM_BASE` | the first seed, or `random` for one that was never seen |
//!
//! [`ToolStack`]: holdfast_toolbox::stack::ToolStack

mod answers;
mod end;
mod found;
mod handle;
mod ledger;
mod people;
mod plan;
mod planted;
mod process;
mod rates;
mod schedule;
mod shared;

use std::sync::Once;

use holdfast_testkit::sim::seeds::SEED_ENV;
use holdfast_testkit::sim::tool::SIMULATED_PANIC;
use holdfast_testkit::sim::trace::Detail;
use holdfast_testkit::sim::{Seeds, Violation};

use planted::Bug;

/// Schedules of a plain `cargo test`.
const SCHEDULES: u64 = 2_000;
/// A planted bug has to be noticed within this many.
const SCHEDULES_TO_NOTICE: u64 = 5_000;

/// Tools panic on purpose; the usual report of each would bury everything else.
fn quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if panic.payload_as_str() != Some(SIMULATED_PANIC) {
                report(panic);
            }
        }));
    });
}

#[test]
fn every_promise_is_kept() {
    quiet();
    let seeds = Seeds::from_env(1, SCHEDULES);
    let begun = std::time::Instant::now();
    match seeds.run(|seed, detail| schedule::run(seed, detail, None)) {
        Ok(count) => println!(
            "{count} schedules from seed {} in {:.1} s",
            seeds.first,
            begun.elapsed().as_secs_f64()
        ),
        // Once more, now with its trace.
        Err(found) => panic!(
            "{}",
            schedule::run(found.seed, Detail::Lines, None)
                .err()
                .unwrap_or(found)
        ),
    }
}

#[test]
fn one_seed_is_one_course_of_events() {
    quiet();
    for seed in 0..200 {
        let first = schedule::run(seed, Detail::Hash, None);
        assert_eq!(
            first,
            schedule::run(seed, Detail::Hash, None),
            "seed {seed}"
        );
    }
}

/// Plants a bug, expects it to be noticed, and expects its seed to show it again.
fn notices(bug: Bug, said: &[&str]) {
    quiet();
    if std::env::var_os(SEED_ENV).is_some() {
        return;
    }
    let seeds = Seeds::fixed(1, SCHEDULES_TO_NOTICE);
    let found: Box<Violation> = seeds
        .run(|seed, detail| schedule::run(seed, detail, Some(bug)))
        .expect_err("the planted bug has to be noticed");
    println!(
        "{bug:?}: noticed after {} schedules: {}",
        found.seed, found.message
    );
    let kind = found.message.split(':').next().unwrap_or_default();
    assert!(
        said.contains(&kind),
        "noticed by another promise: {}",
        found.message
    );
    let again = schedule::run(found.seed, Detail::Hash, Some(bug));
    assert_eq!(again, Err(found), "the seed has to show it again");
}

#[test]
fn a_lease_that_hands_the_claim_over_is_noticed() {
    notices(
        Bug::LeaseHandsTheClaimOver,
        &[
            "double effect",
            "two results",
            "needless doubt",
            "leaked claim",
        ],
    );
}

#[test]
fn a_finaliser_that_reopens_the_record_is_noticed() {
    notices(Bug::FinaliserReopens, &["double effect", "lost result"]);
}

#[test]
fn a_finaliser_that_releases_is_noticed() {
    notices(Bug::FinaliserReleases, &["double effect"]);
}

#[test]
fn a_finaliser_that_forgets_is_noticed() {
    notices(
        Bug::FinaliserForgets,
        &["leaked claim", "lost result", "stale doubt"],
    );
}

#[test]
fn a_drop_that_says_cancelled_is_noticed() {
    notices(Bug::DropSaysCancelled, &["double effect"]);
}

#[test]
fn a_claim_that_is_not_atomic_is_noticed() {
    notices(Bug::ClaimIsNotAtomic, &["double effect"]);
}

#[test]
fn a_waiter_that_nobody_wakes_is_noticed() {
    notices(Bug::NobodyIsWoken, &["forgotten waiter"]);
}

#[test]
fn a_beginning_that_is_not_recorded_is_noticed() {
    notices(Bug::BeginningForgets, &["double effect", "two results"]);
}

#[test]
fn doubt_that_never_ends_is_noticed() {
    notices(Bug::DoubtLasts, &["stale doubt"]);
}

#[test]
fn places_that_are_not_counted_are_noticed() {
    notices(Bug::PlacesAreNotCounted, &["rate"]);
}
