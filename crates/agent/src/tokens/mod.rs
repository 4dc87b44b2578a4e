//! How many tokens a text is, counted as gpt-oss counts: `o200k_harmony`, with nothing to download.
//!
//! Counts are exact for every text that a person or a tool writes. Only a run of one kind of sign
//! longer than [`RUN_BYTES_MAX`] is counted in pieces of that length, with a few tokens more for each
//! cut: such a count is never too low, and no text can make counting slow.

mod harmony;
mod runs;

use std::sync::LazyLock;

pub use harmony::{messages, preamble_tokens, tools};
pub use runs::RUN_BYTES_MAX;
use runs::{Span, spans};
use tiktoken::CoreBpe;

/// What each piece of a long run may cost more than in the whole, on both of its sides.
const PIECE_EXTRA_TOKENS: u64 = 4;

/// The vocabulary. It is unpacked when it is first asked for, which takes a fifth of a second.
static VOCABULARY: LazyLock<Option<&'static CoreBpe>> =
    LazyLock::new(|| tiktoken::get_encoding("o200k_harmony"));

/// Unpacks the vocabulary now, for a process that does not want its first run to wait for it.
pub fn warm() {
    LazyLock::force(&VOCABULARY);
}

/// The tokens of a text. What looks like a special token in it is text like any other.
///
/// ```
/// assert_eq!(holdfast_agent::tokens::count("hello world"), 2);
/// ```
pub fn count(text: &str) -> u64 {
    count_within(text, RUN_BYTES_MAX)
}

/// The same with another limit.
fn count_within(text: &str, run_bytes_max: usize) -> u64 {
    spans(text, run_bytes_max)
        .map(|span| match span {
            Span::Plain(text) => plain(text),
            Span::Long(run) => in_pieces(run, run_bytes_max),
        })
        .fold(0, u64::saturating_add)
}

fn in_pieces(mut run: &str, bytes_max: usize) -> u64 {
    let mut tokens = 0_u64;
    while !run.is_empty() {
        let mut end = bytes_max.max(4).min(run.len());
        while !run.is_char_boundary(end) {
            end -= 1;
        }
        let (piece, rest) = run.split_at(end);
        tokens = tokens.saturating_add(plain(piece).saturating_add(PIECE_EXTRA_TOKENS));
        run = rest;
    }
    tokens
}

fn plain(text: &str) -> u64 {
    match *VOCABULARY {
        Some(vocabulary) => vocabulary.count(text) as u64,
        // Built in, so it is there; if it were not, a token a byte is never too low.
        None => text.len() as u64,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Counts that another implementation (tiktoken-rs 0.12.1) agrees on.
    #[test]
    fn counts_are_those_of_the_model() {
        let table = [
            ("", 0),
            ("hello world", 2),
            ("The quick brown fox jumps over the lazy dog.", 10),
            ("{\"path\": \"src/main.rs\", \"limit\": 200}", 14),
            ("fn main() {\n    println!(\"hi\");\n}\n", 10),
            ("Grüße aus Köln", 5),
            ("<|start|>", 5),
        ];
        for (text, tokens) in table {
            assert_eq!(count(text), tokens, "{text:?}");
        }
        assert_eq!(count(&"a".repeat(4096)), 512);
    }

    #[test]
    fn a_megabyte_of_one_sign_is_counted_as_the_model_counts_a_part_of_it() {
        for sign in ["a", " ", "\n", "=", "的", "😀"] {
            let part = sign.repeat(RUN_BYTES_MAX / sign.len());
            let text = part.repeat(256);
            let (of_part, tokens) = (count(&part), count(&text));
            assert!(tokens >= of_part * 256, "{sign:?}: {tokens}");
            assert!(
                tokens <= (of_part + 2 * PIECE_EXTRA_TOKENS) * 257,
                "{sign:?}: {tokens}"
            );
        }
        // Digits are cut into threes by the vocabulary itself.
        assert_eq!(count(&"1".repeat(999_999)), 333_333);
    }

    /// Texts with runs: words, blanks, symbols, marks and digits, some of them long.
    fn runny() -> impl Strategy<Value = String> {
        let signs = "[aZ \n=/'的é\u{301}😀7𠀀]";
        let run = (signs, 1..60_usize).prop_map(|(sign, times)| sign.repeat(times));
        prop::collection::vec(
            prop_oneof![run, Just("don't stop".to_owned()), ".{0,8}"],
            0..12,
        )
        .prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn an_estimate_is_never_too_low(text in runny(), run_bytes_max in 4..40_usize) {
            prop_assert!(count_within(&text, run_bytes_max) >= plain(&text));
        }

        #[test]
        fn a_text_without_long_runs_is_counted_exactly(text in runny()) {
            prop_assert_eq!(count(&text), plain(&text));
        }

        #[test]
        fn no_text_is_more_than_its_bytes(text in ".{0,200}") {
            prop_assert!(count(&text) <= text.len() as u64);
        }
    }
}
