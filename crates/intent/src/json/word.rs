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
            if self.opens_expression(byte, start, place) {
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

    /// Whether a bracket goes on with the word before it: `data['city']`, or `len(x)` in Python.
    fn opens_expression(&self, byte: u8, start: usize, place: Place) -> bool {
        let is_bracket = byte == b'[' || byte == b'(' && place == Place::Argument;
        is_bracket
            && self.pos > start
            && (self.bytes[start].is_ascii_alphabetic() || self.bytes[start] == b'_')
            && (is_name(self.bytes[self.pos - 1])
                || matches!(self.bytes[self.pos - 1], b')' | b']'))
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
