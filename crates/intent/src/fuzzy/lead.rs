//! How a sentence begins: an order, a plan, something under way, or none of these.

use std::sync::LazyLock;

use memchr::memmem;

use super::glance::{self, Glance};
use super::lists;
use super::phrases::Phrases;
use crate::cues::{WordSet, has_words};

/// A lead that makes a wish.
pub(super) struct Lead {
    /// Where the verb starts.
    pub(super) end: usize,
    pub(super) sure: f64,
    /// Whether it is a bare order, which could as well be advice to a reader.
    pub(super) order: bool,
    /// Whether it is a bare gerund, which could as well be the subject of a statement.
    pub(super) gerund: bool,
}

const PLAN: f64 = 0.65;
const ORDER: f64 = 0.6;
const UNDER_WAY: f64 = 0.55;

/// Small words before the subject or the verb.
const FILLERS: &[&str] = &[
    "okay",
    "ok",
    "sure",
    "alright",
    "great",
    "so",
    "now",
    "then",
    "next",
    "first",
    "firstly",
    "second",
    "secondly",
    "third",
    "finally",
    "lastly",
    "and",
    "also",
    "well",
    "right",
    "good",
    "perfect",
    "thus",
    "therefore",
    "hmm",
    "afterwards",
    "after that",
    "to start",
    "to begin",
    "to begin with",
    "to answer this",
    "in order to answer this",
    "for this",
    "plan:",
    "thought:",
    "step",
    "action:",
    "task:",
    "just",
    "quickly",
    "please wait",
    "got it",
    "next up",
    "up next",
    "understood",
    "of course",
    "instead",
    "best",
];

const PLANS: &[&str] = &[
    "i'll",
    "i’ll",
    "i will",
    "i'm going to",
    "i am going to",
    "i’m going to",
    "i need to",
    "i should",
    "i must",
    "i want to",
    "i have to",
    "i'd like to",
    "i would like to",
    "i would",
    "i'd",
    "i shall",
    "i am about to",
    "i'm about to",
    "i plan to",
    "i intend to",
    "while i",
    "let me",
    "let's",
    "let’s",
    "lets",
    "let us",
    "we need to",
    "we should",
    "we will",
    "we'll",
    "we’ll",
    "we would",
    "we can",
    "we must",
    "we have to",
    "we want to",
    "we are going to",
    "we're going to",
    "need to",
    "must",
    "should",
    "going to",
    "gonna",
    "my plan is to",
    "the next thing i'll do is",
    "the first thing i'll do is",
    "the next thing i need to do is",
    "what i'll do is",
    "what i need to do is",
    "all i need to do is",
    "the thing to do is",
    "the next step is to",
    "next step is to",
    "the first step is to",
    "my next step is to",
    "the plan is to",
    "time to",
    "i still need to",
    "i also need to",
    "we also need to",
    "i now need to",
    "we now need to",
    "it makes sense to",
    "makes sense to",
    "it's best to",
    "best to",
    "better to",
    "i ought to",
    "we ought to",
    "i better",
    "we better",
    "i had better",
    "gotta",
    "i gotta",
    "i've got to",
    "we've got to",
    "lemme",
    "imma",
    "i wanna",
    "we gotta",
    "the next move is to",
    "the best move is to",
    "the right move is to",
    "the obvious move is to",
    "it's time to",
    "the obvious thing to do is",
    "the first thing to do is",
    "the best thing to do is",
    "the next thing to do is",
    "first thing to do is",
    "my first step is to",
    "first step is to",
    "the first step here is to",
    "what remains is to",
    "all that's left is to",
    "i am gonna",
    "i'm gonna",
    "we're gonna",
];

/// Small words between the plan and its verb.
const ADVERBS: &[&str] = &[
    "now",
    "first",
    "then",
    "also",
    "just",
    "quickly",
    "next",
    "try to",
    "try",
    "start by",
    "begin by",
    "go ahead and",
    "probably",
    "need to",
    "want to",
    "have to",
    "simply",
    "again",
    "immediately",
    "proceed to",
    "go and",
    "please",
    "likely",
    "better",
    "definitely",
    "finally",
    "start with",
    "begin with",
    "use the tool to",
    "be",
];

const UNDER_WAY_LEADS: &[&str] = &["i'm", "i am", "i’m", "we're", "we are", "currently"];

const FIRST_PERSON: &[&str] = &[
    "i'll",
    "i will",
    "i should",
    "i need to",
    "i must",
    "i have to",
    "let me",
    "let's",
    "we need to",
    "we should",
    "we will",
    "we'll",
    "we must",
    "i'm going to",
    "i am going to",
];
const OPENINGS: &[&str] = &[
    ", so ",
    ", ",
    " so ",
    "i think ",
    "i believe ",
    "i guess ",
    ": ",
];
static FILLER: LazyLock<Phrases> = LazyLock::new(|| Phrases::new(FILLERS.iter().copied()));
static PLANNED: LazyLock<Phrases> = LazyLock::new(|| Phrases::new(PLANS.iter().copied()));
static BESIDE: LazyLock<Phrases> = LazyLock::new(|| Phrases::new(ADVERBS.iter().copied()));
static SELF: LazyLock<Phrases> = LazyLock::new(|| Phrases::new(FIRST_PERSON.iter().copied()));
static DOING: LazyLock<Phrases> = LazyLock::new(|| Phrases::new(UNDER_WAY_LEADS.iter().copied()));
static OPENING: LazyLock<Vec<memmem::Finder<'static>>> = LazyLock::new(|| {
    OPENINGS
        .iter()
        .map(|opening| memmem::Finder::new(*opening))
        .collect()
});

/// Whether a sentence in lower case can have a lead at all, in itself or behind a turn: a cheap look
/// before the real one, which most sentences of most texts do not pass.
pub(super) fn is_possible(lower: &str, seen: Glance) -> bool {
    let can_begin = |lower: &str| can_begin(lower, seen);
    can_begin(lower) || seen.may(glance::TURN) && super::clause::behind_turns(lower).any(can_begin)
}

fn can_begin(lower: &str, seen: Glance) -> bool {
    static BEGINS: LazyLock<Phrases> = LazyLock::new(|| {
        let small = [FILLERS, PLANS, UNDER_WAY_LEADS].concat();
        Phrases::new(small.into_iter().chain(super::table::verbs()))
    });
    if behind_reason(lower).is_some() {
        return true;
    }
    let later = || opening(lower).is_some_and(|[_, end]| SELF.begin(without_now(&lower[end..])));
    BEGINS.begin(without_number(lower)) || seen.may(glance::SELF) && later()
}

fn without_number(text: &str) -> &str {
    text.trim_start_matches(|letter: char| {
        letter.is_ascii_digit()
            || letter.is_whitespace()
            || matches!(letter, '-' | '*' | '.' | ')' | '•' | '_')
    })
}

/// Where the first opening clause ends: its link, start and end; the longest of those that start
/// at the same place.
fn opening(lower: &str) -> Option<[usize; 2]> {
    let mut found: Option<[usize; 2]> = None;
    for finder in OPENING.iter() {
        let len = finder.needle().len();
        // Nothing behind the one that is known can be the first.
        let within = found.map_or(lower.len(), |[start, _]| (start + len).min(lower.len()));
        if let Some(start) = finder.find(&lower.as_bytes()[..within]) {
            let better = |[known, end]: &[usize; 2]| start < *known || start + len > *end;
            if found.as_ref().is_none_or(better) {
                found = Some([start, start + len]);
            }
        }
    }
    found
}

/// "…, so now I'll open it": the text behind the small word.
fn without_now(text: &str) -> &str {
    ["now", "then", "next", "instead", "first"]
        .iter()
        .find_map(|word| strip_word(text, word))
        .unwrap_or(text)
        .trim_start_matches([',', ' '])
}

/// What stands behind a reason in front of an order: "since it exists, read it".
pub(super) fn behind_reason(lower: &str) -> Option<&str> {
    static SAYS: LazyLock<WordSet> = LazyLock::new(|| lists::word_set("reports"));
    const REASONS: &[&str] = &["since ", "as ", "because ", "now that ", "given that "];
    let reason = REASONS.iter().find(|it| lower.starts_with(**it))?;
    let (said, tail) = lower.split_once(", ")?;
    // "As the page says, run …" gives no reason.
    let is_told = *reason == "as " && SAYS.is_in(said);
    let tail = without_now(tail);
    (!is_told
        && said.split(' ').nth(2).is_some()
        && super::table::starts_with_verb(tail)
        && !is_ing(tail))
    .then_some(tail)
}

/// "First I read a.txt, then I'll edit it": what is first is a plan where what follows is one.
fn first_of_two<'a>(lower: &str, rest: &'a str) -> Option<&'a str> {
    let tail = strip_word(rest, "i").or_else(|| strip_word(rest, "we"))?;
    let head = &lower[..lower.len() - rest.len()];
    let plans = [
        ", then i'll ",
        ", then i will ",
        ", then we'll ",
        ", then we will ",
    ];
    (head.trim_end_matches([' ', ',']).ends_with("first")
        && plans.iter().any(|plan| tail.contains(plan))
        && super::table::starts_with_verb(tail))
    .then_some(tail)
}

/// The sentence behind its number and its small words.
pub(super) fn without_fillers(lower: &str) -> &str {
    let mut rest = without_number(lower);
    while let Some((_, tail)) = FILLER.strip(rest) {
        rest = tail.trim_start_matches([',', ' ', ':', '.', '!', '-']);
        rest = rest
            .trim_start_matches(|letter: char| letter.is_ascii_digit())
            .trim_start_matches([',', ' ', ':', '.', '!', '*']);
    }
    rest
}

/// The lead of a sentence in lower case.
pub(super) fn of(lower: &str, seen: Glance) -> Option<Lead> {
    let rest = without_fillers(lower);
    let at = |rest: &str| lower.len() - rest.len();
    if let Some((_, tail)) = PLANNED.strip(rest) {
        // "I'd have to read it to know" is no plan.
        let unreal = |tail: &str| tail.starts_with("have to") || tail.starts_with("need to");
        let would = |subject: &&str| strip_word(rest, subject).is_some_and(unreal);
        if unreal(tail) && ["i'd", "i would", "we would", "we'd"].iter().any(would) {
            return None;
        }
        let tail = strip_adverbs(tail);
        // "Should the file be missing, …" is a condition.
        if strip_word(rest, "should").is_some() && !super::table::starts_with_verb(tail) {
            return None;
        }
        return Some(Lead {
            end: at(tail),
            sure: PLAN,
            order: false,
            gerund: false,
        });
    }
    if let Some((_, tail)) = DOING.strip(rest) {
        let tail = strip_adverbs(tail);
        // "I'm now going to …" is a plan.
        let planned = ["going to", "about to", "planning to"]
            .iter()
            .find_map(|plan| strip_word(tail, plan));
        if let Some(tail) = planned {
            return Some(Lead {
                end: at(strip_adverbs(tail)),
                sure: PLAN,
                order: false,
                gerund: false,
            });
        }
        return is_ing(tail).then(|| Lead {
            end: at(tail),
            sure: UNDER_WAY,
            order: false,
            gerund: false,
        });
    }
    if let Some(tail) = behind_reason(rest).or_else(|| first_of_two(lower, rest)) {
        return Some(Lead {
            end: at(tail),
            sure: ORDER,
            order: true,
            gerund: false,
        });
    }
    let under_way = is_ing(rest);
    if !super::table::starts_with_verb(rest) {
        return seen.may(glance::SELF).then(|| later_plan(lower))?;
    }
    Some(Lead {
        end: at(rest),
        sure: if under_way { UNDER_WAY } else { ORDER },
        order: !under_way,
        gerund: under_way,
    })
}

/// A plan after an opening clause: "the user wants news, so I will …", "I think I should …".
fn later_plan(lower: &str) -> Option<Lead> {
    static FOREIGN: LazyLock<WordSet> = LazyLock::new(|| {
        WordSet::new(&[
            "said", "says", "wrote", "replied", "when", "once", "told", "if", "unless", "suppose",
            "in case", "until",
        ])
    });
    let [at, end] = opening(lower)?;
    let (_, tail) = SELF.strip(without_now(&lower[end..]))?;
    let before = &lower[..at];
    // "After reading a.txt, I'll …" sets an order of its own steps, not a condition.
    let own_step = strip_word(before, "after").is_some_and(is_ing);
    let foreign = FOREIGN.is_in(before) || !own_step && has_words(before, "after");
    // What is denied or past before the plan says nothing about the plan.
    if foreign || before.contains('"') {
        return None;
    }
    let tail = strip_adverbs(tail);
    Some(Lead {
        end: lower.len() - tail.len(),
        sure: PLAN,
        order: false,
        gerund: false,
    })
}

fn strip_adverbs(mut rest: &str) -> &str {
    while let Some((number, tail)) = BESIDE.strip(rest)
        // "start with a search for …" is a verb of its own.
        && !(ADVERBS[number].ends_with("with") && tail.starts_with("a "))
    {
        rest = tail;
    }
    rest
}

fn is_ing(text: &str) -> bool {
    text.split_whitespace()
        .next()
        .is_some_and(|word| word.ends_with("ing"))
}

/// The text behind these words, when it begins with them as words.
pub(super) fn strip_word<'a>(text: &'a str, words: &str) -> Option<&'a str> {
    let tail = text.strip_prefix(words)?;
    let bound = tail.is_empty()
        || !tail.starts_with(|letter: char| {
            letter.is_alphanumeric() || matches!(letter, '_' | '\'' | '’' | '-')
        });
    bound.then(|| tail.trim_start())
}

#[cfg(test)]
mod tests;
