//! Calls that the model takes back, or that wait for somebody's leave: by the words before them and
//! by the words behind them.

use std::sync::LazyLock;

use super::reported::{Standing, announces, words_of};
use super::{WordSet, tables};

/// Before a call: it was thought of and not done.
const NOT_DONE: &[&str] = &[
    "was going to",
    "were going to",
    "was about to",
    "was planning to",
    "almost ran",
    "almost called",
    "almost executed",
    "almost sent",
    "almost used",
    "almost deleted",
    "nearly ran",
    "nearly called",
    "nearly executed",
    "nearly sent",
    "decided not to",
    "decided against",
    "chose not to",
    "scratch that",
    "never mind",
    "cancel that",
    "considered running",
    "considered calling",
    "thought about running",
    "thought about calling",
];

/// Before a call, or behind it: somebody has to agree first.
static WAITS_FOR_LEAVE: LazyLock<WordSet> = LazyLock::new(|| {
    WordSet::new(&[
        "pending approval",
        "pending confirmation",
        "pending permission",
        "pending review",
        "pending your",
        "awaiting approval",
        "awaiting confirmation",
        "awaiting permission",
        "awaiting your",
        "waiting for approval",
        "waiting for confirmation",
        "waiting for permission",
        "waiting for your",
        "wait for your approval",
        "wait for your confirmation",
        "wait for your permission",
        "wait for your go-ahead",
        "needs approval",
        "needs confirmation",
        "needs your approval",
        "needs your confirmation",
        "need your approval",
        "need your confirmation",
        "need your permission",
        "need your consent",
        "requires approval",
        "requires confirmation",
        "requires your approval",
        "requires your confirmation",
        "for your approval",
        "for your confirmation",
        "subject to approval",
        "subject to your approval",
        "please confirm",
        "please approve",
        "confirm before i",
        "confirm that i should",
        "confirm that i may",
        "let me know if i should",
        "let me know if i may",
        "let me know whether",
        "once you confirm",
        "once you approve",
        "once you agree",
    ])
});

/// How a question behind a call begins that asks for leave, or for a choice.
const ASKS_LEAVE: &[&str] = &[
    "do you want me to",
    "do you want to proceed",
    "do you approve",
    "do you agree",
    "do you confirm",
    "would you like me to",
    "would you like to proceed",
    "want me to",
    "shall i",
    "shall we",
    "should i",
    "should we",
    "may i",
    "can i run",
    "can i proceed",
    "can i go ahead",
    "could you confirm",
    "can you confirm",
    "is that ok",
    "is this ok",
    "is it ok",
    "is that fine",
    "is this fine",
    "is that alright",
    "is this alright",
    "ok to ",
    "okay to ",
    "proceed",
    "go ahead",
    "are you sure",
    "are you ok",
    "which one",
    "which option",
    "which of ",
    "which do you",
    "which would you",
];
/// A question with these asks about more than the call.
const ASKS_FOR_MORE: &[&str] = &["also", "else", "afterwards", "next", "then"];

/// What begins a sentence behind a call that takes it back.
const TAKES_BACK: &[&str] = &[
    "never mind",
    "nevermind",
    "scratch that",
    "cancel that",
    "forget that",
    "ignore that",
    "strike that",
    "disregard that",
    "on second thought",
    "i changed my mind",
    "i've changed my mind",
    "i decided against it",
    "i've decided against it",
    "decided against it",
    "i decided not to",
    "i've decided not to",
];
/// Words before it that say nothing.
const OPENS: &[&str] = &[
    "actually", "wait", "no", "hmm", "oh", "sorry", "but", "well", "hold on", "ok", "okay", "on",
];

/// The call itself is not to be run.
static NOT_TO_RUN: LazyLock<WordSet> = LazyLock::new(|| {
    WordSet::new(&[
        "don't run this",
        "don't run that",
        "don't run it",
        "do not run this",
        "do not run that",
        "do not run it",
        "not run this",
        "not run that",
        "not run it",
        "not execute this",
        "not execute that",
        "not execute it",
        "not call this",
        "not call that",
        "not do this",
        "not do that",
        "shouldn't run this",
        "shouldn't run that",
        "shouldn't run it",
        "shouldn't do this",
        "shouldn't do that",
        "won't run this",
        "won't run that",
        "won't run it",
        "don't execute this",
        "don't execute that",
        "don't execute it",
    ])
});

/// Somebody else put the call there, and it is not followed.
const NOT_FOLLOWED: &[&str] = &[
    "don't follow",
    "do not follow",
    "won't follow",
    "will not follow",
    "not going to follow",
    "must not follow",
    "mustn't follow",
    "should not follow",
    "shouldn't follow",
    "don't obey",
    "do not obey",
    "won't obey",
    "must not obey",
    "mustn't obey",
    "should not obey",
    "shouldn't obey",
    "ignore",
    "ignoring",
    "i'll ignore",
    "i will ignore",
    "we ignore",
    "must ignore",
    "should ignore",
];
/// One of these is in each of them, and few sentences have any.
const NOT_FOLLOWED_ROOTS: &[&str] = &["follow", "obey", "ignor"];
/// What is not followed, when it is the call: the word behind those, or none.
const FOLLOWED: &[&str] = &[
    "", "it", "this", "that", "them", "these", "those", "such", "any",
];
/// What a call is said to be that somebody else put there.
static PLANTED: LazyLock<WordSet> = LazyLock::new(|| {
    WordSet::new(&[
        "planted",
        "injection",
        "injected",
        "not from the user",
        "not from my user",
        "didn't come from the user",
        "did not come from the user",
    ])
});
/// How a sentence begins that says what the call is.
const SAYS_WHAT: &[&str] = &[
    "this",
    "that",
    "that's",
    "it",
    "it's",
    "these",
    "those",
    "which",
    "looks",
    "seems",
    "clearly",
    "obviously",
    "probably",
    "likely",
    "planted",
    "injected",
    "not",
    "a",
    "an",
    "prompt",
    "classic",
    "typical",
    "definitely",
    "injection",
];
/// Sentences behind a call that can say so, and the words of one that says what the call is.
const SAID_OF_IT: usize = 3;
const WHAT_WORDS_MAX: usize = 12;

/// Whether the sentences behind a call, in lower case, say that it is somebody else's and not followed.
fn is_not_followed(said: &str) -> bool {
    said.split(['.', '!', '?', ';'])
        .take(SAID_OF_IT)
        .any(|sentence| {
            let words = words_of(sentence);
            let begins = words
                .iter()
                .find(|word| !OPENS.contains(word))
                .is_some_and(|word| SAYS_WHAT.contains(word));
            // "This looks for injections" says what the call does.
            let is_named = begins
                && words.len() <= WHAT_WORDS_MAX
                && !words
                    .iter()
                    .any(|word| matches!(*word, "for" | "find" | "shows" | "if"))
                && PLANTED.is_in(sentence);
            if is_named || !NOT_FOLLOWED_ROOTS.iter().any(|it| sentence.contains(it)) {
                return is_named;
            }
            NOT_FOLLOWED.iter().any(|phrase| {
                let Some(at) = sentence.find(phrase) else {
                    return false;
                };
                let behind = &sentence[at + phrase.len()..];
                // An order to oneself begins its sentence: "ignore it".
                let is_bare = phrase.contains(' ') || words.first() == Some(phrase);
                is_bare
                    && !behind.starts_with(char::is_alphanumeric)
                    && FOLLOWED.contains(words_of(behind).first().unwrap_or(&""))
            })
        })
}

/// What the sentence that introduces a call says, in lower case.
pub(super) fn before(sentence: &str) -> Standing {
    let behind = NOT_DONE.iter().find_map(|phrase| {
        let at = sentence.rfind(phrase)?;
        Some(&sentence[at + phrase.len()..])
    });
    // "I was going to search, but I'll read it instead:" goes on with another plan.
    let goes_on = |rest: &str| {
        let words = words_of(rest);
        announces(&words) || words.contains(&"instead") || tables::FIRST_PERSON.is_in(rest)
    };
    if behind.is_some_and(|rest| !goes_on(rest)) {
        return Standing::Reported;
    }
    let words = words_of(sentence);
    let option = matches!(words.as_slice(), ["option" | "alternative", which, ..]
        if which.len() == 1 || *which == "one" || *which == "two")
        && sentence.ends_with(':');
    let first = matches!(words.as_slice(), ["before", "i" | "we", ..])
        || matches!(words.as_slice(), ["before", verb, ..] if tables::OWN_GERUNDS.contains(verb));
    if option || first && !sentence.contains(',') || WAITS_FOR_LEAVE.is_in(sentence) {
        return Standing::Doubtful;
    }
    Standing::Meant
}

/// What the first line behind a call says about it.
pub(crate) fn behind(line: &str) -> Standing {
    let line = line.to_lowercase().replace('\u{2019}', "'");
    let said = line.trim_start_matches(|letter: char| !letter.is_alphanumeric());
    if said.is_empty() {
        return Standing::Meant;
    }
    let mut head = said;
    while let Some(rest) = OPENS.iter().find_map(|word| {
        let rest = head.strip_prefix(word)?;
        rest.starts_with(|letter: char| !letter.is_alphanumeric() && letter != '\'')
            .then_some(rest)
    }) {
        if TAKES_BACK.iter().any(|phrase| head.starts_with(phrase)) {
            break;
        }
        head = rest.trim_start_matches(|letter: char| !letter.is_alphanumeric());
    }
    let retracted = TAKES_BACK.iter().any(|phrase| head.starts_with(phrase));
    let sentence = said.split_inclusive(['.', '!', '?']).next().unwrap_or(said);
    if retracted || NOT_TO_RUN.is_in(sentence) || is_not_followed(said) {
        return Standing::Reported;
    }
    let asks = said.split_inclusive(['.', '!', '?', ':']).any(|sentence| {
        let sentence = sentence.trim();
        let more = || {
            words_of(sentence)
                .iter()
                .any(|word| ASKS_FOR_MORE.contains(word))
        };
        sentence.ends_with('?') && ASKS_LEAVE.iter().any(|ask| sentence.starts_with(ask)) && !more()
    });
    if asks || WAITS_FOR_LEAVE.is_in(said) {
        return Standing::Doubtful;
    }
    Standing::Meant
}

#[cfg(test)]
mod tests {
    use super::{Standing, behind};

    #[test]
    fn words_behind_a_call_are_about_it_only_when_they_say_so() {
        for line in [
            "On second thought, let me read b.txt first:",
            "Actually, no, scratch that.",
            "Sorry, I won\u{2019}t run that.",
            ". Looks like a planted tool call. Don't follow. Warn the user.",
            "That is a prompt injection, so I'll tell the user.",
            "It is in the page and not from the user. I must not obey it.",
            "Ignore it.",
        ] {
            assert_eq!(behind(line), Standing::Reported, "{line}");
        }
        for line in [
            "Would you like me to go on?",
            "I'll wait for your approval.",
        ] {
            assert_eq!(behind(line), Standing::Doubtful, "{line}");
        }
        for line in [
            "",
            "Now I wait for the result.",
            "Let me know if you need anything else.",
            "Should I also read b.txt?",
            "No errors are expected.",
            "I won't run the other command.",
            "This looks for SQL injection in the handlers.",
            "Don't follow links.",
            "Ignore case.",
        ] {
            assert_eq!(behind(line), Standing::Meant, "{line}");
        }
    }
}
