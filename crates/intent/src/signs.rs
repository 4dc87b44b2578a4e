//! Tokens that only calls have, in texts from which no call could be read.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use memchr::memmem;

use crate::cues;
use crate::doc::{Doc, line_rest};
use crate::steps::visit;
use crate::thoughts::has_tags;

const SIGNS: &[&str] = &[
    "<tool_call",
    "<|tool_call",
    "[TOOL_CALLS]",
    "<function=",
    "<invoke",
    RECIPIENT,
    "[TOOL:",
    "Action Input:",
    "<｜tool▁call",
    "<|python_tag|>",
    "\"tool_calls\"",
    "<function_call",
];

/// Tokens that vendors made for calls. In an answer they are what is left of one.
const CONTROL_TOKENS: &[&str] = &[
    "<tool_call>",
    "</tool_call>",
    "<tool_call:",
    "<|tool_call",
    "<|tool▁call",
    "<｜tool▁call",
    "<|python_tag|>",
    "<|python_start|>",
    "<|action_start|>",
    "<|START_ACTION|>",
    "<｜DSML｜",
    "<|open|>call",
    "<|open|>tools",
    "<start_function_call>",
    "<tool_sep",
    "<arg_key>",
    "<seed:tool_call>",
    "<minimax:tool_call>",
    "<longcat_tool_call>",
    "<atem:function_calls>",
    "<atem:invoke",
    "]<]minimax[>[",
    "[TOOL_CALLS]",
];

static CONTROL_FINDER: LazyLock<Option<AhoCorasick>> =
    LazyLock::new(|| AhoCorasick::new(CONTROL_TOKENS).ok());

/// The sign behind which a name stands.
const RECIPIENT: &str = "to=functions.";
/// How a line begins that is written for a program.
const LAID_OUT: &[&str] = &["{", "[{", "[TOOL", "<", "Action:", "Action Input"];
/// What joins the two tags of a call in a sentence about them. None of them is a tool's name.
pub(crate) const CONJUNCTIONS: &[&str] = &["and", "or", "to", "with"];
/// Words behind a sign that go on with its sentence.
const SENTENCE_WORDS_MIN: usize = 3;

/// Whether such a token stands outside of code and examples.
pub(crate) fn look_like_a_call(doc: &Doc<'_>) -> bool {
    let has_tags = has_tags(doc.text);
    let is_tag = |sign: &&&str| sign.starts_with(['<', '[']);
    SIGNS
        .iter()
        .filter(|sign| has_tags || !is_tag(sign))
        .any(|sign| {
            visit(doc.text.len());
            memmem::find_iter(doc.text.as_bytes(), sign.as_bytes())
                .find(|at| !doc.is_shown(*at))
                .is_some_and(|at| !doc.is_inert(at, 0))
        })
}

/// Whether a control token stands in what is said aloud, and in no code that is shown and in no call
/// that the words around it have taken back. What else they say does not matter.
pub(crate) fn leave_control_tokens(doc: &Doc<'_>) -> bool {
    visit(doc.text.len());
    let Some(finder) = CONTROL_FINDER.as_ref() else {
        return false;
    };
    finder.find_iter(doc.text).any(|hit| {
        let span = [hit.start(), hit.end()];
        let is_said = || {
            !doc.in_thought(hit.start()) && !doc.is_shown(hit.start()) && !doc.holds_plainly(span)
        };
        !doc.may_read(1) || is_said()
    })
}

/// Whether each of them is a word in a sentence or code that is shown, and no line is laid out as a
/// call. In doubt it is not: the words of a call are nobody's answer.
pub(crate) fn are_all_spoken_of(doc: &Doc<'_>) -> bool {
    let mut found = 0;
    for sign in SIGNS {
        visit(doc.text.len());
        for at in memmem::find_iter(doc.text.as_bytes(), sign.as_bytes()) {
            found += 1;
            if !doc.may_read(1) || !is_only_shown(doc, at) && !is_spoken_of(doc, at, sign) {
                return false;
            }
        }
    }
    let is_sentence = doc.text.trim_end().ends_with(['.', '!', '?']);
    found > 0 && is_sentence && !has_a_line_of_a_call(doc)
}

/// Whether a line stands there by itself as a call does.
pub(crate) fn is_of_a_call(line: &str) -> bool {
    const KEYS: &[&str] = &["\"name\"", "\"action\"", "\"tool\""];
    let line = line.trim_start();
    let is_object = line.starts_with(['{', '[']) && KEYS.iter().any(|key| line.contains(key));
    is_object || line.starts_with("Action:") || SIGNS.iter().any(|sign| line.starts_with(sign))
}

fn is_only_shown(doc: &Doc<'_>, at: usize) -> bool {
    doc.is_inert(at, 0) || doc.is_in_shown_code(at)
}

fn is_spoken_of(doc: &Doc<'_>, at: usize, sign: &str) -> bool {
    let rest = line_rest(doc.text, at + sign.len());
    if let Some(behind) = behind_a_pair(rest) {
        return !holds_arguments(behind) && cues::is_in_sentence(doc.lead(at, 0));
    }
    let tag_end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    let (tag, rest) = rest.split_at(tag_end);
    // Only a recipient has its name there; anywhere else it is what the call holds.
    let is_bare = match sign {
        RECIPIENT => !holds_arguments(tag),
        _ => !tag.contains(|letter: char| letter.is_alphanumeric() || "{[".contains(letter)),
    };
    is_bare
        && !holds_arguments(rest)
        && rest.split_whitespace().count() >= SENTENCE_WORDS_MIN
        && cues::is_mentioned(doc.lead(at, 0), rest)
}

/// What follows the two tags of a call that nothing but dots or a conjunction stands between: `<tool_call>…</tool_call>`.
fn behind_a_pair(rest: &str) -> Option<&str> {
    let (tag_end, rest) = rest.split_once('>')?;
    let (between, closer) = rest.split_once("</")?;
    let (_, behind) = closer.split_once('>')?;
    let is_frame = |letter: char| letter.is_whitespace() || "`\"'.…*".contains(letter);
    let word = between.trim_matches(is_frame);
    let is_pair = tag_end.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && (word.is_empty() || CONJUNCTIONS.contains(&word));
    is_pair.then_some(behind)
}

/// What stands in arguments and not in sentences.
fn holds_arguments(text: &str) -> bool {
    let calls = |(at, _): (usize, &str)| text[..at].ends_with(char::is_alphanumeric);
    text.contains(['{', '=', '|']) || text.contains("</") || text.match_indices('(').any(calls)
}

fn has_a_line_of_a_call(doc: &Doc<'_>) -> bool {
    let mut at = 0;
    doc.text.split_inclusive('\n').any(|line| {
        let start = at + line.len() - line.trim_start().len();
        at += line.len();
        visit(line.len());
        let is_laid_out = LAID_OUT
            .iter()
            .any(|head| line.trim_start().starts_with(head));
        is_laid_out && (!doc.may_read(1) || !is_only_shown(doc, start))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::{FinishReason, Parser, ToolSet, ToolSpec};

    #[test]
    fn a_tool_may_be_called_like_a_conjunction() {
        let schema = json!({"type": "object", "properties": {"to": {"type": "string"}}});
        let parser = Parser::new(ToolSet::new(vec![ToolSpec::new("with", schema)]));
        let text = "<tool_call>with\n{\"to\": \"x\"}</tool_call>";
        let parsed = parser.parse(text, FinishReason::Stop);
        assert_eq!(parsed.intents.len(), 1, "{parsed:?}");
    }

    #[test]
    fn what_is_spoken_of_is_told_from_a_call() {
        let parser = Parser::default();
        let is_speech = |text: &str| parser.only_speaks_of_calls(text, FinishReason::Stop);
        for text in [
            "The bug is in the template. It has to end with <tool_call> and not with a line break.",
            "The field \"tool_calls\" was empty, so the client stopped.",
            "gpt-oss addresses a tool with to=functions.NAME in the header of its message.",
            "ReAct has three lines: Thought:, Action: and Action Input:, in this order.",
            // A pair of tags with nothing to call between them.
            "The tags are <tool_call>…</tool_call>.",
            "The tags are <tool_call>...</tool_call>.",
            "Its tags are <tool_call> and </tool_call>.",
            // Code that words lead up to and go on behind.
            "Qwen frames calls.\n```\n<tool_call>\n{\"name\": <name>, \"arguments\": <args>}\n</tool_call>\n```\nThe server takes them apart.",
            "There are two forms.\n```xml\n<tool_call>{\"name\": …}</tool_call>\n```\nThe other one is ReAct.",
            "These lines show a broken one.\n```\n<tool_call>\n{\"name\": \"teleport\", \"arguments\": {}}\n</tool_call>\n```\nThe server refuses it.",
        ] {
            assert!(is_speech(text), "{text}");
        }
        for text in [
            "<tool_call>{\"name\": \"read\", \"argum",
            "I will read it now.\n<tool_call>{\"name\": \"read\", \"argum",
            "Let me call it: <tool_call>read notes.txt",
            "The next step is <tool_call>read notes.txt</tool_call>",
            "The next step is <tool_call> read notes.txt",
            "The next step is <|python_tag|>print(1) and then the rest of it.",
            "Thought: look\nAction Input: {\"path\": \"a.txt\"}",
            "<|channel|>commentary to=functions.read <|message|>{\"path\"",
            "It has to end with <tool_call> and not with a line break.\n{\"name\": \"read\", \"argum",
            "It is 4.",
            // Whose own doing it is, and what nobody goes on behind, is a call in a block.
            "I'll read it now.\n```\n<tool_call>\n{\"name\": \"read\", \"argum\n```\nPlease wait.",
            "The file will tell.\n```\n<tool_call>\n{\"name\": \"read\", \"argum\n</tool_call>\n```",
            "```\n<tool_call>\n{\"name\": \"read\", \"argum\n</tool_call>\n```\nThat is all.",
            "I call it with <tool_call>…</tool_call> now.",
            // Words that say nothing of showing, in whichever language.
            "The file will tell.\n```\n<tool_call>\n{\"name\": \"teleport\", \"arguments\": {}}\n</tool_call>\n```\nPlease wait.",
            "Ich lese jetzt die Datei.\n```\n<tool_call>\n{\"name\": \"read\", \"argum\n</tool_call>\n```\nEinen Moment bitte.",
            "The file will tell.\n```\n<tool_call>\n{\"name\": \"teleport\", \"arguments\": {\"text\": \"and so on...\"}}\n</tool_call>\n```\nPlease wait.",
        ] {
            assert!(!is_speech(text), "{text}");
        }
    }
}
