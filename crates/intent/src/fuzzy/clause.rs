//! Several wishes in one sentence: "search for X, fetch the first result and save it to a.md".

use std::sync::LazyLock;

use memchr::memmem;

use super::glance::{self, Glance};
use super::phrases::Phrases;
use super::table::starts_with_verb;

/// Links between wishes, longest first.
const LINKS: &[&str] = &[
    ", and then ",
    " and then ",
    ", then ",
    ", and finally ",
    " and finally ",
    ", finally ",
    ", after that ",
    ", next ",
    ", and also ",
    " and also ",
    ", and ",
    " then ",
    " and ",
    ", ",
    " before ",
    " — ",
    " - ",
];

/// Where a sentence turns: what is denied before it is not denied behind it.
pub(super) const TURNS: &[&str] = &[", but ", " but ", ", instead ", " instead, ", ", rather "];

/// What stands behind each turn of a text in lower case.
pub(super) fn behind_turns(lower: &str) -> impl Iterator<Item = &str> {
    static FINDERS: LazyLock<Vec<memmem::Finder<'static>>> = LazyLock::new(|| {
        TURNS
            .iter()
            .map(|turn| memmem::Finder::new(*turn))
            .collect()
    });
    FINDERS.iter().flat_map(move |finder| {
        let len = finder.needle().len();
        finder
            .find_iter(lower.as_bytes())
            .map(move |at| &lower[at + len..])
    })
}

/// The parts of a sentence that are meant or denied on their own.
pub(super) fn segments(lower: &str, seen: Glance) -> Vec<[usize; 2]> {
    let whole = [0, lower.len()];
    if !seen.may(glance::TURN) || !seen.may(glance::DENIAL | glance::QUOTE) {
        return vec![whole];
    }
    // Behind "if …" everything hangs on the condition.
    let conditional = ["if ", "unless ", "when ", "suppose "]
        .iter()
        .any(|word| lower.starts_with(word));
    let mut parts = Vec::new();
    let mut start = 0;
    if !conditional && super::words::is_denied(lower) {
        while let Some((at, turn)) = TURNS
            .iter()
            .filter_map(|turn| outside_marks(&lower[start..], turn).map(|at| (start + at, *turn)))
            .min_by_key(|(at, turn)| (*at, usize::MAX - turn.len()))
        {
            parts.push([start, at]);
            start = at + turn.len();
        }
    }
    parts.push([start, lower.len()]);
    parts
}

/// The first place of these words that no quotation marks hide.
fn outside_marks(text: &str, words: &str) -> Option<usize> {
    memmem::find_iter(text.as_bytes(), words.as_bytes())
        .find(|at| text[..*at].matches(['"', '`']).count().is_multiple_of(2))
}

/// The clauses of a sentence from `from` on.
pub(super) fn split(lower: &str, from: usize) -> Vec<[usize; 2]> {
    let mut parts = Vec::new();
    let bytes = lower.as_bytes();
    let mut start = from;
    let mut at = from;
    let mut mark: Option<u8> = None;
    while let Some(next) = bytes[at..]
        .iter()
        .position(|byte| MAY_PART[usize::from(*byte)])
    {
        at += next;
        let byte = bytes[at];
        if let Some(open) = mark {
            if byte == open {
                mark = None;
            }
        } else if matches!(byte, b'`' | b'"') && memchr::memchr(byte, &bytes[at + 1..]).is_some() {
            mark = Some(byte);
        } else if may_link(bytes, at)
            && let Some((link, verb)) = link_at(lower, at)
        {
            parts.push([start, at]);
            if link.trim() == "before" {
                // What comes before something else is a plan; the something else is not yet.
                return parts;
            }
            start = verb;
            at = verb;
            continue;
        }
        at += 1;
    }
    parts.push([start, bytes.len()]);
    parts
}

/// Bytes that a link can begin with, and marks that none is looked for between.
static MAY_PART: [bool; 256] = {
    let mut bytes = [false; 256];
    bytes[b',' as usize] = true;
    bytes[b' ' as usize] = true;
    bytes[b'`' as usize] = true;
    bytes[b'"' as usize] = true;
    bytes
};

/// A cheap look before the real one: the first three bytes of a link.
fn may_link(bytes: &[u8], at: usize) -> bool {
    match bytes.get(at..at + 3) {
        Some([b',', b' ', _]) => true,
        Some([b' ', next, third]) => matches!(
            [*next, *third],
            [b'a', b'n'] | [b't', b'h'] | [b'b', b'e'] | [b'-', b' '] | [0xe2, _]
        ),
        _ => false,
    }
}

/// What may stand between a link and its verb.
static SUBJECTS: LazyLock<Phrases> = LazyLock::new(|| {
    Phrases::new([
        "i'll",
        "i will",
        "we'll",
        "we will",
        "let me",
        "i need to",
        "we need to",
        "then",
        "after that",
        "afterwards",
        "second",
        "secondly",
        "third",
        "thirdly",
        "lastly",
        "subsequently",
        "also",
        "to",
        "use that to",
        "finally",
        "next",
    ])
});

/// A link at this place that a verb follows: the link, and where the verb starts.
fn link_at(lower: &str, at: usize) -> Option<(&'static str, usize)> {
    let rest = lower.get(at..)?;
    let third = rest.as_bytes().get(2);
    LINKS.iter().find_map(|link| {
        if link.len() > 2 && link.as_bytes().get(2) != third {
            return None;
        }
        let mut tail = rest.strip_prefix(link)?;
        while let Some((_, rest)) = SUBJECTS.strip(tail) {
            tail = rest;
        }
        starts_with_verb(tail).then(|| (*link, lower.len() - tail.len()))
    })
}
