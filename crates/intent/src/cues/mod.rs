//! Words around a call that say whether it is meant or only shown.
//!
//! What counts is the sentence right before the call. One that introduces the call (it ends with a
//! colon, or stands on the same line) speaks about it: "The model should answer with:" shows,
//! "I'll read it now:" means. One that does not can only show by saying so: "An example."

use aho_corasick::{AhoCorasick, AhoCorasickKind};

mod reported;
mod tables;
mod taken_back;

pub(crate) use reported::Standing;
pub(crate) use taken_back::behind;

use tables::{
    EXAMPLE, EXPLAINS, FIRST_PERSON, HANDS_OVER, HOLDS_BACK, INTRODUCES_EXAMPLE, OTHERS,
    OWN_GERUNDS, OWN_VERBS, SHOWING_HEADINGS, SHOWN_AFTER, WAITS,
};

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

/// Whether the words around a call say that it is only shown.
pub(crate) fn shows_example(lead: Lead<'_>, after: &str) -> bool {
    let line = lead.line.to_lowercase();
    let praised = praises(&line);
    let sentence = last_sentence(&line);
    let any = |words: &WordSet| words.is_in(sentence);
    // A line that does not end goes on in the call.
    let introduces =
        !sentence.is_empty() && (lead.same_line || !sentence.ends_with(['.', '!', '?']));
    let own = any(&FIRST_PERSON) || speaks_of_itself(sentence) || praised;
    let speaks = own || starts_with_gerund(sentence);
    let example = any(&EXAMPLE);
    let holds_back = any(&HOLDS_BACK) && !has_words(sentence, "i would like to")
        || any(&WAITS)
        || tells_to_use(sentence);
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
    let points_back = is_about_above(after);
    // "Which one do you prefer?" asks about a call that is there to be run.
    let asked = behind(after) == Standing::Doubtful;
    let after = after.trim_start().as_bytes();
    let starts = |cue: &&str| {
        after
            .get(..cue.len())
            .is_some_and(|head| head.eq_ignore_ascii_case(cue.as_bytes()))
    };
    shown || in_chapter || points_back || !asked && SHOWN_AFTER.iter().any(starts)
}

/// "Parallel calls would be good:" speaks for the calls.
fn praises(line: &str) -> bool {
    const PRAISE: &[&str] = &[
        "good", "best", "better", "nice", "right", "useful", "ideal", "sensible", "fine",
    ];
    let behind = line.split_once(" would be ").map(|(_, behind)| behind);
    behind.is_some_and(|behind| PRAISE.iter().any(|word| behind.starts_with(word)))
}

/// Whether the words around a block say that it is there to be looked at.
pub(crate) fn explains(lead: Lead<'_>, after: &str) -> bool {
    let line = lead.line.to_lowercase();
    shows_example(lead, after)
        || EXPLAINS.is_in(last_sentence(&line))
        || EXPLAINS.is_in(&after.to_lowercase())
}

/// "Use …", "type …": the call itself is what somebody is told to use. "Use the search tool:" names
/// a tool and not the call.
fn tells_to_use(sentence: &str) -> bool {
    let mut words = sentence
        .split(|letter: char| !letter.is_alphanumeric() && !matches!(letter, '\'' | '_'))
        .filter(|word| !word.is_empty());
    let first = words.clone().next().unwrap_or_default();
    let last = words.next_back().unwrap_or_default();
    matches!(first, "type" | "enter" | "paste" | "copy")
        || matches!(last, "use" | "type" | "enter" | "paste" | "emit")
            && !sentence.ends_with(':')
            && !speaks_of_itself(sentence)
            && !FIRST_PERSON.is_in(sentence)
}

/// Words before a call that are no sentence, so that the call is none's part.
const INTERJECTIONS: &[&str] = &[
    "sure",
    "ok",
    "okay",
    "yes",
    "alright",
    "great",
    "now",
    "next",
    "first",
    "then",
    "so",
    "well",
    "certainly",
    "here",
    "right",
    "and",
    "of",
    "course",
    "done",
    "step",
    "good",
    "perfect",
];

/// Whether a call is a part of a sentence that goes on behind it and that does not speak of the
/// model's own doing: "simply put … in your reply", "does anyone know what … does?".
pub(crate) fn is_mentioned(lead: Lead<'_>, rest: &str) -> bool {
    let rest = rest.trim();
    let goes_on = rest.starts_with(|letter: char| letter.is_lowercase());
    words_up_to(lead) > 0 && rest.ends_with('?') || goes_on && is_in_sentence(lead)
}

/// Whether a sentence leads up to a call, and does not speak of the model's own doing.
pub(crate) fn is_in_sentence(lead: Lead<'_>) -> bool {
    words_up_to(lead) > 1 && !is_own(lead)
}

/// Words of the sentence that a call is a part of, before the call.
fn words_up_to(lead: Lead<'_>) -> usize {
    let line = lead.line.to_lowercase();
    let sentence = last_sentence(&line);
    if !lead.same_line || sentence.ends_with(['.', '!', '?', ':', '>', ';', ',']) {
        return 0;
    }
    let said = |word: &&str| !word.is_empty() && !INTERJECTIONS.contains(word);
    sentence
        .split(|letter: char| !letter.is_alphanumeric() && letter != '\'')
        .filter(said)
        .count()
}

/// "The line above …", "the call above …".
fn is_about_above(after: &str) -> bool {
    let mut words = after.split_whitespace();
    let the = words
        .next()
        .is_some_and(|word| word.eq_ignore_ascii_case("the"));
    the && words.take(3).skip(1).any(|word| {
        word.trim_end_matches([',', ':', '.'])
            .eq_ignore_ascii_case("above")
    })
}

/// Labels of what tools and programs wrote.
const OUTPUT_LABELS: &[&str] = &[
    "observation",
    "output",
    "result",
    "results",
    "tool output",
    "tool result",
    "tool response",
    "stdout",
    "stderr",
    "response",
    "log",
];

/// Whether a text ends under a label for what a tool or a program wrote: the label's line and no
/// empty line, and no label of the model's own, behind it.
pub(crate) fn ends_in_output(before: &str) -> bool {
    for line in before.lines().rev() {
        let line = line.trim().trim_start_matches(['*', '#', '_', '-', ' ']);
        if line.is_empty() {
            return false;
        }
        let Some((label, _)) = line.split_once(':') else {
            continue;
        };
        let label = label.trim_end_matches('*').to_ascii_lowercase();
        if OUTPUT_LABELS.contains(&label.as_str()) {
            return true;
        }
        if matches!(
            label.as_str(),
            "thought" | "action" | "action input" | "final answer" | "assistant"
        ) {
            return false;
        }
    }
    false
}

/// Whether the sentence before a call speaks of the model itself.
pub(crate) fn is_own(lead: Lead<'_>) -> bool {
    let line = lead.line.to_lowercase();
    let sentence = last_sentence(&line);
    FIRST_PERSON.is_in(sentence) || speaks_of_itself(sentence) || starts_with_gerund(sentence)
}

/// Whether the line before a call announces it, and nothing in the line speaks against that. A call in
/// marks is shown else, so a sentence that ends before it counts like one that introduces it.
pub(crate) fn announces(lead: Lead<'_>) -> bool {
    let line = lead.line.to_lowercase().replace('\u{2019}', "'");
    let others = [&HOLDS_BACK, &WAITS, &EXPLAINS, &EXAMPLE];
    let body = last_sentence(&line).trim_end_matches(['.', '!']);
    is_own(lead)
        && !others.iter().any(|words| words.is_in(&line))
        && !reported::words_of(&line).into_iter().any(denies)
        && reported::standing(body, true) == Standing::Meant
}

/// "not", "don't", "cannot".
fn denies(word: &str) -> bool {
    matches!(word, "not" | "cannot" | "never") || word.ends_with("n't")
}

/// Whether the words before a call say that it is not the model's, or not of now.
pub(crate) fn standing(lead: Lead<'_>) -> Standing {
    let line = lead.line.to_lowercase();
    reported::standing(last_sentence(&line), lead.same_line)
}

/// `Thought: …`, the line before an action.
pub(crate) fn is_thought(line: &str) -> bool {
    let head = line.trim_start().get(..8).unwrap_or_default();
    head.eq_ignore_ascii_case("thought:")
}

pub(crate) fn introduces(line: &str) -> bool {
    line.trim_end().ends_with(':')
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

/// The same as [`has_words`] for a text in any case.
fn has_words_of(text: &str, words: &str) -> bool {
    has_words(&text.to_ascii_lowercase(), words)
}

/// Words that are looked for all at once, in a text of any case.
pub(crate) struct WordSet {
    finder: Option<AhoCorasick>,
    words: &'static [&'static str],
}

impl WordSet {
    pub(crate) fn new(words: &'static [&'static str]) -> Self {
        let finder = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .kind(Some(AhoCorasickKind::DFA))
            .build(words);
        Self {
            finder: finder.ok(),
            words,
        }
    }

    /// Whether one of them stands in the text, as words.
    pub(crate) fn is_in(&self, text: &str) -> bool {
        let Some(finder) = &self.finder else {
            return self.words.iter().any(|words| has_words_of(text, words));
        };
        // Most texts have none of them, in whatever shape, and that is told faster.
        finder.is_match(text)
            && finder.find_overlapping_iter(text).any(|hit| {
                let words = self.words[hit.pattern().as_usize()];
                stand_apart(text.as_bytes(), hit.start(), words)
            })
    }
}

/// Whether `text` (in lower case) has these words as words: `example` is not in `example.com`.
pub(crate) fn has_words(text: &str, words: &str) -> bool {
    let bytes = text.as_bytes();
    memchr::memmem::find_iter(bytes, words.as_bytes()).any(|at| stand_apart(bytes, at, words))
}

/// Whether the words that were found at this place are no part of others.
fn stand_apart(bytes: &[u8], at: usize, words: &str) -> bool {
    let before = at.checked_sub(1).map(|at| bytes[at]);
    let after = bytes.get(at + words.len()).copied();
    let next = bytes.get(at + words.len() + 1).copied();
    let bound =
        |byte: Option<u8>| byte.is_none_or(|byte| !byte.is_ascii_alphanumeric() && byte != b'_');
    let in_address = matches!(after, Some(b'.' | b'/' | b'-' | b'\\'))
        && next.is_some_and(|byte| byte.is_ascii_alphanumeric())
        || matches!(before, Some(b'.' | b'/' | b'@' | b'\\'));
    // "мне нужно" has no "не нужно".
    let is_cyrillic = |byte: &u8| matches!(byte, 0xd0 | 0xd1);
    let goes_on = bytes.get(at).is_some_and(is_cyrillic)
        && at.checked_sub(2).is_some_and(|at| is_cyrillic(&bytes[at]));
    bound(before)
        && !goes_on
        && (bound(after) && !in_address || words.ends_with([' ', ':']) || words == "illustrat")
}
