//! Whether time grows with the text and not faster: time per byte of small and large texts.

use std::hint::black_box;

use holdfast_intent::{FinishReason, Parser, Strategy};
use serde::Serialize;

use crate::adversary;
use crate::clock::best_seconds;
use crate::prose::{Prose, prose};

/// The aim: a byte of the large text costs at most this much more.
pub const RATIO_MAX: f64 = 1.5;
const SMALL_BYTES: usize = 10_000;

/// One text under one strategy.
#[derive(Debug, Serialize)]
pub struct Growth {
    pub strategy: &'static str,
    pub text: String,
    pub small_ns_per_byte: f64,
    pub large_ns_per_byte: f64,
}

impl Growth {
    pub fn ratio(&self) -> f64 {
        self.large_ns_per_byte / self.small_ns_per_byte
    }
}

/// Measures every adversarial text, and prose, under these strategies.
pub fn measure(strategies: &[Strategy], large_bytes: usize) -> Vec<Growth> {
    let mut found = Vec::new();
    for (name, piece) in adversary::REPEATED {
        let texts = [SMALL_BYTES, large_bytes].map(|bytes| adversary::repeated(piece, bytes));
        for strategy in strategies {
            found.push(growth(name, *strategy, &texts));
        }
    }
    for (name, kind) in [("prose", Prose::Usual), ("prose, worst", Prose::Worst)] {
        let texts = [SMALL_BYTES, large_bytes].map(|bytes| prose(kind, bytes, 7));
        for strategy in [Strategy::Auto, Strategy::Fuzzy] {
            found.push(growth(name, strategy, &texts));
        }
    }
    found
}

fn growth(name: &str, strategy: Strategy, texts: &[String; 2]) -> Growth {
    let parser = Parser::default().with_strategies(strategy, None);
    let per_byte = |text: &String, times, batch| {
        #[expect(clippy::cast_precision_loss, reason = "sizes far below 2^53")]
        let bytes = text.len() as f64;
        let work = || drop(black_box(parser.parse(text, FinishReason::Unknown)));
        best_seconds(times, batch, work) / bytes * 1e9
    };
    let mut found = Growth {
        strategy: strategy.name(),
        text: name.to_owned(),
        small_ns_per_byte: per_byte(&texts[0], 2, 0.002),
        large_ns_per_byte: per_byte(&texts[1], 1, 0.0),
    };
    // One number out of many can be off by chance; a real slope stays.
    for _ in 0..3 {
        if found.ratio() <= RATIO_MAX {
            break;
        }
        found.large_ns_per_byte = found.large_ns_per_byte.min(per_byte(&texts[1], 2, 0.0));
    }
    found
}
