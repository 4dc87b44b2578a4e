//! Quoted strings, and what stands in place of something else.

use super::{Open, Quoting, Reader, Splitting};

impl Reader {
    pub(super) fn double_quoted(&mut self, open: &mut Open) {
        open.word().quoting = Quoting::Quoted;
        loop {
            match self.take() {
                Some('"') => break,
                Some('\\') => match self.take() {
                    Some(sign @ ('$' | '`' | '"' | '\\')) => open.word().text.push(sign),
                    Some('\n') | None => {}
                    Some(sign) => open.word().text.extend(['\\', sign]),
                },
                Some(sign @ ('$' | '`')) => self.expansion(sign, Quotes::Double, open),
                Some(sign) => open.word().text.push(sign),
                None => {
                    self.script.is_unreadable = true;
                    break;
                }
            }
        }
    }

    pub(super) fn expansion(&mut self, sign: char, quotes: Quotes, open: &mut Open) {
        if quotes == Quotes::None {
            open.word().splitting = Splitting::Splits;
        }
        let inside = match (sign, self.peek(0)) {
            ('`', _) => {
                let text = self.backquoted(quotes);
                self.nested(&text, |reader| reader.list(None))
            }
            (_, Some('(')) => {
                self.at += 1;
                self.list(Some(')'))
            }
            (_, Some('\'')) if quotes == Quotes::None => {
                // `$'…'` writes signs by their numbers: whatever it says, it is not readable here.
                open.word().has_substitution = true;
                return;
            }
            _ => {
                let word = open.word();
                word.has_variable = true;
                word.text.push('$');
                return;
            }
        };
        open.simple.inside.extend(inside);
        let word = open.word();
        word.has_substitution = true;
        word.text.push('$');
    }

    /// What stands between backquotes, as the shell reads it: a backslash there keeps the sign
    /// behind it from ending or beginning anything, so pairs of them can stand within.
    fn backquoted(&mut self, quotes: Quotes) -> String {
        let mut text = String::new();
        loop {
            match self.take() {
                Some('`') => return text,
                Some('\\') => match self.take() {
                    Some(sign @ ('`' | '$' | '\\')) => text.push(sign),
                    Some('"') if quotes == Quotes::Double => text.push('"'),
                    Some(sign) => text.extend(['\\', sign]),
                    None => {}
                },
                Some(sign) => text.push(sign),
                None => {
                    self.script.is_unreadable = true;
                    return text;
                }
            }
        }
    }
}

/// What an expansion stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quotes {
    None,
    Double,
}
