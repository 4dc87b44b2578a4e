//! What `xargs` and its like make of words that nobody knows before they read them.

use super::input::{inline, is_interpreter};
use super::tables::{FEEDERS, REMOVERS};
use super::wipes::is_recursive;
use super::{Judge, SCRIPT_DEPTH_MAX, program};
use crate::tools::exec::shell::{self, Simple, Splitting, Word};

/// Marks of one command that are looked for.
const MARKS_MAX: usize = 4;
const UNKNOWN: &str = "removes what is only known when it runs";
/// Programs whose targets are judged by where a list of them comes from.
const LISTED: &[&str] = &["chmod", "chown", "chgrp", "mv"];

impl Judge<'_> {
    /// `xargs rm -rf < list`
    pub(super) fn removes_from_file(&mut self, behind: &[Word], whole: &str) {
        let Some((first, args)) = behind.split_first() else {
            return;
        };
        if REMOVERS.contains(&program(first)) && is_recursive(args) {
            self.raise("destructive_command", whole, UNKNOWN);
        }
    }

    /// Judges the command behind `xargs` with words in place of which there may be anything.
    pub(super) fn fed_anything(&mut self, behind: &[Word], simple: &Simple, depth: usize) {
        let Some(name) = behind.first().map(program) else {
            return;
        };
        let is_judged = REMOVERS.contains(&name) || LISTED.contains(&name) || is_interpreter(name);
        if is_judged || depth >= SCRIPT_DEPTH_MAX {
            return;
        }
        let marks = marks(&simple.words);
        let mut words: Vec<Word> = behind.iter().map(|word| marked(word, &marks)).collect();
        if marks.is_empty() {
            words.push(anything(Splitting::Splits));
        }
        if words.first().is_some_and(|first| first.has_substitution) {
            // It is read as a program, which is judged by itself.
            return;
        }
        let simple = Simple {
            words,
            ..Simple::default()
        };
        self.simple(&simple, &[], depth + 1);
    }
}

/// A word of which nothing is known.
fn anything(splitting: Splitting) -> Word {
    Word {
        text: "$".to_owned(),
        has_substitution: true,
        substitutions: vec![(0, "…".to_owned())],
        splitting,
        ..Word::default()
    }
}

/// A word in which something that nobody knows stands in place of each mark.
fn marked(word: &Word, marks: &[String]) -> Word {
    let Some(mark) = marks.iter().find(|mark| word.text.contains(mark.as_str())) else {
        return word.clone();
    };
    Word {
        text: word.text.replace(mark.as_str(), "$"),
        has_substitution: true,
        substitutions: Vec::new(),
        ..word.clone()
    }
}

/// What `xargs` is told to replace: `-I{}`, `-I %`, `-0I{}`, `-i`, `--replace=X`.
fn marks(words: &[Word]) -> Vec<String> {
    let mut texts = words.iter().map(|word| word.text.as_str());
    texts.find(|text| FEEDERS.contains(&text.rsplit('/').next().unwrap_or_default()));
    let mut found = Vec::new();
    while let Some(option) = texts.next() {
        let Some(given) = option.strip_prefix('-') else {
            continue;
        };
        if let Some(long) = given.strip_prefix('-') {
            let (name, mark) = long.split_once('=').unwrap_or((long, "{}"));
            if !name.is_empty() && "replace".starts_with(name) {
                found.push(mark.to_owned());
            }
        } else if let Some((_, behind)) = given.split_once(['I', 'J']) {
            let mark = if behind.is_empty() {
                texts.next()
            } else {
                Some(behind)
            };
            found.extend(mark.map(str::to_owned));
        } else if let Some((_, behind)) = given.split_once('i') {
            found.push(if behind.is_empty() { "{}" } else { behind }.to_owned());
        }
    }
    found.retain(|mark| !mark.is_empty());
    // The last one counts.
    found.drain(..found.len().saturating_sub(MARKS_MAX));
    found
}

/// Whether what is read may become a part of a script, and not just one of its arguments: where there is
/// none but what is read, where a mark stands in it, or where it hands an argument to what runs it.
pub(super) fn is_read_into_script(behind: &[Word], words: &[Word]) -> bool {
    let Some((first, args)) = behind.split_first() else {
        return false;
    };
    if !is_interpreter(program(first)) {
        return false;
    }
    let takes_script = |word: &Word| word.text.starts_with('-') && word.text.contains('c');
    let Some(script) = inline(args) else {
        return args.iter().any(takes_script);
    };
    let is_parallel = words.iter().any(|word| program(word) == "parallel");
    let has_mark = marks(words)
        .iter()
        .any(|mark| script.text.contains(mark.as_str()));
    is_parallel || has_mark || script.has_substitution || !uses_plainly(&script.text)
}

/// Programs that only print what is in the files they are given, or what they are given: all else may run
/// some of it, keep it or write to it.
const READERS: &[&str] = &[
    "basename", "cat", "dirname", "echo", "grep", "head", "ls", "stat", "tail", "wc",
];

/// Whether a script hands its arguments to nothing but such programs.
fn uses_plainly(script: &str) -> bool {
    let read = shell::read(script);
    let is_plain = |simple: &Simple| {
        let name = simple.words.first().map(|it| it.text.as_str());
        let words = || {
            simple
                .words
                .iter()
                .chain(&simple.reads)
                .chain(&simple.writes)
        };
        let is_used = words().any(|word| word.has_variable) || simple.input.is_some();
        let is_written = simple.writes.iter().any(|word| word.has_variable);
        !is_used || (name.is_some_and(|it| READERS.contains(&it)) && !is_written)
    };
    !read.is_unreadable && read.functions.is_empty() && read.commands.iter().all(is_plain)
}
