//! Text that leads nowhere again and again is given up on, and that is said.

use holdfast_intent::{FinishReason, Parser, Problem};

#[test]
fn giving_up_is_said() {
    // Every brace opens an object whose string could go on to the end of the text.
    let tangle = "{\"a\": \"x\n".repeat(3_000);
    let behind = format!("[TOOL:read|path=a.txt]\n{tangle}");
    for text in [&tangle, &behind] {
        let parsed = Parser::default().parse(text, FinishReason::Stop);
        assert!(parsed.problems.contains(&Problem::ReadingGivenUp));
        assert!(!parsed.completed);
    }
    let parsed = Parser::default().parse(&behind, FinishReason::Stop);
    assert_eq!(parsed.intents[0].arguments["path"], "a.txt");
}

#[test]
fn too_many_calls_are_said() {
    use std::fmt::Write as _;
    let mut text = String::new();
    for number in 0..400 {
        writeln!(text, "[TOOL:read|path=a{number}.txt]").unwrap();
    }
    let parsed = Parser::default().parse(&text, FinishReason::Stop);
    assert!(parsed.problems.contains(&Problem::TooManyIntents));
    assert_eq!(parsed.intents.len(), holdfast_intent::limits::INTENTS_MAX);
}
