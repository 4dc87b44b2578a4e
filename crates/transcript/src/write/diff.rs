//! What a repair would change, for people to read first.

use std::io::{self, Read, Seek};

use holdfast_contract::redact::Redactor;

use super::assemble::Places;
use crate::index::{Index, Number};
use crate::limits::{DIFF_LINE_BYTES_MAX, READ_BYTES};
use crate::plan::Plan;
use crate::read::Shape;
use crate::render::{Piece, Texts, pieces};

/// What is shown of nothing: a repair puts a line end there.
const NO_LINE_END: &[u8] = b"(no line end between two entries)";

/// The entries that go (`-`) and come (`+`), redacted and shortened, in the order of the new file.
pub fn diff<S: Read + Seek>(
    shape: Shape,
    index: &Index,
    plan: &Plan,
    source: &mut S,
    redactor: &Redactor,
) -> io::Result<Vec<String>> {
    let mut texts = Places { index, source };
    lines(shape.format, index, plan, &mut texts, redactor)
}

pub(crate) fn lines(
    format: crate::Format,
    index: &Index,
    plan: &Plan,
    texts: &mut impl Texts,
    redactor: &Redactor,
) -> io::Result<Vec<String>> {
    let mut parts = Vec::new();
    pieces(format, index, plan, texts, |piece| {
        parts.push(piece);
        Ok(())
    })?;
    let show = |sign: char, number: Option<Number>, text: &[u8], len: u64| {
        let text = String::from_utf8_lossy(text);
        let text = redactor.redact_text(&text);
        let number = number.map_or("new".to_owned(), |number| number.to_string());
        format!("{sign} {number:>5}  {}", shorten(&text, len))
    };
    let mut lines = Vec::new();
    let mut next: Number = 0;
    for piece in parts {
        let (stays, upto) = match &piece {
            Piece::Same(range) => (range.start, range.end),
            // Its old form goes.
            Piece::Altered(number, _) => (number + 1, number + 1),
            Piece::Moved(..) | Piece::Made(_) => (next, next),
        };
        for number in next..stays {
            let (text, len) = texts.beginning(number, READ_BYTES)?;
            let text = if len == 0 { NO_LINE_END } else { &text };
            lines.push(show('-', Some(number), text, len));
        }
        next = upto.max(next);
        match piece {
            Piece::Same(_) => {}
            Piece::Altered(number, text) | Piece::Moved(number, text) => {
                lines.push(show('+', Some(number), &text, text.len() as u64));
            }
            Piece::Made(text) => lines.push(show('+', None, &text, text.len() as u64)),
        }
    }
    for number in next..Number::try_from(index.len()).unwrap_or(Number::MAX) {
        let (text, len) = texts.beginning(number, READ_BYTES)?;
        lines.push(show('-', Some(number), &text, len));
    }
    Ok(lines)
}

fn shorten(text: &str, len: u64) -> String {
    if text.len() <= DIFF_LINE_BYTES_MAX {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(DIFF_LINE_BYTES_MAX);
    format!("{}… ({len} bytes)", &text[..end])
}
