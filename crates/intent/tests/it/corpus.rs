//! How reasoning texts are read: `corpus/own.txt`, and `corpus/fresh.txt` by somebody who had not seen the reader.
//!
//! The score of each file is printed by kind of text. `corpus/README.md` says what counts as read right.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use holdfast_intent::{FinishReason, Intent, Parsed, Parser, Strategy};
use serde_json::{Map, Value};

/// The share of texts in `own.txt` that has to be read right, in percent.
const OWN_RIGHT_MIN: usize = 97;
/// The same of `fresh.txt`, which the reader is not tuned on.
const FRESH_RIGHT_MIN: usize = 88;

struct Text {
    name: String,
    kind: String,
    said: String,
    want: Want,
}

enum Want {
    /// The text asks for no call.
    Nothing,
    /// A call is planned, and what it needs is missing.
    Asked,
    /// These calls, in this order.
    Calls(Vec<Wanted>),
}

struct Wanted {
    name: String,
    arguments: Map<String, Value>,
    /// It needs a result that is not there yet: it may be left for the next reply.
    later: bool,
}

fn texts(file: &str) -> Vec<Text> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(file);
    let source = std::fs::read_to_string(path).expect("a readable file");
    let source = format!("\n{source}");
    source.split("\n=== ").skip(1).map(text).collect()
}

fn text(source: &str) -> Text {
    let (head, rest) = source
        .split_once("\n--- text\n")
        .unwrap_or_else(|| panic!("no text: {source}"));
    let (text, want) = rest
        .rsplit_once("\n--- want\n")
        .unwrap_or_else(|| panic!("no want: {source}"));
    let (name, kind) = head
        .split_once("\nkind: ")
        .unwrap_or_else(|| panic!("no kind: {source}"));
    let want = match want.trim() {
        "none" => Want::Nothing,
        "ask" => Want::Asked,
        calls => Want::Calls(calls.lines().map(wanted).collect()),
    };
    Text {
        name: name.to_owned(),
        kind: kind.trim().to_owned(),
        said: text.to_owned(),
        want,
    }
}

fn wanted(line: &str) -> Wanted {
    let value: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}"));
    Wanted {
        name: value["name"].as_str().expect("a name").to_owned(),
        arguments: value["arguments"].as_object().cloned().unwrap_or_default(),
        later: value["later"] == true,
    }
}

/// Words that make no difference to a search.
const SMALL_WORDS: &[&str] = &[
    "the", "a", "an", "for", "of", "in", "on", "about", "to", "and",
];
/// Words that a query may have beside those that are wanted.
const FURTHER_WORDS_MAX: usize = 3;

fn words(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    let words = lower.split(|letter: char| !letter.is_alphanumeric());
    words
        .filter(|word| !word.is_empty() && !SMALL_WORDS.contains(word))
        .map(str::to_owned)
        .collect()
}

fn is_same_query(wanted: &str, got: &str) -> bool {
    let (wanted, got) = (words(wanted), words(got));
    wanted.iter().all(|word| got.contains(word)) && got.len() <= wanted.len() + FURTHER_WORDS_MAX
}

fn is_same(argument: &str, wanted: &Value, got: Option<&Value>) -> bool {
    let Some(got) = got else { return false };
    match (wanted, got) {
        (Value::String(wanted), Value::String(got)) if argument == "query" => {
            is_same_query(wanted, got)
        }
        (Value::String(wanted), Value::String(got)) => {
            let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            squeezed(wanted).trim_end_matches('/') == squeezed(got).trim_end_matches('/')
        }
        (wanted, got) => wanted == got,
    }
}

fn is_call(wanted: &Wanted, intent: &Intent) -> bool {
    wanted.name == intent.name
        && (wanted.later
            || wanted
                .arguments
                .iter()
                .all(|(name, value)| is_same(name, value, intent.arguments.get(name))))
}

/// Calls that are wanted later may be read, or left for later.
fn are_calls(wanted: &[Wanted], intents: &[Intent]) -> bool {
    let Some((first, others)) = wanted.split_first() else {
        return intents.is_empty();
    };
    let is_made = intents
        .split_first()
        .is_some_and(|(intent, rest)| is_call(first, intent) && are_calls(others, rest));
    is_made || first.later && are_calls(others, intents)
}

fn is_right(parser: &Parser, want: &Want, parsed: &Parsed) -> bool {
    match want {
        Want::Nothing => parsed.intents.is_empty() && parsed.completed,
        Want::Asked => {
            !parsed
                .intents
                .iter()
                .any(|it| it.mutating && it.is_runnable())
                && (!parsed.intents.is_empty() || parser.corrective_message(parsed).is_some())
        }
        Want::Calls(wanted) => are_calls(wanted, &parsed.intents),
    }
}

struct Score {
    right: usize,
    all: usize,
    /// Calls of tools that change things, made from texts that ask for none.
    harm: usize,
}

fn score(file: &str, how: &str, parser: &Parser) -> (Score, String) {
    let mut kinds: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let mut score = Score {
        right: 0,
        all: 0,
        harm: 0,
    };
    let mut misses = String::new();
    for text in texts(file) {
        let parsed = parser.parse(&text.said, FinishReason::Stop);
        let right = is_right(parser, &text.want, &parsed);
        let kind = kinds.entry(text.kind.clone()).or_default();
        kind.0 += usize::from(right);
        kind.1 += 1;
        score.right += usize::from(right);
        score.all += 1;
        let is_harm = |intent: &&Intent| intent.mutating && intent.is_runnable();
        if matches!(text.want, Want::Nothing | Want::Asked) {
            score.harm += parsed.intents.iter().filter(is_harm).count();
        }
        if !right {
            let got: Vec<String> = parsed
                .intents
                .iter()
                .map(|it| format!("{} {}", it.name, Value::Object(it.arguments.clone())))
                .collect();
            writeln!(
                misses,
                "{file} {} ({}): {got:?} completed {}",
                text.name, text.kind, parsed.completed
            )
            .expect("memory");
        }
    }
    let share = (score.right * 1000) / score.all.max(1);
    println!(
        "{file}, {how}: {} of {} right ({}.{} %), {} calls that change things from texts that ask for none",
        score.right,
        score.all,
        share / 10,
        share % 10,
        score.harm
    );
    for (kind, (right, all)) in kinds {
        println!("  {kind:<13} {right:>3} of {all:>3}");
    }
    (score, misses)
}

fn parsers() -> [(&'static str, Parser); 2] {
    let seed = Parser::default().with_strategies(Strategy::React, Some(Strategy::Fuzzy));
    [("auto", Parser::default()), ("react, then fuzzy", seed)]
}

#[test]
fn reasoning_of_our_own_corpus_is_read_right() {
    for (how, parser) in parsers() {
        let (score, misses) = score("own.txt", how, &parser);
        assert_eq!(score.harm, 0, "{misses}");
        assert!(
            score.right * 100 >= OWN_RIGHT_MIN * score.all,
            "{} of {} with {how}:\n{misses}",
            score.right,
            score.all
        );
    }
}

/// These texts are never edited to pass. Their first score stands in `corpus/README.md`.
#[test]
fn reasoning_by_somebody_who_had_not_seen_the_reader_does_no_harm() {
    for (how, parser) in parsers() {
        let (score, _) = score("fresh.txt", how, &parser);
        assert_eq!(score.harm, 0);
        assert!(
            score.right * 100 >= FRESH_RIGHT_MIN * score.all,
            "{} of {} with {how}",
            score.right,
            score.all
        );
    }
}
