//! One text per value: canonical JSON, the ground that keys and digests stand on.
//!
//! The form is that of RFC 8785 (members sorted by the UTF-16 units of their names, numbers laid out
//! as ECMAScript does, a fixed set of escapes) with one exception: a number that a double can not
//! hold keeps its digits. Two ids beyond 2^53 are two ids, and must not share an idempotency key.
//!
//! Values are walked with a stack on the heap, so the depth of a value costs memory, never the
//! thread's stack, and needs no limit of its own.
//!
//! ```
//! use holdfast_reliability::canonical::canonical_string;
//! use serde_json::json;
//!
//! let value = json!({"to": "ops", "amount": 1.0, "cc": null});
//! assert_eq!(canonical_string(&value), r#"{"amount":1,"cc":null,"to":"ops"}"#);
//! ```

mod digest;
mod members;
mod number;
mod options;
mod text;

use std::slice;

use serde_json::Value;

pub use self::digest::{Digest, ParseDigestError};
pub(crate) use self::digest::{hex_chunk, write_hex};
use self::members::{Member, Members};
pub use self::options::{CanonicalOptions, Empty, FieldNames, Whitespace};

/// Large enough for the arguments of most calls, so that the buffer is allocated once.
const BUFFER_BYTES: usize = 1024;

/// Appends the canonical form of `value` to `out`.
///
/// Under [`Empty::Drop`] two names of one object may be equal once they are trimmed. Both members
/// are then written, ordered by their untrimmed names: the form still tells such objects apart, but
/// it has a name twice and is meant for comparing only.
///
/// ```
/// use holdfast_reliability::canonical::{CanonicalOptions, write_canonical};
/// use serde_json::json;
///
/// let mut out = Vec::new();
/// let value = json!({" path ": "a", "mode": null, "options": {}, "retryCount": 3});
/// write_canonical(&value, &CanonicalOptions::LOOP_GUARD, &mut out);
/// assert_eq!(out, br#"{"path":"a"}"#);
/// ```
pub fn write_canonical(value: &Value, options: &CanonicalOptions<'_>, out: &mut Vec<u8>) {
    write_noting(value, options, out);
}

/// Whether a canonical form shows all there was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shows {
    /// No other value has this form, however it is looked at: nothing was left out or spelled
    /// anew, and [`Empty::Drop`] would find nothing to drop.
    Everything,
    /// Something may have been left out.
    NotEverything,
}

/// As [`write_canonical`], and says what the form shows.
pub(crate) fn write_noting(
    value: &Value,
    options: &CanonicalOptions<'_>,
    out: &mut Vec<u8>,
) -> Shows {
    let mut shows = match options.whitespace {
        Whitespace::Exact => Shows::Everything,
        Whitespace::Collapse => Shows::NotEverything,
    };
    if options.empty == Empty::Drop && value.is_null() {
        out.extend_from_slice(b"{}");
        return Shows::NotEverything;
    }
    let Some(mut frame) = write_start(value, options.whitespace, options, &mut shows, out) else {
        return shows;
    };
    // The innermost container stays in a local, so that flat arguments never allocate a stack.
    let mut outer: Vec<Frame<'_>> = Vec::new();
    loop {
        if let Some((value, whitespace)) = frame.write_next_prefix(options, &mut shows, out) {
            if let Some(inner) = write_start(value, whitespace, options, &mut shows, out) {
                outer.push(std::mem::replace(&mut frame, inner));
            }
            continue;
        }
        out.push(frame.closing());
        let Some(parent) = outer.pop() else {
            return shows;
        };
        frame = parent;
        frame.take_back_empty(options, out);
    }
}

/// Whether [`Whitespace::Collapse`] certainly leaves every string of the value as it is.
///
/// True of nearly all arguments that are not whole files, and seen much faster than a second form
/// is written.
pub(crate) fn is_collapsed(value: &Value) -> bool {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::String(string) if !text::is_collapsed(string) => return false,
            Value::Array(items) => open.extend(items),
            Value::Object(members) => open.extend(members.values()),
            _ => {}
        }
    }
    true
}

/// The exact canonical form of a value.
pub fn canonical_string(value: &Value) -> String {
    let mut out = Vec::with_capacity(BUFFER_BYTES);
    write_canonical(value, &CanonicalOptions::EXACT, &mut out);
    // Only whole strings and ASCII were written, so nothing is ever replaced here.
    String::from_utf8(out).unwrap_or_else(|error| {
        debug_assert!(false, "canonical JSON is UTF-8");
        String::from_utf8_lossy(error.as_bytes()).into_owned()
    })
}

/// The digest of the canonical form of a value.
///
/// ```
/// use holdfast_reliability::canonical::{CanonicalOptions, digest};
/// use serde_json::json;
///
/// let exact = CanonicalOptions::EXACT;
/// assert_eq!(digest(&json!({"a": 1, "b": 2}), &exact), digest(&json!({"b": 2.0, "a": 1e0}), &exact));
/// assert_ne!(digest(&json!({"a": 1}), &exact), digest(&json!({"a": "1"}), &exact));
/// ```
pub fn digest(value: &Value, options: &CanonicalOptions<'_>) -> Digest {
    let mut out = Vec::with_capacity(BUFFER_BYTES);
    write_canonical(value, options, &mut out);
    Digest::of(&out)
}

/// A container that is being written.
enum Frame<'a> {
    Array {
        items: slice::Iter<'a, Value>,
        whitespace: Whitespace,
        first: bool,
    },
    Object {
        members: Members<'a>,
        whitespace: Whitespace,
        first: bool,
        /// Where the current member began, comma included, and whether it was the first.
        member_start: usize,
        member_first: bool,
    },
}

/// Writes a scalar whole, or opens a container and returns what is to be written inside.
fn write_start<'a>(
    value: &'a Value,
    whitespace: Whitespace,
    options: &CanonicalOptions<'_>,
    shows: &mut Shows,
    out: &mut Vec<u8>,
) -> Option<Frame<'a>> {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Number(number) => {
            let start = out.len();
            number::write(number.as_str(), out);
            if out[start..] != *number.as_str().as_bytes() {
                *shows = Shows::NotEverything;
            }
        }
        Value::String(string) => match whitespace {
            Whitespace::Exact => text::write_exact(string, out),
            Whitespace::Collapse => text::write_collapsed(string, out),
        },
        Value::Array(items) => {
            out.push(b'[');
            return Some(Frame::Array {
                items: items.iter(),
                whitespace,
                first: true,
            });
        }
        Value::Object(map) => {
            out.push(b'{');
            return Some(Frame::Object {
                members: Members::of(map, options.empty),
                whitespace,
                first: true,
                member_start: out.len(),
                member_first: true,
            });
        }
    }
    None
}

impl<'a> Frame<'a> {
    /// Writes what stands in front of the next value, and returns that value; `None` at the end.
    fn write_next_prefix(
        &mut self,
        options: &CanonicalOptions<'_>,
        shows: &mut Shows,
        out: &mut Vec<u8>,
    ) -> Option<(&'a Value, Whitespace)> {
        match self {
            Self::Array {
                items,
                whitespace,
                first,
            } => {
                let value = items.next()?;
                if !std::mem::replace(first, false) {
                    out.push(b',');
                }
                Some((value, *whitespace))
            }
            Self::Object {
                members,
                whitespace,
                first,
                member_start,
                member_first,
            } => {
                let Member { name, value } = members.find(|member| {
                    let kept = is_kept(member, options);
                    if !kept || is_droppable(member) {
                        *shows = Shows::NotEverything;
                    }
                    kept
                })?;
                *member_start = out.len();
                *member_first = std::mem::replace(first, false);
                if !*member_first {
                    out.push(b',');
                }
                text::write_exact(name, out);
                out.push(b':');
                Some((value, options.whitespace_below(name, *whitespace)))
            }
        }
    }

    /// Takes back the member that was just closed if it turned out to hold nothing.
    fn take_back_empty(&mut self, options: &CanonicalOptions<'_>, out: &mut Vec<u8>) {
        if let Self::Object {
            first,
            member_start,
            member_first,
            ..
        } = self
            && options.empty == Empty::Drop
            // No string can end like this: it would end with a quote.
            && out.ends_with(b":{}")
        {
            out.truncate(*member_start);
            *first = *member_first;
        }
    }

    const fn closing(&self) -> u8 {
        match self {
            Self::Array { .. } => b']',
            Self::Object { .. } => b'}',
        }
    }
}

/// Whether [`Empty::Drop`] would leave the member out or trim its name. May say yes of a name that
/// it would not, which begins or ends with something beyond ASCII.
fn is_droppable(member: &Member<'_>) -> bool {
    let bytes = member.name.as_bytes();
    let visible = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_graphic);
    let visible = visible(bytes.first()) && visible(bytes.last());
    let empty = match member.value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        _ => false,
    };
    empty || !visible
}

fn is_kept(member: &Member<'_>, options: &CanonicalOptions<'_>) -> bool {
    let empty = options.empty == Empty::Drop && member.value.is_null();
    !empty && !options.volatile_fields.contains(member.name)
}

#[cfg(test)]
mod tests;
