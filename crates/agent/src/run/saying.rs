//! What of a reply can be shown before it is whole.
//!
//! A reply may turn out to be a call until its last sign, and a call is nobody's answer. It is
//! certain earlier in two cases: when there is nothing to call, and after `Final Answer:`, where the
//! model itself says that all that follows is the answer. What was shown is the answer from then on,
//! whatever follows in that reply.
//!
//! What is only thought is not shown. A thought between tags is seen as such; one that the chat
//! template opened looks like speech until its end, so of a model that begins inside of a thought
//! nothing is shown before that, unless its server tells thoughts apart. Of one that is cut off before its
//! end nothing is shown at all ([`super::opened`]).

use std::ops::Range;

use holdfast_intent::{
    FinishReason, OPENED_THOUGHT_END, Parser, Strategy, THOUGHT_TAGS, aloud_from,
};

use super::looks::{Look, Looks};
use super::offer::Offer;
use super::state::RunState;
use crate::model::Piece;
use crate::settings::Thought;

/// What says that the answer follows.
const MARKER: &str = "Final Answer:";
/// What may end a reply without belonging to it.
const END_MARK: &str = "[DONE]";

/// When a reply is an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// Always: there is nothing to call.
    All,
    /// From the marker on.
    AfterMarker,
    /// When it is whole.
    AtTheEnd,
}

/// A reply on its way.
pub(super) struct Saying<'a> {
    rule: Rule,
    thought: Thought,
    parser: &'a Parser,
    content: String,
    reasoning: String,
    /// How far the content was looked through for marks.
    looked: usize,
    /// When all of it is looked through.
    looks: Looks,
    /// Where the answer begins in the content.
    begins: Option<usize>,
    /// How far it was shown.
    shown: usize,
    /// Nothing that follows is certain.
    is_over: bool,
}

impl<'a> Saying<'a> {
    pub(super) fn new(state: &RunState, offer: &'a Offer<'_>, thought: Thought) -> Self {
        let (primary, _) = state.settings.strategies();
        let rule = if offer.is_empty() {
            Rule::All
        } else if state.mode.demands_a_call() {
            // Whoever demands a call gets no words in its place.
            Rule::AtTheEnd
        } else if matches!(primary, Strategy::React | Strategy::Auto) {
            Rule::AfterMarker
        } else {
            Rule::AtTheEnd
        };
        Self::by(rule, thought, &offer.parser)
    }

    fn by(rule: Rule, thought: Thought, parser: &'a Parser) -> Self {
        Self {
            rule,
            thought,
            parser,
            content: String::new(),
            reasoning: String::new(),
            looked: 0,
            looks: Looks::default(),
            begins: None,
            shown: 0,
            is_over: false,
        }
    }

    /// Takes a piece; says what can be shown now.
    pub(super) fn hear(&mut self, piece: Piece<'_>) -> Option<&str> {
        match piece {
            Piece::Content(text) => self.content.push_str(text),
            Piece::Reasoning(text) => {
                self.reasoning.push_str(text);
                return None;
            }
            // Beside a call nothing is an answer, unless it was one already.
            Piece::Call => {
                if self.begins.is_none() {
                    self.rule = Rule::AtTheEnd;
                }
                return None;
            }
        }
        let begins = match self.begins {
            Some(begins) => begins,
            None => self.beginning()?,
        };
        self.begins = Some(begins);
        if self.is_over {
            return None;
        }
        let from = self.shown.max(begins);
        let (certain, is_over) = certain_end(&self.content[from..]);
        self.is_over = is_over;
        if certain == 0 {
            return None;
        }
        let to = from + certain;
        self.shown = to;
        Some(&self.content[from..to])
    }

    /// The part of the content that was shown as the answer, if any was.
    pub(super) fn shown(&self) -> Option<Range<usize>> {
        let begins = self.begins.filter(|begins| self.shown > *begins)?;
        Some(begins..self.shown)
    }

    fn beginning(&mut self) -> Option<usize> {
        let is_new = self.has_new_mark();
        let length = self.content.len();
        let look = match self.rule {
            Rule::AtTheEnd => return None,
            Rule::All if !self.begins_in_thought() => self.first_sign(),
            _ if !self.looks.is_due(length, is_new) => return None,
            Rule::All => self.first_sign(),
            Rule::AfterMarker => self.after_marker(),
        };
        match look {
            Look::Begins(at) => return Some(at),
            Look::Never => self.rule = Rule::AtTheEnd,
            Look::Soon | Look::Later => self.looks.found(look, length),
        }
        None
    }

    /// Whether what has come since the last time ends a thought, or says that the answer follows.
    fn has_new_mark(&mut self) -> bool {
        let before = std::mem::replace(&mut self.looked, self.content.len());
        let content = self.content.as_bytes();
        let ends = THOUGHT_TAGS.iter().map(|(_, close)| *close);
        ends.chain([MARKER]).map(str::as_bytes).any(|mark| {
            // It may have begun before, and its last sign is new.
            let from = before.saturating_sub(mark.len() - 1);
            content[from..].windows(mark.len()).any(|part| part == mark)
        })
    }

    /// Whether the content begins inside of a thought that the chat template has opened. Of a server
    /// that tells thoughts apart there is none in the content.
    fn begins_in_thought(&self) -> bool {
        self.thought == Thought::Opened && self.reasoning.is_empty()
    }

    /// Where what is said aloud begins; nowhere while the model may still be thinking.
    fn aloud(&self) -> Option<usize> {
        if !self.begins_in_thought() {
            return aloud_from(&self.content);
        }
        if !self.content.contains(OPENED_THOUGHT_END) {
            return None;
        }
        // One that is only spoken of ends nothing.
        aloud_from(&self.content).filter(|from| *from > 0)
    }

    fn first_sign(&self) -> Look {
        let from = if self.begins_in_thought() {
            self.aloud()
        } else {
            Some(0)
        };
        let Some(from) = from else {
            return Look::Later;
        };
        let aloud = &self.content[from..];
        let Some(at) = aloud.find(|sign: char| !sign.is_whitespace()) else {
            return Look::Soon;
        };
        // Channels and thoughts in the text have to be read as a whole.
        if aloud[at..].starts_with('<') {
            return Look::Never;
        }
        Look::Begins(from + at)
    }

    fn after_marker(&self) -> Look {
        // What a model thinks of writing is not written yet.
        let aloud = self.aloud().unwrap_or(self.content.len());
        let Some(at) = self.content[aloud..].find(MARKER) else {
            return Look::Later;
        };
        let rest = &self.content[aloud + at + MARKER.len()..];
        let text = rest.trim_start_matches('*').trim_start();
        if text.is_empty() {
            return Look::Soon;
        }
        let begins = self.content.len() - text.len();
        let so_far = self.parser.parse(&self.content, FinishReason::Unknown);
        let thought = self.parser.parse(&self.reasoning, FinishReason::Stop);
        let is_answer = so_far.intents.is_empty()
            && so_far.problems.is_empty()
            && so_far.final_text.as_deref() == Some(self.content[begins..].trim_end())
            && thought.intents.is_empty();
        if is_answer {
            Look::Begins(begins)
        } else {
            Look::Never
        }
    }
}

/// How much of a text stays as it is, whatever follows: not the space at its end, not what may be
/// the mark of its end, and nothing from a thought or a token of the model's own on. And whether one
/// has begun, so that no more of it ever does.
fn certain_end(text: &str) -> (usize, bool) {
    let openers = || THOUGHT_TAGS.iter().map(|(open, _)| *open).chain(["<|"]);
    let first = openers().filter_map(|open| text.find(open)).min();
    let text = &text[..first.unwrap_or(text.len())];
    // One may have begun, and not be there yet.
    let begun = text
        .rfind(['<', '['])
        .filter(|at| openers().any(|open| open.starts_with(&text[*at..])));
    let text = text[..begun.unwrap_or(text.len())].trim_end();
    let held = (1..=END_MARK.len())
        .rev()
        .find(|length| text.ends_with(&END_MARK[..*length]));
    let certain = text[..text.len() - held.unwrap_or(0)].trim_end().len();
    (certain, first.is_some())
}

#[cfg(test)]
mod tests {
    use holdfast_intent::{Strategy, ToolSet};
    use proptest::prelude::*;

    use super::*;

    fn parser() -> Parser {
        Parser::new(ToolSet::built_in()).with_strategies(Strategy::React, Some(Strategy::Fuzzy))
    }

    /// What is shown of a content that comes in pieces of so many characters.
    fn shown(rule: Rule, reasoning: &str, content: &str, size: usize) -> String {
        shown_of(Thought::Tagged, rule, reasoning, content, size)
    }

    /// The same of a model whose thoughts stand there in this way.
    fn shown_of(
        thought: Thought,
        rule: Rule,
        reasoning: &str,
        content: &str,
        size: usize,
    ) -> String {
        let parser = parser();
        let mut saying = Saying::by(rule, thought, &parser);
        saying.hear(Piece::Reasoning(reasoning));
        let signs: Vec<char> = content.chars().collect();
        let mut all = String::new();
        for piece in signs.chunks(size) {
            let piece: String = piece.iter().collect();
            all.push_str(saying.hear(Piece::Content(&piece)).unwrap_or_default());
        }
        all
    }

    #[test]
    fn only_what_is_certain_is_shown() {
        let read = "Action: read\nAction Input: {\"path\": \"a\"}";
        let table = [
            (
                Rule::AfterMarker,
                "",
                "Thought: done\nFinal Answer: It is 4.",
                "It is 4.",
            ),
            (
                Rule::AfterMarker,
                "I know it.",
                "Final Answer: **4**, <b>or</b> [5]",
                "**4**, <b>or</b> [5]",
            ),
            (Rule::AfterMarker, "", "Hello there.", ""),
            (Rule::AfterMarker, "", read, ""),
            (Rule::AfterMarker, read, "Final Answer: It is 4.", ""),
            (
                Rule::AfterMarker,
                "",
                "Action: read\nAction Input: {\"path\": \"a\"}\nFinal Answer: 4",
                "",
            ),
            (
                Rule::AfterMarker,
                "",
                "I will write Final Answer: when I am done.",
                "",
            ),
            (Rule::All, "", "  Hello there. [DONE]", "Hello there."),
            (Rule::All, "", "Hello <|end|> there", "Hello"),
            (Rule::All, "", "<think>Hm.</think>Hello", ""),
            (Rule::All, "", "Hello <think>Hm.</think> there", "Hello"),
            (Rule::All, "", "a < b, <th>c</th>", "a < b, <th>c</th>"),
            (Rule::AtTheEnd, "", "Final Answer: 4", ""),
        ];
        for (rule, reasoning, content, expected) in table {
            for size in [1, 3, 1000] {
                let found = shown(rule, reasoning, content, size);
                assert_eq!(
                    found.trim_start_matches('*'),
                    expected.trim_start_matches('*'),
                    "{content}"
                );
            }
        }
    }

    /// Chat templates of reasoning models write the opener into the question.
    #[test]
    fn a_thought_that_the_template_opened_is_not_shown() {
        let table = [
            (Rule::All, "", "So 2 + 2.\n</think>\n\nIt is 4.", "It is 4."),
            (Rule::All, "", "<think>So.</think>\nIt is 4.", "It is 4."),
            (Rule::All, "", "It is 4, and nothing ends it.", ""),
            (Rule::All, "", "Grüezi, 2 < 3 </thi", ""),
            (Rule::All, "", "I end it with `</think>`, and then", ""),
            // A server that tells thoughts apart leaves none in the content.
            (Rule::All, "So 2 + 2.", "It is 4.", "It is 4."),
            (
                Rule::AfterMarker,
                "",
                "I say:\nFinal Answer: 5?\n</think>\nFinal Answer: It is 4.",
                "It is 4.",
            ),
            (Rule::AfterMarker, "", "I say:\nFinal Answer: 5?", ""),
        ];
        for (rule, reasoning, content, expected) in table {
            for size in [1, 3, 1000] {
                let found = shown_of(Thought::Opened, rule, reasoning, content, size);
                assert_eq!(found, expected, "{content}");
            }
        }
        let tagged = "<think>I say:\nFinal Answer: 5?</think>\nFinal Answer: It is 4.";
        for size in [1, 3, 1000] {
            assert_eq!(shown(Rule::AfterMarker, "", tagged, size), "It is 4.");
        }
    }

    /// Such replies were read anew for each of their pieces, which takes minutes.
    #[test]
    fn a_long_thought_that_speaks_of_its_end_is_not_read_for_every_piece() {
        let speaks = "I end it with `</think>`, or not; I say Final Answer: then. ".repeat(4_000);
        for rule in [Rule::All, Rule::AfterMarker] {
            assert_eq!(shown_of(Thought::Opened, rule, "", &speaks, 4), "");
        }
        let open = format!("<think>{}", "I say Final Answer: then. ".repeat(8_000));
        assert_eq!(shown(Rule::AfterMarker, "", &open, 4), "");
        let long = format!("Final Answer: {}", "It is 4. ".repeat(20_000));
        let found = shown(Rule::AfterMarker, "", &long, 4);
        assert_eq!(found.len(), long.trim_end().len() - "Final Answer: ".len());
    }

    proptest! {
        /// The parser reads the whole as the stream has shown it: no call is shown, and what was
        /// shown is how the answer begins.
        #[test]
        fn what_is_shown_is_the_answer(
            parts in prop::collection::vec(prop::sample::select(vec![
                "Thought: I know.\n", "Final Answer: ", "It is 4.", "\n", "Action: read\n",
                "Action Input: {\"path\": \"a\"}\n", "Let me read notes.txt.", " [DONE]", "I will search the web for rust.",
                "Observation: x\n", "**", "done",
            ]), 0..8),
            size in 1..7_usize,
        ) {
            let content = parts.concat();
            let shown = shown(Rule::AfterMarker, "", &content, size);
            if !shown.is_empty() {
                let parsed = parser().parse(&content, FinishReason::Stop);
                prop_assert!(parsed.intents.is_empty(), "{content:?} shows {shown:?}");
                prop_assert!(parsed.final_text.unwrap_or_default().starts_with(&shown), "{content:?} shows {shown:?}");
            }
        }
    }
}
