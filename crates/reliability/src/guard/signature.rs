//! What an error says once everything that changes from call to call is taken out.

use super::byte_classes::byte_classes;
use super::hash::Hash64;

/// Only this much of an error is compared. Errors that agree this far are one error.
pub const SIGNATURE_BYTES_MAX: usize = 16 * 1024;
/// A word of only the letters a–f is taken for a hexadecimal id from this length on; English has
/// no such word that an error message would use.
const HEX_WORD_CHARS_MIN: usize = 8;
/// No address is longer; a longer run of its characters is something else.
const ADDRESS_BYTES_MAX: usize = 45;
/// Stands for whatever was dropped.
const DROPPED: char = '#';

/// The part of an error that stays the same when the same thing goes wrong again.
///
/// Ids, times, addresses, numbers, letter case and whitespace are left out.
///
/// ```
/// use holdfast_reliability::guard::ErrorSignature;
///
/// assert_eq!(
///     ErrorSignature::of("Request 7f3a-11 failed after 31 ms at 10:04:59"),
///     ErrorSignature::of("request 9c01-87  failed after 1.2 s at 10:05:02"),
/// );
/// assert_ne!(ErrorSignature::of("no such file"), ErrorSignature::of("permission denied"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ErrorSignature(pub(super) Hash64);

impl ErrorSignature {
    /// The signature of an error text.
    pub fn of(error: &str) -> Self {
        Self(Hash64::of(normalise(error).as_bytes()))
    }
}

/// The comparable text of an error; the signature is its hash.
fn normalise(error: &str) -> String {
    let mut out = String::with_capacity(error.len().min(SIGNATURE_BYTES_MAX));
    let mut rest = plain_part(head(error), &mut out);
    while let Some(first) = rest.chars().next() {
        rest = plain_part(next_part(rest, first, &mut out), &mut out);
    }
    out.truncate(out.trim_end().len());
    out
}

/// Takes whatever `text` starts with, which is any character, and returns what follows it.
fn next_part<'t>(text: &'t str, first: char, out: &mut String) -> &'t str {
    if is_word(first) {
        let (word, after) = next_word(text);
        push_word(out, word);
        return after;
    }
    if let Some(after) = address(text) {
        push_dropped(out);
        return after;
    }
    if first.is_whitespace() || first.is_control() {
        push_space(out);
    } else {
        out.push(first);
    }
    &text[first.len_utf8()..]
}

/// Part of a word.
const WORD: u8 = 1;
/// A digit.
const DIGIT: u8 = 2;
/// No hexadecimal digit.
const NOT_HEX: u8 = 4;
/// Whitespace, or a control character.
const BLANK: u8 = 8;
/// Whether an address begins or a word goes on can not be told from this byte alone.
const UNCLEAR: u8 = 16;

/// What each byte is.
static CLASSES: [u8; 256] = byte_classes!(class);

const fn class(byte: u8) -> u8 {
    let mut class = 0;
    if byte.is_ascii_alphanumeric() || byte == b'_' {
        class |= WORD;
    }
    if byte.is_ascii_digit() {
        class |= DIGIT;
    }
    if !byte.is_ascii_hexdigit() {
        class |= NOT_HEX;
    }
    if byte.is_ascii_whitespace() || byte.is_ascii_control() {
        class |= BLANK;
    }
    if matches!(byte, b':' | b'-') || !byte.is_ascii() {
        class |= UNCLEAR;
    }
    class
}

/// Takes what is plain ASCII: nearly all of nearly every text, and judged byte by byte. Returns what begins with
/// something that is not, which [`next_part`] has to look at.
fn plain_part<'t>(text: &'t str, out: &mut String) -> &'t str {
    let bytes = text.as_bytes();
    let class = |at: usize| bytes.get(at).map_or(0, |byte| CLASSES[usize::from(*byte)]);
    let mut at = 0;
    while at < bytes.len() {
        let first = class(at);
        if first & UNCLEAR != 0 {
            break;
        }
        let start = at;
        let mut seen = 0;
        while class(at) & WORD != 0 {
            seen |= class(at);
            at += 1;
        }
        if at == start {
            at += 1;
            if first & BLANK != 0 {
                push_space(out);
            } else {
                out.push_str(&text[start..at]);
            }
        } else if class(at) & UNCLEAR != 0 {
            // It may go on.
            at = start;
            break;
        } else {
            let is_hex = seen & NOT_HEX == 0 && at - start >= HEX_WORD_CHARS_MIN;
            push_ascii_word(out, &text[start..at], seen & DIGIT != 0 || is_hex);
        }
    }
    &text[at..]
}

fn head(error: &str) -> &str {
    let mut end = error.len().min(SIGNATURE_BYTES_MAX);
    while !error.is_char_boundary(end) {
        end -= 1;
    }
    &error[..end]
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The word at the start of `text`, which may hold dashes inside, and what follows it. An address
/// or a clock time is one word too.
fn next_word(text: &str) -> (&str, &str) {
    if let Some(after) = address(text) {
        return text.split_at(text.len() - after.len());
    }
    let mut end = ascii_word(text);
    while let Some(c) = text[end..].chars().next() {
        let joins = c == '-' && text[end + 1..].starts_with(is_word);
        if !is_word(c) && !joins {
            break;
        }
        end += c.len_utf8();
    }
    text.split_at(end)
}

/// How long the ASCII word at the start is, up to its first dash: nearly always the whole word, and seen byte by
/// byte.
fn ascii_word(text: &str) -> usize {
    text.bytes()
        .take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
        .count()
}

/// What follows an IPv6 or MAC address or a clock time: hexadecimal groups with two colons or more.
fn address(text: &str) -> Option<&str> {
    let end = text
        .bytes()
        .take(ADDRESS_BYTES_MAX)
        .take_while(|byte| byte.is_ascii_hexdigit() || *byte == b':')
        .count();
    let run = &text[..end];
    let colons = run.bytes().filter(|byte| *byte == b':').count();
    if colons < 2 {
        return None;
    }
    let groups_fit = run.split(':').all(|group| group.len() <= 4);
    let digits = run.bytes().any(|byte| byte.is_ascii_hexdigit());
    let whole = !text[end..].chars().next().is_some_and(is_word);
    (groups_fit && digits && whole).then(|| &text[end..])
}

fn push_word(out: &mut String, word: &str) {
    let is_ascii = word.is_ascii();
    let changes = if is_ascii {
        word.bytes()
            .any(|byte| byte.is_ascii_digit() || byte == b':')
    } else {
        word.contains(|c: char| c.is_numeric() || c == ':')
    };
    let changes = changes
        || (word.len() >= HEX_WORD_CHARS_MIN && word.bytes().all(|b| b.is_ascii_hexdigit()));
    if is_ascii || changes || is_unit(out, word) {
        push_ascii_word(out, word, changes);
    } else {
        out.extend(word.chars().flat_map(char::to_lowercase));
    }
}

/// Writes a word of which it is known whether it is another one each time.
fn push_ascii_word(out: &mut String, word: &str, changes: bool) {
    if changes {
        push_dropped(out);
    } else if is_unit(out, word) {
        // "31 ms" and "1.2 s" are one time: the unit goes with its number.
        out.pop();
    } else {
        let start = out.len();
        out.push_str(word);
        out[start..].make_ascii_lowercase();
    }
}

/// Whether a word is the unit of the number before it.
fn is_unit(out: &str, word: &str) -> bool {
    out.ends_with("# ") && is_time_unit(word)
}

fn is_time_unit(word: &str) -> bool {
    const UNITS: [&str; 16] = [
        "ns", "us", "µs", "ms", "s", "sec", "secs", "second", "seconds", "m", "min", "mins",
        "minute", "minutes", "am", "pm",
    ];
    UNITS.iter().any(|unit| word.eq_ignore_ascii_case(unit))
}

/// Writes the placeholder; numbers joined by punctuation (a version, an address, a date) are one.
fn push_dropped(out: &mut String) {
    let is_joining = |byte: &u8| matches!(byte, b'.' | b':' | b',' | b'/' | b'-' | b'+');
    let joined = out.bytes().rev().take_while(is_joining).count();
    let joined = out.len() - joined;
    if out[..joined].ends_with(DROPPED) {
        out.truncate(joined);
        return;
    }
    // A sign belongs to its number, a dash after a word does not.
    if let Some(before) = out.strip_suffix(['-', '+'])
        && !before.ends_with(is_word)
    {
        out.truncate(before.len());
    }
    out.push(DROPPED);
}

fn push_space(out: &mut String) {
    if !out.is_empty() && !out.ends_with(' ') {
        out.push(' ');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn same(a: &str, b: &str) {
        assert_eq!(normalise(a), normalise(b));
    }

    /// The comparable text as it is defined, with nothing taken together.
    fn plainly(error: &str) -> String {
        let mut out = String::new();
        let mut rest = head(error);
        while let Some(first) = rest.chars().next() {
            rest = next_part(rest, first, &mut out);
        }
        out.truncate(out.trim_end().len());
        out
    }

    proptest::proptest! {
        #[test]
        fn what_is_plain_is_read_as_it_is_defined(
            parts in proptest::collection::vec(
                proptest::sample::select(vec![
                    "Error", "abcdef", "deadbeef", "cafe", "7f", "-", ":", "::", "1", "12", "ms", "s", " ", "\n", "\t",
                    "é", "µs", "_", ".", ",", "/", "#", "(", "10:04:59", "fe80::1", "+", "\u{0}", "\u{b}", "\u{7f}", "\u{a0}", "x", "É", "٣",
                ]),
                0..40,
            ),
        ) {
            let text = parts.concat();
            proptest::prop_assert_eq!(normalise(&text), plainly(&text));
        }
    }

    #[test]
    fn what_changes_from_call_to_call_is_dropped() {
        same(
            "Missing required parameter: path",
            "  missing  REQUIRED\nparameter: path ",
        );
        same(
            "job 550e8400-e29b-41d4-a716-446655440000 failed",
            "job 123e4567-e89b-12d3-a456-426614174000 failed",
        );
        same("commit deadbeef is unknown", "commit 0a1b2c3d is unknown");
        same("at 0x7ffd3c", "at 0x55aa");
        same(
            "2026-02-13T10:00:00Z boom",
            "2026-11-30T23:59:59.123+01:00 boom",
        );
        same(
            "connect 10.0.0.1:443 refused",
            "connect 192.168.100.200:9 refused",
        );
        same(
            "connect [fe80::1]:80 refused",
            "connect [2001:db8::abcd:5]:443 refused",
        );
        same("took 3ms", "took 40ms");
        same("took 3 ms", "took 1.5 s");
        same("exit code -1", "exit code 7");
        same("line 3, column 14", "line 30, column 1");
        same("request req_8fj2k1 failed", "request req_77aab0 failed");
    }

    #[test]
    fn different_errors_stay_different() {
        for (a, b) in [
            (
                "Missing required parameter: path",
                "Missing required parameter: oldText",
            ),
            ("no such file", "permission denied"),
            ("cannot open /tmp/a", "cannot open /tmp/b"),
            ("expected string", "expected number"),
        ] {
            assert_ne!(normalise(a), normalise(b));
        }
    }

    #[test]
    fn the_normal_form_is_readable() {
        insta::assert_snapshot!(
            normalise("GET https://api.example.com/v2/items/81 -> 503 (id 3f9a, 12:01:44) after 31 ms"),
            @"get https://api.example.com/#/items/# -> # (id #, #) after #"
        );
    }

    #[test]
    fn any_text_is_fine() {
        for text in [
            "",
            " ",
            "::",
            "-",
            "é-ü 1",
            "１２３ wide",
            "a:",
            "日本語 7",
            ":::1",
        ] {
            let _ = ErrorSignature::of(text);
        }
        let long = "é1 ".repeat(SIGNATURE_BYTES_MAX);
        assert!(normalise(&long).len() <= SIGNATURE_BYTES_MAX);
    }
}
