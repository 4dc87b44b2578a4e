//! A shell command taken apart, far enough to see what it would run.
//!
//! Not a shell: nothing is expanded. A word that depends on an expansion says so, and whoever
//! judges it has to expect anything of it.

mod ansi;
mod brackets;
mod expand;
mod functions;
mod groups;
mod joined;
mod redirect;

use std::borrow::Cow;

use brackets::Bracket;
use expand::Quotes;
pub(super) use functions::Function;
use groups::Inputs;
pub(super) use joined::Joined;
use joined::Link;

/// Commands inside commands that are followed; deeper ones are not read.
pub(in crate::tools) const SHELL_DEPTH_MAX: usize = 16;

/// Length of a word in which brackets are looked for.
const PATTERN_BYTES_MAX: usize = 4096;

/// One word, without its quotes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) text: String,
    /// Holds `$NAME`: known only when it runs.
    pub(super) has_variable: bool,
    /// Holds `$(…)` or backquotes.
    pub(super) has_substitution: bool,
    /// Where in the text a `$` stands for one, and how that was written.
    pub(super) substitutions: Vec<(usize, String)>,
    /// Begins with an unquoted `~`, or sets something to what does.
    pub(super) is_home: bool,
    pub(super) quoting: Quoting,
    pub(super) splitting: Splitting,
    pub(super) stands_for: StandsFor,
}

/// Whether what stands in place of something in a word may become several words.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Splitting {
    #[default]
    Never,
    /// It stands outside of quotes.
    Splits,
    /// It stands for what a variable may hold: others may be there in place of it, or nothing.
    Alternative,
}

/// What an unquoted word stands for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum StandsFor {
    #[default]
    Itself,
    /// It is a pattern: what it fits is known only when it runs.
    WhatFits,
}

impl Word {
    pub(super) fn has_pattern(&self) -> bool {
        self.stands_for == StandsFor::WhatFits
    }

    /// The text as it was written, but for its quotes.
    pub(super) fn shown(&self) -> Cow<'_, str> {
        if self.substitutions.is_empty() {
            return Cow::Borrowed(&self.text);
        }
        let mut shown = self.text.clone();
        for (at, written) in self.substitutions.iter().rev() {
            // Of a text that was changed since, nothing is known.
            if self.text.get(*at..).is_some_and(|it| it.starts_with('$')) {
                shown.replace_range(*at..=*at, written);
            }
        }
        Cow::Owned(shown)
    }

    /// The text with what `~` stands for in place of it: where only the text is kept, nothing else
    /// says so.
    pub(super) fn meant(&self) -> Cow<'_, str> {
        if self.is_home {
            Cow::Owned(with_home(&self.text))
        } else {
            Cow::Borrowed(&self.text)
        }
    }
}

/// A text with what `~` stands for at its beginning, and behind each colon, as in a list of paths.
pub(super) fn with_home(text: &str) -> String {
    const HOME: &str = "${HOME}";
    let led = match text.strip_prefix('~') {
        Some(rest) => format!("{HOME}{rest}"),
        None => text.to_owned(),
    };
    led.replace(":~", &format!(":{HOME}"))
}

/// Whether a `~` behind this stands for a home: a word begins there, or a value that one sets.
fn begins_home(word: Option<&Word>) -> bool {
    let Some(word) = word else { return true };
    let is_sign = |sign: char| sign == '_' || sign.is_alphanumeric() || "[]+".contains(sign);
    let is_set = |name: &str| !name.is_empty() && name.chars().all(is_sign);
    word.text.ends_with(['=', ':'])
        && word.text.len() <= PATTERN_BYTES_MAX
        && matches!(word.text.split_once('='), Some((name, _)) if is_set(name))
}

/// Whether some of a word is quoted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Quoting {
    #[default]
    Bare,
    /// The body of a here-document with such an end is not expanded, and no keyword is one. So a word
    /// counts where none can stand: in a list, behind a redirection, in a pattern of `case`.
    Quoted,
}

/// One simple command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Simple {
    pub(super) words: Vec<Word>,
    /// Files its output goes to.
    pub(super) writes: Vec<Word>,
    /// Files its input comes from.
    pub(super) reads: Vec<Word>,
    /// A here-document or here-string, and whether the end of the former was quoted: nothing in it
    /// stands for something else then.
    pub(super) input: Option<String>,
    pub(super) input_quoting: Quoting,
    /// Index of the command whose output it reads.
    pub(super) reads_from: Option<usize>,
    pub(super) joined: Joined,
    /// Commands inside its words begin here and end before itself.
    pub(super) inside: Vec<usize>,
    /// It is no command, but what this variable is to hold: `a=(…)`.
    pub(super) fills: Option<String>,
    /// It is no command, but the end of a subshell that begins with this one.
    pub(super) ends_subshell: Option<usize>,
}

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Script {
    pub(super) commands: Vec<Simple>,
    pub(super) functions: Vec<Function>,
    /// It goes deeper than is read, or its quotes do not end.
    pub(super) is_unreadable: bool,
    /// It is a command for all that, and not just a sentence.
    pub(super) is_deep: bool,
}

/// Takes a command apart.
pub(super) fn read(text: &str) -> Script {
    let mut reader = Reader {
        rest: text.chars().collect(),
        at: 0,
        script: Script::default(),
        depth: 0,
        heredocs: Vec::new(),
        inputs: Inputs::default(),
    };
    reader.list(None);
    reader.script.end_functions();
    reader.script
}

struct Reader {
    rest: Vec<char>,
    at: usize,
    script: Script,
    depth: usize,
    /// Here-documents whose bodies follow the line.
    heredocs: Vec<HereDocument>,
    inputs: Inputs,
}

/// What is known of a here-document before its body comes.
struct HereDocument {
    end: Word,
    /// `<<-` takes tabs off the lines.
    sheds_tabs: bool,
    /// Where its command stands, once that has ended.
    command: Option<usize>,
}

/// A simple command being read.
#[derive(Default)]
struct Open {
    simple: Simple,
    word: Option<Word>,
    /// The next word is where output goes, or input comes from.
    next: Next,
    heredocs: Vec<HereDocument>,
    /// It is no command: its patterns stand for themselves.
    holds_values: bool,
    /// It began with a redirection, or has one: no keyword is behind it.
    is_redirected: bool,
    /// To some shells it ends before that, and runs beside the next: `a &> f`.
    may_end_before: bool,
}

#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Next {
    #[default]
    Word,
    Write,
    Read,
    Skip,
    HereString,
    HereDocument {
        sheds_tabs: bool,
    },
}

impl Open {
    /// One more plain sign. Some of them make a pattern of the word.
    fn bare(&mut self, sign: char) {
        let word = self.word();
        let opened = |sign: char| word.text.rfind(sign);
        let is_pattern = match sign {
            '*' | '?' => true,
            // Nothing that long is a program, and looking back takes its time.
            ']' | '}' if word.text.len() > PATTERN_BYTES_MAX => true,
            ']' => opened('[').is_some(),
            // `{a,b}`, and not `${a}`.
            '}' => opened('{').is_some_and(|at| {
                let (before, within) = word.text.split_at(at);
                !before.ends_with('$') && (within.contains(',') || within.contains(".."))
            }),
            _ => false,
        };
        if is_pattern {
            word.stands_for = StandsFor::WhatFits;
        }
        word.text.push(sign);
    }

    fn word(&mut self) -> &mut Word {
        self.word.get_or_insert_default()
    }

    /// Whether nothing of it was read yet.
    fn is_blank(&self) -> bool {
        self.word.is_none() && self.simple.words.is_empty() && !self.is_redirected
    }

    /// Says whose values it holds, if the bracket around it is an array's.
    fn fills(&mut self, bracket: Option<&Bracket>) {
        if let Some(Bracket::Values(array)) = bracket {
            self.simple.fills.clone_from(array);
        }
    }

    fn end_word(&mut self) {
        let Some(mut word) = self.word.take() else {
            return;
        };
        if self.holds_values {
            word.stands_for = StandsFor::Itself;
        }
        if self.next == Next::Word && (self.holds_values || self.is_redirected) {
            word.quoting = Quoting::Quoted;
        }
        match std::mem::take(&mut self.next) {
            Next::Word => self.simple.words.push(word),
            Next::Write => self.simple.writes.push(word),
            Next::Read => self.simple.reads.push(word),
            Next::Skip => {}
            Next::HereString => {
                self.simple.input = Some(word.meant().into_owned());
                self.simple.input_quoting = Quoting::Bare;
            }
            Next::HereDocument { sheds_tabs } => self.heredocs.push(HereDocument {
                end: word,
                sheds_tabs,
                command: None,
            }),
        }
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
            self.script.goes_deep();
            self.at = self.rest.len();
            return found;
        }
        self.depth += 1;
        let around = self.inputs.depth();
        self.inputs
            .enter(Link::default(), self.script.commands.len());
        // Those of the line outside have their bodies after that line.
        let outside = std::mem::take(&mut self.heredocs);
        let mut open = Open::default();
        let mut link = Link::default();
        let mut brackets: Vec<Bracket> = Vec::new();
        loop {
            open.holds_values = brackets.last().is_some_and(Bracket::holds_values);
            let Some(sign) = self.take() else {
                self.script.is_unreadable |= end.is_some();
                self.close(&mut open, link, &mut found);
                break;
            };
            match sign {
                _ if Some(sign) == end && brackets.is_empty() => {
                    self.close(&mut open, link, &mut found);
                    break;
                }
                ' ' | '\t' | '\r' => open.end_word(),
                '#' if open.word.is_none() => self.skip_line(),
                '\n' => {
                    open.fills(brackets.last());
                    let is_blank = open.is_blank();
                    self.close(&mut open, link, &mut found);
                    self.bodies();
                    link = if is_blank { link } else { Link::default() };
                }
                '|' => {
                    let last = self.close(&mut open, link, &mut found);
                    link = self.behind_bar(last);
                }
                '&' if self.peek(0) == Some('>') => {
                    open.end_word();
                    open.may_end_before = true;
                    self.redirect(&mut open);
                }
                ')' => {
                    let begun = brackets.pop();
                    open.fills(begun.as_ref());
                    let last = self.close(&mut open, link, &mut found);
                    match begun {
                        None => self.is_case(last),
                        Some(Bracket::Subshell(from)) => {
                            self.script.free_braces(from);
                            self.end_subshell(&mut open);
                        }
                        Some(Bracket::Values(_) | Bracket::Sum) => {}
                    }
                    link = Link::default();
                }
                '(' => {
                    let function = self.function_name(&mut open);
                    let array = self.array(&open);
                    self.close(&mut open, link, &mut found);
                    match function {
                        Some(name) => self.define(name),
                        None => self.begin_bracket(array, link, &mut brackets),
                    }
                    link = Link::default();
                }
                ';' | '&' => {
                    let is_whole = !open.may_end_before;
                    let last = self.close(&mut open, link, &mut found);
                    link = self.behind_sign(sign, last.filter(|_| is_whole));
                }
                '<' | '>' if brackets.last() == Some(&Bracket::Sum) => open.bare(sign),
                '<' | '>' => {
                    // A body may follow here to some shells, and commands to others.
                    let is_vague = brackets.iter().any(Bracket::may_be_sum);
                    if is_vague && self.peek(0) == Some('<') {
                        self.script.goes_deep();
                    }
                    self.at -= 1;
                    self.redirect(&mut open);
                }
                _ => {
                    self.at -= 1;
                    self.part(&mut open);
                }
            }
        }
        // A body that never came: shells differ in what they make of it.
        self.script.is_unreadable |= end.is_some() && !self.heredocs.is_empty();
        self.heredocs = outside;
        self.inputs.leave_to(around);
        self.depth -= 1;
        found
    }

    /// Reads another text as commands, as far down as one more step goes.
    fn nested<T>(&mut self, text: &str, read: impl FnOnce(&mut Self) -> T) -> T {
        let rest = std::mem::replace(&mut self.rest, text.chars().collect());
        let at = std::mem::take(&mut self.at);
        let found = read(self);
        (self.rest, self.at) = (rest, at);
        found
    }

    /// Ends a command and says where it stands.
    fn close(&mut self, open: &mut Open, link: Link, found: &mut Vec<usize>) -> Option<usize> {
        open.end_word();
        let Open {
            mut simple,
            heredocs,
            ..
        } = std::mem::take(open);
        self.take_keyword(&mut simple);
        if let Some(mut head) = functions::take_loop(&mut simple) {
            self.takes_input(&mut head, link, false);
            self.script.commands.push(head);
            found.push(self.script.commands.len() - 1);
        }
        functions::take_coprocess(&mut simple);
        let is_empty = simple.words.is_empty() && simple.writes.is_empty();
        if is_empty && simple.input.is_none() && heredocs.is_empty() {
            return None;
        }
        simple.joined = link.joined;
        self.takes_input(&mut simple, link, !heredocs.is_empty());
        self.script.commands.push(simple);
        found.push(self.script.commands.len() - 1);
        let command = found.last().copied();
        self.heredocs.extend(
            heredocs
                .into_iter()
                .map(|it| HereDocument { command, ..it }),
        );
        command
    }

    fn skip_line(&mut self) {
        while self.peek(0).is_some_and(|sign| sign != '\n') {
            self.at += 1;
        }
    }

    /// One piece of a word: a quoted string, an expansion, or a plain sign.
    fn part(&mut self, open: &mut Open) {
        let Some(sign) = self.take() else { return };
        match sign {
            '\\' => match self.take() {
                Some('\n') | None => {}
                Some(sign) => {
                    let word = open.word();
                    word.quoting = Quoting::Quoted;
                    word.text.push(sign);
                }
            },
            '\'' => self.single_quoted(open),
            '"' => self.double_quoted(open),
            '$' | '`' => self.expansion(sign, Quotes::None, open),
            '~' if begins_home(open.word.as_ref()) => {
                let word = open.word();
                word.is_home = true;
                word.text.push('~');
            }
            _ => open.bare(sign),
        }
    }
}

#[cfg(test)]
mod tests;
