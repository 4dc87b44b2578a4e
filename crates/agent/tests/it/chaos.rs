//! Model servers, tools and stores that do everything wrong: thousands of runs, each by its seed.
//!
//! Every run ends, with an answer that the model gave or with a documented code, not after its
//! deadline; no effect happens twice, what was told of an answer is the answer, and nothing stays
//! behind: no task, and no call that somebody holds. `HOLDFAST_SIM_SEED=N` plays one again,
//! `HOLDFAST_SIM_SCHEDULES=N` plays more of them.

mod model;
mod play;
mod sockets;
mod stores;
mod tools;

use std::collections::BTreeMap;

use holdfast_testkit::sim::Seeds;
use parking_lot::Mutex;

/// Runs in memory, where hours pass in a moment.
const RUNS: u64 = 5_000;

#[test]
fn every_run_ends_as_documented_and_no_effect_happens_twice() {
    without_the_tools_panics();
    let endings: Mutex<BTreeMap<&'static str, u64>> = Mutex::default();
    let seeds = Seeds::from_env(1, RUNS);
    let played = seeds.run(|seed, _| {
        let ending = play::run(seed)?;
        *endings.lock().entry(ending).or_default() += 1;
        Ok(seed)
    });
    let endings = endings.into_inner();
    match played {
        Ok(count) => println!("{count} runs: {endings:?}"),
        Err(broken) => panic!("HOLDFAST_SIM_SEED={}: {}", broken.seed, broken.message),
    }
    if seeds.count >= RUNS {
        // A test that never sees an ending does not test it.
        for known in [
            "answered",
            "gpt_oss_unreachable",
            "max_iterations_exceeded",
            "timeout_exceeded",
            "context_window_exceeded",
            "budget_exceeded",
        ] {
            assert!(
                endings.contains_key(known),
                "no run ended with {known}: {endings:?}"
            );
        }
    }
}

/// Tools panic here by the hundred, and the stack catches it; other panics are printed as ever.
fn without_the_tools_panics() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if panic.payload_as_str() != Some(tools::PANIC) {
            print(panic);
        }
    }));
}
