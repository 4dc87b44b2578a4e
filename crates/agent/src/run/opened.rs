//! Models whose chat template opens the thought, as their replies show it.

use std::collections::HashMap;

use holdfast_intent::{
    FinishReason, OPENED_THOUGHT_START, THOUGHT_TAGS, ends_opened_thought, opened_thought_end,
    opens_a_thought, without_thoughts,
};
use parking_lot::Mutex;

use super::state::RunState;
use crate::model::ModelReply;
use crate::settings::Thought;

/// Replies in a row without the end of a thought after which a model is no longer taken for one that
/// begins inside of it: whoever asks can have any model write `</think>` once.
pub(crate) const OPENED_UNHEARD_MAX: u32 = 8;

/// The models of which a reply began inside of a thought, and how many since then did not end one. There
/// are no more of them than there are models in the configuration.
#[derive(Debug, Default)]
pub(super) struct OpenedThoughts(Mutex<HashMap<String, u32>>);

impl OpenedThoughts {
    /// How the thoughts of a run's model stand in its content: as its settings say, or as its
    /// replies did.
    pub(super) fn of(&self, state: &RunState) -> Thought {
        if self.0.lock().contains_key(&state.model) {
            Thought::Opened
        } else {
            state.settings.thought
        }
    }

    /// The model has answered. One that opens its thoughts itself is no such model. A reply without a
    /// thought proves little: some think only now and then.
    pub(super) fn heard(&self, state: &RunState, reply: &ModelReply) {
        let is_opened = reply.reasoning.is_empty() && opened_thought_end(&reply.content).is_some();
        let mut known = self.0.lock();
        if is_opened {
            known.insert(state.model.clone(), 0);
        } else if let Some(others) = known.get_mut(&state.model) {
            // One that was cut off may not have come to the end of its thought.
            *others += u32::from(reply.finish != FinishReason::Length);
            let opens_itself = opens_a_thought(reply.content.trim_start());
            if opens_itself || *others >= OPENED_UNHEARD_MAX {
                known.remove(&state.model);
            }
        }
    }

    /// Tells what a reply only thinks from what it says, as [`tell_apart`] does. One that was cut off, of
    /// a model that was only noticed to begin inside of a thought, keeps its words, but may have decided
    /// on nothing yet.
    pub(super) fn tell_apart(&self, state: &RunState, reply: &mut ModelReply) {
        tell_apart(state, reply);
        reply.perhaps_in_thought =
            self.of(state) == Thought::Opened && is_cut_before_a_thought_ends(reply);
    }
}

/// A reply that was cut off inside of its thought is all thought, where the thought begins with the
/// reply: its end, which would say so, never came. Only where its settings or its tag say that it begins
/// so: what was noticed of a model may be what somebody had it write.
fn tell_apart(state: &RunState, reply: &mut ModelReply) {
    open_what_is_certain(state, reply);
    let said = reply.content.trim();
    let mut openers = THOUGHT_TAGS.iter().map(|(open, _)| open);
    let behind = openers.find_map(|open| said.strip_prefix(open));
    let begins_inside = behind.is_some() || state.settings.thought == Thought::Opened;
    let is_cut = begins_inside && is_cut_before_a_thought_ends(reply);
    reply.cut_in_thought = is_cut;
    if is_cut {
        reply.reasoning = behind.unwrap_or(said).trim().to_owned();
        reply.content.clear();
    }
}

/// Whether a reply was cut off and nothing in it has ended a thought.
fn is_cut_before_a_thought_ends(reply: &ModelReply) -> bool {
    reply.finish == FinishReason::Length
        && reply.calls.is_null()
        && reply.reasoning.is_empty()
        && without_thoughts(&reply.content) == reply.content
}

/// Writes the tag before a thought that its end alone does not prove, because an answer stands in the
/// thought: the settings say that the reply began with it.
fn open_what_is_certain(state: &RunState, reply: &mut ModelReply) {
    let is_unseen = state.settings.thought == Thought::Opened
        && reply.reasoning.is_empty()
        && ends_opened_thought(&reply.content)
        && opened_thought_end(&reply.content).is_none();
    if is_unseen {
        reply.content.insert_str(0, OPENED_THOUGHT_START);
    }
}

#[cfg(test)]
mod tests {
    use holdfast_intent::{Parser, Strategy, ToolSet};

    use super::*;
    use crate::run::{Ending, Phase, heard};
    use crate::settings::RunSettings;

    #[test]
    fn the_last_reply_says_how_the_next_one_begins() {
        let known = OpenedThoughts::default();
        let settings = RunSettings::default();
        let state = RunState::new("run-1", "r1", Vec::new(), settings.clone(), 0);
        let other = RunState::new("run-2", "gpt-oss", Vec::new(), settings, 0);
        let says = |content: &str| ModelReply {
            content: content.to_owned(),
            ..ModelReply::default()
        };
        assert_eq!(known.of(&state), Thought::Tagged);
        known.heard(&state, &says("So 4.\n</think>\n\nIt is 4."));
        assert_eq!(known.of(&state), Thought::Opened);
        assert_eq!(known.of(&other), Thought::Tagged);
        known.heard(&state, &says("It is 5."));
        known.heard(&state, &says(""));
        assert_eq!(known.of(&state), Thought::Opened);
        for (open, close) in THOUGHT_TAGS {
            known.heard(&state, &says("So 4.\n</think>\n\nIt is 4."));
            known.heard(&state, &says(&format!("{open}So 4.{close}It is 4.")));
            assert_eq!(known.of(&state), Thought::Tagged, "{open}");
        }
    }

    #[test]
    fn one_reply_does_not_make_a_model_think_for_good() {
        let known = OpenedThoughts::default();
        let state = RunState::new("run-1", "r1", Vec::new(), RunSettings::default(), 0);
        let says = |content: &str, finish| ModelReply {
            content: content.to_owned(),
            finish,
            ..ModelReply::default()
        };
        let whole = FinishReason::Stop;
        known.heard(&state, &says("Here it is:\n</think>\nThat was it.", whole));
        for _ in 1..OPENED_UNHEARD_MAX {
            known.heard(&state, &says("It is 5.", whole));
            // One that is cut off says nothing about it.
            known.heard(&state, &says("It is", FinishReason::Length));
            assert_eq!(known.of(&state), Thought::Opened);
        }
        known.heard(&state, &says("It is 5.", whole));
        assert_eq!(known.of(&state), Thought::Tagged);
    }

    #[test]
    fn nothing_in_a_thought_that_was_cut_off_is_done_or_said() {
        let tools = ToolSet::built_in();
        let parser = Parser::new(tools).with_strategies(Strategy::React, Some(Strategy::Fuzzy));
        let opened = RunSettings {
            thought: Thought::Opened,
            ..RunSettings::default()
        };
        let call = "<tool_call>{\"name\": \"write\", \"arguments\": {\"path\": \"a\", \"content\": \"b\"}}</tool_call>";
        let react = "Action: write\nAction Input: {\"path\": \"a\", \"content\": \"b\"}\n";
        for thought in [
            format!("It is needed.\n{call}\nBut wait, the user said not to, so"),
            format!("It is needed.\n{react}\nBut wait, the user said not to, so"),
            format!("{call}\nI write `<think>` or <think> and"),
            "I say:\nFinal Answer: 5?\nNo wait, that is wrong because".to_owned(),
        ] {
            for (settings, begins) in [(RunSettings::default(), "<think>\n"), (opened.clone(), "")]
            {
                let mut state = RunState::new("run-1", "r1", Vec::new(), settings, 0);
                let mut reply = ModelReply {
                    content: format!("{begins}{thought}"),
                    finish: FinishReason::Length,
                    ..ModelReply::default()
                };
                tell_apart(&state, &mut reply);
                assert_eq!(reply.reasoning, thought);
                // Once it may be told what is wrong with it.
                for _ in 0..2 {
                    heard(&mut state, &reply, &parser);
                    assert!(!matches!(state.phase, Phase::Act(_)), "{thought}");
                    if let Some(Ending::Answered { content, .. }) = state.ending() {
                        assert_eq!(content, "", "{thought}");
                    }
                }
            }
        }
    }

    /// What the thought says of an answer is no part of the answer.
    #[test]
    fn a_thought_that_begins_with_the_reply_ends_also_behind_an_answer_in_it() {
        let parser = Parser::new(ToolSet::built_in());
        let opened = RunSettings {
            thought: Thought::Opened,
            ..RunSettings::default()
        };
        for said in [
            "I say:\nFinal Answer: 5? No.</think>It is 4.",
            "I say:\nFinal Answer: 5?\nNo.\n</think>\n\nIt is 4.",
        ] {
            let mut state = RunState::new("run-1", "r1", Vec::new(), opened.clone(), 0);
            let mut reply = ModelReply {
                content: said.to_owned(),
                finish: FinishReason::Stop,
                ..ModelReply::default()
            };
            tell_apart(&state, &mut reply);
            heard(&mut state, &reply, &parser);
            let Some(Ending::Answered { content, .. }) = state.ending() else {
                panic!("{:?}", state.phase)
            };
            assert_eq!(content, "It is 4.", "{said}");
        }
        // Whoever speaks of the tag has ended nothing with it.
        let state = RunState::new("run-1", "r1", Vec::new(), opened, 0);
        let said = "Final Answer: It ends with `</think>`, mostly.";
        let mut reply = ModelReply {
            content: said.to_owned(),
            ..ModelReply::default()
        };
        tell_apart(&state, &mut reply);
        assert_eq!(reply.content, said);
    }

    /// What was noticed may be what somebody had the model write, so its words stay where they are.
    #[test]
    fn a_model_that_was_noticed_to_think_calls_nothing_before_its_thought_has_ended() {
        let parser = Parser::new(ToolSet::built_in());
        let known = OpenedThoughts::default();
        let mut state = RunState::new("run-1", "r1", Vec::new(), RunSettings::default(), 0);
        let says = |content: &str, finish| ModelReply {
            content: content.to_owned(),
            finish,
            ..ModelReply::default()
        };
        known.heard(
            &state,
            &says("So 4.\n</think>\n\nIt is 4.", FinishReason::Stop),
        );
        let call = "<tool_call>{\"name\": \"write\", \"arguments\": {\"path\": \"a\", \"content\": \"b\"}}</tool_call>";
        let cut = format!("It is needed.\n{call}\nBut wait, the user said not to, so");
        for (text, finish, is_called) in [
            (cut.clone(), FinishReason::Length, false),
            (cut, FinishReason::Stop, true),
            (format!("Hm.</think>{call}\nIt"), FinishReason::Length, true),
        ] {
            let mut reply = says(&text, finish);
            known.tell_apart(&state, &mut reply);
            assert_eq!(reply.content, text);
            state.phase = Phase::Ask;
            heard(&mut state, &reply, &parser);
            assert_eq!(matches!(state.phase, Phase::Act(_)), is_called, "{text}");
        }
    }

    #[test]
    fn what_is_cut_off_inside_of_a_thought_is_thought() {
        let opened = RunSettings {
            thought: Thought::Opened,
            ..RunSettings::default()
        };
        let opened = RunState::new("run-1", "r1", Vec::new(), opened, 0);
        let tagged = RunState::new("run-2", "r1", Vec::new(), RunSettings::default(), 0);
        let (cut, whole) = (FinishReason::Length, FinishReason::Stop);
        for (state, said, finish, thought, aloud) in [
            (&opened, "So 2 + 2", cut, "So 2 + 2", ""),
            (&opened, "<think>\nSo 2", cut, "So 2", ""),
            (
                &opened,
                "It ends with `</think>`, so",
                cut,
                "It ends with `</think>`, so",
                "",
            ),
            (&opened, "So 4.</think>It is", cut, "", "So 4.</think>It is"),
            (&opened, "It is 4.", whole, "", "It is 4."),
            (&tagged, "It is", cut, "", "It is"),
            (&tagged, "<think>So 2", cut, "So 2", ""),
            (&tagged, "<think>So 2", whole, "", "<think>So 2"),
            (
                &tagged,
                "<think>So.</think>It",
                cut,
                "",
                "<think>So.</think>It",
            ),
        ] {
            let mut reply = ModelReply {
                content: said.to_owned(),
                finish,
                ..ModelReply::default()
            };
            tell_apart(state, &mut reply);
            let found = (reply.reasoning.as_str(), reply.content.as_str());
            assert_eq!(found, (thought, aloud), "{said}");
            // A server that tells thoughts apart leaves none in the content.
            let mut apart = ModelReply {
                content: said.to_owned(),
                reasoning: "Hm.".to_owned(),
                finish,
                ..ModelReply::default()
            };
            tell_apart(state, &mut apart);
            assert_eq!(apart.content, said);
        }
    }
}
