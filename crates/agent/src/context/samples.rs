//! Histories for tests.

use proptest::prelude::*;
use serde_json::json;

use crate::chat::{Message, NativeCall, Role};
use crate::results::{CallResult, batch};

pub(crate) fn called(ids: &[&str]) -> Message {
    let calls = ids.iter().map(|id| NativeCall {
        id: (*id).to_owned(),
        name: "read".to_owned(),
        arguments: serde_json::from_value(json!({"path": format!("{id}.txt")})).unwrap(),
    });
    Message {
        calls: calls.collect(),
        ..Message::text(Role::Assistant, "")
    }
}

pub(crate) fn result(id: &str, text: &str) -> Message {
    Message {
        answers: Some(id.to_owned()),
        ..Message::text(Role::Tool, text)
    }
}

/// Results as the loop tells them to a model without native calls.
pub(crate) fn told(text: &str) -> Message {
    let found = CallResult {
        text: text.to_owned(),
        ok: true,
        duration_ms: 1,
        unknown: false,
        ..CallResult::default()
    };
    Message::text(Role::User, batch(&[found.line("read")]))
}

fn words() -> impl Strategy<Value = String> {
    (0..600_usize, "[a-z]{1,6} ").prop_map(|(times, word)| word.repeat(times))
}

/// Any messages, broken or whole, and a user's message among them.
pub(crate) fn histories() -> impl Strategy<Value = (Vec<Message>, usize)> {
    let ids = || prop::collection::vec(prop::sample::select(vec!["", "a", "b", "c"]), 0..4);
    let one = prop_oneof![
        words().prop_map(|text| Message::text(Role::User, text)),
        words().prop_map(|text| Message::text(Role::Assistant, text)),
        words().prop_map(|text| Message::text(Role::System, text)),
        words().prop_map(|text| told(&text)),
        ids().prop_map(|ids| called(&ids)),
        ids().prop_map(|ids| called(&ids)),
        ("[abc]?", words()).prop_map(|(id, text)| result(&id, &text)),
        ("[abc]?", words()).prop_map(|(id, text)| result(&id, &text)),
    ];
    (
        prop::collection::vec(one, 0..24),
        any::<prop::sample::Index>(),
    )
        .prop_map(|(mut all, at)| {
            let task = at.index(all.len() + 1);
            all.insert(task, Message::text(Role::User, "the task"));
            (all, task)
        })
}
