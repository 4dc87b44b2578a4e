//! Calls that a sentence leads up to: a block of shell below it, a command behind an arrow, the rows of a table.

use std::sync::LazyLock;

use super::glance::{self, Glance};
use super::lead;
use super::literals::{Kind, Literal, literals};
use super::mood::Around;
use super::named::{DISTINCT, Named, Said};
use super::sentence::Sentence;
use super::{commands, lists, mood, words};
use crate::doc::Doc;
use crate::forms::call_object::{Reading, calls_of};
use crate::json;
use crate::limits::{INTENTS_MAX, SENTENCE_BYTES_MAX};
use crate::model::Strategy;
use crate::raw::{Args, Given, RawCall, Unknown};
use crate::word_bits::{Key, WordBits};

/// How sure such calls are.
const SURE: f64 = 0.6;
/// Languages of blocks that are commands.
const SHELLS: &[&str] = &["bash", "sh", "shell", "zsh", "console"];

/// Whether a sentence has a sign that what follows it can be a call.
pub(super) fn has_arrow(lower: &str) -> bool {
    ["; ", "->", "→"].iter().any(|sign| lower.contains(sign))
}

/// The call that a sentence leads up to, when it names no tool.
pub(super) fn led_up_to(
    doc: &Doc<'_>,
    sentence: &Sentence,
    lower: &str,
    seen: Glance,
) -> Option<RawCall> {
    // It ends with its command behind an arrow, or with a colon above it.
    if !seen.may(glance::ARROW) && !lower.ends_with(':') {
        return None;
    }
    let rest = lead::without_fillers(lower);
    let verb = rest_of_plan(lower, seen).unwrap_or(rest);
    let is_to_see = lists::list("finds out")
        .iter()
        .any(|word| lead::strip_word(verb, word).is_some());
    if !is_to_see || words::addresses_reader(lower) || words::is_denied(lower) {
        return None;
    }
    let command = match arrow(doc, sentence) {
        Some(command) => command,
        // An order before a block can as well be for a reader.
        None if verb.len() < rest.len() => block(doc, sentence)?,
        None => return None,
    };
    let tool = doc.tools.find("exec")?;
    let argument = tool.main_argument()?.to_owned();
    let mut args = Args::default();
    args.named.push((argument, Given::Text(command.0)));
    let span = [sentence.span[0], command.1.max(sentence.span[1])];
    Some(call(&tool.name, args, span))
}

/// "Let me crack open a.txt.", "The page is at https://….  Let me look at it.": a plan in the first
/// person to look at, or to run, the one thing that is given to the letter.
pub(super) fn looked_at(
    doc: &Doc<'_>,
    sentence: &Sentence,
    earlier: &[Sentence],
    (lower, seen): (&str, Glance),
) -> Option<Vec<RawCall>> {
    if !seen.may_give() && !ends_pointing(without_when(lower)) {
        return None;
    }
    let from = lower.rfind("; ").map_or(0, |at| at + 2);
    let clause = &lower[from..];
    let lead = lead::of(clause, seen)?;
    let said = &clause[lead.end..];
    let first = said
        .split(|letter: char| !letter.is_alphanumeric())
        .next()
        .unwrap_or_default();
    let has_look = || {
        ["look", "peek", "glance", "read"]
            .iter()
            .any(|noun| crate::cues::has_words(said, noun))
    };
    let looks =
        lists::list("looks").contains(&first) || matches!(first, "have" | "take") && has_look();
    if lead.order || lead.gerund && !points(said) || !doc.may_read(sentence.text(doc).len()) {
        return None;
    }
    let text = sentence.text(doc);
    let own = if seen.may_give() {
        literals(doc, text)
    } else {
        Vec::new()
    };
    let masked = words::without_quoted(lower);
    if words::is_denied(lower)
        || words::addresses_reader(&masked)
        || !mood::is_free_of_doubt(clause, &masked)
    {
        return None;
    }
    let mut more = Vec::new();
    let given = match own.as_slice() {
        [literal] if literal.span[0] >= from + lead.end || points(said) => {
            let behind = &text[literal.span[1]..];
            let between = &text[(from + lead.end).min(literal.span[0])..literal.span[0]];
            // "Let me see: the file a.txt is fine."
            let states = between.contains(": ") && literal.kind != Kind::Command;
            let speaks = || {
                lists::list("tells")
                    .iter()
                    .any(|word| crate::cues::has_words(between, word))
            };
            let told = mood::tells_outcome(behind) || behind.contains('?') || states || speaks();
            (!told).then(|| literal.clone())?
        }
        [] if points(said) => {
            let before = earlier.last()?.text(doc);
            if before.len() > SENTENCE_BYTES_MAX || !doc.may_read(before.len()) {
                return None;
            }
            let mut found = literals(doc, before).into_iter();
            let literal = found
                .next()
                .filter(|_| !words::is_denied(&before.to_lowercase()))?;
            more.extend(found);
            let is_many = ["both", "them", "these", "those"]
                .iter()
                .any(|word| crate::cues::has_words(said, word));
            let is_like = |other: &Literal| is_many && other.kind == literal.kind;
            let fits = matches!(literal.kind, Kind::Path | Kind::Url) && more.iter().all(is_like);
            fits.then_some(literal)?
        }
        _ => return None,
    };
    let name = match given.kind {
        Kind::Path if looks || lead.gerund => "read",
        Kind::Url if (looks || lead.gerund) && !crate::cues::has_words(lower, "browser") => {
            "web_fetch"
        }
        Kind::Command if !lists::list("tells").contains(&first) => "exec",
        Kind::Code if commands::is_command(&given.text) && looks => "exec",
        _ => return None,
    };
    let tool = doc.tools.find(name)?;
    let argument = tool.main_argument()?;
    let one = |given: Literal| {
        let mut args = Args::default();
        args.named
            .push((argument.to_owned(), Given::Text(given.text)));
        call(&tool.name, args, sentence.span)
    };
    Some(std::iter::once(given).chain(more).map(one).collect())
}

/// Whether few words end by pointing at what was said before.
fn points(said: &str) -> bool {
    let said = without_when(said);
    ends_pointing(said)
        && said.split_whitespace().count() <= 7
        && lists::list("pointed at").iter().any(|words| {
            said.strip_suffix(words)
                .is_some_and(|head| head.ends_with(' '))
        })
}

fn without_when(said: &str) -> &str {
    let said = said.trim_end_matches(['.', '!', ' ']);
    [" first", " now", " then", " quickly"]
        .iter()
        .find_map(|word| said.strip_suffix(word))
        .unwrap_or(said)
}

/// Whether the last word can be that of words which point: a cheap look.
fn ends_pointing(said: &str) -> bool {
    static LAST: LazyLock<WordBits> = LazyLock::new(|| {
        let pointing = lists::list("pointed at").iter();
        let words: Vec<_> = pointing.map(|words| (last_word(words), 1)).collect();
        WordBits::new(&words)
    });
    LAST.of(last_word(said)) != 0
}

fn last_word(said: &str) -> Key {
    let blank = memchr::memrchr(b' ', said.as_bytes());
    Key::default().and_letters(&said[blank.map_or(0, |at| at + 1)..])
}

fn call(tool: &str, args: Args, span: [usize; 2]) -> RawCall {
    let mut call = RawCall::new(tool, args, span, Strategy::Fuzzy).confidence(SURE);
    call.unknown = Unknown::Nothing;
    call
}

/// What stands behind "let me", "we need to".
fn rest_of_plan(lower: &str, seen: Glance) -> Option<&str> {
    let lead = lead::of(lower, seen).filter(|lead| !lead.order && !lead.gerund)?;
    Some(&lower[lead.end..])
}

/// "Check which containers are up -> docker ps -a".
fn arrow(doc: &Doc<'_>, sentence: &Sentence) -> Option<(String, usize)> {
    let text = sentence.text(doc);
    let sign = ["->", "=>", "→", "⇒"]
        .iter()
        .filter_map(|sign| text.find(sign).map(|at| at + sign.len()))
        .min()?;
    doc.may_read(text.len());
    let given = literals(doc, text)
        .into_iter()
        .find(|literal| literal.span[0] >= sign)?;
    let is_next = text[sign..given.span[0]].trim().is_empty();
    let is_command = given.kind == Kind::Command
        || given.kind == Kind::Code && commands::is_command(&given.text);
    (is_next && is_command && !mood::tells_outcome(&text[given.span[1]..]))
        .then_some((given.text, sentence.span[1]))
}

/// The block of shell right below a sentence that ends in a colon.
fn block(doc: &Doc<'_>, sentence: &Sentence) -> Option<(String, usize)> {
    let next = doc
        .fences
        .partition_point(|fence| fence.start < sentence.span[1]);
    let fence = doc.fences.get(next).filter(|fence| fence.closed)?;
    let between = &doc.text[sentence.span[1]..fence.start];
    let body = doc.text[fence.body.min(fence.body_end)..fence.body_end].trim();
    let is_shell = SHELLS.contains(&fence.lang.as_str())
        || fence.lang.is_empty() && commands::command_end(body, 0).is_some();
    let follows = between.trim().is_empty() && sentence.text(doc).ends_with(':');
    (follows && is_shell && !body.is_empty()).then(|| (body.to_owned(), fence.end))
}

/// Rows of a table whose first cell names a tool: "| read | a.txt |".
pub(super) fn rows(doc: &Doc<'_>) -> Vec<RawCall> {
    let mut found = Vec::new();
    let Some(mut at) = table_start(doc) else {
        return found;
    };
    while at < doc.text.len() && found.len() < INTENTS_MAX {
        let end = memchr::memchr(b'\n', &doc.text.as_bytes()[at..])
            .map_or(doc.text.len(), |next| at + next + 1);
        let line = doc.text[at..end].trim();
        let Some(cells) = cells(line).filter(|_| line.len() <= SENTENCE_BYTES_MAX) else {
            break;
        };
        if let [name, value] = cells.as_slice()
            && let Some(tool) = doc.tools.find(name)
            && let Some(argument) = tool.main_argument()
            && tool.required().count() < 2
        {
            let mut args = Args::default();
            let value = value.trim_matches(['`', '"']);
            args.named
                .push((argument.to_owned(), Given::Text(value.to_owned())));
            found.push(call(&tool.name, args, [at, end]));
        }
        at = end;
    }
    found
}

fn cells(line: &str) -> Option<Vec<&str>> {
    let inner = line.strip_prefix('|')?.strip_suffix('|')?;
    Some(
        inner
            .split('|')
            .map(|cell| cell.trim().trim_matches(['`', '*']))
            .collect(),
    )
}

/// The first row of a table of calls: the line before it plans them, and its head says what they are.
fn table_start(doc: &Doc<'_>) -> Option<usize> {
    let head = memchr::memmem::find_iter(doc.text.as_bytes(), b"\n|")
        .map(|at| at + 1)
        .next()?;
    let before = doc.text[..head].trim_end();
    let line = before.rsplit('\n').next().unwrap_or(before).to_lowercase();
    let mut lines = doc.text[head..].split_inclusive('\n');
    let (first, second) = (lines.next()?, lines.next()?);
    let names = cells(first.trim())?;
    let plans = line.ends_with(':')
        && line.len() < 80
        && !words::addresses_reader(&line)
        && (lists::list("plans calls")
            .iter()
            .any(|word| crate::cues::has_words(&line, word)));
    let is_head = matches!(
        names.first().map(|name| name.to_lowercase()).as_deref(),
        Some("tool" | "name" | "call" | "function" | "tool name" | "action")
    );
    let is_rule = second
        .trim()
        .chars()
        .all(|letter| matches!(letter, '|' | '-' | ':' | ' '));
    let at = head + first.len() + second.len();
    let hidden = doc.is_hidden(head, 0) || doc.is_shown(head) || doc.fence_at(head).is_some();
    (plans && is_head && is_rule && !hidden).then_some(at)
}

impl Said<'_, '_> {
    /// Calls that are written as JSON behind words that plan them.
    pub(super) fn objects(&self, named: &mut Named) {
        let offset = self.sentence.span[0];
        for literal in self.literals.iter().filter(|literal| literal.is_json()) {
            let [from, to] = literal.span;
            let is_read = named
                .calls
                .iter()
                .any(|call| call.span[0] < offset + to && call.span[1] > offset + from);
            let before = &self.masked[..from];
            if is_read || !mood::is_planned(before) || self.doc.in_quoted(offset + from) {
                continue;
            }
            let around = Around {
                clause: &before[mood::clause_start(before.trim_end().trim_end_matches(':'))..],
                before,
                after: &self.masked[to..],
                behind: &self.masked[to..],
                gap: "",
                distinct: true,
            };
            if mood::against(&around).is_some() {
                continue;
            }
            let Some(read) = json::read_at(self.doc.text, offset + from, offset + to) else {
                continue;
            };
            let reading = Reading {
                text: self.doc.text,
                tools: self.doc.tools,
                span: [offset + from, offset + to],
                tagged: false,
                strategy: Strategy::Fuzzy,
            };
            let calls = calls_of(read, reading).calls;
            named.calls.extend(
                calls
                    .into_iter()
                    .filter(|call| self.doc.tools.find(&call.name).is_some())
                    .map(|call| {
                        let mut call = call.confidence(DISTINCT);
                        call.unknown = Unknown::Nothing;
                        call
                    }),
            );
        }
    }
}
