//! `$'…'`: a quoted text with escapes as in C.

/// What stands between the quotes, and how many bytes it takes with the closing quote. The text is
/// `None` where it is no UTF-8 or has a NUL. The answer is `None` where the quote does not end.
pub(crate) fn quoted(text: &str) -> Option<(Option<String>, usize)> {
    let bytes = text.as_bytes();
    let mut out = Vec::new();
    let mut at = 0;
    loop {
        match *bytes.get(at)? {
            b'\'' => {
                let known = !out.contains(&0);
                let text = String::from_utf8(out).ok().filter(|_| known);
                return Some((text, at + 1));
            }
            b'\\' => {
                let letter = *bytes.get(at + 1)?;
                at += 2;
                at += escape(letter, bytes.get(at..)?, &mut out);
            }
            other => {
                out.push(other);
                at += 1;
            }
        }
    }
}

/// Adds what an escape stands for, and says how many bytes behind its letter belong to it.
fn escape(letter: u8, behind: &[u8], out: &mut Vec<u8>) -> usize {
    let simple = match letter {
        b'a' => Some(7),
        b'b' => Some(8),
        b'e' | b'E' => Some(27),
        b'f' => Some(12),
        b'n' => Some(b'\n'),
        b'r' => Some(b'\r'),
        b't' => Some(b'\t'),
        b'v' => Some(11),
        b'\\' | b'\'' | b'"' | b'?' => Some(letter),
        _ => None,
    };
    if let Some(byte) = simple {
        out.push(byte);
        return 0;
    }
    match letter {
        b'x' => number(behind, 16, 2, 0, out, b"\\x"),
        b'u' => number(behind, 16, 4, 0, out, b"\\u"),
        b'U' => number(behind, 16, 8, 0, out, b"\\U"),
        b'0'..=b'7' => number(behind, 8, 2, u32::from(letter - b'0'), out, &[]),
        // A control character is no part of any name, so that it is unknown is enough.
        b'c' => {
            out.push(0);
            usize::from(!behind.is_empty())
        }
        other => {
            out.extend([b'\\', other]);
            0
        }
    }
}

/// A number with at most so many more digits. Without any digit the escape stands for itself.
fn number(
    behind: &[u8],
    radix: u32,
    digits_max: usize,
    first: u32,
    out: &mut Vec<u8>,
    itself: &[u8],
) -> usize {
    let digit = |byte: &u8| char::from(*byte).to_digit(radix);
    let digits: Vec<u32> = behind.iter().take(digits_max).map_while(digit).collect();
    if digits.is_empty() && !itself.is_empty() {
        // `\x{41}` is a form of its own that newer shells read.
        out.extend(if behind.first() == Some(&b'{') {
            &[0]
        } else {
            itself
        });
        return 0;
    }
    let value = digits.iter().fold(first, |value, digit| {
        value.wrapping_mul(radix).wrapping_add(*digit)
    });
    if digits_max == 2 {
        out.push(u8::try_from(value & 0xff).unwrap_or_default());
    } else if let Some(sign) = char::from_u32(value) {
        out.extend(sign.to_string().as_bytes());
    } else {
        out.push(0);
    }
    digits.len()
}
