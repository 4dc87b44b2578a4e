//! Whether a text only announces what comes next, as models write it beside a call.

use super::glance::Glance;
use super::lead::{self, strip_word};
use super::sentence::{Sentence, sentences};
use super::{statements, words};
use crate::doc::Doc;

/// An announcement is short. A longer text says something.
const ANNOUNCEMENT_BYTES_MAX: usize = 300;

/// Sentences that stand for "I begin now".
const BEGINNINGS: &[&str] = &[
    "absolutely",
    "certainly",
    "give me a moment",
    "give me a second",
    "gladly",
    "happy to help",
    "hang on",
    "here goes",
    "here we go",
    "hold on",
    "just a moment",
    "just a second",
    "no problem",
    "on it",
    "one moment",
    "one second",
    "please wait",
    "right away",
    "sounds good",
    "will do",
];

/// What makes a plan wait for the reader.
const WAITS_FOR_READER: &[&str] = &[
    "as soon as you",
    "until you",
    "after you",
    "shall i",
    "should i",
];

/// Whether every sentence of the text is a plan of the speaker's own or something under way.
pub(crate) fn announces(doc: &Doc<'_>) -> bool {
    let text = doc.text.trim();
    let sentences = sentences(doc);
    !sentences.is_empty()
        && text.len() <= ANNOUNCEMENT_BYTES_MAX
        && doc.fences.is_empty()
        && sentences
            .iter()
            .all(|sentence| is_announcement(doc, sentence))
}

fn is_announcement(doc: &Doc<'_>, sentence: &Sentence) -> bool {
    let lower = sentence.text(doc).to_ascii_lowercase();
    let waits = || WAITS_FOR_READER.iter().any(|words| lower.contains(words));
    if sentence.question || words::is_denied(&lower) || words::asks_reader(&lower) || waits() {
        return false;
    }
    let rest = lead::without_fillers(&lower);
    let seen = Glance::of(&lower, doc.tools);
    let is_under_way = || {
        let first = rest.split_whitespace().next().unwrap_or_default();
        let first = first.trim_end_matches(|sign: char| !sign.is_alphanumeric());
        first.len() > 4 && first.ends_with("ing") && !statements::is_statement(rest)
    };
    !rest.chars().any(char::is_alphanumeric)
        || BEGINNINGS
            .iter()
            .any(|begin| strip_word(rest, begin).is_some())
        || lead::of(&lower, seen).is_some_and(|lead| !lead.order && !lead.gerund)
        || is_under_way()
}

#[cfg(test)]
mod tests {
    use crate::{FinishReason, Parser};

    #[test]
    fn plans_and_work_under_way_are_announcements_and_answers_are_not() {
        let table = [
            ("I'll help with that...", true),
            ("Working on it.", true),
            ("Saving the summary.", true),
            ("Let me fetch the article.", true),
            ("Sure! Let me look that up for you.", true),
            ("Okay, I'll check the notes. One moment please.", true),
            ("Got it. I'm going to help you with that now:", true),
            ("<think>I know.</think>On it!", true),
            ("", false),
            ("It is 4.", false),
            ("Here is your summary: three results.", false),
            ("I have decided against it. Nothing was done.", false),
            ("I won't run `cargo test`.", false),
            ("I'll run it as soon as you approve it.", false),
            ("Shall I run the tests?", false),
            ("Running it takes ten minutes.", false),
            ("Saved the note.", false),
            ("Let me know what you think.", false),
            ("```\nls\n```", false),
        ];
        for (text, expected) in table {
            let found = Parser::default().announces(text, FinishReason::Stop);
            assert_eq!(found, expected, "{text}");
        }
    }
}
