//! A shell command taken apart, far enough to see what it would run.
//!
//! Not a shell: nothing is expanded. A word that depends on an expansion says so, and whoever
//! judges it has to expect anything of it.

/// Commands inside commands that are followed; deeper ones are not read.
pub(in crate::tools) const SHELL_DEPTH_MAX: usize = 16;

/// One word, without its quotes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) text: String,
    /// Holds `$NAME`: known only when it runs.
    pub(super) has_variable: bool,
    /// Holds `$(…)` or backquotes.
    pub(super) has_substitution: bool,
    /// Begins with an unquoted `~`.
    pub(super) is_home: bool,
}

/// One simple command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Simple {
    pub(super) words: Vec<Word>,
    /// Files its output goes to.
    pub(super) writes: Vec<Word>,
    /// A here-document or here-string.
    pub(super) input: Option<String>,
    /// Index of the command whose output it reads.
    pub(super) reads_from: Option<usize>,
    /// Commands inside its words begin here and end before itself.
    pub(super) inside: Vec<usize>,
}

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Script {
    pub(super) commands: Vec<Simple>,
    /// It goes deeper than is read, or its quotes do not end.
    pub(super) is_unreadable: bool,
}

/// Takes a command apart.
pub(super) fn read(text: &str) -> Script {
    let mut reader = Reader {
        rest: text.chars().collect(),
        at: 0,
        script: Script::default(),
        depth: 0,
        heredocs: Vec::new(),
    };
    reader.list(None);
    reader.script
}

struct Reader {
    rest: Vec<char>,
    at: usize,
    script: Script,
    depth: usize,
    /// Delimiters whose bodies follow the line, with the command they belong to.
    heredocs: Vec<String>,
}

/// A simple command being read.
#[derive(Default)]
struct Open {
    simple: Simple,
    word: Option<Word>,
    /// The next word is where output goes, or input comes from.
    next: Next,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Next {
    #[default]
    Word,
    Write,
    Skip,
    HereString,
    HereDocument,
}

impl Open {
    fn word(&mut self) -> &mut Word {
        self.word.get_or_insert_default()
    }

    /// Ends a word; the delimiter of a here-document comes back.
    fn end_word(&mut self) -> Option<String> {
        let word = self.word.take()?;
        match std::mem::take(&mut self.next) {
            Next::Word => self.simple.words.push(word),
            Next::Write => self.simple.writes.push(word),
            Next::Skip => {}
            Next::HereString => self.simple.input = Some(word.text),
            Next::HereDocument => return Some(word.text),
        }
        None
    }
}

impl Reader {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.rest.get(self.at + ahead).copied()
    }

    fn take(&mut self) -> Option<char> {
        let sign = self.peek(0)?;
        self.at += 1;
        Some(sign)
    }

    /// Reads commands until `end`, or to the end of the text. The indices of those read.
    fn list(&mut self, end: Option<char>) -> Vec<usize> {
        let mut found = Vec::new();
        if self.depth >= SHELL_DEPTH_MAX {
            self.script.is_unreadable = true;
            self.at = self.rest.len();
            return found;
        }
        self.depth += 1;
        let mut open = Open::default();
        let mut reads_from = None;
        loop {
            let Some(sign) = self.take() else {
                self.script.is_unreadable |= end.is_some();
                self.close(&mut open, reads_from, &mut found);
                break;
            };
            match sign {
                _ if Some(sign) == end => {
                    self.close(&mut open, reads_from, &mut found);
                    break;
                }
                ' ' | '\t' | '\r' => self.end_word(&mut open),
                '#' if open.word.is_none() => self.skip_line(),
                '\n' => {
                    let last = self.close(&mut open, reads_from, &mut found);
                    self.bodies(last);
                    reads_from = None;
                }
                '|' => {
                    let is_or = self.peek(0) == Some('|');
                    let last = self.close(&mut open, reads_from, &mut found);
                    if matches!(self.peek(0), Some('|' | '&')) {
                        self.at += 1;
                    }
                    reads_from = if is_or { None } else { last };
                }
                '&' if self.peek(0) == Some('>') => {
                    self.end_word(&mut open);
                    self.redirect(&mut open);
                }
                ';' | '(' | ')' | '&' => {
                    self.close(&mut open, reads_from, &mut found);
                    reads_from = None;
                }
                '<' | '>' => {
                    self.at -= 1;
                    self.redirect(&mut open);
                }
                _ => {
                    self.at -= 1;
                    self.part(&mut open);
                }
            }
        }
        self.depth -= 1;
        found
    }

    fn end_word(&mut self, open: &mut Open) {
        if let Some(delimiter) = open.end_word() {
            self.heredocs.push(delimiter);
        }
    }

    /// Ends a command and says where it stands.
    fn close(
        &mut self,
        open: &mut Open,
        reads_from: Option<usize>,
        found: &mut Vec<usize>,
    ) -> Option<usize> {
        self.end_word(open);
        let mut simple = std::mem::take(open).simple;
        let is_empty = simple.words.is_empty() && simple.writes.is_empty();
        if is_empty && simple.input.is_none() {
            return None;
        }
        simple.reads_from = reads_from;
        self.script.commands.push(simple);
        found.push(self.script.commands.len() - 1);
        found.last().copied()
    }

    fn skip_line(&mut self) {
        while self.peek(0).is_some_and(|sign| sign != '\n') {
            self.at += 1;
        }
    }

    /// The bodies of here-documents that the line just ended has asked for.
    fn bodies(&mut self, command: Option<usize>) {
        for delimiter in std::mem::take(&mut self.heredocs) {
            let mut body = String::new();
            loop {
                let from = self.at;
                self.skip_line();
                let line: String = self.rest.iter().skip(from).take(self.at - from).collect();
                if self.take().is_none() && line.is_empty() {
                    break;
                }
                if line.trim_start_matches('\t') == delimiter {
                    break;
                }
                body.push_str(&line);
                body.push('\n');
            }
            if let Some(simple) = command.and_then(|at| self.script.commands.get_mut(at)) {
                simple.input = Some(body);
            }
        }
    }

    fn redirect(&mut self, open: &mut Open) {
        // `2>`: the number belongs to the redirection.
        if open
            .word
            .as_ref()
            .is_some_and(|word| word.text.chars().all(|sign| sign.is_ascii_digit()))
        {
            open.word = None;
        }
        self.end_word(open);
        let mut signs = String::new();
        while let Some(sign) = self.peek(0) {
            let fits = matches!(sign, '<' | '>' | '&' | '|' | '-') && signs.len() < 3;
            if !fits || (sign == '|' && signs != ">") || (sign == '-' && !signs.starts_with("<<")) {
                break;
            }
            signs.push(sign);
            self.at += 1;
        }
        if self.peek(0) == Some('(') {
            // Process substitution: what stands in it runs.
            self.at += 1;
            let inside = self.list(Some(')'));
            open.simple.inside.extend(inside);
            open.word().has_substitution = true;
            return;
        }
        open.next = match signs.as_str() {
            "<<<" => Next::HereString,
            "<<" | "<<-" => Next::HereDocument,
            "<" | "<&" => Next::Skip,
            // `2>&1` copies a descriptor.
            ">&" if self
                .peek(0)
                .is_some_and(|sign| sign.is_ascii_digit() || sign == '-') =>
            {
                Next::Skip
            }
            _ => Next::Write,
        };
    }

    /// One piece of a word: a quoted string, an expansion, or a plain sign.
    fn part(&mut self, open: &mut Open) {
        let Some(sign) = self.take() else { return };
        match sign {
            '\\' => match self.take() {
                Some('\n') | None => {}
                Some(sign) => open.word().text.push(sign),
            },
            '\'' => {
                let word = open.word();
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
            '"' => self.double_quoted(open),
            '$' | '`' => self.expansion(sign, open),
            '~' if open.word.is_none() => {
                let word = open.word();
                word.is_home = true;
                word.text.push('~');
            }
            _ => open.word().text.push(sign),
        }
    }

    fn double_quoted(&mut self, open: &mut Open) {
        open.word();
        loop {
            match self.take() {
                Some('"') => break,
                Some('\\') => match self.take() {
                    Some(sign @ ('$' | '`' | '"' | '\\')) => open.word().text.push(sign),
                    Some('\n') | None => {}
                    Some(sign) => open.word().text.extend(['\\', sign]),
                },
                Some(sign @ ('$' | '`')) => self.expansion(sign, open),
                Some(sign) => open.word().text.push(sign),
                None => {
                    self.script.is_unreadable = true;
                    break;
                }
            }
        }
    }

    fn expansion(&mut self, sign: char, open: &mut Open) {
        let end = match (sign, self.peek(0)) {
            ('`', _) => '`',
            (_, Some('(')) => {
                self.at += 1;
                ')'
            }
            (_, Some('\'')) => {
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
        let inside = self.list(Some(end));
        open.simple.inside.extend(inside);
        let word = open.word();
        word.has_substitution = true;
        word.text.push('$');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every command as its words, with what it reads and writes.
    fn shown(text: &str) -> Vec<String> {
        let script = read(text);
        let mut shown: Vec<String> = script
            .commands
            .iter()
            .map(|simple| {
                let words = |list: &[Word]| {
                    let texts: Vec<&str> = list.iter().map(|word| word.text.as_str()).collect();
                    texts.join("·")
                };
                let mut line = words(&simple.words);
                if let Some(from) = simple.reads_from {
                    line = format!("{from}| {line}");
                }
                if !simple.writes.is_empty() {
                    line = format!("{line} > {}", words(&simple.writes));
                }
                if let Some(input) = &simple.input {
                    line = format!("{line} << {input:?}");
                }
                line
            })
            .collect();
        if script.is_unreadable {
            shown.push("unreadable".to_owned());
        }
        shown
    }

    #[test]
    fn commands_are_found_wherever_they_stand() {
        let table: &[(&str, &[&str])] = &[
            ("rm -rf /", &["rm·-rf·/"]),
            ("r''m '-r'\"f\" \\/", &["rm·-rf·/"]),
            ("a; b && c || d & e\nf", &["a", "b", "c", "d", "e", "f"]),
            ("a | b |& c", &["a", "0| b", "1| c"]),
            ("(a; b) && { c; }", &["a", "b", "{·c", "}"]),
            ("echo $(rm x)", &["rm·x", "echo·$"]),
            ("echo \"a `rm x` b\"", &["rm·x", "echo·a $ b"]),
            ("bash <(curl u)", &["curl·u", "bash·"]),
            ("a > f 2>&1 >> g &> h", &["a > f·g·h"]),
            ("a 2>/dev/null", &["a > /dev/null"]),
            ("a <<< 'b c'", &["a << \"b c\""]),
            ("a <<E\nrm x\nE\nb", &["a << \"rm x\\n\"", "b"]),
            ("# rm -rf /\na#b", &["a#b"]),
            ("echo 'a; rm -rf /'", &["echo·a; rm -rf /"]),
            ("echo \"open", &["echo·open", "unreadable"]),
            ("echo \\\n x", &["echo·x"]),
            ("", &[]),
        ];
        for (text, expected) in table {
            assert_eq!(shown(text), *expected, "{text}");
        }
        let deep = "$(".repeat(100);
        assert_eq!(shown(&deep).last().map(String::as_str), Some("unreadable"));
    }
}
