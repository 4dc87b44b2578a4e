//! What a command reads, where what it reads runs.

use std::ops::Range;

use super::bounds::WORD_BYTES;
use super::code::inline_program;
use super::feeders::{is_read_into_script, only_checks};
use super::feeding::{FED_COMMANDS_MAX, ReadAs};
use super::reading::{only_reads_data, runs_what_it_reads};
use super::tables::{
    DOWNLOADERS, FEEDERS, INTERPRETER_VALUED, INTERPRETERS, RIGHTS, SHELLS, STDIN_NAMES, WRAPPERS,
};
use super::wipes::only_reads_input;
use super::{COMPUTED, Certainty, Judge, Setters, program, shown, written};
use crate::tools::exec::shell::{self, Simple, Word};

/// Shells of which all that sets a variable is known.
const FOLLOWED_SHELLS: &[&str] = &["sh", "bash", "dash", "ash"];
/// Commands of one pipe that are looked at from its end; a longer one counts as unreadable.
const PIPED_MAX: usize = 64;
/// Commands before the end of a group of which it is looked at what they say.
const GROUP_COMMANDS_MAX: usize = 64;
const PRINTED: &str = "runs what another command prints";

/// What the command line hands to a command.
#[derive(Debug, Default)]
pub(super) struct Fed {
    /// A here-document, or what `echo` prints, as far as it stands there.
    pub(super) text: Option<String>,
    /// Something that does not stand there: what another command prints, or makes of the text.
    pub(super) is_unknown: bool,
    /// There may be more than the text.
    is_part: bool,
}

impl Judge<'_> {
    /// `xargs` and its like: what they read are arguments of the command behind them.
    pub(super) fn fed_by_words(
        &mut self,
        behind: &[Word],
        simple: &Simple,
        all: &[Simple],
        depth: usize,
    ) {
        let before = simple.words.len().saturating_sub(behind.len());
        let mut wrappers = simple.words.iter().take(before);
        if !wrappers.any(|word| FEEDERS.contains(&program(word))) {
            return;
        }
        let fed = self.fed(simple, all);
        let is_told = fed.text.is_some() && !fed.is_part;
        let is_known = is_told || self.feeding.stdin().is_some();
        if let Some(text) = fed.text {
            self.with_arguments(behind.to_vec(), &text, depth + 1);
        } else {
            self.feeding.argues(behind);
        }
        let whole = shown(&simple.words);
        let sources = |(at, from): (usize, &Simple)| -> Range<usize> {
            let first = if from.ends_group() {
                group_start(at)
            } else {
                at
            };
            first..at + 1
        };
        let piped = piped(simple, all).flat_map(sources);
        let piped: Vec<&Simple> = piped.filter_map(|at| all.get(at)).collect();
        self.removes_list(behind, &piped, &whole);
        let is_from_file = reads_file(&simple.words, before)
            || piped.iter().copied().chain([simple]).any(is_redirected);
        if is_from_file {
            self.removes_from_file(behind, &whole);
        }
        if is_from_file || fed.is_unknown {
            self.fed_anything(behind, simple, depth);
        }
        let runs_lines = match behind.first() {
            None => names_no_program(&simple.words),
            Some(first) => {
                is_read_into_script(behind, &simple.words) || is_replaced(first, &simple.words)
            }
        };
        if !is_known {
            self.is_given_action(behind, simple);
        }
        let runs_script = behind
            .first()
            .is_some_and(|it| SHELLS.contains(&program(it)));
        if runs_script && let Some(script) = behind.get(1..).and_then(inline) {
            let text = script.text.clone();
            self.given_anything(|judge| judge.script(&text, depth + 1));
        }
        if !runs_lines {
            return;
        }
        if fed.is_unknown || is_from_file {
            self.raise("unreadable_command", &whole, PRINTED);
        } else if !is_known {
            self.certainty = Certainty::MayRunMore;
        }
    }

    /// What the command line hands to a command, also through a pipe, whatever stands between.
    pub(super) fn fed(&mut self, simple: &Simple, all: &[Simple]) -> Fed {
        let mut fed = Fed {
            text: simple.input.clone(),
            ..Fed::default()
        };
        // Whoever asks gets a copy, and looks through it.
        let looked = |it: &Simple| {
            it.words.len() * WORD_BYTES + it.input.as_ref().map_or(0, |input| 2 * input.len())
        };
        let piped_bytes = piped(simple, all).map(|(_, from)| looked(from));
        let bytes = looked(simple) + piped_bytes.sum::<usize>();
        if !self.may_look(bytes) {
            return Fed {
                is_unknown: true,
                ..Fed::default()
            };
        }
        if fed.text.is_some() {
            return fed;
        }
        let mut is_direct = true;
        fed.is_unknown = piped(simple, all).count() == PIPED_MAX;
        for (at, from) in piped(simple, all) {
            let name = from.words.first().map(program);
            let prints = matches!(name, Some("echo" | "printf"));
            if let Some(input) = &from.input {
                fed.text = Some(input.clone());
                fed.is_unknown |= !passes_on(&from.words);
                break;
            }
            if from.ends_group() {
                let text = printed_in(all.get(group_start(at)..at).unwrap_or_default());
                (fed.is_unknown, fed.is_part) = (true, true);
                fed.text = self.may_look(2 * text.len()).then_some(text);
                break;
            }
            if prints {
                let args = from.words.get(1..).unwrap_or_default();
                let text = written(args).replace("\\n", "\n");
                let computed = |word: &Word| word.has_variable || word.has_substitution;
                fed.is_unknown |= text.contains('\\')
                    || (name == Some("printf") && text.contains('%'))
                    || args.iter().any(computed);
                fed.text = Some(text);
                break;
            }
            let is_last = from.reads_from.is_none();
            fed.is_unknown |= match (passes_on(&from.words), only_reads_input(&from.words)) {
                (true, _) => !from.reads.is_empty(),
                // Without an input it prints nothing.
                (false, true) => !is_last || self.feeding.stdin().is_some() || is_redirected(from),
                (false, false) => true,
            };
            is_direct = false;
        }
        if fed.text.is_some() && !is_direct {
            self.feeding.piped += 1;
            if self.feeding.piped > FED_COMMANDS_MAX {
                let whole = shown(&simple.words);
                self.raise("unreadable_command", &whole, "is read by too many commands");
                fed.text = None;
            }
        }
        fed
    }

    pub(super) fn with_arguments(&mut self, mut words: Vec<Word>, text: &str, depth: usize) {
        if self.is_too_much() {
            return;
        }
        // Each line may be a command of its own, as for `parallel`, or a script for `sh -c`.
        if words
            .first()
            .is_none_or(|word| is_interpreter(program(word)))
        {
            self.script(text, depth);
        }
        words.extend(text.split_whitespace().map(|word| Word {
            text: word.trim_matches(['\'', '"']).to_owned(),
            ..Word::default()
        }));
        let simple = Simple {
            words,
            ..Simple::default()
        };
        self.simple(&simple, &[], depth);
    }

    pub(super) fn interpreter(
        &mut self,
        name: &str,
        args: &[Word],
        simple: &Simple,
        all: &[Simple],
        depth: usize,
        whole: &str,
    ) {
        if runs_download(simple, all) {
            self.raise("runs_download", whole, "runs what it downloads");
        }
        let is_shell = SHELLS.contains(&name) || matches!(name, "source" | "." | "at" | "batch");
        let fed = self.fed(simple, all);
        if name == "eval" {
            self.script(&written(args), depth + 1);
            if args.iter().any(|word| self.is_vague(word)) {
                // It may set whatever it names.
                self.note_any();
            }
        } else if is_shell && let Some((script, behind)) = inline_with_args(args) {
            let text = script.text.clone();
            let before = self.setters;
            if !FOLLOWED_SHELLS.contains(&name) {
                // Some set variables in ways of their own.
                self.setters = Setters::Unknown;
            }
            self.hands_argument_on(script, whole);
            let input = fed.text.as_deref();
            let judge_script = |judge: &mut Self| judge.script_fed(&text, input, depth + 1);
            self.given_as(behind, |judge| judge.in_child(judge_script));
            self.setters = before;
        } else if !is_shell && let Some(program) = inline_program(args) {
            self.code(program, depth + 1);
        }
        self.computed(name, args, simple, all, whole);
        let before = simple.words.len().saturating_sub(args.len() + 1);
        let mut wrappers = simple.words.iter().take(before);
        let is_argued = wrappers.any(|word| FEEDERS.contains(&program(word)));
        let reads = reads_its_program(name, args) && !(is_argued && only_checks(name, args));
        let runs_input = if is_shell || inline_program(args).is_none() {
            reads
        } else {
            let looked = args.iter().map(|word| word.text.len()).sum();
            self.may_look(looked) && runs_what_it_reads(bare(name), args)
        };
        if fed.is_unknown && runs_input {
            self.raise("unreadable_command", whole, PRINTED);
        }
        if let Some(text) = fed.text {
            if is_shell {
                self.script(&text, depth + 1);
            } else {
                self.code(&text, depth + 1);
            }
        } else if reads {
            if is_shell || name == "eval" {
                self.feeding.is_read_as(ReadAs::Commands);
            } else {
                self.feeding.is_read_as(ReadAs::Code);
            }
        }
    }

    /// A script that another command prints: `eval "$(…)"`, `sh -c "$(…)"`, `bash <(…)`.
    fn computed(
        &mut self,
        name: &str,
        args: &[Word],
        simple: &Simple,
        all: &[Simple],
        whole: &str,
    ) {
        let is_shell = SHELLS.contains(&name) || matches!(name, "source" | "." | "eval");
        let script = inline(args).filter(|_| name != "eval").or(args.first());
        let Some(script) = script.filter(|_| is_shell) else {
            return;
        };
        if script.has_variable || script.has_substitution {
            self.certainty = Certainty::MayRunMore;
        }
        // The standard input is judged by itself.
        let is_input = simple.inside.iter().all(|at| {
            let inside = all.get(*at).map(|it| it.words.as_slice());
            inside.is_some_and(only_reads_input)
        });
        if !script.has_substitution || is_input || !self.may_read(&script.text) {
            return;
        }
        let runs = shell::read(&script.text).commands;
        let is_run = |it: &Simple| it.words.first().is_some_and(|first| first.has_variable);
        if script.text.is_empty() || runs.iter().any(is_run) {
            self.raise("computed_command", whole, COMPUTED);
        }
    }
}

/// Whether it runs what it reads or is told; `python3.13` is `python`.
pub(super) fn is_interpreter(name: &str) -> bool {
    INTERPRETERS.contains(&name) || INTERPRETERS.contains(&bare(name))
}

/// The name of a program without its version.
pub(super) fn bare(name: &str) -> &str {
    name.trim_end_matches(|sign: char| sign == '.' || sign.is_ascii_digit())
}

/// The words behind `xargs` or its like.
fn behind_feeder(words: &[Word]) -> &[Word] {
    let at = words
        .iter()
        .position(|word| FEEDERS.contains(&program(word)));
    at.and_then(|at| words.get(at + 1..)).unwrap_or_default()
}

/// Whether the program is the first that is read: `parallel`, `xargs env`.
fn names_no_program(words: &[Word]) -> bool {
    let is_parallel = |word: &Word| program(word) == "parallel";
    let wraps = |word: &Word| {
        let name = program(word);
        let is_known = WRAPPERS.iter().any(|(known, _)| *known == name) || RIGHTS.contains(&name);
        is_known && !FEEDERS.contains(&name)
    };
    words.iter().any(is_parallel) || behind_feeder(words).iter().any(wraps)
}

/// Whether the program has what is read in it: `xargs -I {} {} x`.
pub(super) fn is_replaced(first: &Word, words: &[Word]) -> bool {
    let behind = behind_feeder(words);
    let options = || behind.iter().map(|word| word.text.as_str());
    let next = options().zip(options().skip(1));
    let named = next.filter(|(option, _)| *option == "-I").map(|(_, it)| it);
    let attached = options().filter_map(|option| option.strip_prefix("-I"));
    let mut marks = named.chain(attached).chain(["{}"]);
    // All of a command may be in the one word for `parallel`.
    let name = first.text.split_whitespace().next().unwrap_or_default();
    marks.any(|mark| {
        let is_plain = mark.chars().all(char::is_alphanumeric);
        name == mark || (!is_plain && name.contains(mark))
    })
}

/// Whether `xargs` or its like is given a file to read, among the words before the command.
fn reads_file(words: &[Word], before: usize) -> bool {
    let wrappers = words.get(..before).unwrap_or_default();
    let mut options = behind_feeder(wrappers).iter().map(|word| &word.text);
    options.any(|option| option.starts_with("-a") || option.starts_with("--arg-file"))
}

/// Whether a command reads a file, and one in which there may be something.
fn is_redirected(simple: &Simple) -> bool {
    simple.reads.iter().any(|file| file.text != "/dev/null")
}

/// The commands that a command reads from through pipes, the nearest first, and where they stand.
fn piped<'s>(simple: &Simple, all: &'s [Simple]) -> impl Iterator<Item = (usize, &'s Simple)> {
    let at = |index: Option<usize>| index.and_then(|at| Some((at, all.get(at)?)));
    std::iter::successors(at(simple.reads_from), move |(_, from)| at(from.reads_from))
        .take(PIPED_MAX)
}

/// Where a group may begin that ends here. Which of the commands before its end belong to it is not told:
/// none that does is left out, unless it has very many.
fn group_start(end: usize) -> usize {
    end.saturating_sub(GROUP_COMMANDS_MAX)
}

/// What these commands say, as far as it stands there.
fn printed_in(group: &[Simple]) -> String {
    let prints = |word: &Word| matches!(program(word), "echo" | "printf");
    let said = group.iter().filter_map(|simple| {
        let at = simple.words.iter().position(prints);
        let args = at.and_then(|at| simple.words.get(at + 1..));
        args.map(written).or_else(|| simple.input.clone())
    });
    said.collect::<Vec<String>>().join("\n")
}

/// Whether a command prints what it reads, as it is.
fn passes_on(words: &[Word]) -> bool {
    words.first().map(program) != Some("tr") && only_reads_input(words)
}

/// Whether it reads what another command downloads.
pub(super) fn is_download(simple: &Simple, all: &[Simple]) -> bool {
    piped(simple, all).any(|(_, from)| downloads(from))
}

fn runs_download(simple: &Simple, all: &[Simple]) -> bool {
    let mut inside = simple.inside.iter().filter_map(|at| all.get(*at));
    inside.any(downloads) || (is_download(simple, all) && !only_reads_data(&simple.words))
}

fn downloads(simple: &Simple) -> bool {
    let mut words = simple.words.iter();
    words.any(|word| DOWNLOADERS.contains(&program(word)))
}

/// The script behind `-c`, also behind `-xc`.
pub(super) fn inline(args: &[Word]) -> Option<&Word> {
    inline_with_args(args).map(|(script, _)| script)
}

/// The same, with what the script gets, its own name first: `sh -c '…' name one two`.
fn inline_with_args(args: &[Word]) -> Option<(&Word, &[Word])> {
    let at = args.iter().position(|word| {
        word.text.starts_with('-') && !word.text.starts_with("--") && word.text.contains('c')
    })?;
    // Other options may stand in between: `sh -c -e '…'`, `sh -c -- '…'`.
    let behind = args.get(at + 1..)?;
    let mut skipped = 0;
    while let Some(word) = behind.get(skipped) {
        match word.text.as_str() {
            "--" => {
                skipped += 1;
                break;
            }
            "-o" | "+o" | "-O" | "+O" => skipped += 2,
            option if option.len() > 1 && option.starts_with(['-', '+']) => skipped += 1,
            _ => break,
        }
    }
    let script = behind.get(skipped)?;
    Some((script, behind.get(skipped + 1..).unwrap_or_default()))
}

/// Whether an interpreter gets its program from the standard input, or may do so.
pub(super) fn reads_its_program(name: &str, args: &[Word]) -> bool {
    let computed = |word: &Word| word.has_variable || word.has_substitution;
    match name {
        "eval" => return args.iter().any(computed),
        "at" | "batch" => return !args.iter().any(|word| word.text == "-f"),
        _ => {}
    }
    if SHELLS.contains(&name)
        && let Some(script) = inline(args)
    {
        return computed(script);
    }
    let mut rest = args.iter();
    while let Some(word) = rest.next() {
        let text = word.text.as_str();
        if STDIN_NAMES.contains(&text) || (SHELLS.contains(&name) && text == "-s") {
            return true;
        }
        if INTERPRETER_VALUED.contains(&text) {
            rest.next();
        } else if matches!(text, "-c" | "-e" | "-m" | "--eval" | "-p" | "--print")
            || !text.starts_with(['-', '+'])
        {
            return computed(word);
        }
    }
    !matches!(name, "source" | ".")
}
