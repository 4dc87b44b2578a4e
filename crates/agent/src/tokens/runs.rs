//! Finds runs of one kind of sign that are too long to be counted in one piece.
//!
//! The vocabulary cuts a text into words, numbers, blanks and symbols before it looks for tokens,
//! and the time for one such piece grows faster than its length. A piece is never longer than two
//! of the runs that are found here and a sign, so bounding the runs bounds the time.

use std::sync::LazyLock;

use regex::Regex;

/// Bytes of one kind of sign in a row that are counted in one piece.
pub const RUN_BYTES_MAX: usize = 4096;

/// A part of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Span<'a> {
    /// Text without a long run.
    Plain(&'a str),
    /// A long run.
    Long(&'a str),
}

/// Words with their marks, symbols with theirs, blanks. Numbers are cut into threes anyway.
static RUN: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"[\p{L}\p{M}]+|[^\s\p{L}\p{N}]+|\s+").ok());

/// The parts of a text, in order.
pub(super) fn spans(text: &str, run_bytes_max: usize) -> impl Iterator<Item = Span<'_>> {
    let mut spans = Vec::new();
    let mut from = 0;
    // A text that is no longer than one run can not hold a long one.
    let runs = RUN.as_ref().filter(|_| text.len() > run_bytes_max);
    for run in runs.into_iter().flat_map(|runs| runs.find_iter(text)) {
        if run.len() > run_bytes_max {
            spans.push(Span::Plain(&text[from..run.start()]));
            spans.push(Span::Long(run.as_str()));
            from = run.end();
        }
    }
    spans.push(Span::Plain(&text[from..]));
    spans.into_iter()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(text: &str, max: usize) -> Vec<Span<'_>> {
        spans(text, max).collect()
    }

    #[test]
    fn long_runs_are_taken_out_and_nothing_else() {
        assert_eq!(found("", 3), [Span::Plain("")]);
        assert_eq!(found("abc def", 3), [Span::Plain("abc def")]);
        assert_eq!(
            found("ab cdef gh", 3),
            [Span::Plain("ab "), Span::Long("cdef"), Span::Plain(" gh")]
        );
        let text = "a".repeat(1024 * 1024);
        assert_eq!(
            found(&text, RUN_BYTES_MAX),
            [Span::Plain(""), Span::Long(&text), Span::Plain("")]
        );
        // Chinese prose has no blanks, but it has punctuation.
        let prose = "今天天气很好，我们去公园。".repeat(1000);
        assert_eq!(found(&prose, RUN_BYTES_MAX), [Span::Plain(prose.as_str())]);
    }

    proptest! {
        #[test]
        fn no_byte_is_lost_and_no_long_run_is_left(
            text in "[ab \n=/的\u{301}1]{0,300}", max in 1..20_usize,
        ) {
            let parts = found(&text, max);
            let bytes: usize = parts.iter().map(|part| match part {
                Span::Plain(text) => text.len(),
                Span::Long(run) => run.len(),
            }).sum();
            prop_assert_eq!(bytes, text.len());
            for part in parts {
                if let Span::Plain(text) = part {
                    prop_assert!(!found(text, max).iter().any(|part| matches!(part, Span::Long(_))));
                }
            }
        }
    }
}
