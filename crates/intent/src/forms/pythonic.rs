//! Calls in Python syntax: `[f(a=1), g(b="x")]`, one call a line, `print(f(…))` in `tool_code`.

use super::{Found, sure};
use crate::doc::Doc;
use crate::json::{self, Ending};
use crate::model::Strategy;
use crate::raw::{Args, Given, RawCall, Unknown};
use crate::tools::clean_name;

/// `[f(a=1), …]` at the start of a line.
pub(crate) fn list(doc: &Doc<'_>, at: usize) -> Option<Found> {
    let line = crate::doc::line_start(doc.text, at);
    let lead = doc.text[line..at].trim();
    if !lead.is_empty() && !lead.ends_with([':', '>']) {
        return None;
    }
    let inner = doc.text[at + 1..].trim_start();
    if inner.starts_with(['"', '\'']) {
        return quoted_list(doc, at);
    }
    if !inner.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_') {
        return None;
    }
    // A block's end is the end of what is in it.
    let stop = doc
        .fence_at(at)
        .map_or(doc.text.len(), |fence| fence.body_end.max(at));
    let text = &doc.text[..stop];
    let mut from = doc.text.len() - inner.len();
    let mut calls = Vec::new();
    let (mut closed, mut cut) = (false, false);
    loop {
        let Some((call, end)) = one(doc, from, stop) else {
            // The text ends in the next call's name: those before it are whole.
            cut = !calls.is_empty() && text[from..].bytes().all(is_name);
            if !cut {
                return None;
            }
            from = stop;
            break;
        };
        // In a list of calls an unknown name may stand beside known ones, not alone.
        calls.push(call);
        let rest = text[end..].trim_start();
        from = stop - rest.len();
        if let Some(more) = rest.strip_prefix(',') {
            from = stop - more.trim_start().len();
        } else {
            closed = rest.starts_with(']');
            from = if closed { from + 1 } else { end };
            break;
        }
        if from >= stop || text[from..].starts_with(']') {
            closed = from < stop;
            from = (from + 1).min(stop);
            break;
        }
    }
    let is_known = |call: &RawCall| doc.tools.find_close(&call.name).is_some();
    // In a program a list of calls is a call only when nothing else can be meant.
    let is_program = doc.fence_at(at).is_some_and(|fence| !fence.holds_calls());
    if is_program && !(closed && calls.iter().all(is_known)) {
        return None;
    }
    if !calls.iter().any(is_known) {
        return mistakes(doc, at, calls, from);
    }
    if !closed
        && !cut
        && let Some(last) = calls.last_mut()
    {
        last.ending = last.ending.max(Ending::MissingClosers);
    }
    let found = Found::calls(super::tagged::spanned(calls, at, from), from);
    Some(Found { cut, ..found })
}

/// `['f(a=1)', "g(b='x')"]`: a list of strings, each of them a call.
fn quoted_list(doc: &Doc<'_>, at: usize) -> Option<Found> {
    let stop = doc
        .fence_at(at)
        .map_or(doc.text.len(), |fence| fence.body_end.max(at));
    let read = json::read_at(doc.text, at, stop)?;
    doc.may_read(read.end - at);
    let serde_json::Value::Array(items) = &read.value else {
        return None;
    };
    let is_whole = read.ending == Ending::Whole && !read.ambiguous && !read.lost;
    if !is_whole || items.is_empty() {
        return None;
    }
    let call_of = |item: &serde_json::Value| {
        let text = item.as_str()?.trim();
        let (mut call, end) = one_in(text, 0, text.len())?;
        let is_call = end == text.len() && gives(&call);
        call.span = [at, read.end];
        is_call.then_some(call)
    };
    let calls = items
        .iter()
        .map(call_of)
        .collect::<Option<Vec<RawCall>>>()?;
    if calls
        .iter()
        .any(|call| doc.tools.find(&call.name).is_none())
    {
        return mistakes(doc, at, calls, read.end);
    }
    Some(Found::calls(calls, read.end))
}

/// Calls of tools that nobody knows: a mistake when they are all of the reply and give their
/// arguments by name, which no plain code does throughout.
fn mistakes(doc: &Doc<'_>, at: usize, mut calls: Vec<RawCall>, end: usize) -> Option<Found> {
    let alone = |text: &str| {
        text.bytes()
            .all(|byte| byte.is_ascii_whitespace() || matches!(byte, b'`' | b';'))
    };
    let fence = doc.fence_at(at);
    let (from, to) = fence.map_or((at, end), |fence| (fence.start, fence.end.max(end)));
    let called = |call: &RawCall| {
        !call.args.named.is_empty()
            && call.args.positional.is_empty()
            && call.ending == Ending::Whole
            && call.args.named.iter().all(|(_, given)| !is_bare(given))
    };
    if from > doc.first_word
        || !alone(&doc.text[to..])
        || fence.is_some_and(|fence| !alone(&doc.text[fence.body.min(at)..at]))
        || !calls.iter().all(called)
    {
        return None;
    }
    for call in &mut calls {
        call.unknown = Unknown::Mistake;
    }
    Some(Found::calls(calls, end))
}

/// `f(a=1)` alone on its line, `at` being the parenthesis.
pub(crate) fn line(doc: &Doc<'_>, at: usize) -> Option<Found> {
    let name_from = name_start(doc.text, at);
    if name_from == at {
        return None;
    }
    let line = crate::doc::line_start(doc.text, name_from);
    let mut lead = doc.text[line..name_from].trim();
    let in_code = doc.fence_at(at).is_some_and(|fence| {
        matches!(
            fence.lang.as_str(),
            "tool_code" | "tool_call" | "tool_calls"
        )
    });
    if in_code {
        lead = lead.strip_prefix("print(").unwrap_or(lead);
    }
    let assigned = in_code && lead.ends_with('=');
    // Gorilla and NexusRaven put a label before the call.
    lead = ["<<function>>", "Call:", "Function:"]
        .iter()
        .find_map(|label| lead.strip_prefix(label))
        .unwrap_or(lead)
        .trim();
    if !lead.is_empty() && !assigned {
        return None;
    }
    let name = clean_name(&doc.text[name_from..at]);
    if doc.tools.find(name).is_none() {
        let (call, end) = one(doc, name_from, doc.text.len()).filter(|_| lead.is_empty())?;
        return mistakes(doc, name_from, vec![call], end);
    }
    let (call, end) = one(doc, name_from, doc.text.len())?;
    let (calls, end, lost) = with_more(doc, call, end);
    let tail = crate::doc::line_rest(doc.text, end).trim();
    if !matches!(tail, "" | ")" | ";" | "." | "`" | "```" | "<bot_end>") {
        return None;
    }
    let sure = |call: RawCall| call.confidence(sure::PYTHON - 0.02);
    calls.iter().all(gives).then(|| Found {
        lost,
        ..Found::calls(calls.into_iter().map(sure).collect(), end)
    })
}

/// A call and those that follow it behind commas: `f(a=1), g(b=2)`; where they end, and whether one of
/// them is of no tool that there is, so that it is left out.
fn with_more(doc: &Doc<'_>, first: RawCall, end: usize) -> (Vec<RawCall>, usize, bool) {
    let mut calls = vec![first];
    let mut at = end;
    let mut lost = false;
    while let Some(rest) = doc.text[at..].trim_start().strip_prefix(',') {
        let from = doc.text.len() - rest.trim_start().len();
        let Some((call, next)) = one(doc, from, doc.text.len()) else {
            break;
        };
        if doc.tools.find(&call.name).is_some() {
            calls.push(call);
        } else {
            lost = true;
        }
        at = next;
    }
    (calls, at, lost)
}

/// Whether a call gives its arguments. `read(path)` in prose and signatures only names them.
fn gives(call: &RawCall) -> bool {
    call.lost && !call.args.named.is_empty()
        || call.args.named.iter().any(|(_, given)| !is_bare(given))
        || call.args.named.is_empty() && call.args.positional.iter().all(|given| !is_bare(given))
}

fn is_bare(given: &Given) -> bool {
    matches!(given, Given::Text(_))
}

/// Where a closer starts and ends.
type Closer = (usize, usize);

/// The calls between a format's own tags, one a line or in a list, and where the tag closes: a
/// closer in a string of theirs closes nothing.
pub(crate) fn within(
    doc: &Doc<'_>,
    start: usize,
    close: Option<Closer>,
    closers: &[&str],
) -> Option<(Vec<RawCall>, Option<Closer>)> {
    let stop = close.map_or(doc.text.len(), |(from, _)| from);
    let (calls, end) = run(doc, start, stop);
    if calls.last()?.ending == Ending::OpenString && close.is_some() {
        let (wide, end) = run(doc, start, doc.text.len());
        let rest = doc.text[end..].trim_start();
        let closer = closers.iter().find(|closer| rest.starts_with(**closer));
        if let (Some(closer), true) = (closer, wide.iter().all(|call| call.ending == Ending::Whole))
        {
            let from = doc.text.len() - rest.len();
            return Some((wide, Some((from, from + closer.len()))));
        }
    }
    (end == stop).then_some((calls, close))
}

/// Calls one after the other, as far as they go, and where they end.
fn run(doc: &Doc<'_>, start: usize, stop: usize) -> (Vec<RawCall>, usize) {
    let mut from = start;
    let mut calls = Vec::new();
    loop {
        let rest = doc.text[from..stop].trim_start_matches(|letter: char| {
            letter.is_whitespace() || matches!(letter, '[' | ']' | ',' | ';')
        });
        from = stop - rest.len();
        let Some((call, end)) = one(doc, from, stop) else {
            return (calls, from);
        };
        calls.push(call);
        from = end;
    }
}

fn name_start(text: &str, paren: usize) -> usize {
    let bytes = text.as_bytes();
    let mut at = paren;
    while at > 0 && paren - at < crate::limits::NAME_BYTES_MAX && is_name(bytes[at - 1]) {
        at -= 1;
    }
    at
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-')
}

/// The call that starts at `from`.
pub(crate) fn one(doc: &Doc<'_>, from: usize, stop: usize) -> Option<(RawCall, usize)> {
    let found = one_in(doc.text, from, stop)?;
    doc.may_read(found.1 - from);
    Some(found)
}

fn one_in(text: &str, from: usize, stop: usize) -> Option<(RawCall, usize)> {
    let bytes = text.as_bytes();
    let mut at = from;
    while at < stop && at - from < crate::limits::NAME_BYTES_MAX && is_name(bytes[at]) {
        at += 1;
    }
    let name = &text[from..at];
    // `read ({"path": "a"})`.
    if bytes.get(at) == Some(&b' ') && bytes.get(at + 1) == Some(&b'(') && at + 1 < stop {
        at += 1;
    }
    if name.is_empty()
        || !name.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_')
        || at >= stop
        || bytes[at] != b'('
    {
        return None;
    }
    let name = name.strip_suffix(".call").unwrap_or(name);
    at += 1;
    let mut args = Args::default();
    let mut ending = Ending::Whole;
    let (mut repaired, mut ambiguous, mut lost) = (false, false, false);
    loop {
        while at < stop && (bytes[at].is_ascii_whitespace() || bytes[at] == b',') {
            at += 1;
        }
        if at >= stop {
            // Two marks at the very end may be the first of three.
            let opens = ["\"\"", "''"]
                .iter()
                .any(|marks| text[..stop].ends_with(marks));
            ending = ending.max(if args.named.is_empty() && args.positional.is_empty() {
                Ending::OpenValue
            } else if opens {
                Ending::OpenString
            } else {
                Ending::MissingClosers
            });
            break;
        }
        if bytes[at] == b')' {
            at += 1;
            break;
        }
        if bytes[at] == b'*' {
            // `f(**{"a": 1})`: other arguments that are spread have no names here.
            let stars = text[at..stop].bytes().take_while(|byte| *byte == b'*');
            let from = at + stars.count();
            let read = json::read_argument(text, from, stop)?;
            match read.value {
                serde_json::Value::Object(map) if read.ending == Ending::Whole => {
                    args.named.extend(Args::from_map(map).named);
                    lost |= read.lost;
                }
                _ => lost = true,
            }
            ending = ending.max(read.ending);
            at = read.end.max(from);
            continue;
        }
        let (key, value_at) = keyword(text, at, stop);
        let read = json::read_argument(text, value_at, stop)?;
        ending = ending.max(read.ending);
        // Python's own literals are no damage here.
        repaired |= read.ending != Ending::Whole;
        ambiguous |= read.ambiguous;
        lost |= read.lost;
        let bare = !matches!(
            bytes.get(value_at + blank(text, value_at)),
            Some(b'"' | b'\'' | b'{' | b'[' | b'(' | b'-' | b'0'..=b'9')
        );
        let given = match read.value {
            serde_json::Value::String(word) if bare => Given::Text(word),
            value => Given::Json(value),
        };
        match key {
            Some(key) => args.named.push((key.to_owned(), given)),
            None => args.positional.push(given),
        }
        if read.end <= at {
            return None;
        }
        at = read.end;
        // Anything but a comma or the closer is not a call.
        let next = at + blank(text, at);
        if next < stop && bytes[next] == b']' {
            // The list is closed, so the call was; only its parenthesis is missing.
            repaired = true;
            break;
        }
        if next < stop && !matches!(bytes[next], b',' | b')') {
            return None;
        }
    }
    let mut call = RawCall::new(name, args, [from, at], Strategy::Native)
        .confidence(sure::PYTHON)
        .repaired(repaired)
        .ambiguous(ambiguous)
        .lost(lost);
    call.ending = ending;
    Some((call, at))
}

fn blank(text: &str, at: usize) -> usize {
    text[at..]
        .bytes()
        .take_while(u8::is_ascii_whitespace)
        .count()
}

fn keyword(text: &str, at: usize, stop: usize) -> (Option<&str>, usize) {
    let bytes = text.as_bytes();
    let mut end = at;
    while end < stop && end - at < crate::limits::NAME_BYTES_MAX && is_name(bytes[end]) {
        end += 1;
    }
    let eq = end + blank(text, end).min(stop - end);
    let is_key = end > at
        && eq < stop
        && matches!(bytes[eq], b'=' | b':')
        && bytes.get(eq + 1) != Some(&b'=');
    if is_key {
        (Some(&text[at..end]), eq + 1)
    } else {
        (None, at)
    }
}
