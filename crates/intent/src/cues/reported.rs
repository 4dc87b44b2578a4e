//! Calls that somebody else made, that were made before, or that are asked about.

use super::tables::OWN_GERUNDS;
use super::taken_back;

/// What the words before a call say about who means it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Standing {
    /// Nothing speaks against it.
    Meant,
    /// It may be somebody else's: good enough to read by, not to change things.
    Doubtful,
    /// It is past, quoted or asked about.
    Reported,
}

/// What was done with a call, when "I" did it.
const DONE: &[&str] = &[
    "executed",
    "ran",
    "called",
    "invoked",
    "issued",
    "performed",
    "used",
    "sent",
    "tried",
    "attempted",
    "typed",
    "entered",
    "submitted",
    "launched",
    "triggered",
    "emitted",
    "deleted",
    "removed",
    "wrote",
];
/// What else can stand behind "have" or "was".
const DONE_BEHIND_HAVE: &[&str] = &["run", "done", "made"];
/// Small words between "I" or "have" and the verb.
const BETWEEN: &[&str] = &[
    "already",
    "just",
    "also",
    "then",
    "first",
    "once",
    "even",
    "successfully",
    "previously",
    "accidentally",
    "now",
    "since",
    "only",
    "mistakenly",
    "recently",
    "finally",
];
/// What announces, wherever it stands in the sentence.
const ANNOUNCES: &[&str] = &[
    "let", "let's", "i'll", "we'll", "i'm", "going", "will", "need", "must", "should", "want",
    "here", "here's", "next",
];
/// Where foreign text comes from. A plain file is as often what is about to be written.
const SOURCES: &[&str] = &[
    "page",
    "webpage",
    "website",
    "site",
    "document",
    "doc",
    "email",
    "e-mail",
    "mail",
    "file",
    "readme",
    "pdf",
    "article",
    "comment",
    "issue",
    "ticket",
    "attachment",
    "instruction",
    "instructions",
    "attacker",
    "post",
    "html",
    "injection",
    "note",
];
/// What gives foreign text as well, when the words behind it say so.
const RESULTS: &[&str] = &["result", "results", "output", "response", "reply"];
/// How a sentence begins whose subject is such a source.
const BEGINS: &[&str] = &[
    "the",
    "this",
    "that",
    "a",
    "an",
    "its",
    "one",
    "some",
    "from",
    "in",
    "on",
    "at",
    "according",
    "summary",
    "content",
    "contents",
    "quote",
    "excerpt",
    "text",
    "body",
    "web",
    "and",
];
/// What such a source does with a call.
const REPORTS: &[&str] = &[
    "says",
    "said",
    "say",
    "reads",
    "ends",
    "ended",
    "begins",
    "starts",
    "contains",
    "contained",
    "includes",
    "included",
    "tells",
    "told",
    "asks",
    "asked",
    "instructs",
    "instructed",
    "states",
    "stated",
    "shows",
    "contain",
    "has",
    "had",
    "holds",
    "wants",
    "demands",
    "suggests",
    "orders",
];
/// What stands as a label before one half of a comparison.
const VERDICTS: &[&str] = &[
    "bad",
    "good",
    "wrong",
    "incorrect",
    "correct",
    "avoid",
    "forbidden",
    "unsafe",
    "safe",
    "dangerous",
    "malicious",
    "harmful",
    "ignored",
    "rejected",
    "blocked",
    "denied",
    "cancelled",
    "canceled",
    "aborted",
    "discarded",
    "withdrawn",
    "retracted",
    "skipped",
];
/// How one asks for leave.
const ASKS: &[&str] = &[
    "should i ",
    "should we ",
    "shall i ",
    "shall we ",
    "may i ",
    "can i ",
    "could i ",
    "do you want ",
    "would you like ",
    "is it ok",
    "is it fine ",
    "is it safe ",
    "ok to ",
    "okay to ",
    "want me to ",
    "am i allowed ",
    "is this ",
    "is that ",
    "are you sure",
    "are you ok",
    "are you fine",
    "did you mean",
    "does this ",
    "does that ",
    "would this ",
    "would that ",
    "would it ",
    "will this ",
    "will that ",
    "what would ",
    "what does ",
    "what if ",
    "how about ",
    "do you think ",
    "have you tried ",
    "why not ",
];
/// Words of a question that is put to somebody, or that points to the call.
const ASKED: &[&str] = &["following", "this", "these", "below", "you", "your"];
/// The first or last word of a label for what a program wrote, or was sent.
const WRITTEN: &[&str] = &[
    "output",
    "outputs",
    "observation",
    "result",
    "results",
    "response",
    "reply",
    "stdout",
    "stderr",
    "log",
    "logs",
    "printed",
    "prints",
    "returned",
    "returns",
    "replied",
    "answered",
    "echoed",
    "logged",
    "body",
    "request",
    "transcript",
    "history",
    "server",
];
/// A label is short.
const LABEL_WORDS_MAX: usize = 5;

/// Reads the sentence before a call, in lower case.
pub(super) fn standing(sentence: &str, same_line: bool) -> Standing {
    let sentence = sentence.replace('\u{2019}', "'");
    let trimmed = sentence.trim_end_matches(['"', '\u{201c}', ' ']);
    let words = words_of(trimmed);
    let asks = ASKS.iter().any(|ask| trimmed.starts_with(ask));
    let finished = trimmed.ends_with(['.', '!']);
    if trimmed.ends_with('?') {
        // What is asked of somebody, or about the call itself, is not decided yet.
        let about = |word: &&str| ASKED.contains(word);
        return if asks || words.iter().any(about) {
            Standing::Reported
        } else {
            Standing::Doubtful
        };
    }
    if finished || words.is_empty() {
        return Standing::Meant;
    }
    let introduces = same_line || trimmed.ends_with(':');
    let equated = words
        .last()
        .is_some_and(|word| matches!(*word, "was" | "were"));
    if asks || equated || is_past(&words, introduces) {
        return Standing::Reported;
    }
    if !introduces {
        return Standing::Meant;
    }
    let taken_back = taken_back::before(trimmed);
    if taken_back != Standing::Meant {
        return taken_back;
    }
    if let [verdict] = words.as_slice()
        && VERDICTS.contains(verdict)
    {
        return Standing::Reported;
    }
    let label = |words: &[&str]| {
        let last = words.last().is_some_and(|word| WRITTEN.contains(word));
        let first = words.first().is_some_and(|word| WRITTEN.contains(word));
        words.len() <= LABEL_WORDS_MAX && (first || last)
    };
    if trimmed.ends_with(':') && label(&words) && !announces(&words) {
        return Standing::Reported;
    }
    of_source(&words, &sentence)
}

/// The words of a sentence.
pub(super) fn words_of(sentence: &str) -> Vec<&str> {
    sentence
        .split(|letter: char| !letter.is_alphanumeric() && !matches!(letter, '\'' | '-'))
        .filter(|word| !word.is_empty())
        .collect()
}

/// "Yesterday I executed", "I have just run", "was executed", "Executed:"; not "I have to run" and
/// not "I ran it, now I'll read".
fn is_past(words: &[&str], introduces: bool) -> bool {
    let done = |at: usize| words.get(at).is_some_and(|word| DONE.contains(word));
    let mut found = done(0).then_some(0);
    for (at, word) in words.iter().enumerate() {
        let skip = |from: usize| {
            let between = words[from.min(words.len())..]
                .iter()
                .take(2)
                .take_while(|word| BETWEEN.contains(word))
                .count();
            from + between
        };
        let perfect = matches!(
            *word,
            "have" | "had" | "i've" | "we've" | "was" | "were" | "been"
        );
        let verb = skip(at + 1);
        let behind_have = words
            .get(verb)
            .is_some_and(|word| DONE_BEHIND_HAVE.contains(word));
        let past = matches!(*word, "i" | "we" | "already" | "previously") && done(verb);
        if past || perfect && (done(verb) || behind_have) {
            found = Some(verb);
        }
    }
    let Some(verb) = found else { return false };
    (introduces || verb + 1 == words.len()) && !announces(&words[verb + 1..])
}

pub(super) fn announces(words: &[&str]) -> bool {
    words.iter().enumerate().any(|(at, word)| {
        ANNOUNCES.contains(word)
            || OWN_GERUNDS.contains(word)
            || *word == "now" && at + 1 < words.len()
    })
}

/// "The page says:", "Email body:", "From the website:".
fn of_source(words: &[&str], sentence: &str) -> Standing {
    let reports = |behind: &[&str]| behind.iter().take(6).any(|word| REPORTS.contains(word));
    let is_source = |word: &&str| {
        let at = words.iter().position(|other| other == word).unwrap_or(0);
        SOURCES.contains(word) || RESULTS.contains(word) && reports(&words[at + 1..])
    };
    let begins = words
        .first()
        .is_some_and(|word| BEGINS.contains(word) || is_source(word));
    let Some(source) = words.iter().position(is_source) else {
        return Standing::Meant;
    };
    if !begins || announces(&words[..source]) {
        return Standing::Meant;
    }
    let behind = &words[source + 1..];
    // "The file has errors, so I'll mend it:" goes on with a plan of its own.
    let plan = [", ", "; ", " so ", " and ", " but "]
        .iter()
        .filter_map(|link| sentence.rfind(link).map(|at| &sentence[at + link.len()..]))
        .any(|clause| {
            let clause: Vec<&str> = clause.split_whitespace().collect();
            announces(&clause)
        });
    if plan {
        return Standing::Meant;
    }
    let found_in = [
        ["found", "in"].as_slice(),
        &["found", "in", "the"],
        &["found", "in", "an"],
    ]
    .iter()
    .any(|end| words[..source].ends_with(end));
    let reports = reports(behind);
    let label = words.len() <= 4 && words[source] != "file" && words[source] != "note";
    if found_in || reports || label && !announces(behind) {
        return Standing::Reported;
    }
    if announces(behind) {
        return Standing::Meant;
    }
    Standing::Doubtful
}
