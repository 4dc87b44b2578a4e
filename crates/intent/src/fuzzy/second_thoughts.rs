//! Wishes that the model gives up for others while it still thinks.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::lists;
use crate::raw::RawCall;

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
static GIVES_UP: LazyLock<Vec<Finder<'static>>> =
    LazyLock::new(|| finders(lists::list("gives up")));
/// What makes another wish one more, and not one instead.
static ADDS: LazyLock<&[&str]> = LazyLock::new(|| lists::list("adds"));
const SHORT_WORDS_MAX: usize = 16;

/// How a sentence in lower case turns.
pub(super) fn turn(lower: &str) -> Turn {
    let mut rest = lower.trim_start_matches(|letter: char| !letter.is_alphanumeric());
    let short = lower.split_whitespace().count() <= SHORT_WORDS_MAX;
    if short && GIVES_UP.iter().any(|finder| gives_up(lower, finder)) {
        return Turn::TakesBack;
    }
    let mut hesitates = false;
    loop {
        let refused = REFUSALS.iter().find(|words| begins(rest, words));
        if let Some(words) =
            refused.filter(|_| !begins(rest, "no need to") && !begins(rest, "no idea"))
        {
            let said = &rest[words.len()..];
            // "No file was named" says nothing of a wish.
            let ends = said
                .trim_start()
                .starts_with([',', '.', '!', '—', '-', ';', '…', '，']);
            if said.is_empty() || ends || words.contains(' ') || hesitates {
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
    if INSIDE.iter().any(|it| it.find(lower.as_bytes()).is_some()) || hesitates {
        return Turn::Hesitates;
    }
    Turn::None
}

fn finders(words: &[&'static str]) -> Vec<Finder<'static>> {
    words.iter().map(|words| Finder::new(*words)).collect()
}

/// What hesitates in the middle of a sentence.
static INSIDE: LazyLock<Vec<Finder<'static>>> = LazyLock::new(|| {
    finders(&[
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
    ])
});

/// Of several calls in one sentence those that a second thought in it leaves: "I read a.txt… no wait, b.txt".
pub(super) fn corrected(start: usize, lower: &str, mut calls: Vec<RawCall>) -> Vec<RawCall> {
    static CORRECTS: LazyLock<&[&str]> = LazyLock::new(|| lists::list("corrects"));
    if calls.len() < 2 {
        return calls;
    }
    let stands = |at: usize, words: &str| {
        let (before, behind) = (lower[..at].trim_end(), &lower[at + words.len()..]);
        before.ends_with([',', '.', '…', '—', '–', '-']) && !behind.starts_with(char::is_alphabetic)
    };
    let last = CORRECTS
        .iter()
        .filter_map(|words| lower.rfind(words).filter(|at| stands(*at, words)))
        .max()
        .map(|at| start + at);
    if let Some(at) = last.filter(|at| calls.iter().any(|call| call.span[0] > *at)) {
        calls.retain(|call| call.span[0] > at);
    }
    calls
}

/// "мне нужно" has no "не нужно".
fn gives_up(lower: &str, finder: &Finder<'_>) -> bool {
    let goes_on = |letter: char| letter.is_alphabetic() && !super::anchors::is_unspaced(letter);
    finder
        .find_iter(lower.as_bytes())
        .any(|at| !lower[..at].ends_with(goes_on))
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

#[cfg(test)]
mod tests {
    use crate::{FinishReason, Parser};

    #[test]
    fn of_a_wish_and_its_second_thought_only_the_second_counts() {
        let table = [
            (
                "Let me read a.txt. Hmm, wait, better b.txt: read b.txt.",
                "b.txt",
            ),
            (
                "Let me read a.txt. Actually no, the user means b.txt. Read b.txt instead.",
                "b.txt",
            ),
            (
                "web_search \"jaguar speed\". Actually they mean the car, so web_search \"F-Type speed\".",
                "F-Type speed",
            ),
            (
                "First idea: web_search \"mars\". No wait, that's a brand. web_search \"Mars Inc\".",
                "Mars Inc",
            ),
            (
                "Let me fetch https://old.example.com/a. Hmm, that is down, so fetch https://b.example.com instead.",
                "https://b.example.com",
            ),
            (
                "Ich lese a.txt mit read. Nein, besser b.txt: read b.txt.",
                "b.txt",
            ),
            (
                "Leggo a.txt... anzi no, l'utente vuole gli appunti: leggo b.txt.",
                "b.txt",
            ),
            ("Leggo a.txt… anzi no, leggo b.txt.", "b.txt"),
            ("Leo a.txt... mejor dicho, leo b.txt.", "b.txt"),
            ("Leio a.txt... ou melhor, leio b.txt.", "b.txt"),
            ("Je lis a.txt... enfin non, je lis b.txt.", "b.txt"),
            ("Ich lese a.txt… nein, doch b.txt: ich lese b.txt.", "b.txt"),
            ("Ik ga a.txt lezen... nee, toch b.txt lezen.", "b.txt"),
            ("Przeczytam a.txt... a raczej przeczytam b.txt.", "b.txt"),
            ("Прочитаю a.txt… нет, лучше прочитаю b.txt.", "b.txt"),
            (
                "We need to create a.py. Use write with path a.py and content `1`.",
                "1",
            ),
            (
                "Je lis a.txt avec read. Enfin, je lis b.txt avec read.",
                "a.txt b.txt",
            ),
            ("Let me read a.txt. No, stop. The user pasted it.", ""),
            ("I'll read a.txt. Never mind, it is above.", ""),
            ("I'll read a.txt. Wait, also read b.txt.", "a.txt b.txt"),
            ("I'll read a.txt. No file is named b.txt.", "a.txt"),
        ];
        for (text, expected) in table {
            let parsed = Parser::default().parse(text, FinishReason::Stop);
            let given = parsed
                .intents
                .iter()
                .filter_map(|it| it.arguments.values().next()?.as_str());
            assert_eq!(given.collect::<Vec<_>>().join(" "), expected, "{text}");
        }
    }
}
