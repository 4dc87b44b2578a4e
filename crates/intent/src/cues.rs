//! Words around a call that say whether it is meant or only shown.

/// Words before a call that make it an example.
const SHOWS: &[&str] = &[
    "example",
    "examples",
    "e.g.",
    "for instance",
    "such as",
    "looks like",
    "look like",
    "format",
    "syntax",
    "documentation",
    "the docs",
    "sample",
    "template",
    "schema",
    "would be written",
    "you can call",
    "you could call",
    "you would call",
    "you call",
    "you can use",
    "you would use",
    "you would write",
    "you write",
    "you'd",
    "how to",
    "here's how",
    "here is how",
    "this is how",
    "models emit",
    "model emits",
    "model would emit",
    "model outputs",
    "model produces",
    "emits",
    "instead of",
    "rather than",
    "don't",
    "do not",
    "never",
    "must not",
    "should not",
    "previously",
    "earlier",
    "was called with",
    "i called",
    "i ran",
    "already",
    "the log",
    "log shows",
    "the user wrote",
    "you wrote",
    "you said",
    "he wrote",
    "she wrote",
    "the readme",
    "illustrat",
    "hypothetical",
    "if i wanted",
    "if you wanted",
    "if we wanted",
    "suppose",
    "imagine",
    "would look",
    "could look",
    "in the form",
    "of the form",
    "payload",
    "test case",
    "unit test",
    "snippet",
    "quoted",
    "transcript",
    "the prompt says",
    "the instructions",
    "parser should",
    "parses",
    "parsed",
    "means that",
    "specification",
    "defined as",
    "is defined",
    "definition",
    "response was",
    "returned",
    "the output was",
];

/// Words that make it meant after all.
const MEANS: &[&str] = &[
    "i'll",
    "i will",
    "let me",
    "let's",
    "i am going to",
    "i'm going to",
    "i need to",
    "calling",
    "now i",
    "next i",
    "i should",
    "we need to",
    "we should",
    "we will",
    "we'll",
    "going to",
    "i'd like to",
    "my next step",
    "tool call:",
    "here is the call",
    "here's the call",
    "here is the tool call",
    "here's the tool call",
    "here is the function call",
];

/// Words after a call that make it an example.
const SHOWN_AFTER: &[&str] = &[
    "is an example",
    "this is how",
    "this is an example",
    "this example",
    "the example above",
    "the above is",
    "the above shows",
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
];

/// Whether the words around a call say that it is only shown.
pub(crate) fn shows_example(before: &str, after: &str) -> bool {
    let before = before.to_lowercase();
    if MEANS.iter().any(|cue| has_words(&before, cue))
        && !has_words(&before, "don't")
        && !has_words(&before, "not")
    {
        return false;
    }
    if SHOWS.iter().any(|cue| has_words(&before, cue)) {
        return true;
    }
    let after = after.trim_start().to_lowercase();
    SHOWN_AFTER.iter().any(|cue| after.starts_with(cue))
}

/// Whether `text` (in lower case) has these words as words: `example` is not in `example.com`.
pub(crate) fn has_words(text: &str, words: &str) -> bool {
    let bytes = text.as_bytes();
    memchr::memmem::find_iter(bytes, words.as_bytes()).any(|at| {
        let before = at.checked_sub(1).map(|at| bytes[at]);
        let after = bytes.get(at + words.len()).copied();
        let next = bytes.get(at + words.len() + 1).copied();
        let bound = |byte: Option<u8>| {
            byte.is_none_or(|byte| !byte.is_ascii_alphanumeric() && byte != b'_')
        };
        let in_address = matches!(after, Some(b'.' | b'/' | b'-' | b'\\'))
            && next.is_some_and(|byte| byte.is_ascii_alphanumeric())
            || matches!(before, Some(b'.' | b'/' | b'@' | b'\\'));
        bound(before)
            && (bound(after) && !in_address || words.ends_with(' ') || words == "illustrat")
    })
}
