//! Where functions begin and end.

use std::ops::Range;

use super::{Open, Quoting, Reader, Script, Simple, Word};

/// A function that a script defines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::tools::exec) struct Function {
    pub(in crate::tools::exec) name: String,
    /// Those of the script's commands that it runs.
    pub(in crate::tools::exec) commands: Range<usize>,
    body: Body,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Body {
    InBraces,
    /// It counts to the end of the script.
    Other,
}

/// The word before the name of a function, in some shells.
const KEYWORD: &str = "function";
/// Words behind which a brace or a function can begin.
const BEGINS: &[&str] = &[
    "{", "do", "then", "else", "if", "elif", "while", "until", "!", "time",
];
/// Words behind which a brace can end.
const ENDS: &[&str] = &["fi", "done", "esac", "}"];

impl Reader {
    /// Takes the name of a function off the words before it, with the brackets behind it, of which
    /// the first was just read. A name is no command.
    pub(super) fn function_name(&mut self, open: &mut Open) -> Option<String> {
        let blanks = self.rest.iter().skip(self.at).take_while(|it| **it == ' ');
        let blanks = blanks.count();
        if self.peek(blanks) != Some(')') {
            return None;
        }
        let mut words = open.simple.words.clone();
        words.extend(open.word.clone());
        let name = words.pop().filter(|name| !name.text.ends_with('='))?;
        if words.last().is_some_and(is_keyword) {
            words.pop();
        }
        if !words.iter().all(|word| BEGINS.contains(&&*word.text)) {
            return None;
        }
        self.at += blanks + 1;
        open.simple.words = words;
        open.word = None;
        Some(name.text)
    }

    /// A function whose body comes next.
    pub(super) fn define(&mut self, name: String) {
        let mut next = self.rest.iter().skip(self.at);
        let body = match next.find(|sign| !sign.is_whitespace()) {
            Some('{') => Body::InBraces,
            _ => Body::Other,
        };
        self.script.define(name, body);
    }

    /// `function name { …`, without brackets: takes both words off the command.
    pub(super) fn take_keyword(&mut self, simple: &mut Simple) {
        let mut words = simple.words.iter();
        let Some(at) = words.position(|word| !BEGINS.contains(&&*word.text)) else {
            return;
        };
        if simple.words.len() < at + 2 || !simple.words.get(at).is_some_and(is_keyword) {
            return;
        }
        let name = simple.words.drain(at..at + 2).nth(1).unwrap_or_default();
        let body = match simple.words.get(at) {
            Some(word) if word.text == "{" => Body::InBraces,
            _ => Body::Other,
        };
        self.script.define(name.text, body);
    }
}

fn is_keyword(word: &Word) -> bool {
    word.text == KEYWORD && word.quoting == Quoting::Bare
}

impl Script {
    fn define(&mut self, name: String, body: Body) {
        let first = self.commands.len();
        self.functions.push(Function {
            name,
            commands: first..first,
            body,
        });
    }

    /// Finds the ends of all functions.
    pub(super) fn end_functions(&mut self) {
        let (mut depth, mut next) = (0_usize, 0_usize);
        // Functions whose braces are open, each with how many were open before.
        let mut open: Vec<(usize, usize)> = Vec::new();
        for function in &mut self.functions {
            function.commands.end = self.commands.len();
        }
        for (at, simple) in self.commands.iter().enumerate() {
            while let Some(function) = self.functions.get(next) {
                if function.commands.start > at {
                    break;
                }
                if function.body == Body::InBraces {
                    open.push((next, depth));
                }
                next += 1;
            }
            for (begun, ended) in braces(simple) {
                depth = (depth + begun).saturating_sub(ended);
                while let Some((function, _)) =
                    open.pop_if(|(_, before)| ended > 0 && *before >= depth)
                {
                    if let Some(function) = self.functions.get_mut(function) {
                        function.commands.end = at + 1;
                    }
                }
            }
        }
    }
}

/// The braces of a command that are no arguments, one by one: how many begin, and how many end.
fn braces(simple: &Simple) -> impl Iterator<Item = (usize, usize)> {
    let is_one = |word: &&Word| word.quoting == Quoting::Bare;
    let texts = || simple.words.iter().take_while(is_one).map(|it| &*it.text);
    let begun = texts().take_while(|text| BEGINS.contains(text));
    let ended = texts().take_while(|text| ENDS.contains(text));
    let begun = begun.filter(|text| *text == "{").map(|_| (1, 0));
    begun.chain(ended.filter(|text| *text == "}").map(|_| (0, 1)))
}
