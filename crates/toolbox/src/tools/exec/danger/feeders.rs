//! What `xargs` and its like make of words that nobody knows before they read them.

use super::input::{bare, inline, is_interpreter};
use super::reading::{has_plain_names, may_run};
use super::tables::{FEEDERS, INTERPRETER_VALUED, REMOVERS, SHELLS};
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
    let name = bare(program(first));
    let is_shell = SHELLS.contains(&name);
    let script = match given_program(name, args) {
        Given::Read => return true,
        Given::Here(script) => script,
        Given::File => return false,
    };
    let is_parallel = words.iter().any(|word| program(word) == "parallel") && is_shell;
    let has_mark = marks(words)
        .iter()
        .any(|mark| script.text.contains(mark.as_str()));
    let is_plain = match name {
        _ if is_shell => uses_plainly(&script.text),
        "python" => has_plain_names(&script.text),
        _ => !may_run(name, &script.text),
    };
    is_parallel || has_mark || script.has_substitution || !is_plain
}

/// Where an interpreter has its program from.
enum Given<'w> {
    /// It stands there.
    Here(&'w Word),
    /// It is the first word that is read.
    Read,
    /// From a file, or it is none that takes a program in its arguments.
    File,
}

/// Interpreters with the letters of the options that have the program behind them.
const PROGRAM_LETTERS: &[(&str, &[char])] = &[
    ("bun", &['e', 'p']),
    ("lua", &['e']),
    ("node", &['e', 'p']),
    ("perl", &['e', 'E']),
    ("php", &['r']),
    ("python", &['c']),
    ("ruby", &['e']),
];

fn given_program<'w>(name: &str, args: &'w [Word]) -> Given<'w> {
    if SHELLS.contains(&name) {
        let takes_script = |word: &Word| is_bundle(&word.text) && word.text.contains('c');
        return match inline(args) {
            Some(script) => Given::Here(script),
            None if args.iter().any(takes_script) => Given::Read,
            None => Given::File,
        };
    }
    let letters = PROGRAM_LETTERS.iter().find(|(known, _)| *known == name);
    let Some((_, letters)) = letters else {
        return Given::File;
    };
    let mut rest = args.iter();
    while let Some(word) = rest.next() {
        let text = word.text.as_str();
        // `-M` and its like have a name behind them that may end in any letter.
        let is_named = text.starts_with("-M") || text.starts_with("-I");
        let is_taken = is_bundle(text) && text.ends_with(*letters) && !is_named;
        if is_taken || matches!(text, "--eval" | "--print") {
            return rest.next().map_or(Given::Read, Given::Here);
        }
        if INTERPRETER_VALUED.contains(&text) {
            rest.next();
        } else if text == "-m" || !text.starts_with('-') {
            break;
        }
    }
    Given::File
}

/// Interpreters with the letter of the option with which they run nothing, but look whether they could.
const CHECKING: &[(&str, char)] = &[("node", 'c'), ("perl", 'c'), ("php", 'l'), ("ruby", 'c')];

/// Whether an interpreter only checks the files whose names it is given.
pub(super) fn only_checks(name: &str, args: &[Word]) -> bool {
    let checking = CHECKING.iter().find(|(known, _)| *known == name);
    let letter = match checking {
        Some((_, letter)) => *letter,
        None if SHELLS.contains(&name) => 'n',
        None => return false,
    };
    let is_checking = |word: &Word| {
        let is_named = name == "node" && word.text == "--check";
        is_named || (is_bundle(&word.text) && word.text.contains(letter))
    };
    args.iter().any(is_checking) && matches!(given_program(name, args), Given::File)
}

/// Whether it is one letter behind a dash, or several.
fn is_bundle(option: &str) -> bool {
    let letters = option.strip_prefix('-').unwrap_or_default();
    !letters.is_empty() && letters.chars().all(|it| it.is_ascii_alphanumeric())
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

#[cfg(test)]
mod tests {
    use super::super::evasions::{asked, not_asked};

    /// What is read is run, or may be.
    const RUN: &[&str] = &[
        "cat l | xargs sh -c",
        "cat l | xargs sh -ec --",
        "cat l | xargs bash -ce",
        "cat l | xargs -n1 python3 -c",
        "cat l | xargs -d '\\n' -n1 perl -ne",
        "cat l | xargs -n1 node -e",
        "cat l | xargs -n1 node --eval",
        "cat l | xargs -n1 ruby -e",
        "cat l | xargs -n1 php -r",
        "cat l | xargs python3 -c 'import os,sys; [os.system(a) for a in sys.argv[1:]]'",
        "cat l | xargs python3.12 -c 'import os,sys; os.execvp(sys.argv[1], sys.argv[1:])'",
        "cat l | xargs perl -e 'system @ARGV'",
        "cat l | xargs perl -we '`$ARGV[0]`'",
        "cat l | xargs node -e 'require(\"child_process\").execSync(process.argv[1])'",
        "cat l | xargs -I{} perl -e 'print \"{}\"'",
        "cat l | xargs -I{} python3 -c 'print(\"{}\")'",
    ];
    const CHECKED: &[&str] = &[
        "git ls-files '*.py' | xargs python3 -m black --check",
        "git ls-files '*.py' | xargs python -m flake8 --config=x",
        "git ls-files '*.py' | xargs python3 -m pytest -p no:cacheprovider",
        "git ls-files '*.py' | xargs python3 -m py_compile",
        "git ls-files '*.js' | xargs -n1 node --check",
        "git ls-files '*.rb' | xargs -n1 ruby -c",
        "git ls-files '*.rb' | xargs ruby -wc",
        "git ls-files '*.pl' | xargs perl -wc",
        "git ls-files '*.php' | xargs -n1 php -l",
        "git ls-files '*.ts' | xargs deno fmt --check",
        "git ls-files '*.sh' | xargs -n1 bash -n",
        "git ls-files | xargs perl -pi -e 's/a/b/'",
        "git ls-files | xargs perl -MSome -ne 'print if /a/'",
        "git ls-files | xargs ruby -ne 'puts $_ if /a/'",
        "cat l | xargs python3 -c 'import sys; print(len(sys.argv))'",
        "cat l | xargs sh -c 'wc -l \"$@\"' _",
    ];

    #[test]
    fn what_is_read_is_told_from_what_is_run() {
        let wrong = not_asked(&[("unreadable_command", RUN)]);
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        let wrong = asked(CHECKED);
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
