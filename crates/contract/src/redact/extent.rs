//! Where the value beside a secret's name begins and ends.

use std::ops::Range;

use super::{REDACTED, REDACTED_EMAIL};

/// Values that hide nothing; taking them out would only hide that a secret is missing.
const HARMLESS: [&str; 7] = ["null", "none", "nil", "undefined", "true", "false", "***"];
/// The scheme in front of a credential: the secret is the next word.
const SCHEMES: [&str; 4] = ["bearer", "basic", "token", "digest"];
/// How deeply escaped a quote is still known as one, as in JSON inside of JSON.
const BACKSLASHES_MAX: usize = 3;
/// How far back the name of a field is looked for.
const NAME_BYTES_MAX: usize = 64;

/// How far an unquoted value goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// To the next blank.
    Word,
    /// To the end of the line: headers.
    Line,
}

/// What stands around a name.
pub(super) struct Name<'t> {
    /// The whole name, of which the pattern may have seen only the end.
    pub(super) text: &'t str,
    /// The quote right in front of it.
    pub(super) quote: Option<char>,
}

/// Finds the name that ends at `end`.
pub(super) fn name_before(text: &str, end: usize) -> Name<'_> {
    let bytes = text.as_bytes();
    let length = bytes[..end]
        .iter()
        .rev()
        .take(NAME_BYTES_MAX)
        .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
        .count();
    let before = text[..end - length].chars().next_back();
    Name {
        text: &text[end - length..end],
        quote: before.filter(|c| is_quote(*c)),
    }
}

/// What systems and our own tools say of a file, in lower case. A file may be called `password`, and
/// then this is no password.
const SAID_OF_FILES: [&str; 25] = [
    "no such file",
    "permission denied",
    "is a directory",
    "not a directory",
    "file exists",
    "file name too long",
    "directory not empty",
    "read-only file system",
    "operation not permitted",
    "no space left on device",
    "too many levels of symbolic links",
    "device or resource busy",
    "text file busy",
    "input/output error",
    "cannot open",
    "cannot access",
    "there is no such file",
    "there is no space left",
    "it is a directory",
    "it is not a regular file",
    "a part of the path is not",
    "the file system does not permit",
    "the file system is read-only",
    "too many symbolic links",
    "the name is too long",
];
/// Digits of the number of a line.
const LINE_DIGITS_MAX: usize = 6;

/// Whether a name and a colon are a file of that name and what is said of it: why it can not be
/// opened, or where something was found in it.
pub(super) fn is_said_of_a_file(text: &str, name_end: usize, pair: Range<usize>) -> bool {
    if !text[pair.clone()].contains(':') {
        return false;
    }
    let rest = &text[pair.end..];
    let says = |words: &&str| {
        rest.get(..words.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(words))
    };
    if SAID_OF_FILES.iter().any(says) {
        return true;
    }
    // `src/auth/token:12:` as searches and compilers say it.
    let name = name_before(text, name_end);
    let is_in_a_path = text[..name_end - name.text.len()].ends_with('/');
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    is_in_a_path
        && &text[pair] == ":"
        && (1..=LINE_DIGITS_MAX).contains(&digits)
        && rest[digits..].starts_with(':')
}

/// The range of the secret that starts at `start`, without its quotes; `None` when there is none.
pub(super) fn secret_at(
    text: &str,
    start: usize,
    reach: Reach,
    name: &Name<'_>,
) -> Option<Range<usize>> {
    let rest = &text[start..];
    let backslashes = rest.bytes().take_while(|byte| *byte == b'\\').count();
    let range = match rest[backslashes..].chars().next()? {
        quote if is_quote(quote) && backslashes <= BACKSLASHES_MAX => {
            let inside = start + backslashes + quote.len_utf8();
            inside..quoted_end(text, inside, quote, backslashes)
        }
        '{' | '[' if backslashes == 0 && name.quote.is_some() && marker_length(rest) == 0 => {
            start..start + bracketed_length(rest)
        }
        _ => start..start + unquoted_length(rest, reach, name.quote),
    };
    let secret = &text[range.clone()];
    let is_placeholder = secret.starts_with('<') && secret.ends_with('>');
    let hides_nothing = secret.is_empty()
        || secret == REDACTED
        || secret == REDACTED_EMAIL
        || is_placeholder
        || HARMLESS
            .iter()
            .any(|word| secret.eq_ignore_ascii_case(word));
    (!hides_nothing).then_some(range)
}

pub(super) const fn is_quote(c: char) -> bool {
    matches!(c, '"' | '\'' | '`')
}

/// The end of a quoted value. Without a closing quote the text was cut off, or it was none: then the
/// value goes to the end of the line.
fn quoted_end(text: &str, inside: usize, quote: char, backslashes: usize) -> usize {
    let rest = &text[inside..];
    let line = rest.find('\n').unwrap_or(rest.len());
    // An apostrophe is no quote if it is not closed soon, while "…" may well hold several lines.
    let searched = if quote == '"' { rest } else { &rest[..line] };
    let mut escapes = 0;
    for (at, byte) in searched.bytes().enumerate() {
        if byte == b'\\' {
            escapes += 1;
            continue;
        }
        if char::from(byte) == quote && escapes <= backslashes {
            return inside + at - escapes;
        }
        if char::from(byte) == quote && backslashes == 0 && escapes % 2 == 0 {
            return inside + at;
        }
        escapes = 0;
    }
    inside + line
}

/// The length of a JSON container; all of the rest if it does not end.
fn bracketed_length(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut in_string = false;
    let mut escaped = false;
    for (at, byte) in rest.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => depth += 1,
            b'}' | b']' if !in_string => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    rest.len()
}

fn unquoted_length(rest: &str, reach: Reach, around: Option<char>) -> usize {
    if reach == Reach::Line {
        let end = rest.find(|c| c == '\n' || Some(c) == around);
        let line = &rest[..end.unwrap_or(rest.len())];
        return line.trim_end().trim_end_matches('\\').len();
    }
    let word = word_length(rest);
    if SCHEMES
        .iter()
        .any(|scheme| rest[..word].eq_ignore_ascii_case(scheme))
    {
        let blanks = rest[word..]
            .bytes()
            .take_while(|byte| matches!(byte, b' ' | b'\t'))
            .count();
        let next = word + blanks;
        return next + word_length(&rest[next..]);
    }
    word
}

/// The length of a word, up to a blank, a quote that closes something, or the next pair of a list,
/// without the punctuation behind it.
fn word_length(rest: &str) -> usize {
    let marker = marker_length(rest);
    let mut end = rest.len();
    for (at, c) in rest[marker..].char_indices() {
        let at = marker + at;
        let after = &rest[at + c.len_utf8()..];
        let ends = match c {
            '"' | '\'' | '`' => !after.starts_with(char::is_alphanumeric),
            '&' | ';' | ',' => starts_pair(after),
            '<' => at > 0,
            _ => c.is_whitespace(),
        };
        if ends {
            end = at;
            break;
        }
    }
    let word = rest[marker..end].trim_end_matches([',', ';', '.', ')', ']', '}', '\\']);
    marker + word.len()
}

/// The length of what a redactor put here before.
fn marker_length(rest: &str) -> usize {
    let marker = [REDACTED, REDACTED_EMAIL]
        .into_iter()
        .find(|marker| rest.starts_with(marker));
    marker.map_or(0, str::len)
}

/// Whether `name=` or `name:` comes next: only then does a separator separate.
fn starts_pair(after: &str) -> bool {
    let name = after
        .bytes()
        .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'));
    let length = name.count();
    length > 0 && after[length..].starts_with(['=', ':'])
}
