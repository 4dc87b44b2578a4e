//! What a call through Holdfast costs, side by side with its floor and its peers.
//!
//! Run by `bench/call/run`, which also builds it. All subjects take turns within one run, so that
//! whatever the machine does meanwhile happens to all of them.
//!
//! The timed part of a Holdfast call is `ToolStack::call` from a ready envelope to the answer,
//! checks of the envelope and its drop included. Making the envelope is not: a caller has it.

mod durable;
mod load;
mod memory;
mod node;
mod peers;
mod report;
mod sample;
mod stack;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use holdfast_toolbox::stack::ToolStack;
use load::{ARGUMENT_BYTES, BATCH, Calls, MUTATING, READ_ONLY};
use node::Node;
use report::{Report, TwoThreads};
use sample::{Meter, Subject};
use stack::{Caller, Log};

/// The allocator of the binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Where log lines go, in every subject that logs.
const SINK: &str = "/dev/null";

/// How much is measured.
struct Plan {
    rounds: usize,
    calls: usize,
    sync_span: Duration,
}

impl Plan {
    const FULL: Self = Self {
        rounds: 15,
        calls: 6400,
        sync_span: Duration::from_secs(3),
    };
    const QUICK: Self = Self {
        rounds: 5,
        calls: 1920,
        sync_span: Duration::from_millis(500),
    };
}

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["--profile", subject, calls] => profile(subject, calls.parse().map_err(io::Error::other)?),
        ["--machine", machine, "--out", out] => run(&Plan::FULL, machine, Path::new(out)),
        ["--quick", "--machine", machine, "--out", out] => {
            run(&Plan::QUICK, machine, Path::new(out))
        }
        _ => Err(io::Error::other("use bench/call/run")),
    }
}

fn single_thread() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
}

fn run(plan: &Plan, machine: &str, out: &Path) -> io::Result<()> {
    let runtime = single_thread()?;
    // First, while nothing else has been allocated.
    let memory = runtime.block_on(memory::measure())?;
    let scratch = tempfile::tempdir()?;
    let template = scratch.path().join("template.json");
    std::fs::write(&template, serde_json::to_vec(&load::template())?)?;
    let (subjects, two_threads) = rounds(plan, &runtime, &template)?;
    let report = Report {
        machine: serde_json::from_str(machine)?,
        argument_bytes: ARGUMENT_BYTES,
        calls_per_round: plan.calls,
        subjects,
        two_threads,
        memory,
        durable: durable::measure(plan.sync_span)?,
    };
    println!("{}", report.table());
    let mut text = serde_json::to_string_pretty(&report)?;
    text.push('\n');
    std::fs::write(out, text)
}

fn rounds(
    plan: &Plan,
    runtime: &tokio::runtime::Runtime,
    template: &Path,
) -> io::Result<(Vec<Subject>, Vec<TwoThreads>)> {
    let sink = Path::new(SINK);
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("call/node/bench.mjs");
    let mut node = Node::start(&script, template, sink)?;
    let mut floor_calls = Calls::new(MUTATING, 1);
    let mut tower = peers::tower();
    let (quiet, _) = stack::stack(Log::Off, sink)?;
    let (logged, _) = stack::stack(Log::On, sink)?;
    let (blocked, blocked_stores) = stack::stack(Log::On, sink)?;
    let breaker = Caller::at_open_breaker(blocked.clone(), &blocked_stores);
    let mut callers = [
        Caller::happy(quiet.clone(), MUTATING, 2),
        Caller::happy(quiet.clone(), READ_ONLY, 3),
        Caller::happy(logged.clone(), MUTATING, 2),
        Caller::happy(logged.clone(), READ_ONLY, 3),
        runtime.block_on(breaker),
        runtime.block_on(Caller::at_guard(blocked)),
    ];
    let mut subjects = vec![
        Subject::new("floor", "canonical JSON and SHA-256 of the arguments"),
        Subject::new("stack, mutating", "ToolStack::call, external effect"),
        Subject::new("stack, read-only", "ToolStack::call, no effect"),
        Subject::new("stack, mutating, log", "the same, two JSON lines a call"),
        Subject::new("stack, read-only, log", "the same, two JSON lines a call"),
        Subject::new("open breaker, log", "ToolStack::call, refused by a breaker"),
        Subject::new("guard, log", "ToolStack::call, refused by the guard"),
        Subject::new("tower", "tower-resilience: retry, breaker, timeout"),
        Subject::new("node", "cockatiel and an idempotency map"),
        Subject::new("node, log", "the same, two JSON lines a call"),
    ];
    let mut two_threads = vec![
        TwoThreads {
            name: "stack, mutating",
            calls_per_second: Vec::new(),
        },
        TwoThreads {
            name: "stack, mutating, log",
            calls_per_second: Vec::new(),
        },
    ];
    // The first round fills stores and caches and lets Node compile; it is not counted.
    for number in 0..=plan.rounds {
        let mut found = vec![peers::floor_round(&mut floor_calls, plan.calls)];
        for caller in &mut callers {
            found.push(runtime.block_on(caller.round(plan.calls)));
        }
        found.push(runtime.block_on(tower.round(plan.calls)));
        found.push(node.round(plan.calls, Log::Off)?);
        found.push(node.round(plan.calls, Log::On)?);
        let both = [
            on_two_threads(&quiet, number, plan.calls)?,
            on_two_threads(&logged, number, plan.calls)?,
        ];
        if number == 0 {
            continue;
        }
        for (subject, round) in subjects.iter_mut().zip(found) {
            subject.rounds.push(round);
        }
        for (row, figure) in two_threads.iter_mut().zip(both) {
            row.calls_per_second.push(figure);
        }
    }
    Ok((subjects, two_threads))
}

/// Calls a second of two callers that share one stack.
fn on_two_threads(stack: &Arc<ToolStack>, round: usize, calls: usize) -> io::Result<f64> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()?;
    runtime.block_on(async {
        let prepared: Vec<_> = [0, 1]
            .into_iter()
            .map(|thread| {
                let caller = 100 + u64::try_from(round).unwrap_or(0) * 2 + thread;
                let mut caller = Caller::happy(stack.clone(), MUTATING, caller);
                let batches: Vec<_> = (0..calls.div_ceil(BATCH)).map(|_| caller.batch()).collect();
                (caller, batches)
            })
            .collect();
        let begun = Instant::now();
        let running: Vec<_> = prepared
            .into_iter()
            .map(|(caller, batches)| {
                tokio::spawn(async move {
                    let mut count = 0_u32;
                    for envelope in batches.into_iter().flatten() {
                        caller.stack.call(envelope).await;
                        count += 1;
                    }
                    count
                })
            })
            .collect();
        let mut count = 0.0;
        for task in running {
            count += f64::from(task.await.map_err(io::Error::other)?);
        }
        Ok(count / begun.elapsed().as_secs_f64())
    })
}

/// One subject alone, for a profiler to watch.
fn profile(subject: &str, calls: usize) -> io::Result<()> {
    let runtime = single_thread()?;
    let sink = Path::new(SINK);
    let (tool, log) = match subject {
        "floor" => {
            let round = peers::floor_round(&mut Calls::new(MUTATING, 1), calls);
            println!("{round:?}");
            return Ok(());
        }
        "claims" => {
            let span = Duration::from_millis(u64::try_from(calls).unwrap_or(1));
            println!("{:?}", durable::measure(span)?);
            return Ok(());
        }
        "tower" => {
            println!("{:?}", runtime.block_on(peers::tower().round(calls)));
            return Ok(());
        }
        "read" => (READ_ONLY, Log::Off),
        "read-log" => (READ_ONLY, Log::On),
        "mutate" => (MUTATING, Log::Off),
        "mutate-log" => (MUTATING, Log::On),
        _ => return Err(io::Error::other("no such subject")),
    };
    let (stack, _) = stack::stack(log, sink)?;
    let mut caller = Caller::happy(stack, tool, 1);
    let mut meter = Meter::default();
    runtime.block_on(caller.batches(calls, &mut meter));
    println!("{:.0} ns", meter.round().mean_ns);
    Ok(())
}
