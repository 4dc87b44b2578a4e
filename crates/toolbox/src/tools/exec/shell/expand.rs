//! Quoted strings, and what stands in place of something else.

use super::{Open, Quoting, Reader, SHELL_DEPTH_MAX, Splitting, StandsFor};

impl Reader {
    pub(super) fn single_quoted(&mut self, open: &mut Open) {
        let word = open.word();
        word.quoting = Quoting::Quoted;
        loop {
            match self.take() {
                Some('\'') => break,
                Some(sign) => word.text.push(sign),
                None => {
                    self.script.is_unreadable = true;
                    break;
                }
            }
        }
    }

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
        if sign == '$' && quotes == Quotes::None && self.quoted_by_dialect(open) {
            return;
        }
        if quotes == Quotes::None {
            open.word().splitting = Splitting::Splits;
        }
        let begun = self.at.saturating_sub(1);
        let inside = match (sign, self.peek(0)) {
            ('`', _) => {
                let text = self.backquoted(quotes);
                self.nested(&text, |reader| reader.list(None))
            }
            (_, Some('(')) => {
                self.at += 1;
                self.list(Some(')'))
            }
            (_, next) => {
                let word = open.word();
                word.has_variable = true;
                word.text.push('$');
                if next == Some('{') {
                    self.at += 1;
                    self.braced(quotes, open);
                }
                return;
            }
        };
        open.simple.inside.extend(inside);
        let written = self.rest.get(begun..self.at).unwrap_or_default();
        let word = open.word();
        word.has_substitution = true;
        word.substitutions
            .push((word.text.len(), written.iter().collect()));
        word.text.push('$');
    }

    /// `$'…'` and `$"…"`, which not every shell knows: what they say is read, and not relied on.
    fn quoted_by_dialect(&mut self, open: &mut Open) -> bool {
        let quote = self.peek(0);
        if !matches!(quote, Some('\'' | '"')) {
            return false;
        }
        self.at += 1;
        let word = open.word();
        word.has_substitution = true;
        word.quoting = Quoting::Quoted;
        if quote == Some('"') {
            self.double_quoted(open);
        } else {
            self.ansi_quoted(open);
        }
        true
    }

    /// `${…}` to its end. Blanks, quotes and brackets in it belong to it.
    fn braced(&mut self, quotes: Quotes, open: &mut Open) {
        if self.depth >= SHELL_DEPTH_MAX {
            self.script.goes_deep();
            self.at = self.rest.len();
            return;
        }
        self.depth += 1;
        let word = open.word();
        word.text.push('{');
        let begun = word.text.len();
        loop {
            let Some(sign) = self.take() else {
                self.script.is_unreadable = true;
                break;
            };
            let within = open.word().text.get(begun..).unwrap_or_default();
            match sign {
                '\\' => match self.take() {
                    Some('\n') | None => {}
                    Some(sign) => open.word().text.push(sign),
                },
                '\'' if quotes == Quotes::None || is_cut(within) => self.single_quoted(open),
                '\'' => self.maybe_quoted(open),
                '"' => self.double_quoted(open),
                '$' | '`' => self.expansion(sign, quotes, open),
                _ => {
                    let is_pattern =
                        quotes == Quotes::None && matches!(sign, '*' | '?') && has_default(within);
                    if is_pattern {
                        open.word().stands_for = StandsFor::WhatFits;
                    }
                    open.word().text.push(sign);
                    if sign == '}' {
                        break;
                    }
                }
            }
        }
        self.depth -= 1;
    }

    /// A `'` in `"${…}"`: a sign like any other to some shells, a quote to others. It is read where
    /// both lead to the same end.
    fn maybe_quoted(&mut self, open: &mut Open) {
        let behind = self.rest.get(self.at..).unwrap_or_default();
        let word = open.word();
        word.text.push('\'');
        // Where no other follows, whoever takes it for a quote does not run anything.
        let Some(length) = behind.iter().position(|sign| *sign == '\'') else {
            return;
        };
        let quoted = behind.get(..length).unwrap_or_default();
        if quoted.iter().any(|sign| "\"}$`\\".contains(*sign)) {
            self.script.is_unreadable = true;
            return;
        }
        word.text.extend(quoted);
        word.text.push('\'');
        self.at += length + 1;
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

/// Longest name of a variable behind which something is looked for, or of an array.
pub(super) const NAME_BYTES_MAX: usize = 256;

/// What stands behind the name of a variable in braces.
fn behind_name(within: &str) -> &str {
    let begun = within.get(..NAME_BYTES_MAX).unwrap_or(within);
    begun.trim_start_matches(|sign: char| sign == '_' || sign.is_ascii_alphanumeric())
}

/// Whether something is cut off or replaced there: what is named for that is a pattern, in which
/// every shell knows quotes.
fn is_cut(within: &str) -> bool {
    behind_name(within).starts_with(['#', '%', '/', '^', ','])
}

/// Whether something is to stand there instead: `${a:-…}`.
fn has_default(within: &str) -> bool {
    let behind = behind_name(within);
    let behind = behind.strip_prefix(':').unwrap_or(behind);
    behind.starts_with(['-', '=', '+'])
}

/// What an expansion stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quotes {
    None,
    Double,
}
