//! Reads a text that the grammar does not take: word by word, and too many commands rather than too few.

use std::ops::Range;

use crate::limits::{COMMANDS_MAX, LOOSE_WORDS_MAX};
use crate::reading::{CouldBe, Simple, Unread};
use crate::word::Word;
use crate::wrap;

/// Signs behind which a new command may begin, quoted or not.
const BETWEEN: &[char] = &[
    ';', '&', '|', '(', ')', '<', '>', '\n', '\r', '`', '\0', '\u{b}', '\u{c}',
];
const KEYWORDS: &[&str] = &[
    "!", "{", "}", "if", "then", "else", "elif", "do", "while", "until", "time", "coproc",
];

/// The commands that the text may hold, and what of it could be any command.
pub(crate) fn read(text: &str, place: &Range<usize>) -> (Vec<Simple>, Unread) {
    let whole = text;
    let text = without_comments(text);
    let joined = text.replace("\\\n", "").replace("\\\r\n", "");
    let mut commands = Vec::new();
    let mut open = false;
    let mut redirects = false;
    // In a comment or in single quotes, a backslash does not join lines.
    let apart = text.contains("\\\n").then_some(text);
    let readings = [Some(joined.as_str()), apart];
    let segments = readings
        .iter()
        .flatten()
        .flat_map(|it| it.split_inclusive(BETWEEN));
    for segment in segments {
        let (segment, end) = match segment.char_indices().next_back() {
            Some((at, sign)) if BETWEEN.contains(&sign) => (segment.get(..at), Some(sign)),
            _ => (Some(segment), None),
        };
        let segment = segment.unwrap_or_default();
        let mut words: Vec<Word> = Vec::new();
        for part in segment.split(char::is_whitespace) {
            let braces = part.contains('{') && part.contains([',', '.']);
            let bare = part.trim_start_matches(['{', '}']);
            let begins = KEYWORDS.contains(&part);
            if begins || words.len() >= LOOSE_WORDS_MAX {
                // A command with that many words may go on in the next piece.
                open |= opens(&words) || !begins;
                keep(&mut commands, std::mem::take(&mut words), place);
            }
            if braces {
                words.push(Word::unknown(part));
            } else if !bare.is_empty() {
                words.push(word(bare));
                // `alias g='git push'` holds a command behind the sign.
                if let Some((_, value)) = bare.split_once('=').filter(|(_, it)| !it.is_empty()) {
                    words.push(word(value));
                }
            }
        }
        // The output of a substitution may be the program.
        let substitutes = end == Some('`') || end == Some('(') && segment.ends_with('$');
        open |= opens(&words) || substitutes && headless(&words);
        // The first word behind a redirection is its target, and the next may be the program.
        open |= redirects && words.get(1..).is_some_and(opens);
        redirects = match end {
            Some('<' | '>') => true,
            Some('&') => redirects && words.is_empty(),
            _ => false,
        };
        keep(&mut commands, words, place);
    }
    let could_be = if open {
        CouldBe::Anything
    } else {
        CouldBe::ItsWords
    };
    let unread = Unread {
        place: place.clone(),
        text: whole.to_owned(),
        could_be,
    };
    (commands, unread)
}

/// The text without the comments that it begins with: no quote is open there. Many of them would
/// take the place of the commands behind them.
fn without_comments(mut text: &str) -> &str {
    while text.starts_with('#') {
        text = text.split_once('\n').map_or("", |(_, rest)| rest);
    }
    text
}

fn keep(commands: &mut Vec<Simple>, words: Vec<Word>, place: &Range<usize>) {
    // The reader keeps no more, and one beyond tells it so.
    let again = commands.last().is_some_and(|it| it.words == words);
    if !words.is_empty() && !again && commands.len() <= COMMANDS_MAX {
        commands.push(Simple {
            words,
            place: place.clone(),
            loose: true,
            ..Simple::default()
        });
    }
}

/// A word without its quotes. Whatever may become something else is unknown.
fn word(part: &str) -> Word {
    let escaped = |(at, _): (usize, &str)| {
        let next = part.get(at + 1..).and_then(|rest| rest.chars().next());
        next.is_some_and(|next| next.is_ascii_digit() || "xuUc".contains(next))
    };
    let c_escapes = part.contains("$'") || part.matches('\\').count() > 1;
    let coded = c_escapes && part.match_indices('\\').any(escaped);
    let unquoted = part.replace("$'", "'").replace("$\"", "\"");
    let bare: String = unquoted
        .chars()
        .filter(|sign| !"'\"\\".contains(*sign))
        .collect();
    let bare = bare.trim_end_matches(['$', '}']);
    let expands = bare.contains(['$', '*', '?', '[']);
    if coded || expands {
        Word::unknown(part)
    } else {
        Word::text(bare)
    }
}

/// Whether the word in the place of the program is unknown.
fn opens(words: &[Word]) -> bool {
    let head = words.iter().find(|word| !is_passed(word));
    head.is_some_and(|head| head.literal().is_none() && !is_assignment(head.raw()))
}

/// Whether no word is in the place of the program yet.
fn headless(words: &[Word]) -> bool {
    let assigns = words.last().is_some_and(|word| is_assignment(word.raw()));
    !assigns
        && words
            .iter()
            .all(|word| is_passed(word) || word.literal().as_deref() == Some(""))
}

/// Words that may stand in front of a program.
fn is_passed(word: &Word) -> bool {
    word.literal().is_some_and(|word| {
        KEYWORDS.contains(&&*word)
            || word.starts_with('-')
            || word.contains('=')
            || wrap::is_wrapper(&word)
    })
}

/// `NAME=$(…)` sets a variable.
fn is_assignment(raw: &str) -> bool {
    let name = raw.split('=').next().unwrap_or_default();
    raw.contains('=')
        && name
            .chars()
            .all(|sign| sign.is_ascii_alphanumeric() || sign == '_')
}
