//! gpt-oss channels in raw text, with the recipient in the channel or in the role, end tokens
//! missing, and JSON that is not quite.

use super::tagged::find_close;
use super::{Found, sure};
use crate::doc::Doc;
use crate::json::Ending;
use crate::model::Strategy;
use crate::raw::{Args, RawCall, read_all_args, read_args};

const ENDS: &[&str] = &[
    "<|end|>",
    "<|call|>",
    "<|return|>",
    "<|start|>",
    "<|channel|>",
    "<|eom|>",
    "<|eot|>",
];
/// How the body of a message begins that holds calls in tags of their own (Muse).
const CALLS: &str = "<atem:";
/// Whom a message is for that holds a thought.
const SELF: &str = "self";
/// A header is short; a longer one is text that happens to hold a token.
const HEADER_BYTES_MAX: usize = 400;

/// One message: header, body, end.
pub(crate) fn read(doc: &Doc<'_>, at: usize) -> Option<Found> {
    let text = doc.text;
    let limit = crate::doc::floor(text, (at + HEADER_BYTES_MAX).min(text.len()));
    let head = &text[at..limit];
    let message = head.find("<|message|>");
    // A header without its end: the arguments follow at once.
    let header_end = match (message, head.find('{')) {
        (Some(message), Some(brace)) if brace < message => brace,
        (Some(message), _) => message,
        (None, Some(brace)) if head[..brace].contains("to=") => brace,
        _ => return None,
    };
    let header = &head[..header_end];
    let body = at
        + header_end
        + if head[header_end..].starts_with("<|message|>") {
            "<|message|>".len()
        } else {
            0
        };
    let (stop, end, closed) = body_end(doc, body);
    let mut found = Found {
        end,
        ..Found::default()
    };
    let recipient = recipient_in(header);
    if recipient == Some(SELF) || recipient.is_none() && header.contains("analysis") {
        // What stands in a thought is not said.
        doc.show([at, end]);
        return Some(found);
    }
    if recipient == Some("user") {
        found.done = true;
        found.answer = Some(text[body..stop].trim().to_owned());
    } else if let Some(name) = recipient.filter(|name| *name != "assistant") {
        if text[body..stop].trim_start().starts_with(CALLS) {
            // The calls name their tools themselves, and are read where they stand.
            found.end = body;
            return Some(found);
        }
        if !header.contains("<|start|>user") {
            let call = call(doc, name, [at, end], body, stop, closed);
            found.end = call.span[1];
            found.calls.push(call);
        }
    } else if header.contains("final") {
        found.done = true;
        found.answer = Some(text[body..stop].trim().to_owned());
    }
    Some(found)
}

/// `to=functions.NAME` where the tokens around it were lost.
pub(crate) fn recipient(doc: &Doc<'_>, at: usize, after: usize) -> Option<Found> {
    let rest = &doc.text[after..];
    let brace = rest
        .bytes()
        .take(HEADER_BYTES_MAX)
        .position(|byte| byte == b'{')?;
    let name = recipient_in(&doc.text[at..after + brace])
        .filter(|name| !matches!(*name, "user" | "assistant" | SELF))?;
    if brace > name.len() + 60
        || doc.text[after..after + brace].contains('\n') && brace > name.len() + 12
    {
        return None;
    }
    let (stop, end, closed) = body_end(doc, after + brace);
    let call = call(doc, name, [at, end], after + brace, stop, closed);
    let end = call.span[1];
    Some(Found::calls(vec![call], end))
}

/// Whom a message is for.
fn recipient_in(header: &str) -> Option<&str> {
    let at = header.find("to=")?;
    let rest = &header[at + 3..];
    let end = rest
        .find(|letter: char| letter.is_whitespace() || matches!(letter, '<' | '{'))
        .unwrap_or(rest.len());
    let name = rest[..end].trim();
    // `to=functions.readjson{`: the constraint ran into the name.
    (!name.is_empty() && name.len() <= crate::limits::NAME_BYTES_MAX).then_some(name)
}

fn body_end(doc: &Doc<'_>, body: usize) -> (usize, usize, bool) {
    let end = doc.text.len();
    find_close(doc, body, ENDS).map_or((end, end, false), |(stop, end)| (stop, end, true))
}

fn call(
    doc: &Doc<'_>,
    name: &str,
    span: [usize; 2],
    body: usize,
    stop: usize,
    closed: bool,
) -> RawCall {
    let read = if closed {
        read_all_args(doc.text, body, stop)
    } else {
        read_args(doc.text, body, stop)
    };
    let read_end = read.end;
    let said = doc.text[body..stop].trim();
    // Muse's calls may just begin.
    let begins = !closed && CALLS.starts_with(said);
    let read = if begins {
        read_args(doc.text, body, body)
    } else {
        read
    };
    let empty = said.is_empty() || begins;
    let mut call = RawCall::new(name, Args::default(), span, Strategy::Harmony)
        .confidence(sure::TOKENS)
        .with_args(read);
    if empty && !closed {
        call.ending = Ending::OpenValue;
    }
    if !closed && !empty && call.args.positional.is_empty() {
        // Without an end token the object itself says where the call ends; the next one may follow.
        call.span[1] = read_end.max(body);
    }
    if !closed && call.ending == Ending::Whole && !call.args.positional.is_empty() {
        call.ending = Ending::MissingClosers;
    }
    if closed {
        super::tagged::finish_closed(std::slice::from_mut(&mut call));
    }
    call
}
