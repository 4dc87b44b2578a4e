use std::sync::Arc;

use holdfast_contract::ResultOutput;
use serde_json::json;

use super::*;
use crate::idempotency::key::StoredKey;
use crate::idempotency::record::Execution;
use crate::idempotency::transition::Lifetimes;

fn word(ending: Ending) -> Finalisation {
    Finalisation {
        key: StoredKey::from_bytes([1; 32]),
        owner: "owner".into(),
        ending,
        execution: Execution::default(),
        lifetimes: Lifetimes::default(),
    }
}

fn done(text: &str) -> Finalisation {
    word(Ending::Done(ResultOutput {
        content: Arc::new(json!(text)),
        metadata: None,
    }))
}

fn put(queue: &mut Queue, word: Finalisation) -> Option<Finalisation> {
    queue.put(Waiting::new(word))
}

#[test]
fn words_that_nothing_ran_make_room_and_never_push_a_result_out() {
    let mut queue = Queue::default();
    assert!(put(&mut queue, done("first")).is_none());
    for _ in 1..WRITE_BACK_MAX {
        assert!(put(&mut queue, word(Ending::Cancelled)).is_none());
    }
    let refused = put(&mut queue, word(Ending::Cancelled));
    assert_eq!(refused, Some(word(Ending::Cancelled)));
    for _ in 1..WRITE_BACK_MAX {
        let given_up = put(&mut queue, done("more"));
        assert_eq!(given_up, Some(word(Ending::Cancelled)));
    }
    assert_eq!(
        (queue.ended.len(), queue.cancelled.len()),
        (WRITE_BACK_MAX, 0)
    );
    // Full of results: the new one is given up, whichever it is.
    assert_eq!(put(&mut queue, done("late")), Some(done("late")));
    assert_eq!(queue.ended[0].word, done("first"));
    assert_eq!(queue.lost, WRITE_BACK_MAX as u64 + 1);
}

#[test]
fn outputs_beyond_the_bound_are_left_out_and_the_calls_stay_done() {
    let large = "x".repeat(WRITE_BACK_BYTES_MAX / 4);
    let mut queue = Queue::default();
    for _ in 0..5 {
        assert!(put(&mut queue, done(&large)).is_none());
    }
    assert!(queue.bytes <= WRITE_BACK_BYTES_MAX);
    let kept: Vec<bool> = queue
        .ended
        .iter()
        .map(|waiting| matches!(waiting.word.ending, Ending::Done(_)))
        .collect();
    assert_eq!(kept, [true, true, true, false, false]);
    // What is said makes room for the next.
    drop(queue.take());
    assert_eq!(queue.bytes, 0);
}

#[test]
fn what_was_not_said_waits_behind_the_others() {
    let back = WriteBack::default();
    for number in 0..2 * AT_ONCE {
        assert!(back.push(done(&number.to_string())).is_none());
    }
    let unsaid = back.queue.lock().take();
    assert_eq!(unsaid.len(), AT_ONCE);
    assert!(back.give_back(unsaid, 0).is_empty());
    let next = back.queue.lock().take();
    assert_eq!(next[0].word, done(&AT_ONCE.to_string()));
}
