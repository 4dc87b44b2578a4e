//! A word of a command, as far as the text alone says what it will be.

use std::borrow::Cow;
use std::ops::Range;

use crate::ansi;

/// One word of a simple command.
///
/// ```
/// let reading = holdfast_judge::read(r#"git 'pu'sh "$REMOTE""#);
/// let words = &reading.commands[0].words;
/// assert_eq!(words[1].literal().as_deref(), Some("push"));
/// assert_eq!(words[2].literal(), None);
/// assert_eq!(words[2].raw(), "\"$REMOTE\"");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Word {
    pub(crate) pieces: Vec<Piece>,
    raw: String,
}

/// A part of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(String),
    Unknown { from: From, splits: bool },
}

/// Where an unknown part of a word comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum From {
    Variable(String),
    /// `${NAME:-value}` with a literal value.
    Default(String, String),
    /// `$1`, `$@` and the like.
    Positional,
    /// `$(which NAME)` with a literal name.
    Which(String),
    /// The output of a program that is known to print one path.
    Path,
    /// The output of a program that prints settings for `eval`.
    Initializer,
    Other,
}

impl Word {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            raw: text.clone(),
            pieces: vec![Piece::Text(text)],
        }
    }

    pub(crate) fn unknown(raw: &str) -> Self {
        let from = From::Other;
        Self {
            raw: raw.to_owned(),
            pieces: vec![Piece::Unknown { from, splits: true }],
        }
    }

    /// What the word is, where the text alone says so.
    pub fn literal(&self) -> Option<Cow<'_, str>> {
        match self.pieces.as_slice() {
            [] => Some(Cow::Borrowed("")),
            [Piece::Text(text)] => Some(Cow::Borrowed(text)),
            _ => None,
        }
    }

    /// The word as it is written.
    pub fn raw(&self) -> &str {
        &self.raw
    }

    /// The word with its quotes taken off, and with unknown parts as they are written.
    pub(crate) fn shown(&self) -> Cow<'_, str> {
        self.literal().unwrap_or(Cow::Borrowed(&self.raw))
    }

    /// About how many bytes of memory the word takes.
    pub(crate) const fn weight(&self) -> usize {
        2 * self.raw.len() + 64
    }

    /// Whether the shell may make no word, or several words, of it.
    pub(crate) fn splits(&self) -> bool {
        let splits = |piece: &Piece| matches!(piece, Piece::Unknown { splits: true, .. });
        self.pieces.iter().any(splits)
    }

    /// The name behind the last `/`, where that much is certain.
    pub fn basename(&self) -> Option<&str> {
        let Some(Piece::Text(tail)) = self.pieces.last() else {
            return None;
        };
        if self.pieces.len() == 1 {
            return Some(tail.rsplit('/').next().unwrap_or(tail));
        }
        let certain = |piece: &Piece| match piece {
            Piece::Text(_) => true,
            Piece::Unknown { splits, .. } => !splits,
        };
        let (_, name) = tail.rsplit_once('/')?;
        self.pieces.iter().all(certain).then_some(name)
    }

    /// Where the word is one unknown part and nothing else.
    pub(crate) fn only_unknown(&self) -> Option<&From> {
        match self.pieces.as_slice() {
            [Piece::Unknown { from, .. }] => Some(from),
            _ => None,
        }
    }

    fn push(&mut self, sign: char) {
        match self.pieces.last_mut() {
            Some(Piece::Text(text)) => text.push(sign),
            _ => self.pieces.push(Piece::Text(sign.to_string())),
        }
    }

    fn push_str(&mut self, more: &str) {
        match self.pieces.last_mut() {
            Some(Piece::Text(text)) => text.push_str(more),
            _ => self.pieces.push(Piece::Text(more.to_owned())),
        }
    }

    fn push_unknown(&mut self, from: From, splits: bool) {
        self.pieces.push(Piece::Unknown { from, splits });
    }
}

/// Takes the quotes off a word. `expansions` are the parts that the grammar calls expansions, in
/// order. `None` says that the grammar and the shell's rules for quotes disagree.
pub(crate) fn resolve(
    text: &str,
    span: Range<usize>,
    expansions: &[(Range<usize>, From)],
) -> Option<Word> {
    let mut word = Word {
        raw: text.get(span.clone())?.to_owned(),
        pieces: Vec::new(),
    };
    let mut quoted = false;
    let mut any_quote = false;
    let mut next = expansions.iter().peekable();
    let mut at = span.start;
    while at < span.end {
        if let Some((range, from)) = next.next_if(|(range, _)| range.start == at) {
            let splits = *from == From::Positional || !quoted && *from != From::Path;
            word.push_unknown(from.clone(), splits);
            at = range.end;
            continue;
        }
        let rest = text.get(at..span.end)?;
        let sign = rest.chars().next()?;
        let behind = rest.get(sign.len_utf8()..)?;
        let following = behind.chars().next();
        at += sign.len_utf8();
        match (sign, quoted) {
            ('"', _) => {
                quoted = !quoted;
                any_quote = true;
            }
            ('\\', true) => match following {
                Some('\n') => at += 1,
                Some(escaped @ ('$' | '`' | '"' | '\\')) => {
                    word.push(escaped);
                    at += 1;
                }
                _ => word.push('\\'),
            },
            ('\\', false) => match following {
                Some('\n') => at += 1,
                Some(escaped) => {
                    word.push(escaped);
                    at += escaped.len_utf8();
                }
                None => return None,
            },
            ('$', false) if following == Some('\'') => {
                let (decoded, bytes) = ansi::quoted(behind.get(1..)?)?;
                match decoded {
                    Some(decoded) => word.push_str(&decoded),
                    None => word.push_unknown(From::Other, false),
                }
                any_quote = true;
                at += 1 + bytes;
            }
            ('$', false) if following == Some('"') => {}
            ('$', _) if following.is_some_and(expands) => return None,
            ('\'', false) => {
                let end = behind.find('\'')?;
                word.push_str(behind.get(..end)?);
                any_quote = true;
                at += end + 1;
            }
            ('`', _) | (' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')', false) => {
                return None;
            }
            ('#', false) if at == span.start + 1 => return None,
            ('*' | '?' | '[', false) => word.push_unknown(From::Other, true),
            ('{', false) if is_brace_expansion(behind) => word.push_unknown(From::Other, true),
            (sign, _) => word.push(sign),
        }
    }
    if quoted || next.next().is_some() {
        return None;
    }
    if any_quote && word.pieces.is_empty() {
        word.pieces.push(Piece::Text(String::new()));
    }
    Some(word)
}

/// Whether a `$` before this sign begins an expansion.
fn expands(sign: char) -> bool {
    sign.is_ascii_alphanumeric() || "_{([@*#?$!-".contains(sign)
}

fn is_brace_expansion(behind: &str) -> bool {
    let inner = behind.split('}').next().unwrap_or_default();
    behind.contains('}') && (behind.contains(',') || inner.contains(".."))
}
