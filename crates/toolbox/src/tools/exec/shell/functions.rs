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
    "{", "do", "then", "else", "if", "elif", "while", "until", "!", "time", "coproc",
];
/// Words behind which a brace can end.
const ENDS: &[&str] = &["fi", "done", "esac", "}"];
/// Words that begin commands which have a name of their own before them, behind `coproc`.
const COMPOUND: &[&str] = &[
    "{", "if", "while", "until", "for", "select", "case", "[[", "function",
];

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
        if leading(&words) < words.len() {
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
        let at = leading(&simple.words);
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

/// How many of the words only stand before a command; `time` may have options among them.
fn leading(words: &[Word]) -> usize {
    let mut is_timed = false;
    let begins = |word: &&Word| {
        let is_option = is_timed && word.text.starts_with('-');
        is_timed = is_option || word.text == "time";
        is_option || BEGINS.contains(&&*word.text)
    };
    words.iter().take_while(begins).count()
}

/// How many groups of commands begin with a command, and how many end.
pub(super) fn compound(simple: &Simple) -> (usize, usize) {
    let words = || {
        simple
            .words
            .iter()
            .filter(|word| word.quoting == Quoting::Bare)
    };
    let at = leading(&simple.words);
    let is_begun = |word: &&Word| matches!(&*word.text, "{" | "if" | "while" | "until");
    let named = simple
        .words
        .get(at)
        .filter(|word| word.quoting == Quoting::Bare);
    let is_named = named.is_some_and(|word| matches!(&*word.text, "for" | "select" | "case"));
    let begun = words().take(at).filter(is_begun).count() + usize::from(is_named);
    let ended = words().take_while(|word| ENDS.contains(&&*word.text));
    (begun, ended.count())
}

/// `for x do …`: takes what is before the `do` off the command, which begins there.
pub(super) fn take_loop(simple: &mut Simple) -> Option<Simple> {
    let at = leading(&simple.words);
    let [first, _, third, ..] = simple.words.get(at..)? else {
        return None;
    };
    let is_loop = matches!(&*first.text, "for" | "select") && third.text == "do";
    is_loop.then(|| Simple {
        words: simple.words.drain(..at + 2).collect(),
        ..Simple::default()
    })
}

/// `coproc NAME { …`: takes the name off.
pub(super) fn take_coprocess(simple: &mut Simple) {
    let at = leading(&simple.words);
    let is_named = at > 0
        && matches!(simple.words.get(at - 1), Some(word) if word.text == "coproc")
        && matches!(simple.words.get(at + 1), Some(word) if COMPOUND.contains(&&*word.text));
    if is_named {
        simple.words.remove(at);
    }
}

/// Words that begin a loop.
const LOOPS: &[&str] = &["for", "while", "until", "select"];

impl Simple {
    /// How many loops begin with it: one may stand in the condition of another.
    pub(in crate::tools::exec) fn begins_loops(&self) -> usize {
        let words = self.words.iter().take(leading(&self.words) + 1);
        words.filter(|word| LOOPS.contains(&&*word.text)).count()
    }

    /// Whether it stands for all the commands of a group, which it ends.
    pub(in crate::tools::exec) fn ends_group(&self) -> bool {
        self.ends_subshell.is_some() || compound(self).1 > 0
    }

    pub(in crate::tools::exec) fn ends_loop(&self) -> bool {
        let first = self.words.first();
        first.is_some_and(|word| word.text == "done" && word.quoting == Quoting::Bare)
    }
}

impl Script {
    /// Where more braces end in a bracket than began there, it was a list of patterns: `case x in (})`.
    /// None of them is one then.
    pub(super) fn free_braces(&mut self, from: usize) {
        let within = self.commands.get_mut(from..).unwrap_or_default();
        let mut open = 0_usize;
        let is_matched = within.iter().flat_map(braces).all(|(begun, ended)| {
            let left = (open + begun).checked_sub(ended);
            open = left.unwrap_or_default();
            left.is_some()
        });
        if is_matched {
            return;
        }
        for word in within.iter_mut().flat_map(|simple| &mut simple.words) {
            word.quoting = Quoting::Quoted;
        }
    }

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

/// The braces of a command, one by one: how many begin, and how many end. One that may be an argument
/// counts as begun, and not as ended: a function that is taken to be longer than it is hides nothing.
fn braces(simple: &Simple) -> impl Iterator<Item = (usize, usize)> {
    let is_bare = |word: &&Word| word.quoting == Quoting::Bare;
    let bare = simple.words.iter().filter(is_bare).map(|it| &*it.text);
    let begun = bare.filter(|text| *text == "{").map(|_| (1, 0));
    let first = simple.words.iter().take_while(is_bare).map(|it| &*it.text);
    let ended = first.take_while(|text| ENDS.contains(text));
    begun.chain(ended.filter(|text| *text == "}").map(|_| (0, 1)))
}
