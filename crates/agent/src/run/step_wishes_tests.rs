use serde_json::json;

use super::super::wishes::filled;
use super::tests::{answer, begun, found, parser, planned, thought};
use super::*;
use crate::settings::{MutatingGuess, RunSettings};

/// A wish in prose that changes things is asked back, and named where nothing came of it.
#[test]
fn a_wish_that_changes_things_is_asked_back_and_never_lost() {
    let wish = thought("We need to run `echo hi > wish.txt`.", "");
    for (when_used_up, is_answer) in [(WhenUsedUp::Fail, false), (WhenUsedUp::Answer, true)] {
        let mut state = begun(RunSettings {
            when_used_up,
            ..RunSettings::default()
        });
        while state.phase == Phase::Ask {
            heard(&mut state, &wish, &parser());
        }
        assert_eq!(state.iteration, 5);
        let [wish] = state.not_done.as_slice() else {
            panic!("{:?}", state.not_done)
        };
        assert_eq!(wish.tool, "exec");
        assert_eq!(wish.arguments["command"], "echo hi > wish.txt");
        assert_eq!(
            matches!(state.ending(), Some(Ending::Answered { .. })),
            is_answer
        );
    }
    // The settings may let it run, or let a person decide.
    for (mutating_guess, min, runs) in [
        (MutatingGuess::Run, 0.6, true),
        (MutatingGuess::Run, 0.9, false),
        (MutatingGuess::AskPerson, 0.9, true),
    ] {
        let mut state = begun(RunSettings {
            mutating_guess,
            mutating_guess_min: min,
            ..RunSettings::default()
        });
        heard(&mut state, &wish, &parser());
        assert_eq!(planned(&state) == ["exec"], runs, "{mutating_guess:?}");
    }
}

/// "Then fetch the top result" is made when the results are there.
#[test]
fn a_chained_wish_takes_its_address_from_the_results() {
    let plan =
        "We would search for Claude AI latest news using web_search, then fetch the second result.";
    let results = "1. News https://news.invalid/1_(a), 2. More (https://news.invalid/2). 3. https://news.invalid/2";
    for (listed, expected) in [
        (results, Some("https://news.invalid/2")),
        ("Nothing.", None),
    ] {
        let mut state = begun(RunSettings::default());
        heard(&mut state, &thought(plan, ""), &parser());
        assert_eq!(planned(&state), ["web_search", "web_fetch"]);
        acted(&mut state, 0, found(listed));
        let next = filled(&mut state, 1);
        let address = next.as_ref().map(|call| call.arguments["url"].clone());
        assert_eq!(address, expected.map(|url| json!(url)));
        if next.is_some() {
            acted(&mut state, 1, found("The article."));
        }
        // What was not made is not called.
        assert_eq!(
            state.tools_called.len(),
            1 + usize::from(expected.is_some())
        );
        assert_eq!(state.phase, Phase::Ask);
    }
    // What would change things is not made from what a result says, nor is one without a search.
    for (plan, made) in [
        ("Then fetch the top result.", &[][..]),
        (
            "Search for Claude, then run the first result.",
            &["web_search"],
        ),
    ] {
        let mut state = begun(RunSettings::default());
        heard(&mut state, &thought(plan, ""), &parser());
        let calls = match &state.phase {
            Phase::Act(calls) => calls.clone(),
            _ => Vec::new(),
        };
        let open = calls.iter().filter(|call| call.result.is_none());
        let open: Vec<&str> = open.map(|call| call.name.as_str()).collect();
        assert_eq!(open, made, "{plan}");
    }
}

/// Nobody is served by "Let me look." as an answer. A model that stays with it is believed.
#[test]
fn an_announcement_without_a_call_is_asked_back_once() {
    for (reasoning, content) in [
        ("Hm.", "Let me look that up."),
        ("", "On it!"),
        ("I'll check.", ""),
    ] {
        let mut state = begun(RunSettings::default());
        heard(&mut state, &thought(reasoning, content), &parser());
        assert_eq!(state.phase, Phase::Ask, "{content}");
        let told = &state.messages.last().expect("asked back").content;
        assert!(
            told.contains("announces a step") && told.contains("Action Input"),
            "{told}"
        );
        heard(&mut state, &thought(reasoning, content), &parser());
        assert!(
            matches!(state.phase, Phase::Ended(Ending::Answered { .. })),
            "{content}"
        );
    }
    let mut state = begun(RunSettings::default());
    heard(&mut state, &thought("", "Final Answer: On it!"), &parser());
    assert!(matches!(state.phase, Phase::Ended(Ending::Answered { .. })));
}

/// What a model wished and never made is told beside its answer, also when it claims to have done it.
#[test]
fn an_answer_lists_what_was_wished_and_not_done() {
    let mut state = begun(RunSettings::default());
    heard(
        &mut state,
        &thought("We need to run `make deploy`.", ""),
        &parser(),
    );
    assert_eq!(state.phase, Phase::Ask);
    heard(&mut state, &thought("", "It is deployed."), &parser());
    assert_eq!(answer(&state), "It is deployed.");
    assert_eq!(state.not_done[0].tool, "exec");
    // A call of the tool settles it.
    let mut state = begun(RunSettings::default());
    heard(
        &mut state,
        &thought("We need to run `make deploy`.", ""),
        &parser(),
    );
    let call = "Action: exec\nAction Input: {\"command\": \"make deploy\"}";
    heard(&mut state, &thought(call, ""), &parser());
    assert!(state.not_done.is_empty());
}

/// A person's no to a guess holds when the model says the same as a call.
#[test]
fn a_denied_guess_stays_a_guess() {
    let mut state = begun(RunSettings {
        mutating_guess: MutatingGuess::AskPerson,
        ..RunSettings::default()
    });
    heard(
        &mut state,
        &thought("I'll run `make deploy`.", ""),
        &parser(),
    );
    let no = CallResult {
        ok: false,
        ..found("permission_denied: A person said no to this very call")
    };
    acted(&mut state, 0, no);
    let call = "Action: exec\nAction Input: {\"command\": \"make deploy\"}";
    heard(&mut state, &thought(call, ""), &parser());
    assert!(matches!(&state.phase, Phase::Act(calls) if calls[0].guess));
    let other = "Action: exec\nAction Input: {\"command\": \"make test\"}";
    acted(&mut state, 0, found("x"));
    heard(&mut state, &thought(other, ""), &parser());
    assert!(matches!(&state.phase, Phase::Act(calls) if !calls[0].guess));
}

/// A server without a reasoning parser leaves the thought in the content.
#[test]
fn a_thought_between_tags_and_nothing_else_is_read_as_a_thought() {
    let mut state = begun(RunSettings::default());
    let reply = thought("", "<think>I need to read notes.txt.</think>");
    heard(&mut state, &reply, &parser());
    assert_eq!(planned(&state), ["read"]);
    let mut state = begun(RunSettings::default());
    heard(
        &mut state,
        &thought("", "<think>The answer is 4.</think>"),
        &parser(),
    );
    assert_eq!(answer(&state), "The answer is 4.");
}
