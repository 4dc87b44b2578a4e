//! How fast replies are read: by strategy, against Python's `json_repair`, on prose, and whether
//! the time is linear. Run by `bench/intent-speed/run`, which also builds it.
//!
//! Times are times of one thread on one core, as the kernel accounts them, on both sides.

#[path = "../../../crates/intent/tests/it/adversary/mod.rs"]
#[expect(dead_code, reason = "tests have texts of their own")]
mod adversary;
mod broken;
mod clock;
#[path = "../../../crates/intent/tests/it/bfcl/data.rs"]
#[expect(dead_code, reason = "only the type of a call is used here")]
mod data;
mod linear;
#[path = "../../../crates/intent/tests/it/bfcl/pen.rs"]
#[expect(dead_code, reason = "only JSON is written here")]
mod pen;
mod prose;
mod python;
mod replies;
mod report;

use std::hint::black_box;
use std::io;
use std::path::Path;

use broken::{Broken, documents};
use clock::{best_seconds, megabytes_per_second};
use holdfast_intent::{FinishReason, Parser, Strategy, json};
use prose::{Prose, prose};
use python::Python;
use report::{Repair, Report, Speed};

/// How much is measured.
struct Plan {
    rounds: usize,
    documents: u64,
    large_bytes: usize,
    linear: &'static [Strategy],
}

const FULL: Plan = Plan {
    rounds: 7,
    documents: 400,
    large_bytes: 10_000_000,
    linear: &Strategy::ALL,
};
const QUICK: Plan = Plan {
    rounds: 2,
    documents: 60,
    large_bytes: 1_000_000,
    linear: &[Strategy::Auto, Strategy::Fuzzy],
};

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["--profile", strategy, text] => profile(strategy, text),
        ["--python", python, "--machine", machine, "--out", out] => {
            run(&FULL, Path::new(python), machine, Path::new(out))
        }
        [
            "--quick",
            "--python",
            python,
            "--machine",
            machine,
            "--out",
            out,
        ] => run(&QUICK, Path::new(python), machine, Path::new(out)),
        _ => Err(io::Error::other("use bench/intent-speed/run")),
    }
}

fn run(plan: &Plan, interpreter: &Path, machine: &str, out: &Path) -> io::Result<()> {
    let scratch = tempfile::tempdir()?;
    let (versions, repair) = repair(plan, interpreter, scratch.path())?;
    let report = Report {
        machine: serde_json::from_str(machine)?,
        versions,
        speed: speed(plan),
        repair,
        large_bytes: plan.large_bytes,
        growth: linear::measure(plan.linear, plan.large_bytes),
    };
    println!("{}", report.table());
    let mut text = serde_json::to_string_pretty(&report)?;
    text.push('\n');
    std::fs::write(out, text)
}

/// Each strategy on replies of its own kind, and prose.
fn speed(plan: &Plan) -> Vec<Speed> {
    let mut found = Vec::new();
    let mut measure = |name: String, strategy: Strategy, texts: &[String]| {
        let parser = Parser::default().with_strategies(strategy, None);
        let bytes = texts.iter().map(String::len).sum();
        let mut intents = 0;
        let seconds = best_seconds(plan.rounds, 0.02, || {
            intents = texts
                .iter()
                .map(|text| {
                    black_box(parser.parse(text, FinishReason::Stop))
                        .intents
                        .len()
                })
                .sum();
        });
        found.push(Speed {
            name,
            bytes,
            intents,
            megabytes_per_second: megabytes_per_second(bytes, seconds),
        });
    };
    for strategy in Strategy::ALL {
        let texts = replies::replies(strategy, 200);
        measure(format!("{} replies", strategy.name()), strategy, &texts);
        if strategy != Strategy::Auto {
            let name = format!("{} replies, read by auto", strategy.name());
            measure(name, Strategy::Auto, &texts);
        }
    }
    for (name, kind) in [("prose", Prose::Usual), ("worst prose", Prose::Worst)] {
        let texts = [prose(kind, 1_000_000, 1)];
        measure(format!("{name}, 1 MB, fuzzy"), Strategy::Fuzzy, &texts);
        measure(format!("{name}, 1 MB, auto"), Strategy::Auto, &texts);
    }
    found
}

/// Both sides on the same documents, in turns.
fn repair(
    plan: &Plan,
    interpreter: &Path,
    scratch: &Path,
) -> io::Result<(python::Versions, Vec<Repair>)> {
    let sizes = [
        ("small, 200 B", 200),
        ("usual, 2 KB", 2_000),
        ("large, 50 KB", 50_000),
    ];
    let groups: Vec<Vec<Broken>> = sizes
        .iter()
        .map(|(_, bytes)| {
            documents(
                if *bytes > 10_000 {
                    plan.documents / 20
                } else {
                    plan.documents
                },
                *bytes,
            )
        })
        .collect();
    let file = scratch.join("documents.json");
    std::fs::write(&file, serde_json::to_vec(&groups)?)?;
    let mut python = Python::start(interpreter, &file)?;
    let mut found = Vec::new();
    for (place, ((name, _), group)) in sizes.iter().zip(&groups).enumerate() {
        let bytes = group.iter().map(|document| document.text.len()).sum();
        let (mut ours, mut theirs, mut parser) = (f64::INFINITY, f64::INFINITY, f64::INFINITY);
        let mut their_exact = 0;
        for _ in 0..plan.rounds {
            ours = ours.min(best_seconds(1, 0.01, || read_all(group)));
            parser = parser.min(best_seconds(1, 0.01, || parse_all(group)));
            let round = python.round(place)?;
            theirs = theirs.min(round.seconds);
            their_exact = round.exact;
        }
        let exact = |document: &&Broken| {
            json::read_text(&document.text).is_some_and(|read| read.value == document.wanted)
        };
        found.push(Repair {
            name: (*name).to_owned(),
            documents: group.len(),
            ours_megabytes_per_second: megabytes_per_second(bytes, ours),
            parser_megabytes_per_second: megabytes_per_second(bytes, parser),
            theirs_megabytes_per_second: megabytes_per_second(bytes, theirs),
            ours_exact: group.iter().filter(exact).count(),
            theirs_exact: their_exact,
        });
    }
    Ok((python.versions.clone(), found))
}

fn read_all(group: &[Broken]) {
    for document in group {
        black_box(json::read_text(&document.text));
    }
}

fn parse_all(group: &[Broken]) {
    let parser = Parser::default();
    for document in group {
        black_box(parser.parse(&document.text, FinishReason::Stop));
    }
}

/// One text again and again, for a profiler to watch.
fn profile(strategy: &str, name: &str) -> io::Result<()> {
    let strategy =
        Strategy::from_name(strategy).ok_or_else(|| io::Error::other("no such strategy"))?;
    let known = adversary::REPEATED.iter().find(|(known, _)| *known == name);
    let text = match (name, known) {
        ("prose", _) => prose(Prose::Usual, 1_000_000, 1),
        ("worst prose", _) => prose(Prose::Worst, 1_000_000, 1),
        ("broken", _) => {
            let group = documents(300, 2_000);
            let seconds = best_seconds(50, 0.02, || read_all(&group));
            let bytes = group.iter().map(|document| document.text.len()).sum();
            println!("{:.1} MB/s", megabytes_per_second(bytes, seconds));
            return Ok(());
        }
        (_, Some((_, piece))) => adversary::repeated(piece, 1_000_000),
        _ => return Err(io::Error::other("no such text")),
    };
    let parser = Parser::default().with_strategies(strategy, None);
    let work = || drop(black_box(parser.parse(&text, FinishReason::Unknown)));
    let seconds = best_seconds(20, 0.05, work);
    println!("{:.1} MB/s", megabytes_per_second(text.len(), seconds));
    Ok(())
}
