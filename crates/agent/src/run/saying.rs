//! What of a reply can be shown before it is whole.
//!
//! A reply may turn out to be a call until its last sign, and a call is nobody's answer. It is
//! certain earlier in two cases: when there is nothing to call, and after `Final Answer:`, where the
//! model itself says that all that follows is the answer. What was shown is the answer from then on,
//! whatever follows in that reply.

use std::ops::Range;

use holdfast_intent::{FinishReason, Parser, Strategy, THOUGHT_TAGS};

use super::offer::Offer;
use super::state::RunState;
use crate::model::Piece;

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
    parser: &'a Parser,
    content: String,
    reasoning: String,
    /// Where the answer begins in the content.
    begins: Option<usize>,
    /// How far it was shown.
    shown: usize,
}

impl<'a> Saying<'a> {
    pub(super) fn new(state: &RunState, offer: &'a Offer<'_>) -> Self {
        let (primary, _) = state.settings.strategies();
        let rule = if offer.is_empty() {
            Rule::All
        } else if matches!(primary, Strategy::React | Strategy::Auto) {
            Rule::AfterMarker
        } else {
            Rule::AtTheEnd
        };
        Self::by(rule, &offer.parser)
    }

    fn by(rule: Rule, parser: &'a Parser) -> Self {
        Self {
            rule,
            parser,
            content: String::new(),
            reasoning: String::new(),
            begins: None,
            shown: 0,
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
        let from = self.shown.max(begins);
        let to = certain_end(&self.content[begins..]) + begins;
        if to <= from {
            return None;
        }
        self.shown = to;
        Some(&self.content[from..to])
    }

    /// The part of the content that was shown as the answer, if any was.
    pub(super) fn shown(&self) -> Option<Range<usize>> {
        let begins = self.begins.filter(|begins| self.shown > *begins)?;
        Some(begins..self.shown)
    }

    fn beginning(&mut self) -> Option<usize> {
        match self.rule {
            Rule::AtTheEnd => None,
            Rule::All => {
                let begins = self.content.find(|sign: char| !sign.is_whitespace())?;
                // Channels and thoughts in the text have to be read as a whole.
                if self.content[begins..].starts_with('<') {
                    self.rule = Rule::AtTheEnd;
                    return None;
                }
                Some(begins)
            }
            Rule::AfterMarker => self.after_marker(),
        }
    }

    fn after_marker(&mut self) -> Option<usize> {
        let at = self.content.find(MARKER)?;
        let rest = &self.content[at + MARKER.len()..];
        let text = rest.trim_start_matches('*').trim_start();
        if text.is_empty() {
            return None;
        }
        let begins = self.content.len() - text.len();
        let so_far = self.parser.parse(&self.content, FinishReason::Unknown);
        let thought = self.parser.parse(&self.reasoning, FinishReason::Stop);
        let is_answer = so_far.intents.is_empty()
            && so_far.problems.is_empty()
            && so_far.final_text.as_deref() == Some(self.content[begins..].trim_end())
            && thought.intents.is_empty();
        if !is_answer {
            self.rule = Rule::AtTheEnd;
            return None;
        }
        Some(begins)
    }
}

/// How much of a text stays as it is, whatever follows: not the space at its end, not what may be
/// the mark of its end, and nothing from a thought or a token of the model's own on.
fn certain_end(text: &str) -> usize {
    let openers = || THOUGHT_TAGS.iter().map(|(open, _)| *open).chain(["<|"]);
    let first = openers().filter_map(|open| text.find(open)).min();
    let text = &text[..first.unwrap_or(text.len())];
    // One may have begun, and not be there yet.
    let begun = text
        .rfind('<')
        .filter(|at| openers().any(|open| open.starts_with(&text[*at..])));
    let text = text[..begun.unwrap_or(text.len())].trim_end();
    let held = (1..=END_MARK.len())
        .rev()
        .find(|length| text.ends_with(&END_MARK[..*length]));
    text[..text.len() - held.unwrap_or(0)].trim_end().len()
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
        let parser = parser();
        let mut saying = Saying::by(rule, &parser);
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
