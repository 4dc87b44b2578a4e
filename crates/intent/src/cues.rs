//! Words around a call that say whether it is meant or only shown.
//!
//! What counts is the sentence right before the call. One that introduces the call (it ends with a
//! colon, or stands on the same line) speaks about it: "The model should answer with:" shows,
//! "I'll read it now:" means. One that does not can only show by saying so: "An example."

use std::sync::LazyLock;

use crate::word_set::{WordSet, has_words};

/// What stands before a call.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Lead<'a> {
    /// The last line with words.
    pub(crate) line: &'a str,
    /// Whether the call goes on in that line.
    pub(crate) same_line: bool,
    /// The heading above.
    pub(crate) heading: &'a str,
}

/// Words that declare an example, wherever they stand.
static EXAMPLE: LazyLock<WordSet> = LazyLock::new(|| {
    WordSet::new(&[
        "example",
        "examples",
        "e.g.",
        "for instance",
        "such as",
        "looks like",
        "look like",
        "sample",
        "template",
        "illustrat",
        "demonstration",
        "hypothetical",
        "hypothetically",
        "transcript",
        "this is how",
        "here's how",
        "here is how",
        "how to",
        "would look",
        "could look",
        "the format",
        "the syntax",
        "format is",
        "syntax is",
        "test case",
        "unit test",
        "below you see",
        "below is",
    ])
});

/// Words of an introduction that make what follows an example.
static INTRODUCES_EXAMPLE: LazyLock<WordSet> = LazyLock::new(|| {
    WordSet::new(&[
        "format",
        "syntax",
        "documentation",
        "the docs",
        "schema",
        "in the form",
        "of the form",
        "shape",
        "payload",
        "snippet",
        "quoted",
        "specification",
        "definition",
        "defined as",
        "is defined",
        "instead of",
        "rather than",
        "don't",
        "do not",
        "never",
        "must not",
        "should not",
        "previously",
        "earlier",
        "already",
        "i called",
        "i ran",
        "i sent",
        "was called with",
        "expected",
        "invalid",
        "returned",
        "suppose",
        "imagine",
        "consider",
        "illustration",
        "would",
        "could",
        "might",
        "should",
        "must",
        "can be",
        "something like",
        "parses",
        "parsed",
        "means that",
        "structure",
        "says",
        "said",
        "contains",
        "contained",
        "includes",
        "included",
        "wrote",
        "writes",
        "written",
        "emits",
        "emit",
        "sent",
        "sends",
        "shows",
        "showed",
        "was:",
        "were:",
        "for reference",
        "receives",
        "server",
        "correct answer",
        "explain",
        "what this does",
        "please",
        "respond with",
        "reply with",
        "answer with",
    ])
});

/// Whoever is not the model itself.
static OTHERS: LazyLock<WordSet> = LazyLock::new(|| {
    WordSet::new(&[
        "you",
        "your",
        "you'd",
        "you'll",
        "model",
        "models",
        "llm",
        "llms",
        "assistant",
        "agent",
        "agents",
        "bot",
        "user",
        "users",
        "developer",
        "developers",
        "parser",
        "host",
        "client",
        "he",
        "she",
        "they",
        "people",
        "reply",
        "replies",
        "response",
        "responses",
        "message",
        "text",
        "log",
        "logs",
        "readme",
        "manual",
        "prompt",
        "instructions",
        "qwen",
        "hermes",
        "llama",
        "mistral",
        "deepseek",
        "gpt",
        "claude",
        "each call",
        "every call",
        "calls",
        "tool calls",
    ])
});

/// The model speaks of what it is about to do.
static FIRST_PERSON: LazyLock<WordSet> = LazyLock::new(|| {
    WordSet::new(&[
        "i'll",
        "i’ll",
        "let me",
        "let's",
        "let us",
        "i'm",
        "i'd like to",
        "we'll",
        "we're",
        "now i",
        "next i",
        "going to",
        "my next step",
        "my next action",
        "the next step",
    ])
});

/// Verbs that "I" or "we" do, at most one adverb between.
const OWN_VERBS: &[&str] = &[
    "need", "have", "must", "will", "should", "want", "use", "am", "are", "shall", "read", "check",
    "look", "call", "run", "fetch", "search", "open", "can", "first", "now", "start",
];

/// Gerunds that begin an announcement: "Reading a.txt:".
const OWN_GERUNDS: &[&str] = &[
    "calling",
    "trying",
    "reading",
    "checking",
    "executing",
    "running",
    "fetching",
    "using",
    "searching",
    "opening",
    "looking",
    "writing",
    "invoking",
    "requesting",
    "making",
];

/// An introduction that hands over a call.
static HANDS_OVER: LazyLock<WordSet> = LazyLock::new(|| {
    WordSet::new(&[
        "tool call:",
        "function call:",
        "tool calls:",
        "here is the call",
        "here's the call",
        "here is the tool call",
        "here's the tool call",
        "here is the function call",
        "here is my",
        "here's my",
        "the user wants",
        "the user asked",
        "the user asks",
        "the user needs",
        "the user would like",
        "the user is asking",
    ])
});

/// The model speaks of itself, but not of doing it.
static HOLDS_BACK: LazyLock<WordSet> = LazyLock::new(|| {
    WordSet::new(&[
        "will not",
        "won't",
        "not going to",
        "should not",
        "shouldn't",
        "can't call",
        "can't send",
        "can't run",
        "cannot call",
        "cannot send",
        "cannot run",
        "must not",
        "never",
        "refuse",
        "would not",
        "wouldn't",
        "instead of",
        "rather than",
        "if i",
        "if we",
        "i would",
        "i could",
        "we would",
        "we could",
        "did not",
        "didn't",
    ])
});

/// The model speaks of itself, but of explaining.
static EXPLAINS: LazyLock<WordSet> = LazyLock::new(|| {
    WordSet::new(&[
        "show",
        "give",
        "demonstrate",
        "illustrate",
        "explain",
        "describe",
        "present",
    ])
});

/// Words after a call that make it an example.
const SHOWN_AFTER: &[&str] = &[
    "is an example",
    "is one example",
    "this is how",
    "that is how",
    "that's how",
    "this is an example",
    "this example",
    "the example above",
    "the above is",
    "the above shows",
    "that is what",
    "that's what",
    "this is what",
    "is what",
    "would ",
    "is how",
    "shows how",
    "as you can see",
    "in this example",
    "replace ",
    "where `",
    "note that this",
    "this would",
    "this format",
    "this is the format",
    "this is only",
    "this is just",
    "is the format",
    "is the syntax",
    "in the documentation",
    "was the call",
    "is only",
    "is just",
    "you can ",
    "means ",
    "this tells",
    "this json",
    "are the ",
    "is the wrong",
    "the model emits",
    "is not ",
    "this schema",
    "the host then",
    "the model then",
    "the snippet",
    "this snippet",
    "this shows how",
    "this shows the",
    "here, `",
    "the call above",
    "the block above",
    "the code above",
    "in the block above",
    "in the call above",
    "in the code above",
    "in the above",
    "^",
];

/// Headings of chapters that show how things are written.
static SHOWING_HEADINGS: LazyLock<WordSet> = LazyLock::new(|| {
    WordSet::new(&[
        "example",
        "examples",
        "usage",
        "format",
        "syntax",
        "documentation",
        "how to",
        "sample",
        "reference",
        "template",
        "tutorial",
    ])
});

/// Whether the words around a call say that it is only shown.
pub(crate) fn shows_example(lead: Lead<'_>, after: &str) -> bool {
    let line = lead.line.to_lowercase();
    let sentence = last_sentence(&line);
    let any = |words: &WordSet| words.is_in(sentence);
    // A line that does not end goes on in the call.
    let introduces =
        !sentence.is_empty() && (lead.same_line || !sentence.ends_with(['.', '!', '?']));
    let own = any(&FIRST_PERSON) || speaks_of_itself(sentence);
    let speaks = own || starts_with_gerund(sentence);
    let example = any(&EXAMPLE);
    let holds_back = any(&HOLDS_BACK) && !has_words(sentence, "i would like to");
    let shown = if introduces && speaks {
        holds_back || example && any(&EXPLAINS)
    } else if introduces {
        let condition = ["if ", "when ", "whenever ", "suppose "]
            .iter()
            .any(|word| sentence.starts_with(word));
        condition
            || holds_back
            || example
            || !any(&HANDS_OVER)
                && (any(&INTRODUCES_EXAMPLE)
                    || any(&OTHERS) && sentence.split_whitespace().nth(2).is_some())
    } else {
        example && !speaks
    };
    let in_chapter = !own && SHOWING_HEADINGS.is_in(lead.heading);
    let after = after.trim_start().as_bytes();
    let starts = |cue: &&str| {
        after
            .get(..cue.len())
            .is_some_and(|head| head.eq_ignore_ascii_case(cue.as_bytes()))
    };
    shown || in_chapter || SHOWN_AFTER.iter().any(starts)
}

/// "Reading a.txt:".
fn starts_with_gerund(sentence: &str) -> bool {
    let first = sentence
        .split(|letter: char| !letter.is_alphabetic())
        .next();
    first.is_some_and(|word| OWN_GERUNDS.contains(&word))
}

/// "I first need to …".
fn speaks_of_itself(sentence: &str) -> bool {
    let words: Vec<&str> = sentence
        .split(|letter: char| !letter.is_alphanumeric() && letter != '\'')
        .filter(|word| !word.is_empty())
        .collect();
    words.iter().enumerate().any(|(at, word)| {
        matches!(*word, "i" | "we")
            && words[at + 1..]
                .iter()
                .take(2)
                .any(|next| OWN_VERBS.contains(next))
    })
}

/// The last sentence of a line, without marks around it.
fn last_sentence(line: &str) -> &str {
    let line = line
        .trim_end()
        .trim_end_matches(['*', '_', '`', '>'])
        .trim_end();
    let body = line.trim_end_matches(['.', '!', '?', ':']);
    let start = [". ", "! ", "? ", ".* "]
        .iter()
        .filter_map(|end| body.rfind(end).map(|at| at + end.len()))
        .filter(|at| !body[..*at].ends_with("e.g. ") && !body[..*at].ends_with("i.e. "))
        .max()
        .unwrap_or(0);
    line[start..].trim_start_matches(['-', '*', '#', ' ', '_'])
}
