use proptest::prelude::*;

use super::*;
use crate::context::pair;
use crate::context::samples::{called, histories, result, told};

fn budget(window: u64) -> Budget {
    Budget {
        window,
        reserve: 0,
        completion: 0,
        fixed: 0,
        truncate_at: 0.6,
        compact_at: 0.8,
        scale_permille: 1000,
    }
}

fn long(words: usize) -> String {
    "milk ".repeat(words)
}

/// A task and ten rounds, each with a result of a thousand tokens.
fn ten_rounds() -> Vec<Message> {
    let mut messages = vec![
        Message::text(Role::System, "the rules"),
        Message::text(Role::User, "the task"),
    ];
    for round in 0..10 {
        let id = format!("c{round}");
        messages.push(called(&[&id]));
        messages.push(result(&id, &long(1000)));
    }
    messages
}

#[test]
fn what_fits_stays_as_it_is() {
    let fitted = fit(ten_rounds(), 1, &budget(20_000)).unwrap();
    assert_eq!(fitted.messages, ten_rounds());
    assert_eq!((fitted.shortened, fitted.left_out), (0, 0));
}

#[test]
fn old_results_are_shortened_first_and_only_as_many_as_needed() {
    let fitted = fit(ten_rounds(), 1, &budget(15_000)).unwrap();
    assert_eq!(fitted.left_out, 0);
    assert!((1..4).contains(&fitted.shortened), "{}", fitted.shortened);
    assert!(fitted.tokens <= 9_000);
    let first = &fitted.messages[3].content;
    assert!(
        first.chars().count() <= OLD_RESULT_CHARS && first.contains("left out"),
        "{first}"
    );
    assert_eq!(fitted.messages[21].content, long(1000));
}

#[test]
fn old_rounds_are_left_out_with_their_results_and_said() {
    let fitted = fit(ten_rounds(), 1, &budget(2_200)).unwrap();
    assert!(
        fitted.left_out > 0 && fitted.left_out.is_multiple_of(2),
        "{}",
        fitted.left_out
    );
    assert_eq!(fitted.messages[0].content, "the rules");
    assert_eq!(fitted.messages[fitted.task].content, "the task");
    let note = &fitted.messages[2].content;
    assert!(
        note.starts_with("[Earlier steps were left out") && note.contains("called read"),
        "{note}"
    );
    assert_eq!(pair::problem(&fitted.messages), None);
    assert_eq!(
        fitted.messages.last().unwrap().answers.as_deref(),
        Some("c9")
    );
}

#[test]
fn many_results_at_once_are_shortened_too() {
    let mut messages = vec![
        Message::text(Role::User, "the task"),
        Message::text(Role::Assistant, "x"),
    ];
    messages.push(told(&long(5000)));
    let fitted = fit(messages, 0, &budget(2_000)).unwrap();
    assert!(fitted.tokens <= 2_000);
    assert!(fitted.messages[2].content.starts_with(BATCH_HEAD));
}

#[test]
fn a_task_that_does_not_fit_is_said() {
    let messages = vec![Message::text(Role::User, long(5000))];
    let error = fit(messages, 0, &budget(2_000)).unwrap_err();
    assert_eq!(error.most, 2_000);
    assert!(error.tokens > 5_000, "{error}");
}

#[test]
fn the_answer_and_the_reserve_have_their_room() {
    let tight = Budget {
        reserve: 2_000,
        completion: 1_000,
        fixed: 100,
        ..budget(10_000)
    };
    assert_eq!((tight.available(), tight.prompt_max()), (8_000, 7_000));
    let fitted = fit(ten_rounds(), 1, &tight).unwrap();
    assert!(fitted.tokens <= 7_000);
    // A server that counts more than we do is believed.
    let said = Budget {
        scale_permille: 1500,
        ..tight
    };
    assert!(fit(ten_rounds(), 1, &said).unwrap().tokens <= 7_000);
}

proptest! {
    #[test]
    fn what_comes_out_is_whole_smaller_and_stays(history in histories(), window in 50..6_000_u64) {
        let (messages, task) = pair::mend(history.0, history.1);
        let budget = budget(window);
        let before = budget.total(tokens::messages(&messages).iter().sum());
        let last = messages.last().cloned().unwrap();
        let rules = |all: &[Message]| -> Vec<String> {
            let found = all.iter().filter(|it| it.role == Role::System);
            found.map(|it| it.content.clone()).collect()
        };
        match fit(messages.clone(), task, &budget) {
            Ok(fitted) => {
                prop_assert_eq!(pair::problem(&fitted.messages), None);
                prop_assert!(fitted.tokens <= before);
                prop_assert!(fitted.tokens <= budget.prompt_max());
                prop_assert_eq!(&fitted.messages[fitted.task].content, "the task");
                prop_assert_eq!(rules(&fitted.messages), rules(&messages));
                let kept = fitted.messages.last().unwrap();
                prop_assert_eq!((kept.role, &kept.answers), (last.role, &last.answers));
                let again = fit(fitted.messages.clone(), fitted.task, &budget).unwrap();
                prop_assert_eq!((again.messages, again.tokens), (fitted.messages, fitted.tokens));
            }
            // Then what has to stay is too much by itself.
            Err(error) => prop_assert!(error.tokens > error.most && before > error.most),
        }
    }
}
