//! Arguments as bytes that are equal when two calls mean the same.
//!
//! Key order, nulls, empty objects, stray whitespace in keys and the spelling of a number are left
//! out. What was left out is remembered as the *form* of the call: a model that was told
//! "`limit` must not be null" and then leaves `limit` out has made a different attempt, and may not
//! be refused for the old one.
//!
//! The encoding is injective (every part is tagged and length-prefixed), so only the hash over it
//! can collide. It recurses as deep as the value, like the value's own drop does; the JSON parser
//! refuses more than 128 levels.

use serde_json::{Map, Number, Value};

/// Integers up to here are exact in a double, so `1.0` and `1` are one number.
const DOUBLE_EXACT_MAX: f64 = 9_007_199_254_740_992.0;
/// A decimal with this many significant digits survives the way through a double.
const DOUBLE_DIGITS_MAX: usize = 15;

/// Canonical bytes of a value, and what it took to make them canonical.
pub(super) struct Encoder<'a> {
    pub(super) bytes: &'a mut Vec<u8>,
    /// Empty for a call that was canonical already, which is nearly every call.
    pub(super) oddities: Vec<u8>,
}

impl<'a> Encoder<'a> {
    pub(super) fn new(bytes: &'a mut Vec<u8>) -> Self {
        Self {
            bytes,
            oddities: Vec::new(),
        }
    }

    pub(super) fn oddity(&mut self, tag: u8, detail: &[u8]) {
        self.oddities.push(tag);
        self.oddities
            .extend_from_slice(&(self.bytes.len() as u64).to_le_bytes());
        self.oddities.extend_from_slice(detail);
    }

    pub(super) fn text(&mut self, tag: u8, text: &[u8]) {
        self.bytes.push(tag);
        self.bytes
            .extend_from_slice(&(text.len() as u64).to_le_bytes());
        self.bytes.extend_from_slice(text);
    }

    /// Writes `value` and says whether anything was written: null and an object without a
    /// non-empty entry are nothing.
    pub(super) fn value(&mut self, value: &Value) -> bool {
        match value {
            Value::Null => return false,
            Value::Bool(flag) => self.bytes.push(if *flag { b't' } else { b'f' }),
            Value::Number(number) => self.number(number),
            Value::String(text) => self.text(b's', text.as_bytes()),
            Value::Array(items) => self.array(items),
            Value::Object(map) => return self.object(map),
        }
        true
    }

    fn array(&mut self, items: &[Value]) {
        self.bytes.push(b'[');
        for item in items {
            // In a list the position has a meaning, so nothing is left out of it.
            if !self.value(item) {
                self.bytes.push(if item.is_null() { b'n' } else { b'e' });
            }
        }
        self.bytes.push(b']');
    }

    fn object(&mut self, map: &Map<String, Value>) -> bool {
        let start = self.bytes.len();
        let mut any = false;
        self.bytes.push(b'{');
        for_each_sorted(map, |key, value| {
            let before = self.bytes.len();
            let trimmed = trim_key(key);
            if trimmed.len() != key.len() {
                self.oddity(b'k', key.as_bytes());
            }
            self.text(b':', trimmed.as_bytes());
            if self.value(value) {
                any = true;
            } else {
                self.bytes.truncate(before);
                self.oddity(if value.is_null() { b'n' } else { b'e' }, key.as_bytes());
            }
        });
        if any {
            self.bytes.push(b'}');
        } else {
            self.bytes.truncate(start);
        }
        any
    }

    fn number(&mut self, number: &Number) {
        if let Some(integer) = number.as_i64() {
            self.bytes.push(b'i');
            self.bytes.extend_from_slice(&integer.to_le_bytes());
            return;
        }
        let literal = number.as_str();
        match decimal(literal) {
            Some(double) if double.fract() == 0.0 && double.abs() <= DOUBLE_EXACT_MAX => {
                #[expect(clippy::cast_possible_truncation, reason = "whole and within 2^53")]
                let integer = double as i64;
                self.oddity(b'd', literal.as_bytes());
                self.bytes.push(b'i');
                self.bytes.extend_from_slice(&integer.to_le_bytes());
            }
            Some(double) if significant_digits(literal) <= DOUBLE_DIGITS_MAX => {
                self.bytes.push(b'd');
                self.bytes
                    .extend_from_slice(&double.to_bits().to_le_bytes());
            }
            // Too large or too precise for a double: two different ids must stay different.
            _ => self.text(b'#', literal.as_bytes()),
        }
    }
}

/// The double of a literal with a fraction or an exponent; integers keep their digits.
fn decimal(literal: &str) -> Option<f64> {
    if !literal.contains(['.', 'e', 'E']) {
        return None;
    }
    literal
        .parse::<f64>()
        .ok()
        .filter(|double| double.is_finite())
}

fn significant_digits(literal: &str) -> usize {
    literal
        .bytes()
        .take_while(|byte| !matches!(byte, b'e' | b'E'))
        .filter(u8::is_ascii_digit)
        .skip_while(|byte| *byte == b'0')
        .count()
}

/// Trims a key. Nearly every key starts and ends in a visible ASCII character, which is seen
/// at once; the general case has to decode characters from both ends.
fn trim_key(key: &str) -> &str {
    match key.as_bytes() {
        [first, .., last] if first.is_ascii_graphic() && last.is_ascii_graphic() => key,
        _ => key.trim(),
    }
}

/// Visits entries by trimmed key. The map is sorted already unless some crate of the build turned
/// on insertion order, or a key has stray whitespace.
pub(super) fn for_each_sorted(map: &Map<String, Value>, mut visit: impl FnMut(&str, &Value)) {
    if map.keys().map(|key| trim_key(key)).is_sorted() {
        for (key, value) in map {
            visit(key, value);
        }
    } else {
        let mut entries: Vec<(&String, &Value)> = map.iter().collect();
        entries.sort_by_key(|(key, _)| (trim_key(key), key.len()));
        for (key, value) in entries {
            visit(key, value);
        }
    }
}
