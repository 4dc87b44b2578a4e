//! What a reader does not see: encoded, invisible and reversed text, and what drowns the rest.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

use super::rules::excerpt;
use super::text::is_invisible;
use super::{Best, ENCODED_PIECES_MAX, SignalKind, rules};

/// Shorter pieces are words, ids and hashes.
const ENCODED_BYTES_MIN: usize = 24;
/// Longer pieces are files; what stands at their beginning is looked at.
const ENCODED_BYTES_MAX: usize = 16 * 1024;
/// What is worth less when it has to be decoded first is worth more as a sign.
const ENCODED_CONFIDENCE: f64 = 0.85;
/// Tag characters, which spell ASCII that nobody sees.
const TAGS: std::ops::RangeInclusive<char> = '\u{e0020}'..='\u{e007f}';
/// A flag of a region is a black flag and up to this many tags.
const FLAG_TAGS_MAX: usize = 7;
/// Invisible signs in a row that no script needs.
const INVISIBLE_RUN_MIN: usize = 8;
/// A line that stands so often, in so much of the text, is there to drown the rest.
const REPEATED_LINES_MIN: usize = 30;
const REPEATED_LINE_BYTES_MIN: usize = 12;
/// Blank lines or blanks in a row that push text off the screen.
const BLANK_LINES_MIN: usize = 80;
const BLANKS_MIN: usize = 1_000;

/// Looks for what is hidden.
pub(super) fn scan(text: &str, best: &mut Best) {
    encoded(text, best);
    if !text.is_ascii() {
        invisible(text, best);
    }
    drowning(text, best);
    if text.contains("\u{1b}[8m") || text.contains("\u{1b}[08m") {
        best.note(SignalKind::Encoding, 0.6, || {
            "text that a terminal conceals".to_owned()
        });
    }
}

fn encoded(text: &str, best: &mut Best) {
    let is_code =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_');
    let pieces = text
        .as_bytes()
        .split(|byte| !is_code(*byte))
        .filter(|piece| piece.len() >= ENCODED_BYTES_MIN)
        .take(ENCODED_PIECES_MAX);
    for piece in pieces {
        let piece = &piece[..piece.len().min(ENCODED_BYTES_MAX)];
        for decoded in [from_base64(piece), from_hex(piece)].into_iter().flatten() {
            let mut within = Best::default();
            rules::scan(&decoded, &mut within);
            if let Some(found) = within.found.first() {
                let shown = format!("encoded: {}", found.excerpt);
                best.note(SignalKind::Encoding, ENCODED_CONFIDENCE, || excerpt(&shown));
            }
        }
    }
}

fn from_base64(piece: &[u8]) -> Option<String> {
    let whole = &piece[..piece.len() - piece.len() % 4];
    let standard: Vec<u8> = whole
        .iter()
        .map(|byte| match byte {
            b'-' => b'+',
            b'_' => b'/',
            other => *other,
        })
        .collect();
    as_text(STANDARD_NO_PAD.decode(standard).ok()?)
}

fn from_hex(piece: &[u8]) -> Option<String> {
    let digits = piece.iter().map(|byte| char::from(*byte).to_digit(16));
    let digits = digits.collect::<Option<Vec<u32>>>()?;
    let bytes = digits.chunks_exact(2);
    let bytes = bytes.map(|pair| u8::try_from(pair.iter().fold(0, |sum, it| sum * 16 + it)));
    as_text(bytes.collect::<Result<_, _>>().ok()?)
}

fn as_text(bytes: Vec<u8>) -> Option<String> {
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        // Cut in the middle of a sign.
        Err(error) if error.utf8_error().error_len().is_none() => {
            let upto = error.utf8_error().valid_up_to();
            let mut bytes = error.into_bytes();
            bytes.truncate(upto);
            String::from_utf8(bytes).ok()?
        }
        Err(_) => return None,
    };
    let is_text = !text
        .chars()
        .any(|sign| sign.is_control() && !sign.is_whitespace());
    is_text.then_some(text)
}

fn invisible(text: &str, best: &mut Best) {
    let mut tags = String::new();
    let (mut run, mut longest, mut flag) = (0_usize, 0_usize, 0_usize);
    let mut reversed = false;
    for sign in text.chars() {
        if sign == '\u{1f3f4}' {
            flag = FLAG_TAGS_MAX;
            run = 0;
            continue;
        }
        if TAGS.contains(&sign) && flag > 0 {
            flag -= 1;
            continue;
        }
        flag = 0;
        if TAGS.contains(&sign) {
            let plain = u32::from(sign) - 0xe0000;
            tags.extend(char::from_u32(plain).filter(|plain| !plain.is_control()));
        }
        reversed |= matches!(sign, '\u{202d}' | '\u{202e}');
        run = if is_invisible(sign) { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    if tags.chars().count() >= 3 {
        let shown = format!("invisible: {tags}");
        best.note(SignalKind::Encoding, 0.9, || excerpt(&shown));
    } else if longest >= INVISIBLE_RUN_MIN {
        best.note(SignalKind::Encoding, 0.6, || {
            format!("{longest} invisible signs in a row")
        });
    }
    if reversed {
        best.note(SignalKind::Anomaly, 0.5, || {
            "text whose direction is turned around".to_owned()
        });
    }
}

fn drowning(text: &str, best: &mut Best) {
    let (mut blank_lines, mut blanks) = (0_usize, 0_usize);
    let (mut most_lines, mut most_blanks) = (0_usize, 0_usize);
    let mut times: HashMap<&str, usize> = HashMap::new();
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed.is_empty() {
            blank_lines += 1;
            continue;
        }
        most_lines = most_lines.max(blank_lines);
        blank_lines = 0;
        if trimmed.len() >= REPEATED_LINE_BYTES_MIN {
            *times.entry(trimmed).or_default() += 1;
        }
    }
    for byte in text.bytes() {
        blanks = if byte == b' ' { blanks + 1 } else { 0 };
        most_blanks = most_blanks.max(blanks);
    }
    if most_lines >= BLANK_LINES_MIN || most_blanks >= BLANKS_MIN {
        best.note(SignalKind::Anomaly, 0.4, || {
            "blank space that pushes text out of sight".to_owned()
        });
    }
    let most = times
        .into_iter()
        .max_by_key(|(line, count)| (*count, *line));
    if let Some((line, count)) = most
        && count >= REPEATED_LINES_MIN
        && count * (line.len() + 1) * 2 > text.len()
    {
        let shown = format!("{count} times: {line}");
        best.note(SignalKind::Repetition, 0.35, || excerpt(&shown));
    }
}
