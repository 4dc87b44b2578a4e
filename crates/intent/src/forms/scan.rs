//! The walk: next opener, read there, go on behind it.

use std::ops::ControlFlow;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, Input, MatchKind};

use super::Scan;
use super::opener_signs::{SIGN_BYTES_MAX, Signs};
use super::tail::{self, Frames, Tail};
use super::{
    Found, elements, harmony, json_text, markers, markup, pythonic, react, tagged, tokens, xml,
};
use crate::cues::{self, Standing};
use crate::doc::{Doc, line_rest};
use crate::json::Ending;
use crate::limits::INTENTS_MAX;
use crate::model::Strategy;
use crate::problem::Problem;
use crate::raw::RawCall;
use crate::steps::visit;

/// Which form starts with an opener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Tagged,
    Xml,
    DeepSeek,
    Kimi,
    Mistral,
    Python,
    PythonTag,
    Gemma,
    Minimax,
    KimiK3,
    Harmony,
    Recipient,
    React,
    Observation,
    FinalAnswer,
    Marker,
    Done,
    Element,
    Json,
    Call,
}

pub(super) const OPENERS: &[(&str, Form)] = &[
    ("<tool_call>", Form::Tagged),
    ("<tool_calls>", Form::Tagged),
    ("<toolcall>", Form::Tagged),
    ("<tool_call:", Form::Tagged),
    ("<function_call>", Form::Tagged),
    ("<functioncall>", Form::Tagged),
    ("<tool_use>", Form::Tagged),
    ("<|tool_call|>", Form::Tagged),
    ("<|tool_call_start|>", Form::Tagged),
    ("<|action_start|>", Form::Tagged),
    ("<|START_ACTION|>", Form::Tagged),
    ("functools[", Form::Tagged),
    ("<function_calls>", Form::Tagged),
    ("<function=", Form::Xml),
    ("<invoke ", Form::Xml),
    ("<steptml:invoke ", Form::Xml),
    (concat!("<", "antml:", "invoke "), Form::Xml),
    ("<atem:invoke ", Form::Xml),
    ("<｜DSML｜invoke", Form::Xml),
    ("<|DSML|invoke", Form::Xml),
    ("<｜tool▁call▁begin｜>", Form::DeepSeek),
    ("<|tool▁call▁begin|>", Form::DeepSeek),
    ("<|tool_call_begin|>", Form::Kimi),
    ("[TOOL_CALLS]", Form::Mistral),
    ("<|python_tag|>", Form::PythonTag),
    ("<|python_start|>", Form::PythonTag),
    ("<|tool_call>", Form::Gemma),
    ("<start_function_call>", Form::Gemma),
    ("]<]minimax[>[", Form::Minimax),
    ("<|open|>", Form::KimiK3),
    ("<|channel|>", Form::Harmony),
    ("<|start|>", Form::Harmony),
    ("to=self<|message|>", Form::Harmony),
    ("to=user<|message|>", Form::Harmony),
    ("to=functions.", Form::Recipient),
    ("Action:", Form::React),
    ("Action**:", Form::React),
    ("Action 1:", Form::React),
    ("Action 2:", Form::React),
    ("Action 3:", Form::React),
    ("Action 4:", Form::React),
    ("Action 5:", Form::React),
    ("Observation:", Form::Observation),
    ("Final Answer:", Form::FinalAnswer),
    ("Final Answer**:", Form::FinalAnswer),
    ("[TOOL", Form::Marker),
    ("[ TOOL", Form::Marker),
    ("[DONE]", Form::Done),
    ("<", Form::Element),
    ("{", Form::Json),
    ("[", Form::Python),
    ("(", Form::Call),
];

/// Of the tags around calls those that are tokens of their models.
const CONTROL_TAGS: &[&str] = &[
    "<tool_call>",
    "<tool_call:",
    "<|tool_call|>",
    "<|tool_call_start|>",
    "<|action_start|>",
    "<|START_ACTION|>",
    "<seed:tool_call>",
    "<minimax:tool_call>",
];

pub(super) static FINDER: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::LeftmostLongest)
        .build(OPENERS.iter().map(|(opener, _)| opener))
        .ok()
});

impl Form {
    fn strategy(self) -> Strategy {
        match self {
            Self::Harmony | Self::Recipient => Strategy::Harmony,
            Self::React | Self::Observation | Self::FinalAnswer => Strategy::React,
            Self::Marker | Self::Done => Strategy::Markers,
            Self::Json => Strategy::GuidedJson,
            _ => Strategy::Native,
        }
    }

    /// Whether it begins at `span` with a token that its vendor made for calls.
    fn is_control(self, text: &str, [from, to]: [usize; 2]) -> bool {
        match self {
            Self::DeepSeek
            | Self::Kimi
            | Self::Mistral
            | Self::PythonTag
            | Self::Gemma
            | Self::Minimax
            | Self::KimiK3 => true,
            Self::Tagged => CONTROL_TAGS.contains(&&text[from..to]),
            // Plain tags in a token of the vendor's.
            Self::Xml => {
                let before = text[..from].trim_end();
                ["｜DSML｜", "|DSML|", "atem:"]
                    .iter()
                    .any(|prefix| text[from + 1..].starts_with(prefix))
                    || CONTROL_TAGS.iter().any(|tag| before.ends_with(tag))
            }
            _ => false,
        }
    }

    fn read(self, doc: &Doc<'_>, at: usize, after: usize) -> Option<Found> {
        match self {
            Self::Tagged => tagged::read(doc, at, after),
            Self::Xml => xml::read(doc, at),
            Self::Element => elements::read(doc, at),
            Self::DeepSeek => Some(tokens::deepseek(doc, at, after)),
            Self::Kimi => tokens::kimi(doc, at, after),
            Self::Mistral => tokens::mistral(doc, at, after),
            Self::PythonTag => tokens::python_tag(doc, at, after),
            Self::Gemma => tokens::gemma(doc, at, after),
            Self::Minimax => markup::minimax(doc, at),
            Self::KimiK3 => markup::kimi_k3(doc, at),
            Self::Harmony => harmony::read(doc, at),
            Self::Recipient => harmony::recipient(doc, at, after),
            Self::React => react::action(doc, at, after),
            Self::FinalAnswer => react::final_answer(doc, at, after),
            Self::Marker => markers::read(doc, at),
            Self::Done => markers::done(doc, at, after),
            Self::Json => json_text::read(doc, at),
            Self::Python => json_text::read(doc, at).or_else(|| pythonic::list(doc, at)),
            Self::Call => pythonic::line(doc, at),
            Self::Observation => None,
        }
    }
}

/// Reads every structured form, or only those of one strategy.
pub(crate) fn scan(doc: &Doc<'_>, only: Option<Strategy>) -> Scan {
    let Some(finder) = FINDER.as_ref() else {
        return Scan::default();
    };
    let mut walk = Walk::new(doc);
    let mut signs = Signs::default();
    while let Some(at) = signs.next(doc.text.as_bytes(), walk.at) {
        let from = at.saturating_sub(SIGN_BYTES_MAX).max(walk.at);
        let find = |to: usize| finder.find(Input::new(doc.text).span(from..to));
        let Some(hit) = Signs::find(doc.text.as_bytes(), at, find) else {
            signs.pass(at);
            continue;
        };
        let opener = Opener::of(doc, hit.pattern().as_usize(), [hit.start(), hit.end()]);
        visit(opener.end - walk.at);
        walk.at = opener.end;
        if opener.form == Form::Observation {
            if walk.has_acted() && react::at_line_start(doc.text, opener.start) {
                // What follows is what the model imagines the tool to answer.
                break;
            }
            continue;
        }
        let foreign = only.is_some_and(|only| !serves(only, opener.form));
        if foreign || opener.start < walk.muted && !opener.is_control {
            continue;
        }
        if !doc.may_read(1) {
            walk.scan.stopped = Some(Problem::ReadingGivenUp);
            return walk.scan;
        }
        if let Some(end) = doc.thought_end(opener.start) {
            // What was only thought of is no call, and reaches no further than the thought does.
            walk.at = walk.at.max(end);
            continue;
        }
        let found = opener.form.read(doc, opener.start, opener.end);
        if found.is_some_and(|found| walk.take(opener, found).is_break()) {
            return walk.scan;
        }
    }
    walk.finish()
}

/// An opener in the text.
#[derive(Debug, Clone, Copy)]
struct Opener {
    form: Form,
    start: usize,
    end: usize,
    /// Whether it is a token that its vendor made for calls.
    is_control: bool,
}

impl Opener {
    fn of(doc: &Doc<'_>, pattern: usize, [start, end]: [usize; 2]) -> Self {
        let form = OPENERS[pattern].1;
        Self {
            form,
            start,
            end,
            is_control: form.is_control(doc.text, [start, end]),
        }
    }
}

impl Opener {
    /// Whether it is a token that no tokenizer makes of plain text.
    fn is_token(self, text: &str) -> bool {
        const MARKS: &[&str] = &["<|", "<｜", "]<]"];
        self.is_control
            && MARKS
                .iter()
                .any(|mark| text[self.start..].starts_with(mark))
    }
}

/// The walk so far.
struct Walk<'d, 'a> {
    doc: &'d Doc<'a>,
    scan: Scan,
    at: usize,
    /// Where the form before this one ended, and whether it was meant.
    before: Option<(usize, Standing)>,
    /// The first call of those that follow each other without words.
    run: usize,
    open_string: bool,
    tail: Tail,
    frames: Frames,
    /// Where the model said that it is done.
    said: Option<usize>,
    /// Up to here only control tokens are read.
    muted: usize,
}

impl<'d, 'a> Walk<'d, 'a> {
    fn new(doc: &'d Doc<'a>) -> Self {
        Self {
            doc,
            scan: Scan::default(),
            at: 0,
            before: None,
            run: 0,
            open_string: false,
            tail: Tail::default(),
            frames: Frames::default(),
            said: None,
            muted: 0,
        }
    }

    fn has_acted(&self) -> bool {
        let last = self.scan.calls.last();
        last.is_some_and(|call| call.strategy == Strategy::React)
    }

    /// Goes on right behind the opener, but reads nothing there except control tokens.
    fn mute(&mut self, opener: Opener) {
        self.muted = self.at.max(self.muted);
        self.at = opener.end;
    }

    /// Takes what an opener has led to. Breaks where the rest of the text is not read.
    fn take(&mut self, opener: Opener, found: Found) -> ControlFlow<()> {
        let doc = self.doc;
        self.at = found.end.max(opener.end).min(doc.text.len());
        while !doc.text.is_char_boundary(self.at) {
            self.at += 1;
        }
        if let Some(end) = tail::leaves_block(doc, opener.start, self.at, &found.calls) {
            // What the block shows ends with it.
            doc.show([opener.start, end]);
            self.at = end;
            self.mute(opener);
            return ControlFlow::Continue(());
        }
        if found.calls.is_empty() && !found.done && !found.failed && found.answer.is_none() {
            let is_frame = matches!(opener.form, Form::Minimax | Form::KimiK3);
            if is_frame && !doc.holds_plainly([opener.start, self.at])
                || opener.form == Form::Harmony
            {
                // A message of its own, or a tag around calls: what stands before it is not said about
                // the next one.
                self.before = Some((self.at, Standing::Meant));
            }
            if found.mended {
                self.mute(opener);
            }
            return ControlFlow::Continue(());
        }
        // A call can begin before its opener, with its name.
        let start = found
            .calls
            .first()
            .map_or(opener.start, |call| call.span[0].min(opener.start));
        if !self.before.is_some_and(|(end, _)| is_next(doc, end, start)) {
            self.run = self.scan.calls.len();
        }
        let behind = behind(doc, start, self.at);
        let is_token = opener.is_token(doc.text) && tail::are_plain(&found.calls);
        let standing = standing(doc, [start, self.at], self.before, is_token).max(behind);
        // What is said behind the last of them is said of all.
        take_back(doc, &mut self.scan.calls, self.run, behind);
        let is_inert = standing == Standing::Reported;
        self.scan.lost |= found.failed
            && found.calls.is_empty()
            && opener.is_control
            && !is_inert
            && self.at > opener.end
            && (self.run < self.scan.calls.len() || self.frames.reach_end(doc, self.at));
        self.before = Some((self.at, standing));
        doc.call_end.set(self.at);
        let is_open = found.calls.iter().any(|call| call.ending != Ending::Whole);
        if found.calls.is_empty() && opener.form != Form::Harmony
            || is_inert && is_open && !opener.is_control
        {
            // An answer, a token that is only spoken of, and an example that nobody closed can all be
            // followed by a call in control tokens.
            self.mute(opener);
        }
        let reach = [start, self.at];
        let calls = self.remember(opener, reach, is_inert, found.calls);
        if is_inert {
            // Where nothing follows a broken call in control tokens, nothing says that it is shown.
            let is_left = opener.is_control
                && !doc.holds_plainly(reach)
                && self.frames.reach_end(doc, reach[1]);
            if !is_left {
                doc.show(reach);
            }
            return ControlFlow::Continue(());
        }
        if found.done {
            self.said = self.said.or(Some(start));
        }
        self.scan.failed |= found.failed;
        self.scan.lost |= found.lost;
        self.scan.cut |= found.cut;
        self.scan.done |= found.done;
        if found.answer.is_some() {
            self.scan.answer = found.answer;
        }
        self.add(calls, standing)
    }

    /// Tells the run at the end of the text about calls in control tokens. It keeps inert ones.
    fn remember(
        &mut self,
        opener: Opener,
        reach: [usize; 2],
        is_inert: bool,
        calls: Vec<RawCall>,
    ) -> Vec<RawCall> {
        let doc = self.doc;
        if !opener.is_control || !tail::are_plain(&calls) || doc.holds_plainly(reach) {
            return calls;
        }
        self.tail.go_on(doc, reach[0]);
        let place = self.scan.calls.len();
        if is_inert {
            self.tail.push(reach, place, 0, calls);
            return Vec::new();
        }
        if !self.open_string {
            self.tail.push(reach, place, calls.len(), Vec::new());
        }
        calls
    }

    fn add(&mut self, calls: Vec<RawCall>, standing: Standing) -> ControlFlow<()> {
        if self.scan.calls.len() + calls.len() > INTENTS_MAX {
            self.scan.stopped = Some(Problem::TooManyIntents);
            return ControlFlow::Break(());
        }
        // What follows a string that nobody closed may belong to it.
        let doubtful = standing == Standing::Doubtful || self.open_string;
        self.open_string |= calls.iter().any(|call| call.ending == Ending::OpenString);
        self.scan
            .calls
            .extend(calls.into_iter().map(|call| call.doubtful(doubtful)));
        ControlFlow::Continue(())
    }

    fn finish(mut self) -> Scan {
        self.tail.settle(self.doc, &mut self.scan, self.said);
        self.scan
    }
}

fn serves(only: Strategy, form: Form) -> bool {
    let own = form.strategy();
    only == own || only == Strategy::GuidedJson && form == Form::Python
}

/// Whether no words stand between the end of one form and the start of the next.
fn is_next(doc: &Doc<'_>, end: usize, start: usize) -> bool {
    start >= end
        && doc.text[end..start].bytes().all(|byte| {
            byte.is_ascii_whitespace()
                || byte.is_ascii_digit()
                || matches!(byte, b',' | b';' | b'-' | b'*' | b'.' | b')')
        })
}

/// Calls from `run` on are what the words behind them say.
fn take_back(doc: &Doc<'_>, calls: &mut Vec<RawCall>, run: usize, behind: Standing) {
    match behind {
        Standing::Meant => {}
        Standing::Doubtful => calls[run..]
            .iter_mut()
            .for_each(|call| call.doubtful = true),
        Standing::Reported => calls.drain(run..).for_each(|call| doc.show(call.span)),
    }
}

/// Whether a form is meant or only shown. One that follows another at once shares its fate.
fn standing(
    doc: &Doc<'_>,
    [start, end]: [usize; 2],
    before: Option<(usize, Standing)>,
    is_token: bool,
) -> Standing {
    let since = before.map_or(0, |(end, _)| end);
    if let Some((_, standing)) = before
        && is_next(doc, since, start)
    {
        return standing;
    }
    // What was thought says nothing about what is done.
    let since = since.max(doc.thought_before(start));
    // Nobody types such a token, so that only what follows it can say that it is quoted.
    let is_meant = is_token && !doc.holds_plainly([start, end]);
    // Words right behind a call can make it an example; behind a block the block's check looks.
    let shown = !is_meant && doc.is_inert(start, since)
        || doc.fence_at(start).is_none()
            && (cues::shows_example(cues::Lead::default(), doc.after(end))
                || cues::is_mentioned(doc.lead(start, since), line_rest(doc.text, end)));
    if shown {
        return Standing::Reported;
    }
    if is_meant && !doc.text[end..].starts_with(['"', '\u{201d}']) {
        return Standing::Meant;
    }
    doc.standing([start, end], since)
}

/// What the words right behind a form, or behind its block, say about it.
fn behind(doc: &Doc<'_>, start: usize, end: usize) -> Standing {
    let end = doc.fence_at(start).map_or(end, |fence| fence.end.max(end));
    cues::behind(doc.after(end))
}
