//! A history in another form, for a server that will not take it as it is.
//!
//! Every question is paired before it is sent, but servers have rules of their own: which ids they
//! take, which roles may follow each other, whether they know calls at all. Such a server is asked
//! once more in plain words, and then with the task alone and what has happened from then on. The
//! history itself stays whole, in the run.

use holdfast_intent::Strategy;
use serde::{Deserialize, Serialize};

use super::{pair, words};
use crate::chat::{Message, Role};
use crate::run::RunState;

/// The form in which a history is sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HistoryForm {
    /// Calls and results as they are, paired.
    #[default]
    Paired,
    /// Calls and results in words, users and model taking turns.
    InWords,
    /// The rules, the task and what was called; then what has happened since, in words.
    TaskOnly,
}

/// Where a run began anew with its task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reset {
    /// How many messages there were: these are not sent any more.
    pub messages: usize,
    /// How many tools had been called: these are named.
    pub tools: usize,
}

/// The server will not take the history. True when another form may be tried.
pub fn recast(state: &mut RunState) -> bool {
    let (form, again) = match state.context.form {
        HistoryForm::Paired => (HistoryForm::InWords, true),
        HistoryForm::InWords => (HistoryForm::TaskOnly, true),
        HistoryForm::TaskOnly => (HistoryForm::TaskOnly, false),
    };
    state.context.form = form;
    if form == HistoryForm::TaskOnly && again {
        state.context.reset = Some(Reset {
            messages: state.messages.len(),
            tools: state.tools_called.len(),
        });
    }
    again
}

/// The history, paired and in the form that is due, and where its task is.
pub(super) fn in_form(state: &RunState, task: usize) -> (Vec<Message>, usize) {
    let messages = state.messages.clone();
    match state.context.form {
        HistoryForm::Paired => pair::mend(messages, task),
        HistoryForm::InWords => {
            let (messages, task) = pair::mend(messages, task);
            in_words(messages, task)
        }
        HistoryForm::TaskOnly => {
            let all = Reset {
                messages: messages.len(),
                tools: state.tools_called.len(),
            };
            let reset = state.context.reset.unwrap_or(all);
            task_only(messages, task, &state.tools_called, reset)
        }
    }
}

fn in_words(mut messages: Vec<Message>, task: usize) -> (Vec<Message>, usize) {
    let after = messages.split_off((task + 1).min(messages.len()));
    let the_task = messages.pop();
    // Any form that is not the servers' own.
    let mut made = taking_turns(words::told(messages, Strategy::Auto));
    let mut at = made.len();
    for message in the_task
        .into_iter()
        .chain(words::told(after, Strategy::Auto))
    {
        let is_task = at == made.len();
        join(&mut made, message);
        if is_task {
            at = made.len().saturating_sub(1);
        }
    }
    (made, at)
}

fn taking_turns(messages: Vec<Message>) -> Vec<Message> {
    let mut made = Vec::with_capacity(messages.len());
    for message in messages {
        join(&mut made, message);
    }
    made
}

/// Adds what somebody says to what the same one has just said. Nobody says nothing.
fn join(made: &mut Vec<Message>, message: Message) {
    if message.content.trim().is_empty() {
        return;
    }
    match made.last_mut() {
        Some(last) if last.role == message.role => {
            last.content.push_str("\n\n");
            last.content.push_str(&message.content);
        }
        _ => made.push(message),
    }
}

/// What was said before the reset was refused, and what comes after it is in words: a model that
/// does not see what became of its calls makes them again.
fn task_only(
    mut messages: Vec<Message>,
    task: usize,
    called: &[String],
    reset: Reset,
) -> (Vec<Message>, usize) {
    let since = messages.split_off(reset.messages.min(messages.len()));
    let called = &called[..reset.tools.min(called.len())];
    let rules = messages.iter().filter(|it| it.role == Role::System);
    let mut made: Vec<Message> = rules.cloned().collect();
    let mut asked = messages
        .get(task)
        .map_or(String::new(), |it| it.content.clone());
    if !called.is_empty() {
        asked.push_str("\n\n[What was said since then was left out. These tools have been called already, in this order: ");
        asked.push_str(&called.join(", "));
        asked.push_str(". Look before you do anything again.]");
    }
    made.push(Message::text(Role::User, asked));
    let at = made.len() - 1;
    let (since, _) = pair::mend(since, 0);
    for message in words::told(since, Strategy::Auto) {
        join(&mut made, message);
    }
    (made, at)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::context::samples::histories;

    proptest! {
        #[test]
        fn in_words_nobody_speaks_twice_in_a_row_and_the_task_is_there(history in histories()) {
            let (messages, task) = history;
            let wanted = messages[task].content.clone();
            let (paired, task) = pair::mend(messages, task);
            let (made, at) = in_words(paired.clone(), task);
            prop_assert!(made.iter().all(|it| it.calls.is_empty() && it.answers.is_none()));
            prop_assert!(made.windows(2).all(|two| two[0].role != two[1].role));
            prop_assert!(wanted.trim().is_empty() || made[at].content.contains(&wanted));
            prop_assert_eq!(pair::problem(&made), None);
            for messages in task + 1..=paired.len() {
                let reset = Reset { messages, tools: 1 };
                let (alone, at) = task_only(paired.clone(), task, &["exec".to_owned()], reset);
                prop_assert!(alone[at].content.starts_with(&wanted));
                prop_assert!(alone.iter().all(|it| it.calls.is_empty() && it.answers.is_none()));
                prop_assert_eq!(pair::problem(&alone), None);
            }
        }
    }
}
