//! What `xargs` and its like make of words that nobody knows before they read them.

use super::input::{bare, is_interpreter};
use super::programs::{Given, Spelt, given_program, is_bundle};
use super::reading::{has_plain_names, may_run};
use super::tables::{FEEDERS, REMOVERS, SHELLS};
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
        let marks = marks(&simple.words, behind);
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
/// What stands behind it has options of its own.
fn marks(words: &[Word], behind: &[Word]) -> Vec<String> {
    let own = words.len().saturating_sub(behind.len());
    let mut texts = words.iter().take(own).map(|word| word.text.as_str());
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
    let scripts = match given_program(name, args) {
        Given::Read => return true,
        Given::Here(scripts) => scripts,
        Given::File => return false,
    };
    let is_parallel = words.iter().any(|word| program(word) == "parallel") && is_shell;
    let marks = marks(words, behind);
    let is_plain = |script: &Spelt<'_>| {
        let text = script.text;
        let has_mark = marks.iter().any(|mark| text.contains(mark.as_str()));
        let is_harmless = match name {
            _ if is_shell => uses_plainly(text),
            "python" => has_plain_names(text),
            _ => !may_run(name, text),
        };
        is_harmless && !has_mark && !script.word.has_substitution
    };
    is_parallel || !scripts.iter().all(is_plain)
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
        "cat l | xargs -n1 pwsh -c",
        "cat l | xargs -n1 pwsh -NoProfile -Command",
        "cat l | xargs -n1 pwsh -EncodedCommand",
        "cat l | xargs pwsh -ExecutionPolicy Bypass -c Get-Item",
        "cat l | xargs -n1 deno eval",
        "cat l | xargs -n1 deno -q eval",
        "cat l | xargs deno eval 'eval(Deno.args[0])'",
        "cat l | xargs -n1 php --run",
        "cat l | xargs python3 -c'import os,sys;os.system(sys.argv[1])'",
        "cat l | xargs python3 -Ic'import os,sys;os.system(sys.argv[1])'",
        "cat l | xargs perl -e'exec @ARGV'",
        "cat l | xargs perl -we'exec @ARGV'",
        "cat l | xargs perl -i.e -e 'exec @ARGV'",
        "cat l | xargs perl -e 'print 1;' -e 'exec @ARGV'",
        "cat l | xargs php -r'system($argv[1]);'",
        "cat l | xargs lua -e 'os.execute(arg[1])'",
        "cat l | xargs node --eval='require(\"child_process\").execSync(process.argv[1])'",
        "cat l | xargs node -pe 'eval(process.argv[1])'",
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
        "git ls-files | xargs perl -pi.orig -e 's/a/b/'",
        "git ls-files | xargs perl -ne'print if /a/' x",
        "git ls-files '*.ps1' | xargs -n1 pwsh -NoProfile -File check.ps1",
        "git ls-files '*.ts' | xargs deno check -q",
        "git ls-files '*.tcl' | xargs tclsh check.tcl",
        "cat l | xargs python3 -c'import sys; print(len(sys.argv))'",
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
