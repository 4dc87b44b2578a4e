//! Words, addresses, paths and quotations in a clause.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use crate::cues::WordSet;

pub(super) const READER_WORDS: &[&str] = &[
    "you",
    "your",
    "yours",
    "you'll",
    "you'd",
    "you're",
    "users",
    "developers",
    "yourself",
    "please",
    "click",
    "press",
    "tap",
];
pub(super) const STEP_WORDS: &[&str] = &[
    "steps",
    "how to",
    "instructions",
    "usage",
    "getting started",
    "installation",
    "tutorial",
    "guide",
    "prerequisites",
    "checklist",
];
static READER: LazyLock<WordSet> = LazyLock::new(|| WordSet::new(READER_WORDS));
static STEPS: LazyLock<WordSet> = LazyLock::new(|| WordSet::new(STEP_WORDS));
pub(super) const DENIAL_WORDS: &[&str] = &[
    "not",
    "never",
    "don't",
    "won't",
    "can't",
    "cannot",
    "shouldn't",
    "wouldn't",
    "couldn't",
    "without",
    "no need",
    "instead of",
    "rather than",
    "have searched",
    "have already",
    "already",
    "earlier",
    "yesterday",
    "previously",
    "last time",
    "would have",
    "could have",
    "if",
    "unless",
    "in case",
    "suppose",
    "hypothetically",
    "n't",
    "would be",
    "used to",
    "avoid",
    "refuse",
];
static DENIALS: LazyLock<WordSet> = LazyLock::new(|| WordSet::new(DENIAL_WORDS));

/// Whether the sentence talks to or about somebody else.
pub(super) fn addresses_reader(lower: &str) -> bool {
    READER.is_in(lower)
        && !lower.contains("for you")
        && !lower.contains("please wait")
        && !lower.contains("as you asked")
        && !lower.contains("as you requested")
}

/// Whether it leaves the choice to the reader.
pub(super) fn asks_reader(lower: &str) -> bool {
    static YOU: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("you"));
    static TELL: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("let me know"));
    // Almost all of them have this word, and most sentences do not.
    if YOU.find(lower.as_bytes()).is_none() {
        return TELL.find(lower.as_bytes()).is_some();
    }
    [
        "if you",
        "would you",
        "let me know",
        "do you",
        "when you",
        "once you",
        "unless you",
        "whether you",
        "you can ",
        "you could ",
        "you should ",
        "you may ",
        "you might ",
        "you need ",
        "you must ",
    ]
    .iter()
    .any(|words| lower.contains(words))
}

/// Whether what follows is a recipe for a reader.
pub(super) fn announces_steps(lower: &str) -> bool {
    // A guide that is spoken of in a sentence is no recipe.
    let heads = lower.ends_with(':') || lower.split_whitespace().count() <= 4;
    heads && STEPS.is_in(lower)
}

/// Negation, condition or past inside a clause, before it gets to its object.
pub(super) fn is_denied(lower: &str) -> bool {
    // Quoted words are an argument, not the sentence's own.
    if memchr::memchr2(b'"', b'`', lower.as_bytes()).is_some() {
        return is_denied_plainly(&without_quoted(lower));
    }
    is_denied_plainly(lower)
}

fn is_denied_plainly(lower: &str) -> bool {
    if lower.contains('\'') && lower.contains("n't ") {
        return true;
    }
    DENIALS.is_in(lower)
        && (!lower.contains(" if ") || DENIALS.is_in(&without_indirect_questions(lower)))
}

/// "to see if it is there" asks, it does not set a condition.
fn without_indirect_questions(lower: &str) -> String {
    const ASKING: &[&str] = &[
        "see if ",
        "check if ",
        "know if ",
        "determine if ",
        "verify if ",
        "find out if ",
        "learn if ",
        "tell if ",
        "confirm if ",
        "test if ",
        "look if ",
    ];
    let mut text = lower.to_owned();
    for asking in ASKING {
        text = text.replace(asking, "see whether ");
    }
    text
}

pub(super) fn without_quoted(text: &str) -> String {
    if memchr::memchr2(b'"', b'`', text.as_bytes()).is_none() {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut mark = None;
    for letter in text.chars() {
        match mark {
            Some(open) if letter == open => mark = None,
            Some(_) => {}
            None if matches!(letter, '"' | '`') => mark = Some(letter),
            None => out.push(letter),
        }
    }
    out
}

/// The first text in quotation marks or backticks.
pub(super) fn quoted(text: &str) -> Option<&str> {
    if text.is_ascii() && memchr::memchr3(b'`', b'"', b'\'', text.as_bytes()).is_none() {
        return None;
    }
    let pairs = [('`', '`'), ('"', '"'), ('“', '”'), ('\'', '\'')];
    pairs
        .iter()
        .filter_map(|(open, close)| {
            let at = text
                .char_indices()
                .find(|(at, letter)| {
                    letter == open
                        && (*open != '\'' || text[..*at].ends_with([' ', '(']) || *at == 0)
                })?
                .0;
            let inner = &text[at + open.len_utf8()..];
            let mut end = inner.find(*close)?;
            if *open == '\'' {
                // An apostrophe inside a word closes nothing.
                end = inner
                    .char_indices()
                    .find(|(at, letter)| {
                        letter == close && !inner[at + 1..].starts_with(char::is_alphanumeric)
                    })?
                    .0;
            }
            let inner = inner[..end].trim();
            (!inner.is_empty()).then_some((at, inner))
        })
        .min_by_key(|(at, _)| *at)
        .map(|(_, inner)| inner)
}

/// The first web address.
pub(super) fn address(text: &str) -> Option<String> {
    // Every address has a point or a colon in the middle of a word.
    let bytes = text.as_bytes();
    let goes_on = |at: usize| {
        bytes
            .get(at + 1)
            .is_some_and(|byte| !byte.is_ascii_whitespace())
    };
    if !memchr::memchr2_iter(b'.', b':', bytes).any(goes_on) {
        return None;
    }
    for word in text.split(|letter: char| {
        letter.is_whitespace() || matches!(letter, '"' | '`' | '<' | '>' | '|')
    }) {
        let word = word.trim_matches(|letter: char| {
            matches!(
                letter,
                ',' | '.' | '!' | '?' | ';' | ':' | '\'' | '(' | '[' | ']' | '*' | '“' | '”'
            )
        });
        let word = word.rsplit_once("](").map_or(word, |(_, link)| link);
        let word = if word.contains('(') {
            word
        } else {
            word.trim_end_matches(')')
        };
        let lower = word.to_ascii_lowercase();
        if (lower.starts_with("http://") || lower.starts_with("https://")) && word.len() > 10 {
            return Some(word.to_owned());
        }
        if lower.starts_with("www.") && lower.len() > 7 || is_host(&lower) {
            return Some(format!("https://{word}"));
        }
    }
    None
}

/// Whether a sentence in lower case is English: no other language has these words.
pub(super) fn is_english(lower: &str) -> bool {
    static WORDS: LazyLock<[Finder<'static>; 7]> = LazyLock::new(|| {
        [" the ", " is ", " are ", " was ", " of ", " with ", " and "].map(Finder::new)
    });
    WORDS
        .iter()
        .any(|word| word.find(lower.as_bytes()).is_some())
}

/// Words that go on with a sentence about a search instead of saying what is searched.
const GOES_ON: &[&str] = &[
    "and then",
    "as soon as",
    "as the user",
    "because",
    "before answering",
    "before i",
    "before we",
    "in order to",
    "so that",
    "then",
    "to answer",
    "to be sure",
    "to check",
    "to confirm",
    "to find out",
    "to make sure",
    "to see",
    "to verify",
    "verify",
];

/// Whether a text only goes on with the sentence before it: "because my knowledge is old".
pub(super) fn goes_on(text: &str) -> bool {
    let lower = text.to_lowercase();
    let rest = |words: &str| lower.strip_prefix(words).map(str::to_owned);
    let mut rests = GOES_ON.iter().filter_map(|words| rest(words));
    rests.any(|rest| !rest.starts_with(char::is_alphanumeric))
}

/// Whether what follows these words is an example: "say what you do, for example: I will search …".
pub(super) fn introduces_example(before: &str) -> bool {
    [
        "for example",
        "for instance",
        "e.g.",
        "zum beispiel",
        "par exemple",
        "por ejemplo",
    ]
    .iter()
    .any(|words| before.contains(words))
}

/// `example.com/page`: a host by its well-known ending.
fn is_host(word: &str) -> bool {
    let host = word.split('/').next().unwrap_or("");
    let Some((name, end)) = host.rsplit_once('.') else {
        return false;
    };
    !name.is_empty()
        && matches!(
            end,
            "com" | "org" | "net" | "io" | "dev" | "edu" | "gov" | "ai" | "co" | "de" | "uk"
        )
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-'))
}

/// The first thing that is a path: it has a separator or a file's ending.
pub(super) fn path(text: &str) -> Option<&str> {
    let quoted =
        quoted(text).filter(|quoted| is_path(quoted) || super::literals::names_file(quoted));
    quoted.or_else(|| {
        text.split_whitespace()
            .map(|word| {
                word.trim_matches(|letter: char| {
                    matches!(
                        letter,
                        '"' | '`'
                            | '\''
                            | ','
                            | ';'
                            | ':'
                            | '('
                            | ')'
                            | '!'
                            | '?'
                            | '*'
                            | '['
                            | ']'
                    )
                })
                .trim_end_matches('.')
            })
            .find(|word| is_path(word))
    })
}

/// Files that have no ending.
pub(super) const BARE: &[&str] = &[
    "Makefile",
    "Dockerfile",
    "LICENSE",
    "README",
    "justfile",
    "CHANGELOG",
    ".env",
    ".gitignore",
];

/// Endings that are longer than endings mostly are.
const LONG_ENDINGS: &[&str] = &[
    "gradle",
    "properties",
    "parquet",
    "sqlite",
    "config",
    "service",
    "backup",
    "example",
    "feature",
    "template",
    "graphql",
    "dockerfile",
    "markdown",
];

pub(super) fn is_path(word: &str) -> bool {
    // Most words have nothing that paths have.
    if !word.bytes().any(|byte| matches!(byte, b'.' | b'/' | b'~')) {
        return BARE.contains(&word);
    }
    if word.is_empty()
        || word.len() > 512
        || word.contains("://")
        || word.contains(char::is_whitespace) && !word.starts_with('/')
    {
        return false;
    }
    let allowed = |letter: char| {
        letter.is_alphanumeric()
            || matches!(
                letter,
                '/' | '.' | '_' | '-' | '~' | '\\' | ':' | '@' | '+' | ' '
            )
    };
    if !word.chars().all(allowed) || !word.chars().any(char::is_alphanumeric) {
        return false;
    }
    if word.starts_with(['/', '~']) || word.starts_with("./") || word.starts_with("../") {
        return word.len() > 1;
    }
    let file = word.rsplit('/').next().unwrap_or(word);
    let ending = file
        .rsplit_once('.')
        .filter(|(name, _)| !name.is_empty())
        .map(|(_, ending)| ending);
    let has_ending = ending.is_some_and(|ending| {
        ((1..=5).contains(&ending.len()) || LONG_ENDINGS.contains(&ending))
            && ending.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && ending.bytes().any(|byte| byte.is_ascii_alphabetic())
    });
    BARE.contains(&word)
        || is_dotfile(word)
        || has_ending
            && !is_host(&word.to_ascii_lowercase())
            && !matches!(word, "e.g" | "i.e" | "etc.")
        || word.contains('/') && has_ending
        || word.matches('/').count() >= 2
}

/// ".nvmrc", ".env.local", ".python-version"; not the ending ".rs".
fn is_dotfile(word: &str) -> bool {
    const ENDS: &[&str] = &[
        "rc",
        "ignore",
        "env",
        "config",
        "profile",
        "attributes",
        "modules",
        "history",
        "access",
        "version",
        "versions",
        "keep",
    ];
    word.strip_prefix('.').is_some_and(|name| {
        name.len() > 2
            && name.starts_with(|letter: char| letter.is_ascii_lowercase())
            && !name.contains(['/', ':', '\\'])
            && (ENDS.iter().any(|end| name.ends_with(end)) || name.contains(['.', '-', '_']))
    })
}
