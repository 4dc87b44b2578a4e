//! The cheap look never turns away what the real one takes.

use std::path::Path;
use std::sync::LazyLock;

use proptest::prelude::*;

use super::{ADVERBS, FILLERS, FIRST_PERSON, OPENINGS, PLANS, UNDER_WAY_LEADS, of};
use crate::doc::Doc;
use crate::fuzzy::clause::{self, TURNS};
use crate::fuzzy::glance::Glance;
use crate::fuzzy::sentence::sentences;
use crate::{FinishReason, ToolSet};

fn glance(lower: &str) -> Glance {
    static TOOLS: LazyLock<ToolSet> = LazyLock::new(ToolSet::built_in);
    Glance::of(lower, &TOOLS)
}

fn may_lead(lower: &str) -> bool {
    glance(lower).may_lead
}

/// Whether the real look finds a lead in a part of a sentence, as the reader asks for it.
fn has_lead(lower: &str) -> bool {
    let seen = glance(lower);
    clause::segments(lower, seen)
        .into_iter()
        .any(|[start, end]| of(&lower[start..end], seen).is_some())
}

#[test]
fn no_sentence_of_a_case_is_turned_away() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
    let tools = ToolSet::built_in();
    let (mut seen, mut led) = (0, 0);
    for file in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        // Line by line as well: a case's open block would hide the cases behind it.
        for part in text.split("\n=== ").chain(text.lines()) {
            let doc = Doc::new(part, &tools, FinishReason::Stop);
            for sentence in sentences(&doc) {
                let lower = sentence.text(&doc).to_ascii_lowercase();
                seen += 1;
                if has_lead(&lower) {
                    led += 1;
                    assert!(may_lead(&lower), "{lower}");
                }
            }
        }
    }
    println!("{led} of {seen} sentences have a lead");
    assert!(led > 1_000, "only {led} of {seen} sentences have a lead");
}

const WISHES: &[&str] = &[
    "read a.txt",
    "reading a.txt",
    "do a web search for x",
    "going to run ls",
];

#[test]
fn no_opening_that_the_lists_make_is_turned_away() {
    let leads = || [PLANS, UNDER_WAY_LEADS, FIRST_PERSON, &[""]].concat();
    let befores = FILLERS
        .iter()
        .map(|filler| format!("{filler}, "))
        .chain(["", "1. ", "- "].map(str::to_owned))
        .chain(OPENINGS.iter().map(|link| format!("that is old{link}")))
        .chain(OPENINGS.iter().map(|link| format!("that is old{link}now ")))
        .chain(TURNS.iter().map(|turn| format!("i won't do it{turn}")));
    let mut led = 0;
    for before in befores {
        for lead in leads() {
            for wish in WISHES {
                let lower = format!("{before}{lead} {wish}");
                if has_lead(&lower) {
                    led += 1;
                    assert!(may_lead(&lower), "{lower}");
                }
            }
        }
    }
    println!("{led} openings have a lead");
    assert!(led > 10_000, "only {led} openings have a lead");
}

fn piece() -> impl Strategy<Value = String> {
    let of = |words: &'static [&'static str]| prop::sample::select(words).prop_map(str::to_owned);
    prop_oneof![
        of(FILLERS),
        of(PLANS),
        of(ADVERBS),
        of(UNDER_WAY_LEADS),
        of(FIRST_PERSON),
        of(OPENINGS),
        of(TURNS),
        of(&["now", "then", "next", "instead", "first"]),
        of(&["1.", "- ", "* ", "2) ", "_", "12", "•"]),
        of(&[
            "read a.txt",
            "search for x",
            "running ls",
            "take a look at a.txt"
        ]),
        of(&[
            "do a quick web search",
            "fetch it",
            "reading",
            "open",
            "write"
        ]),
        of(&["don't", "i won't", "the user", "not", "if", "said", "\""]),
        "[a-z' ,:.!-]{0,8}",
    ]
}

fn opening() -> impl Strategy<Value = String> {
    let joint = prop::sample::select(&[" ", "", ", ", ": ", ". ", "! "][..]);
    prop::collection::vec((piece(), joint), 1..7).prop_map(|pieces| {
        pieces
            .into_iter()
            .flat_map(|(piece, joint)| [piece, joint.to_owned()])
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn no_generated_opening_is_turned_away(lower in opening()) {
        prop_assert!(!has_lead(&lower) || may_lead(&lower), "{lower}");
    }
}
