//! Calls and their results belong together: a server refuses a history in which they do not.

use std::collections::{HashMap, VecDeque};

use holdfast_transcript::format::Format;
use holdfast_transcript::values::validate_as;

use crate::chat::{Message, NativeCall, Role};

/// What stands in for a result that is not there.
const STAND_IN: &str = "[no result of this call was kept; its effect may or may not have happened]";

/// What a server would have against the calls and results of a history, in words.
pub fn problem(messages: &[Message]) -> Option<String> {
    let wire: Vec<_> = messages.iter().map(Message::to_wire).collect();
    let issues = validate_as(Format::OpenAiChat, &wire);
    issues.into_iter().next().map(|issue| issue.description)
}

/// The history as a server takes it, and where the message that was at `task` is now. A history
/// without faults stays as it is.
pub fn mend(messages: Vec<Message>, task: usize) -> (Vec<Message>, usize) {
    if is_open(&messages) || problem(&messages).is_some() {
        rebuild(messages, task)
    } else {
        (messages, task)
    }
}

/// Whether the last calls have no results yet. That is no fault in a transcript, and one in a
/// question to a model.
fn is_open(messages: &[Message]) -> bool {
    let results = messages
        .iter()
        .rev()
        .take_while(|it| it.role == Role::Tool)
        .count();
    let calls = messages
        .iter()
        .rev()
        .nth(results)
        .map_or(0, |it| it.calls.len());
    results < calls
}

/// Every result behind its call, each call with one result, no id twice, nothing left over.
fn rebuild(messages: Vec<Message>, task: usize) -> (Vec<Message>, usize) {
    let mut results = results_by_call(&messages);
    let mut used = HashMap::new();
    let mut made: Vec<Message> = Vec::with_capacity(messages.len());
    let mut task_now = 0;
    for (place, mut message) in messages.into_iter().enumerate() {
        if place == task {
            task_now = made.len();
        }
        if message.role == Role::Tool {
            continue;
        }
        if message.role != Role::Assistant {
            message.calls.clear();
        }
        for call in &mut message.calls {
            own_id(call, &mut used);
        }
        let ids: Vec<String> = message.calls.iter().map(|call| call.id.clone()).collect();
        made.push(Message {
            answers: None,
            ..message
        });
        for (at, id) in ids.into_iter().enumerate() {
            let text = results
                .remove(&(place, at))
                .unwrap_or_else(|| STAND_IN.to_owned());
            made.push(Message {
                answers: Some(id),
                ..Message::text(Role::Tool, text)
            });
        }
    }
    (made, task_now)
}

/// The text of each call's result. A result answers the last message before it that has calls with
/// its id; of several calls with one id in a message, the first that has no result yet.
fn results_by_call(messages: &[Message]) -> HashMap<(usize, usize), String> {
    let mut open: HashMap<&str, VecDeque<(usize, usize)>> = HashMap::new();
    let mut results = HashMap::new();
    for (place, message) in messages.iter().enumerate() {
        match message.role {
            Role::Assistant => {
                for (at, call) in message.calls.iter().enumerate() {
                    let same = open.entry(call.id.as_str()).or_default();
                    same.retain(|(earlier, _)| *earlier == place);
                    same.push_back((place, at));
                }
            }
            Role::Tool => {
                let id = message.answers.as_deref().unwrap_or_default();
                if let Some(call) = open.get_mut(id).and_then(VecDeque::pop_front) {
                    results.insert(call, message.content.clone());
                }
            }
            Role::System | Role::User => {}
        }
    }
    results
}

/// Servers use `call_0` again and again; providers want each id once.
fn own_id(call: &mut NativeCall, used: &mut HashMap<String, u64>) {
    let base = if call.id.is_empty() { "call" } else { &call.id };
    let mut id = base.to_owned();
    // Goes on where the last one ended: a history may hold hundreds of thousands of them.
    let mut number = used.get(base).copied().unwrap_or(1);
    while used.contains_key(&id) {
        number += 1;
        id = format!("{base}-{number}");
    }
    used.insert(base.to_owned(), number);
    used.entry(id.clone()).or_insert(1);
    call.id = id;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::samples::{called, histories, result};
    use proptest::prelude::*;

    #[test]
    fn what_a_client_broke_is_mended() {
        let history = vec![
            Message::text(Role::User, "a"),
            result("nobody", "orphan"),
            called(&["x", "y"]),
            Message::text(Role::User, "between"),
            result("y", "late"),
            called(&["x"]),
            result("x", "second"),
            result("x", "again"),
            Message::text(Role::User, "task"),
            called(&["z"]),
        ];
        assert!(problem(&history).is_some());
        let (mended, task) = mend(history, 8);
        assert_eq!(problem(&mended), None);
        assert_eq!(mended[task].content, "task");
        let told: Vec<(&str, &str)> = mended
            .iter()
            .filter_map(|it| Some((it.answers.as_deref()?, it.content.as_str())))
            .collect();
        assert_eq!(
            told,
            [
                ("x", STAND_IN),
                ("y", "late"),
                ("x-2", "second"),
                ("z", STAND_IN)
            ]
        );
    }

    #[test]
    fn calls_of_one_message_with_one_id_keep_their_results() {
        let history = vec![
            Message::text(Role::User, "task"),
            called(&["x", "x"]),
            result("x", "first"),
            result("x", "second"),
        ];
        let (mended, _) = mend(history, 0);
        let told: Vec<&str> = mended[2..].iter().map(|it| it.content.as_str()).collect();
        assert_eq!(told, ["first", "second"]);
    }

    proptest! {
        #[test]
        fn a_mended_history_has_no_faults_and_stays(history in histories()) {
            let (messages, task) = history;
            let said = |all: &[Message]| -> Vec<String> {
                let others = all.iter().filter(|it| it.role != Role::Tool);
                others.map(|it| it.content.clone()).collect()
            };
            let (before, at_task) = (said(&messages), messages[task].clone());
            let (mended, now) = mend(messages, task);
            prop_assert_eq!(problem(&mended), None);
            prop_assert_eq!(said(&mended), before);
            prop_assert_eq!(&mended[now].content, &at_task.content);
            prop_assert_eq!(mend(mended.clone(), now), (mended, now));
        }
    }
}
