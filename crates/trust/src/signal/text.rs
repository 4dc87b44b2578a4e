//! Texts made ready to be looked at.

use std::borrow::Cow;

use serde_json::Value;

/// Of the bound, how much goes to the end of a text that is too long: attacks stand at either end.
const TAIL_SHARE: usize = 4;

/// The text, or its beginning and its end.
pub(super) fn bounded(text: &str, bytes_max: usize) -> Cow<'_, str> {
    if text.len() <= bytes_max {
        return Cow::Borrowed(text);
    }
    let tail_bytes = bytes_max / TAIL_SHARE;
    let head = &text[..text.floor_char_boundary(bytes_max - tail_bytes)];
    let tail = &text[text.ceil_char_boundary(text.len() - tail_bytes)..];
    Cow::Owned(format!("{head}\n{tail}"))
}

/// The text in pieces of so many bytes, each of which begins a little before the last one ended.
pub(super) fn windows(
    text: &str,
    bytes: usize,
    overlap_bytes: usize,
) -> impl Iterator<Item = &str> {
    let mut from = Some(0_usize);
    std::iter::from_fn(move || {
        let start = from?;
        let end = text.floor_char_boundary(start.saturating_add(bytes).min(text.len()));
        let again = text.floor_char_boundary(end.saturating_sub(overlap_bytes));
        from = (end < text.len() && again > start).then_some(again);
        text.get(start..end)
    })
}

/// All texts of a value in their order, names among them, one a line. Depth costs memory, not stack.
pub(super) fn gather(value: &Value) -> String {
    let mut all = String::new();
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::String(text) => {
                all.push_str(text);
                all.push('\n');
            }
            Value::Array(items) => open.extend(items.iter().rev()),
            Value::Object(fields) => {
                for name in fields.keys() {
                    all.push_str(name);
                    all.push('\n');
                }
                open.extend(fields.values().rev());
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    all
}

/// The text as it reads: without what can not be seen, and in plain letters where others look the
/// same.
pub(super) fn plain(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for sign in text.chars() {
        if !is_invisible(sign) {
            out.push(look_alike(sign));
        }
    }
    Cow::Owned(out)
}

/// Signs that take no room on the screen.
pub(super) fn is_invisible(sign: char) -> bool {
    matches!(sign,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
        | '\u{e0000}'..='\u{e0fff}')
}

fn look_alike(sign: char) -> char {
    match sign {
        // Full-width forms of ASCII.
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(sign) - 0xff01 + 0x21).unwrap_or(sign),
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        '\u{2018}' | '\u{2019}' | '\u{2032}' => '\'',
        '\u{201c}' | '\u{201d}' => '"',
        'а' => 'a',
        'е' | 'ё' => 'e',
        'о' | 'ο' => 'o',
        'р' | 'ρ' => 'p',
        'с' => 'c',
        'х' => 'x',
        'у' => 'y',
        'і' | 'ι' => 'i',
        'ѕ' => 's',
        'ј' => 'j',
        'ԁ' => 'd',
        'ν' => 'v',
        'А' | 'Α' => 'A',
        'Е' | 'Ε' => 'E',
        'І' | 'Ι' => 'I',
        'О' | 'Ο' => 'O',
        other => other,
    }
}
