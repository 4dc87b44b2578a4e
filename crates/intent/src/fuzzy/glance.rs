//! One pass over a sentence that tells which readers have nothing to look for in it. What it says
//! can be in a sentence need not be there; what it says is not there is not.

use std::sync::LazyLock;

use super::{commands, context, foreign, lead, lists, words};
use crate::tools::ToolSet;
use crate::word_bits::{Key, WordBits};

/// The name of a tool.
pub(super) const NAME: u32 = 1;
/// A program that is no everyday word, or a file without an ending.
const PROGRAM: u32 = 1 << 1;
/// A program that is an everyday word.
const EVERYDAY: u32 = 1 << 2;
/// A verb of another language, or one that is read like those.
pub(super) const VERB: u32 = 1 << 3;
/// Words that run something, when words for what was said before follow them.
const RUNS: u32 = 1 << 4;
/// A noun for what a plan can leave open: a file, a command, a message.
pub(super) const NOUN: u32 = 1 << 5;
pub(super) const MEMORY: u32 = 1 << 6;
/// Words to or about a reader.
pub(super) const READER: u32 = 1 << 7;
/// Words that head a recipe.
pub(super) const STEPS: u32 = 1 << 8;
pub(super) const DENIAL: u32 = 1 << 9;
/// Words with which a sentence turns.
pub(super) const TURN: u32 = 1 << 10;
/// The first person.
pub(super) const SELF: u32 = 1 << 11;
const IT: u32 = 1 << 12;
/// A mark that something to the letter can begin with.
const MARK: u32 = 1 << 13;
/// A mark that a foreign verb can be given something with.
pub(super) const GIVES: u32 = 1 << 14;
/// A sign of the shell.
const SHELL: u32 = 1 << 15;
/// A word that says that what follows is run.
const RUN: u32 = 1 << 16;
pub(super) const COLON: u32 = 1 << 17;
/// Marks that words are left out between.
pub(super) const QUOTE: u32 = 1 << 18;
/// An object or a list.
const OBJECT: u32 = 1 << 19;
/// A sign that something can be given with, and may stand in code.
pub(super) const ASSIGN: u32 = 1 << 20;
/// Words for what was said before.
const THAT: u32 = 1 << 21;
/// The two together: "running it".
const POINTS: u32 = 1 << 22;
/// A semicolon or an arrow.
pub(super) const ARROW: u32 = 1 << 23;
/// Letters that are not English: every word can be in them.
const FOREIGN: u32 = 1 << 24;
/// A byte whose meaning hangs on its neighbours.
const CONTEXT: u32 = 1 << 31;

/// Words that tell little: a phrase is known by another of its words, if it has one.
const COMMON: &[&str] = &[
    "a", "as", "be", "for", "have", "in", "is", "it", "la", "le", "of", "so", "than", "that",
    "the", "them", "this", "to", "un", "use", "el", "der", "die", "das",
];

static WORDS: LazyLock<WordBits> = LazyLock::new(|| {
    let mut found: Vec<(Key, u32)> = Vec::new();
    for (bits, phrases) in [
        (PROGRAM, commands::distinct_programs()),
        (PROGRAM, words::BARE.to_vec()),
        (EVERYDAY, commands::everyday_programs()),
        (RUN, commands::LEADS.to_vec()),
        (VERB, foreign::verb_words()),
        (NOUN, foreign::nouns()),
        (READER, words::READER_WORDS.to_vec()),
        (STEPS, words::STEP_WORDS.to_vec()),
        (DENIAL, words::DENIAL_WORDS.to_vec()),
    ] {
        found.extend(phrases.iter().filter_map(|it| Some((rarest(it)?, bits))));
    }
    for (bits, words) in [
        (MEMORY, &["memory", "memories"][..]),
        // "don't"
        (DENIAL, &["t"]),
        (TURN, &["but", "instead", "rather"]),
        (SELF, &["i", "let", "we"]),
        (IT, &["it"]),
    ] {
        found.extend(
            words
                .iter()
                .map(|it| (Key::default().and_letters(it), bits)),
        );
    }
    // "running it"
    for phrase in lists::list("runs it").iter().filter(|it| it.is_ascii()) {
        let bits = [RUNS, THAT, POINTS];
        for (word, bits) in phrase.split(' ').zip(bits) {
            found.push((Key::default().and_letters(word), bits));
        }
    }
    WordBits::new(&found)
});

/// The word by which a phrase is known. What is not written in English letters has none.
fn rarest(phrase: &str) -> Option<Key> {
    let words = phrase.split(|letter: char| !letter.is_ascii_alphabetic());
    let is_known = |letter: char| letter.is_ascii() || is_sign(letter);
    phrase.chars().all(is_known).then_some(())?;
    words
        .filter(|word| !word.is_empty())
        .max_by_key(|word| (!COMMON.contains(word), word.len()))
        .map(|word| Key::default().and_letters(word))
}

/// Dashes, dots and quotation marks.
fn is_sign(letter: char) -> bool {
    matches!(letter, '\u{2000}'..='\u{203f}')
}

/// What a byte that is no letter says.
static SIGNS: [u32; 256] = {
    let mut signs = [0; 256];
    signs[b'`' as usize] = MARK | GIVES | QUOTE;
    signs[b'"' as usize] = MARK | GIVES | QUOTE;
    signs[b'/' as usize] = MARK | GIVES | SHELL;
    signs[b'\\' as usize] = MARK;
    signs[b'~' as usize] = MARK;
    signs[b'*' as usize] = MARK | ASSIGN;
    signs[b'_' as usize] = ASSIGN;
    signs[b'=' as usize] = ASSIGN;
    signs[b'(' as usize] = ASSIGN;
    signs[b'{' as usize] = MARK | OBJECT | ASSIGN;
    signs[b'[' as usize] = MARK | OBJECT | ASSIGN;
    signs[b':' as usize] = COLON | ASSIGN;
    signs[b';' as usize] = ARROW | SHELL;
    signs[b'>' as usize] = ARROW | SHELL | ASSIGN;
    signs[b'<' as usize] = SHELL;
    signs[b'|' as usize] = SHELL;
    signs[b'&' as usize] = SHELL;
    signs[b'-' as usize] = CONTEXT;
    signs[b'.' as usize] = CONTEXT;
    signs[b'\'' as usize] = CONTEXT;
    let mut high = 0x80;
    while high < 256 {
        signs[high] = CONTEXT;
        high += 1;
    }
    signs
};

fn when(is_so: bool, bits: u32) -> u32 {
    u32::from(is_so) * bits
}

/// What a byte says that hangs on its neighbours.
fn in_context(bytes: &[u8], at: usize) -> u32 {
    let before = at.checked_sub(1).map(|at| bytes[at]);
    let next = bytes.get(at + 1);
    let is_led = before.is_none_or(|byte| byte.is_ascii_whitespace());
    match bytes[at] {
        b'-' if is_led => SHELL,
        b'.' => {
            let inner = next.is_some_and(u8::is_ascii_alphanumeric);
            let mark = next.is_some_and(|byte| !byte.is_ascii_whitespace());
            when(inner, GIVES) | when(mark, MARK) | when(is_led, SHELL)
        }
        b'\'' if !before.is_some_and(|byte| byte.is_ascii_alphanumeric()) => MARK,
        0xe2 if next == Some(&0x80) => MARK | GIVES,
        // The rest of a sign that was seen already.
        0x80..0xc0 => 0,
        byte if !byte.is_ascii() => MARK | GIVES | ARROW | COLON | OBJECT | FOREIGN,
        _ => 0,
    }
}

/// What can be in one sentence.
#[derive(Debug, Clone, Copy)]
pub(super) struct Glance {
    bits: u32,
    /// Whether it can have a lead: an order, a plan, or something under way.
    pub(super) may_lead: bool,
}

impl Glance {
    /// A look at a sentence in lower case.
    pub(super) fn of(lower: &str, tools: &ToolSet) -> Self {
        let mut seen = Self {
            bits: bits(lower, tools),
            may_lead: false,
        };
        seen.may_lead = lead::is_possible(lower, seen);
        seen
    }

    /// Whether one of these can be there.
    pub(super) fn may(self, bits: u32) -> bool {
        self.bits & (bits | FOREIGN) != 0
    }

    /// Whether something can be given to the letter.
    pub(super) fn may_give(self) -> bool {
        self.may(MARK | PROGRAM) || self.may(EVERYDAY) && self.may(SHELL | RUN)
    }

    /// Whether a tool can be named, or a verb given something that makes it one.
    pub(super) fn may_wish(self, lower: &str) -> bool {
        self.may(NAME | NOUN | OBJECT)
            || self.may(POINTS)
            || self.may(MEMORY) && foreign::may_recall(lower)
            || self.may(VERB) && (self.may(COLON) || self.may_give())
            || self.may(IT) && context::may_point_at(lower)
    }
}

fn bits(lower: &str, tools: &ToolSet) -> u32 {
    let (words, names) = (&*WORDS, tools.spellings());
    let bytes = lower.as_bytes();
    let mut bits = when(names.everywhere(), NAME);
    let mut begun = Key::default();
    let mut last = 0;
    let mut at = 0;
    while at < bytes.len() {
        let mut key = Key::default();
        let from = at;
        while at < bytes.len() && bytes[at].is_ascii_lowercase() {
            key = key.and(bytes[at]);
            at += 1;
        }
        if at > from {
            let known = words.of(key);
            bits |= known;
            bits |= when(last & RUNS != 0 && known & THAT != 0, POINTS);
            last = known;
            let (is_name, begins) = names.spell(key, begun, &lower[from..at]);
            bits |= when(is_name, NAME);
            begun = if begins { key } else { Key::default() };
            continue;
        }
        let sign = SIGNS[usize::from(bytes[at])];
        bits |= if sign == CONTEXT {
            in_context(bytes, at)
        } else {
            sign
        };
        at += 1;
    }
    bits
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{DENIAL, Glance, MEMORY, NAME, QUOTE, READER, STEPS, VERB};
    use crate::doc::Doc;
    use crate::fuzzy::{anchors, context, foreign, literals::literals, sentence, words};
    use crate::{FinishReason, ToolSet};

    /// What a reader finds in a sentence, the glance says can be there.
    fn check(doc: &Doc<'_>, text: &str) -> usize {
        let lower = text.to_ascii_lowercase();
        let seen = Glance::of(&lower, doc.tools);
        let literals = literals(doc, text);
        let names = anchors::anchors(doc, text, &literals);
        let verbs = foreign::anchors(doc, text, &lower, &literals);
        let points = context::pointed_at(doc, &[], text, &lower).is_some();
        let found = [
            (!literals.is_empty(), seen.may_give()),
            (!names.is_empty(), seen.may(NAME)),
            (!verbs.is_empty(), seen.may(VERB | MEMORY)),
            (
                !names.is_empty() || !verbs.is_empty() || points,
                seen.may_wish(&lower),
            ),
            (foreign::may_ask(&lower), seen.may_wish(&lower)),
            (words::addresses_reader(&lower), seen.may(READER)),
            (words::announces_steps(&lower), seen.may(STEPS)),
            (words::is_denied(&lower), seen.may(DENIAL | QUOTE)),
        ];
        for (number, (is_there, may_be)) in found.iter().enumerate() {
            assert!(!is_there || *may_be, "{number}: {text}");
        }
        found.iter().filter(|(is_there, _)| *is_there).count()
    }

    #[test]
    fn what_a_sentence_has_is_never_overlooked() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
        let tools = ToolSet::built_in();
        let mut there = 0;
        for file in std::fs::read_dir(folder).unwrap() {
            let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
            for part in text.lines() {
                let doc = Doc::new(part, &tools, FinishReason::Stop);
                for sentence in sentence::sentences(&doc) {
                    there += check(&doc, sentence.text(&doc));
                }
            }
        }
        assert!(there > 5_000, "only {there} findings");
    }

    #[test]
    fn names_are_known_however_they_are_written() {
        let tools = ToolSet::built_in();
        for text in [
            "use web search",
            "Web-Search it",
            "web_search",
            "functions.read",
            "webFetch",
        ] {
            assert!(
                Glance::of(&text.to_ascii_lowercase(), &tools).may(NAME),
                "{text}"
            );
        }
        for text in ["it rains in the webs", "already", "a searcher"] {
            assert!(!Glance::of(text, &tools).may(NAME), "{text}");
        }
    }
}
