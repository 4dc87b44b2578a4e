//! Private reasoning that a server left in the text, between tags of its own.

use std::borrow::Cow;

use memchr::memmem;

use crate::doc::line_rest;
use crate::model::FinishReason;
use crate::signs;
use crate::steps::visit;

/// What opens the thought of a model whose chat template would else have opened it.
pub const OPENED_THOUGHT_START: &str = OPENED_BY_TEMPLATES.0;

/// What ends a thought that a chat template has opened.
pub const OPENED_THOUGHT_END: &str = OPENED_BY_TEMPLATES.1;

/// What private reasoning stands between, where a server leaves it in the text.
pub const THOUGHT_TAGS: &[(&str, &str)] = &[
    OPENED_BY_TEMPLATES,
    ("<thinking>", "</thinking>"),
    ("<reasoning>", "</reasoning>"),
    ("<seed:think>", "</seed:think>"),
    MISTRAL,
    ("<|channel>thought", "<channel|>"),
    ("<think:opensource>", "</think:opensource>"),
    MINIMAX_M3,
    KIMI_K3,
];

/// The tags of Mistral, `MiniMax` M3 and Kimi K3, whose chat templates can open the thought as well.
const MISTRAL: (&str, &str) = ("[THINK]", "[/THINK]");
const MINIMAX_M3: (&str, &str) = ("<mm:think>", "</mm:think>");
const KIMI_K3: (&str, &str) = ("<|open|>think<|sep|>", "<|close|>think<|sep|>");

/// What Apriel writes between its thought, which nothing opens, and its answer.
const ANSWER_BEGINS: &str = "[BEGIN FINAL RESPONSE]";
/// What it can write behind its answer.
const ANSWER_ENDS: &str = "[END FINAL RESPONSE]";
/// What Kimi K3 writes before an answer and behind it.
const ANSWER_FRAME: &str = "<|open|>response<|sep|>";
const ANSWER_FRAME_ENDS: &[&str] = &["<|close|>message<|sep|>", "<|close|>response<|sep|>"];

/// The tags of the reasoning models (`DeepSeek-R1`, `QwQ`, `Qwen3`) whose chat templates write the
/// opener into the question, so that a reply begins inside of a thought.
const OPENED_BY_TEMPLATES: (&str, &str) = ("<think>", "</think>");

/// What begins a thought of gpt-oss, in raw Harmony.
const ANALYSIS: &str = "<|channel|>analysis";
/// What its text stands behind.
const MESSAGE: &str = "<|message|>";
/// What ends a header or a text in raw Harmony.
const HARMONY_TOKENS: &[&str] = &[
    MESSAGE,
    "<|end|>",
    "<|call|>",
    "<|return|>",
    "<|start|>",
    "<|channel|>",
];

/// Where private reasoning opens that nothing closes.
pub(crate) fn open_thought(text: &str) -> Option<usize> {
    if !has_tags(text) {
        return None;
    }
    THOUGHT_TAGS.iter().find_map(|(open, close)| {
        let opened = rfind(text, open)?;
        memmem::find(&text.as_bytes()[opened..], close.as_bytes())
            .is_none()
            .then_some(opened)
    })
}

/// Whether a text has what all tags begin with: most texts have none of it.
pub(crate) fn has_tags(text: &str) -> bool {
    visit(text.len());
    memchr::memchr2(b'<', b'[', text.as_bytes()).is_some()
}

/// The last place of these words. Looking from the front is much faster, and mostly there are none.
fn rfind(text: &str, words: &str) -> Option<usize> {
    visit(text.len());
    let first = memmem::find(text.as_bytes(), words.as_bytes())?;
    let last = memmem::rfind(&text.as_bytes()[first..], words.as_bytes())?;
    Some(first + last)
}

/// Private reasoning between `<think>` tags. Reasoning that nothing follows is all there is, and
/// is read like any other text, unless the model was cut before it could go on.
pub(crate) fn followed(text: &str, finish: FinishReason) -> Vec<[usize; 2]> {
    let last = text.trim_end().len();
    let mut found = tagged(text);
    found.retain(|[_, end]| *end < last || finish == FinishReason::Length);
    joined(found)
}

/// Everything that stands between such tags, and what a reply that begins inside of a thought says
/// before the thought ends: in order, and apart.
fn parts(text: &str) -> Vec<[usize; 2]> {
    joined(tagged(text))
}

/// The same of parts in any order.
fn joined_in_order(mut parts: Vec<[usize; 2]>) -> Vec<[usize; 2]> {
    parts.sort_unstable();
    joined(parts)
}

/// Sorted parts, where those that reach into each other are one: a thought that opens in another is a
/// part of it.
fn joined(parts: Vec<[usize; 2]>) -> Vec<[usize; 2]> {
    let mut apart: Vec<[usize; 2]> = Vec::with_capacity(parts.len());
    for [start, end] in parts {
        match apart.last_mut() {
            Some([_, last]) if start < *last => *last = end.max(*last),
            _ => apart.push([start, end]),
        }
    }
    apart
}

/// The same, by where they start. One can stand in another.
fn tagged(text: &str) -> Vec<[usize; 2]> {
    let mut found = Vec::new();
    if !has_tags(text) {
        return found;
    }
    for tags @ (open, close) in THOUGHT_TAGS {
        let mut from = 0;
        while let Some(at) = memmem::find(&text.as_bytes()[from..], close.as_bytes()) {
            let end = from + at + close.len();
            visit(2 * (end - from));
            let before = &text[from..from + at];
            let opened = match memmem::find(before.as_bytes(), open.as_bytes()) {
                Some(first) => first_meant(before, open, first).map(|at| from + at),
                None => begins_inside(*tags, before, from, &text[end..]).then_some(0),
            };
            found.extend(opened.map(|start| [start, end]));
            from = end;
        }
    }
    found.extend(before_answer(text));
    found.sort_unstable();
    found
}

/// What stands before the line that says that the answer begins.
fn before_answer(text: &str) -> Option<[usize; 2]> {
    visit(text.len());
    let at = memmem::find(text.as_bytes(), ANSWER_BEGINS.as_bytes())?;
    let end = at + ANSWER_BEGINS.len();
    let is_a_line = line_rest(text, end).trim().is_empty()
        && text[crate::doc::line_start(text, at)..at].trim().is_empty();
    (is_a_line && !is_code(&text[..at])).then_some([0, end])
}

/// An answer without what Apriel and Kimi K3 write around it.
pub(crate) fn without_frames(answer: &str) -> &str {
    let mut said = answer.trim();
    for end in [ANSWER_ENDS].iter().chain(ANSWER_FRAME_ENDS) {
        said = said.strip_suffix(end).unwrap_or(said).trim_end();
    }
    said = said.strip_prefix(ANSWER_FRAME).unwrap_or(said).trim_start();
    said
}

/// Whether all that stands before a closer which nothing opened is a thought. Only a template opens
/// one unseen, and only once; anywhere else somebody speaks of the tag, and all that was said before
/// would be lost. In code, and as a word between others, it is spoken of as well.
fn begins_inside(tags: (&str, &str), before: &str, since: usize, after: &str) -> bool {
    [OPENED_BY_TEMPLATES, MISTRAL, MINIMAX_M3, KIMI_K3].contains(&tags)
        && since == 0
        && !is_spoken_of(before, after)
        && !is_answered(before, after)
}

/// Whether a closer is a word between others, or code, or a part of what a call has for its arguments.
fn is_spoken_of(before: &str, after: &str) -> bool {
    let is_word = before.ends_with(' ') && after.starts_with([' ', ',', '.', ';', ':']);
    is_word || is_code(before) || is_in_arguments(before, after)
}

/// Whether a text ends inside of a string of the last call that begins on a line of its own, and the
/// string goes on to its end. In JSON a string ends in the line that it begins in.
fn is_in_arguments(before: &str, after: &str) -> bool {
    if !line_rest(after, 0).contains('"') {
        return false;
    }
    visit(2 * before.len());
    let mut begins = None;
    let mut at = 0;
    for line in before.split_inclusive('\n') {
        if line.starts_with('{') || signs::is_of_a_call(line) {
            begins = Some(at);
        }
        at += line.len();
    }
    begins.is_some_and(|at| ends_in_string(&before[at..]))
}

/// Whether a text ends inside of a string that stands in an object.
fn ends_in_string(text: &str) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_string,
            b'"' => in_string = !in_string,
            b'\n' if in_string => return false,
            b'{' if !in_string => depth += 1,
            b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    in_string && depth > 0
}

/// Whether the answer has begun before a closer which nothing opened: then the closer is a word of the
/// answer. One that another answer or a call follows was only thought of, and so was all that stands
/// before one on a line of its own: that is how templates have thoughts end.
fn is_answered(before: &str, after: &str) -> bool {
    visit(before.len());
    let is_a_line =
        before.ends_with('\n') && after.trim_start_matches(' ').starts_with(['\r', '\n']);
    if is_a_line || !before.lines().any(is_answer) {
        return false;
    }
    visit(after.len());
    !after
        .lines()
        .any(|line| is_answer(line) || signs::is_of_a_call(line))
}

/// Whether a line says that the answer follows.
fn is_answer(line: &str) -> bool {
    line.trim_start_matches([' ', '\t', '*', '#'])
        .starts_with("Final Answer:")
}

/// The first of these openers that is no part of some code, from the first one on. The marks of blocks
/// are counted from one to the next, since there can be very many that are spoken of.
fn first_meant(text: &str, open: &str, first: usize) -> Option<usize> {
    let (mut marks, mut counted) = (0, 0);
    let mut openers = text[first..].match_indices(open).map(|(at, _)| first + at);
    openers.find(|at| {
        if is_quoted(&text[..*at]) {
            return false;
        }
        marks += block_marks(&text[counted..*at]);
        counted = *at;
        marks % 2 == 0
    })
}

/// Whether a tag behind this text is part of some code: in a block of it, or right behind a quotation mark.
fn is_code(before: &str) -> bool {
    is_quoted(before) || block_marks(before) % 2 == 1
}

fn is_quoted(before: &str) -> bool {
    before.ends_with(['`', '"', '\''])
}

fn block_marks(text: &str) -> usize {
    visit(text.len());
    memmem::find_iter(text.as_bytes(), "```").count()
}

/// A reply without what the model only thought, where its server left that in the text.
///
/// ```
/// assert_eq!(holdfast_intent::without_thoughts("<think>Hm.</think>It is 4."), "It is 4.");
/// ```
pub fn without_thoughts(text: &str) -> String {
    said_aloud(text).into_owned()
}

/// The same, and no copy of a text without thoughts.
pub(crate) fn said_aloud(text: &str) -> Cow<'_, str> {
    match parts(text).as_slice() {
        [] => Cow::Borrowed(text),
        parts => Cow::Owned(without(text, parts)),
    }
}

/// What the model only thought, where its server left that in the text.
///
/// ```
/// use holdfast_intent::thoughts;
/// assert_eq!(thoughts("<think>Hm.</think>It is 4."), "Hm.");
/// assert_eq!(thoughts("So 4.\n</think>\nIt is 4."), "So 4.");
/// assert_eq!(thoughts("<|channel|>analysis<|message|>So 4.<|end|>It is 4."), "So 4.");
/// assert_eq!(thoughts("It is 4."), "");
/// ```
pub fn thoughts(text: &str) -> String {
    let mut parts = parts(text);
    parts.extend(analysis(text));
    let parts = joined_in_order(parts).into_iter();
    let mut told: Vec<&str> = parts.map(|[start, end]| bare(&text[start..end])).collect();
    told.retain(|thought| !thought.is_empty());
    told.join("\n")
}

/// What stands in Harmony's channel of thoughts. A message with a recipient there is a call.
fn analysis(text: &str) -> Vec<[usize; 2]> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = memmem::find(&text.as_bytes()[from..], ANALYSIS.as_bytes()) {
        let header = from + at + ANALYSIS.len();
        let end = token_from(text, header);
        visit(end - from);
        from = end;
        let is_thought = text[end..].starts_with(MESSAGE) && text[header..end].trim().is_empty();
        if is_thought {
            let start = end + MESSAGE.len();
            from = token_from(text, start);
            visit(from - start);
            found.push([start, from]);
        }
    }
    found
}

/// Where the next of Harmony's tokens stands, or the end of the text.
fn token_from(text: &str, from: usize) -> usize {
    let is_token = |at: &usize| {
        let rest = &text[from + at..];
        HARMONY_TOKENS.iter().any(|token| rest.starts_with(token))
    };
    let mut marks = memmem::find_iter(&text.as_bytes()[from..], "<|");
    marks.find(is_token).map_or(text.len(), |at| from + at)
}

/// A thought without the tag that it begins with and the one that it ends with.
fn bare(thought: &str) -> &str {
    let mut ends = THOUGHT_TAGS.iter().map(|(_, close)| *close);
    let inner = ends
        .find_map(|close| thought.strip_suffix(close))
        .or_else(|| thought.strip_suffix(ANSWER_BEGINS));
    let inner = inner.unwrap_or(thought);
    let mut tags = THOUGHT_TAGS.iter();
    let behind = tags.find_map(|(open, _)| inner.strip_prefix(open));
    behind.unwrap_or(inner).trim()
}

/// Where a reply that is still on its way goes on aloud, behind all that was only thought. Nowhere yet
/// while a thought is open.
///
/// ```
/// use holdfast_intent::aloud_from;
/// assert_eq!(aloud_from("It is 4."), Some(0));
/// assert_eq!(aloud_from("<think>Hm."), None);
/// assert_eq!(aloud_from("<think>Hm.</think>It is 4."), Some(18));
/// ```
pub fn aloud_from(text: &str) -> Option<usize> {
    match open_thought(text) {
        Some(_) => None,
        None => Some(parts(text).iter().map(|[_, end]| *end).max().unwrap_or(0)),
    }
}

/// The end of the thought that a reply begins inside of, because its chat template had opened it.
///
/// ```
/// use holdfast_intent::opened_thought_end;
/// assert_eq!(opened_thought_end("So 4.</think>It is 4."), Some(13));
/// assert_eq!(opened_thought_end("<think>So 4.</think>It is 4."), None);
/// ```
pub fn opened_thought_end(text: &str) -> Option<usize> {
    let parts = parts(text);
    let [start, end] = parts.first()?;
    (*start == 0 && !opens_a_thought(text)).then_some(*end)
}

/// Whether a text begins with a thought that it opens itself, with whichever tag.
///
/// ```
/// use holdfast_intent::opens_a_thought;
/// assert!(opens_a_thought("<reasoning>So 4.</reasoning>It is 4."));
/// assert!(!opens_a_thought("So 4.</think>It is 4."));
/// ```
pub fn opens_a_thought(text: &str) -> bool {
    THOUGHT_TAGS.iter().any(|(open, _)| text.starts_with(open))
}

/// Whether a reply of which it is certain that it begins inside of a thought ends the thought: also where
/// the thought says that the answer follows.
///
/// ```
/// use holdfast_intent::ends_opened_thought;
/// assert!(ends_opened_thought("Final Answer: 5? No.</think>It is 4."));
/// assert!(!ends_opened_thought("<think>So 4.</think>It is 4."));
/// assert!(!ends_opened_thought("It ends with `</think>`."));
/// ```
pub fn ends_opened_thought(text: &str) -> bool {
    let Some((before, after)) = text.split_once(OPENED_THOUGHT_END) else {
        return false;
    };
    let is_open = THOUGHT_TAGS.iter().any(|(open, _)| before.contains(open));
    !is_open && !is_spoken_of(before, after)
}

/// A text that the model itself calls its answer without thoughts: what nothing opened is no thought.
/// An answer that is all thought is left as it is.
pub(crate) fn answered(answer: String) -> String {
    let mut parts = tagged(&answer);
    parts.retain(|[start, _]| opens_a_thought(&answer[*start..]));
    let said = without(&answer, &parts).trim().to_owned();
    if said.is_empty() { answer } else { said }
}

/// A text without these parts. One can stand in another.
fn without(text: &str, parts: &[[usize; 2]]) -> String {
    let mut kept = String::new();
    let mut from = 0;
    for [start, end] in parts {
        kept.push_str(text.get(from..*start).unwrap_or_default());
        from = from.max(*end);
    }
    kept + &text[from..]
}

#[cfg(test)]
mod tests {
    use super::{THOUGHT_TAGS, opened_thought_end, thoughts, without_thoughts};

    #[test]
    fn what_was_only_thought_is_told_without_its_tags() {
        for (text, thought) in [
            ("a</think>b<think>c</think>d", "a\nc"),
            (
                "<think>a <thinking>b</thinking> c</think>d",
                "a <thinking>b</thinking> c",
            ),
            (
                "<think>a <reasoning>b</think> c</reasoning>d",
                "a <reasoning>b</think> c",
            ),
            ("<think>a</think><think>b</think>c", "a\nb"),
            (
                "<|channel|>analysis<|message|>deep thought<|end|><|start|>assistant<|channel|>final<|message|>It is 4.<|return|>",
                "deep thought",
            ),
            (
                "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>analysis<|message|>b",
                "a\nb",
            ),
            (
                "<|channel|>analysis to=functions.read<|message|>{}<|call|>",
                "",
            ),
            ("Its thoughts follow <|channel|>analysis there.", ""),
            ("<think></think>It is 4.", ""),
            ("R1 ends its thoughts with `</think>`, others do not.", ""),
        ] {
            assert_eq!(thoughts(text), thought, "{text}");
        }
    }

    #[test]
    fn only_a_template_opens_a_thought_unseen() {
        for (text, said) in [
            ("So 2 + 2.\n</think>\n\nIt is 4.", "\n\nIt is 4."),
            ("a</think>b<think>c</think>d", "bd"),
            ("<thinking>a</thinking>b", "b"),
            ("<think>`x`:\n```\na\n```\n</think>b", "b"),
            ("So `4`. </think>It is 4.", "It is 4."),
            ("Final Answer: 5?\nNo.\n</think>\nIt is 4.", "\nIt is 4."),
        ] {
            assert_eq!(without_thoughts(text), said, "{text}");
        }
        for kept in [
            "It is 4, and </reasoning> is how some models end a thought.",
            "Close it with </thinking>, then answer.",
            "First a, then </seed:think> b.",
            "R1 ends its thoughts with `</think>`, others do not.",
            "I remove the stray </think> in a.py.",
            "Use this template:\n```\n{{ reasoning }}\n</think>\n{{ answer }}\n```\nDone.",
            "Use `re.sub(r'<think>.*?</think>', '', s)` for it.",
            "**Final Answer:** Add this:\n\n    </think>\n\nThen restart.",
            r#"Action Input: {"path": "t.txt", "content": "<think>x</think>"}"#,
            r#"Action Input: {"path": "t.txt", "content": "x\n</think>\ny"}"#,
            "For example:\n```\n<think>Hm.</think>It is 4.\n```",
        ] {
            assert_eq!(without_thoughts(kept), kept);
        }
        let twice = "<think>a</think>It is 4; the tag is </think> there.";
        let said = "It is 4; the tag is </think> there.";
        assert_eq!(without_thoughts(twice), said);
    }

    #[test]
    fn a_reply_that_opens_its_thought_itself_was_not_opened_by_a_template() {
        for (open, close) in THOUGHT_TAGS {
            let text = format!("{open}So 4.{close}It is 4.");
            assert_eq!(opened_thought_end(&text), None, "{text}");
        }
    }
}
