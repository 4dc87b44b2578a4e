//! A guess at prose never runs a tool that changes things.

use crate::support::{Case, all_cases};
use holdfast_intent::{Intent, Parser, RUN_MUTATING_MIN, Strategy, ToolSet, ToolSpec};

/// The tools of a case, all of them said to change things.
fn all_mutating(case: &Case) -> Parser {
    let tools = case.parser.tools().tools().iter();
    let tools = tools.map(|tool| ToolSpec {
        mutating: true,
        ..tool.clone()
    });
    Parser::new(ToolSet::new(tools.collect()))
}

fn is_guess_at_change(intent: &Intent) -> bool {
    intent.strategy == Strategy::Fuzzy && intent.mutating
}

#[test]
fn no_tool_that_changes_things_runs_from_a_fuzzy_match() {
    let (mut guesses, mut changes) = (0, 0);
    for case in all_cases() {
        let harsh = all_mutating(&case);
        let parsers = [
            case.parser.clone(),
            case.parser.clone().with_strategies(Strategy::Fuzzy, None),
            harsh.clone(),
            harsh.with_strategies(Strategy::Fuzzy, None),
        ];
        for parser in parsers {
            for intent in parser.parse(&case.text, case.finish).intents {
                guesses += usize::from(intent.strategy == Strategy::Fuzzy);
                if is_guess_at_change(&intent) {
                    changes += 1;
                    assert!(
                        !intent.is_runnable() && intent.confidence < RUN_MUTATING_MIN,
                        "{}: {}, which wants {}, gave {intent:?}",
                        case.file,
                        case.name,
                        case.expect
                    );
                }
            }
        }
    }
    println!("{guesses} guesses, {changes} of them at tools that change things");
    assert!(changes > 100, "only {changes} guesses were put to the test");
}
