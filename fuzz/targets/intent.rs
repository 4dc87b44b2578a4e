//! Any reply: it is survived by every strategy, in pieces as a whole, and nothing that was cut or
//! guessed can run.
#![no_main]

use holdfast_intent::{FinishReason, Parsed, Parser, Strategy, StreamParser};
use libfuzzer_sys::fuzz_target;

fn check(parsed: &Parsed, text: &str) {
    let mut last = 0;
    for intent in &parsed.intents {
        let [start, end] = intent.span;
        assert!(start >= last && start <= end && text.get(start..end).is_some());
        last = start;
        assert!(intent.complete || !intent.is_runnable());
        let guess = intent.strategy == Strategy::Fuzzy && intent.mutating;
        assert!(!guess || !intent.is_runnable());
    }
}

fuzz_target!(|text: &str| {
    let finish = [
        FinishReason::Unknown,
        FinishReason::Stop,
        FinishReason::Length,
    ][text.len() % 3];
    let strategy = Strategy::ALL[text.len() % Strategy::ALL.len()];
    let parser = Parser::default().with_strategies(strategy, Some(Strategy::Fuzzy));
    let parsed = parser.parse(text, finish);
    check(&parsed, text);
    let _message = parser.corrective_message(&parsed);
    let parser = Parser::default();
    let whole = parser.parse_any(text, finish);
    let mut stream = StreamParser::new(&parser);
    for chunk in text.as_bytes().chunks(1 + text.len() % 7) {
        stream.feed(chunk);
    }
    assert_eq!(stream.finish(finish), whole);
    if let Ok(value) = serde_json::from_str(text) {
        let _native = parser.parse_reply(&value, finish);
    }
});
