//! Texts made ready to be looked at.

use std::borrow::Cow;

use serde_json::Value;

/// Of the bound, how much goes to the end of a text that is too long: attacks stand at either end.
const TAIL_SHARE: usize = 4;
/// How deep texts are looked for.
const DEPTH_MAX: usize = 32;

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

/// All texts of a value, one a line.
pub(super) fn gather(value: &Value, all: &mut String, bytes_max: usize) {
    let mut texts = Vec::new();
    collect(value, &mut texts, 0);
    let total: usize = texts.iter().map(|text| text.len() + 1).sum();
    // What does not fit is cut out of the middle of each long text, not off the last ones.
    let share = if total > bytes_max {
        bytes_max / texts.len().max(1)
    } else {
        usize::MAX
    };
    for text in texts {
        all.push_str(&bounded(text, share.max(64)));
        all.push('\n');
        if all.len() > 2 * bytes_max {
            return;
        }
    }
}

fn collect<'a>(value: &'a Value, texts: &mut Vec<&'a str>, depth: usize) {
    if depth > DEPTH_MAX {
        return;
    }
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(items) => {
            for item in items {
                collect(item, texts, depth + 1);
            }
        }
        Value::Object(fields) => {
            for field in fields.values() {
                collect(field, texts, depth + 1);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
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
