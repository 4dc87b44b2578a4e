//! What stands without quotation marks: keys, numbers, literals of JSON, Python and JavaScript.

#![expect(
    clippy::match_same_arms,
    reason = "one arm per case of the grammar reads as the grammar"
)]

use std::str::FromStr;

use serde_json::{Number, Value};

use super::Ending;
use super::reader::{Place, Reader};
use super::string::is_name;

impl Reader<'_> {
    pub(super) fn bare_key(&mut self) -> String {
        self.repaired = true;
        let start = self.pos;
        while let Some(byte) = self.peek() {
            if matches!(
                byte,
                b':' | b'=' | b',' | b'{' | b'}' | b'[' | b']' | b'\n' | b' ' | b'\t' | b'\r'
            ) {
                break;
            }
            self.pos += 1;
        }
        self.text[start..self.pos]
            .trim_matches(['"', '\''])
            .to_owned()
    }

    pub(super) fn word(&mut self, place: Place) -> Value {
        let start = self.pos;
        // In JSON an expression begins with the value, so that "in Paris(France)" stays a text.
        let mut is_one = true;
        while let Some(byte) = self.peek() {
            let ends = match byte {
                b',' | b'}' | b']' | b'\n' | b'\r' => true,
                b')' => place == Place::Argument || place == Place::Item,
                b'#' => true,
                b'/' => {
                    self.bytes[self.pos..self.end].starts_with(b"//")
                        && self.pos > start
                        && self.bytes[self.pos - 1] != b':'
                        || self.bytes[self.pos..self.end].starts_with(b"/*")
                }
                _ => false,
            };
            if ends {
                break;
            }
            is_one &= byte != b' ';
            if (is_one || place == Place::Argument) && self.opens_expression(byte, start) {
                self.skip_brackets();
                continue;
            }
            self.pos += 1;
        }
        let word = self.text[start..self.pos].trim_end();
        if self.pos >= self.end && (self.depth > 0 || place == Place::Argument) {
            self.ended(Ending::OpenValue);
        }
        self.literal(word)
    }

    /// Whether a bracket goes on with the word before it: `data['city']`, `len(x)`.
    fn opens_expression(&self, byte: u8, start: usize) -> bool {
        let word = &self.bytes[start..self.pos];
        let word = word.strip_prefix(b"*").unwrap_or(word);
        let begins = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'_';
        let goes_on = |byte: &u8| is_name(*byte) || matches!(byte, b')' | b']');
        matches!(byte, b'[' | b'(')
            && word.first().is_some_and(begins)
            && word.last().is_some_and(goes_on)
    }

    /// Steps over brackets and what is in them. Only a program knows the value of such an
    /// expression, so the loss is said.
    fn skip_brackets(&mut self) {
        self.lost = true;
        let mut depth = 0_usize;
        let mut mark = None;
        while let Some(byte) = self.peek() {
            self.pos += 1;
            match (mark, byte) {
                (Some(open), _) if open == byte => mark = None,
                (Some(_), _) => {}
                (None, b'"' | b'\'') => mark = Some(byte),
                (None, b'[' | b'(') => depth += 1,
                (None, b']' | b')') if depth == 1 => return,
                (None, b']' | b')') => depth -= 1,
                _ => {}
            }
        }
        self.ended(Ending::OpenValue);
    }

    pub(super) fn literal(&mut self, word: &str) -> Value {
        match word {
            "true" => return Value::Bool(true),
            "false" => return Value::Bool(false),
            "null" => return Value::Null,
            _ => {}
        }
        if is_json_number(word)
            && let Ok(number) = Number::from_str(word)
        {
            return Value::Number(number);
        }
        self.repaired = true;
        match word {
            "True" | "TRUE" => Value::Bool(true),
            "False" | "FALSE" => Value::Bool(false),
            "None" | "NULL" | "Null" | "undefined" | "nil" | "" => Value::Null,
            _ => number_from(word).map_or_else(
                || Value::String(word.trim_end_matches(['"', '\'']).to_owned()),
                Value::Number,
            ),
        }
    }
}

fn is_json_number(word: &str) -> bool {
    word.bytes()
        .next()
        .is_some_and(|byte| byte == b'-' || byte.is_ascii_digit())
        && word
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'))
}

/// A number as people and programs write it (`+5`, `.5`, `5.`, `1_000`, `0x1f`), when it can mean
/// only one thing. `007` is an identifier, not seven.
pub(crate) fn number_from(word: &str) -> Option<Number> {
    if is_json_number(word)
        && let Ok(number) = Number::from_str(word)
    {
        return Some(number);
    }
    let (sign, digits) = match word.as_bytes().first()? {
        b'-' => ("-", &word[1..]),
        b'+' => ("", &word[1..]),
        _ => ("", word),
    };
    if let Some(hex) = digits
        .strip_prefix("0x")
        .or_else(|| digits.strip_prefix("0X"))
    {
        return Number::from_str(&format!("{sign}{}", u64::from_str_radix(hex, 16).ok()?)).ok();
    }
    if !digits
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'_' || byte == b'.')
        || !digits.bytes().any(|byte| byte.is_ascii_digit())
        || digits.starts_with('_')
        || digits.ends_with('_')
    {
        return None;
    }
    let mut plain = digits.replace('_', "");
    if plain.starts_with('.') {
        plain.insert(0, '0');
    }
    if plain.ends_with('.') {
        plain.push('0');
    }
    Number::from_str(&format!("{sign}{plain}")).ok()
}
