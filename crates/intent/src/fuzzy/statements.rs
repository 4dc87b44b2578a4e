//! Sentences that begin like an order or like something under way, and are statements.

use std::sync::LazyLock;

use super::words;
use crate::cues::{WordSet, has_words};

static FINITE_WORDS: LazyLock<WordSet> = LazyLock::new(|| WordSet::new(FINITE));

/// Verbs that make a gerund before them their subject: "reading it takes time".
const FINITE: &[&str] = &[
    "is", "are", "was", "were", "takes", "took", "requires", "needs", "fails", "can", "will",
    "would", "should", "may", "might", "does", "has", "works", "gives", "returns", "costs",
    "means", "shows", "helps", "makes", "causes", "lets", "allows", "must", "seems",
];

/// Whether "reading a.txt …" goes on as a statement about reading.
pub(super) fn is_statement(lower: &str) -> bool {
    let bare = words::without_quoted(lower);
    FINITE_WORDS.is_in(&bare) || tells_outcome(&bare)
}

/// What is said of something that came to an end.
const OUTCOMES: &[&str] = &[
    "failed",
    "succeeded",
    "worked",
    "returned",
    "yields",
    "yielded",
    "produces",
    "produced",
    "turned up",
    "timed out",
    "was unsuccessful",
    "was successful",
    "came up empty",
];

/// "Reading a.txt failed", "searching for cats yields nothing"; not "searching for why it failed".
fn tells_outcome(bare: &str) -> bool {
    const WITHIN: &[&str] = &["why", "that", "which", "how", "what", "who", "where", "to"];
    OUTCOMES.iter().any(|word| {
        bare.find(word).is_some_and(|at| {
            has_words(bare, word) && !WITHIN.iter().any(|link| has_words(&bare[..at], link))
        })
    })
}

/// Whether an order to search goes on behind what is searched for, in marks, as a statement about
/// the search: "search for 'rust' was unsuccessful".
pub(super) fn is_search_report(lower: &str) -> bool {
    let behind = lower.rfind(['"', '`', '\'', '\u{201d}', '\u{2019}']);
    behind.is_some_and(|at| {
        let rest = lower[at..].trim_start_matches(|letter: char| !letter.is_alphanumeric());
        let first = rest.split(|letter: char| !letter.is_alphabetic()).next();
        let verb = first.unwrap_or_default();
        matches!(verb, "was" | "is" | "has" | "did" | "gave" | "found") || OUTCOMES.contains(&verb)
    })
}

/// Whether what begins like an order goes on as a statement about something.
pub(super) fn is_report(lower: &str) -> bool {
    static VERBS: LazyLock<WordSet> = LazyLock::new(|| {
        WordSet::new(&[
            "was", "were", "takes", "took", "has", "requires", "failed", "helps", "means", "seems",
        ])
    });
    VERBS.is_in(&words::without_quoted(lower))
}

/// Whether a text begins with the verb of a statement: "… b.txt is next".
pub(super) fn starts_statement(text: &str) -> bool {
    let word = text
        .trim_start_matches(['"', '`', '\'', ' '])
        .split(|letter: char| !letter.is_alphabetic())
        .next()
        .unwrap_or("");
    FINITE.contains(&word)
}
