//! Wishes that the model gives up for others while it still thinks.

use std::sync::LazyLock;

use super::lists;

/// How a sentence turns from what was wished before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Turn {
    /// It does not.
    None,
    /// It hesitates: the next wish is in the place of the last one.
    Hesitates,
    /// It takes the last wish back.
    TakesBack,
}

static HESITATIONS: LazyLock<&[&str]> = LazyLock::new(|| lists::list("hesitations"));
static REFUSALS: LazyLock<&[&str]> = LazyLock::new(|| lists::list("refusals"));
static FILLERS: LazyLock<&[&str]> = LazyLock::new(|| lists::list("fillers"));
/// What gives up a wish, wherever it stands in a short sentence.
static GIVES_UP: LazyLock<&[&str]> = LazyLock::new(|| lists::list("gives up"));
/// What makes another wish one more, and not one instead.
static ADDS: LazyLock<&[&str]> = LazyLock::new(|| lists::list("adds"));
const SHORT_WORDS_MAX: usize = 16;

/// How a sentence in lower case turns.
pub(super) fn turn(lower: &str) -> Turn {
    let mut rest = lower.trim_start_matches(|letter: char| !letter.is_alphanumeric());
    let short = lower.split_whitespace().count() <= SHORT_WORDS_MAX;
    if short && GIVES_UP.iter().any(|words| lower.contains(words)) {
        return Turn::TakesBack;
    }
    let mut hesitates = false;
    loop {
        if REFUSALS.iter().any(|words| begins(rest, words))
            && !begins(rest, "no need to")
            && !begins(rest, "no idea")
        {
            let said = rest.trim_start_matches(char::is_alphanumeric);
            // "No file was named" says nothing of a wish.
            if said.is_empty()
                || said.starts_with([',', '.', '!', '—', '-', ';', '…', '，'])
                || said.starts_with(" —")
                || said.starts_with(" -")
                || hesitates
            {
                return Turn::TakesBack;
            }
        }
        hesitates |= HESITATIONS.iter().any(|words| begins(rest, words));
        let Some(tail) = FILLERS
            .iter()
            .find_map(|words| begins(rest, words).then(|| &rest[words.len()..]))
        else {
            break;
        };
        rest = tail.trim_start_matches(|letter: char| !letter.is_alphanumeric());
    }
    let inside = [
        " better:",
        " is better",
        " rather:",
        ", better ",
        " instead:",
        " actually no",
        "... no,",
        ", no, ",
        "— no",
        " scratch that",
        " or rather ",
    ];
    if inside.iter().any(|words| lower.contains(words)) || hesitates {
        return Turn::Hesitates;
    }
    Turn::None
}

/// Whether a sentence sets its wish in the place of another.
pub(super) fn replaces(lower: &str) -> bool {
    let instead = |word: &str| lower.contains(word) && !lower.contains("instead of");
    instead("instead")
        || lower.contains("stattdessen")
        || lower.contains("à la place")
        || lower.contains("en su lugar")
        || lower.contains("i stedet")
        || lower.contains("вместо этого")
}

pub(super) fn adds(lower: &str) -> bool {
    ADDS.iter()
        .any(|words| crate::cues::has_words(lower, words))
}

fn begins(text: &str, words: &str) -> bool {
    text.strip_prefix(words).is_some_and(|tail| {
        !words.is_ascii()
            || !tail.starts_with(|letter: char| letter.is_alphanumeric() || letter == '\'')
    })
}
