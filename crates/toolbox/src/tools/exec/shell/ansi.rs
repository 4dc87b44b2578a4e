//! `$'…'`, which writes signs by their names and numbers.

use super::{Open, Reader};

impl Reader {
    /// Reads it to its end, its opening quote being taken.
    pub(super) fn ansi_quoted(&mut self, open: &mut Open) {
        let mut bytes = Vec::new();
        loop {
            match self.take() {
                Some('\'') => break,
                Some('\\') => {
                    // A shell that does not know this way of quoting sees the string end here.
                    self.script.is_unreadable |= self.peek(0) == Some('\'');
                    self.escaped(&mut bytes);
                }
                Some(sign) => push(&mut bytes, sign),
                None => {
                    self.script.is_unreadable = true;
                    break;
                }
            }
        }
        // What is behind a zero is left out.
        let said = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        open.word().text.push_str(&String::from_utf8_lossy(said));
    }

    /// The sign that stands behind a backslash.
    fn escaped(&mut self, bytes: &mut Vec<u8>) {
        let Some(sign) = self.take() else { return };
        match sign {
            'a' => bytes.push(0x07),
            'b' => bytes.push(0x08),
            'e' | 'E' => bytes.push(0x1b),
            'f' => bytes.push(0x0c),
            'n' => bytes.push(b'\n'),
            'r' => bytes.push(b'\r'),
            't' => bytes.push(b'\t'),
            'v' => bytes.push(0x0b),
            '\\' | '\'' | '"' | '?' => push(bytes, sign),
            'c' => {
                let control = self.take().map_or(0, |sign| u32::from(sign) & 0x1f);
                bytes.push(low_byte(control));
            }
            '0'..='7' => {
                self.at -= 1;
                let number = self.number(8, 3).unwrap_or_default();
                bytes.push(low_byte(number));
            }
            'x' => {
                let is_braced = self.peek(0) == Some('{');
                self.at += usize::from(is_braced);
                match self.number(16, if is_braced { usize::MAX } else { 2 }) {
                    Some(number) => bytes.push(low_byte(number)),
                    None => bytes.extend(b"\\x"),
                }
                self.at += usize::from(is_braced && self.peek(0) == Some('}'));
            }
            'u' | 'U' => {
                let number = self.number(16, if sign == 'u' { 4 } else { 8 });
                let named = number.map(|number| char::from_u32(number).unwrap_or('\u{fffd}'));
                match named {
                    Some(named) => push(bytes, named),
                    None => bytes.extend([b'\\', low_byte(u32::from(sign))]),
                }
            }
            _ => {
                bytes.push(b'\\');
                push(bytes, sign);
            }
        }
    }

    /// As many digits as there are, at most so many.
    fn number(&mut self, radix: u32, digits: usize) -> Option<u32> {
        let mut number = None;
        for _ in 0..digits {
            let Some(digit) = self.peek(0).and_then(|sign| sign.to_digit(radix)) else {
                break;
            };
            self.at += 1;
            let before: u32 = number.unwrap_or_default();
            number = Some(before.wrapping_mul(radix).wrapping_add(digit));
        }
        number
    }
}

fn push(bytes: &mut Vec<u8>, sign: char) {
    bytes.extend(sign.encode_utf8(&mut [0; 4]).as_bytes());
}

/// What the shell keeps of a number that does not fit.
fn low_byte(number: u32) -> u8 {
    let [low, ..] = number.to_le_bytes();
    low
}
