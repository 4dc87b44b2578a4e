//! Prints how long judging takes: `cargo run --release -p holdfast-judge --example time`.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::time::Instant;

use holdfast_judge::{Context, built_in_rules, judge};

const ROUNDS: u32 = 500;

fn main() {
    let context = Context {
        undoable: true,
        user_rules: None,
    };
    let start = Instant::now();
    let rules = built_in_rules().iter().count();
    println!("{rules} rules read in {} µs", start.elapsed().as_micros());
    let ordinary = "cd frontend && npm ci --no-audit 2>&1 | tail -20 && for f in src/*.ts; do npx prettier \
                    --check \"$f\" || exit 1; done; git add -A && git commit -m \"Format $(date +%F)\" \
                    && git push -u origin HEAD";
    let nested = |open: &str, inner: &str, close: &str, times: usize| {
        open.repeat(times) + inner + &close.repeat(times)
    };
    let hostile = [
        ("ordinary, 200 bytes", ordinary.to_owned()),
        (
            "4 KiB of commands",
            "git status; ls -la \"$x\"; ".repeat(160),
        ),
        ("64 KiB of commands", "echo a b c; ".repeat(5_400)),
        ("64 KiB of open brackets", "(".repeat(65_000)),
        (
            "nested substitutions",
            nested("$(", "git push", ")", 20_000),
        ),
        ("nested quotes", nested("\"$(", "git push", ")\"", 15_000)),
        ("nested arithmetic", nested("$[", "1", "]", 20_000)),
        ("nested arrays", nested("a=(", "1", ")", 15_000)),
        ("nested tests", nested("[[ ( ", "a", " ) ]]", 6_000)),
        ("open cases", "case x in x) ".repeat(5_000)),
        ("sh -c of sh -c", nested("sh -c \"", "git push", "\"", 30)),
        ("1 MiB of words", "git push $x ".repeat(87_000)),
    ];
    for (name, text) in hostile {
        let rounds = if text.len() < 1_000 { ROUNDS } else { 3 };
        let start = Instant::now();
        for _ in 0..rounds {
            std::hint::black_box(judge(&text, &context));
        }
        let each = start.elapsed().as_secs_f64() * 1e6 / f64::from(rounds);
        println!("{name:28} {:8} bytes {each:12.0} µs", text.len());
    }
}
