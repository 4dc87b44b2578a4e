//! Long random strings: tokens that neither a name nor a prefix gives away.

use super::REDACTED;

/// Shorter strings are too often words, ids or names.
const RUN_BYTES_MIN: usize = 32;
/// How often a digit and a letter must stand side by side: names of things rarely get there.
const DIGIT_BORDERS_MIN: usize = 3;
/// The hexadecimal lengths of MD5 and trace ids, SHA-1 and SHA-2. These are hashes we show.
const HASH_LENGTHS: [usize; 6] = [32, 40, 56, 64, 96, 128];
/// Paths have short pieces; a random string has a slash every 64 characters or so.
const PIECE_BYTES_MIN: usize = 16;

/// Replaces random-looking strings; `None` when there are none.
pub(super) fn redact(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut out = String::new();
    let mut copied = 0;
    let mut at = 0;
    while at < bytes.len() {
        let length = bytes[at..]
            .iter()
            .take_while(|byte| is_token_byte(**byte))
            .count();
        if length >= RUN_BYTES_MIN {
            for (start, end) in secrets_in(&text[at..at + length]) {
                out.push_str(&text[copied..at + start]);
                out.push_str(REDACTED);
                copied = at + end;
            }
            if copied == at + length {
                // The padding of base64 belongs to it.
                copied += bytes[copied..]
                    .iter()
                    .take_while(|byte| **byte == b'=')
                    .count();
            }
        }
        at += length + 1;
    }
    if copied == 0 {
        return None;
    }
    out.push_str(&text[copied..]);
    Some(out)
}

const fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_')
}

/// The secret parts of a run, as byte ranges.
fn secrets_in(run: &str) -> Vec<(usize, usize)> {
    if run.starts_with("sha256-") || run.starts_with("sha384-") || run.starts_with("sha512-") {
        // The integrity of a package, as lock files have it.
        return Vec::new();
    }
    let pieces = run.split('/').count();
    let is_path = run.starts_with('/') || run.len() < pieces * PIECE_BYTES_MIN;
    if !is_path {
        let whole = is_random(run).then_some((0, run.len()));
        return whole.into_iter().collect();
    }
    let mut found = Vec::new();
    let mut start = 0;
    for piece in run.split('/') {
        if is_random(piece) {
            found.push((start, start + piece.len()));
        }
        start += piece.len() + 1;
    }
    found
}

fn is_random(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() < RUN_BYTES_MIN {
        return false;
    }
    let any = |test: fn(&u8) -> bool| bytes.iter().any(test);
    let (upper, lower) = (any(u8::is_ascii_uppercase), any(u8::is_ascii_lowercase));
    let digit_borders = bytes
        .windows(2)
        .filter(|pair| {
            pair.iter().all(u8::is_ascii_alphanumeric)
                && pair[0].is_ascii_digit() != pair[1].is_ascii_digit()
        })
        .count();
    if upper && lower {
        return digit_borders >= DIGIT_BORDERS_MIN;
    }
    // One case and digits: also what UUIDs, slugs, constants and hashes are made of.
    let is_hash = HASH_LENGTHS.contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_hexdigit);
    !is_hash && bytes.iter().all(u8::is_ascii_alphanumeric) && digit_borders * 4 >= bytes.len()
}
