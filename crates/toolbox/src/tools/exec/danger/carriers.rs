//! Programs that run commands which stand in their arguments.

use super::tables::{CARRIERS, STDIN_NAMES};
use super::{Certainty, Judge};
use crate::tools::exec::shell::Word;

impl Judge<'_> {
    /// Judges the commands in the arguments of a program that runs them.
    pub(super) fn carried(&mut self, name: &str, args: &[Word], depth: usize) {
        match name {
            "trap" => {
                let mut handlers = args.iter().filter(|word| word.text != "--");
                if let Some(handler) = handlers.next().filter(|it| !it.text.starts_with('-')) {
                    if self.is_vague(handler) {
                        // It may set whatever it names.
                        self.note_any();
                    }
                    self.script(&handler.text, depth + 1);
                    self.handlers.insert(handler.text.clone());
                }
            }
            "awk" | "gawk" | "mawk" | "nawk" => self.awk(args, depth),
            "sed" if sed_may_run(args) => self.certainty = Certainty::MayRunMore,
            _ => {}
        }
        if matches!(name, "sed" | "awk" | "gawk" | "mawk" | "nawk") && reads_its_script(args) {
            let what = "runs a script that it reads";
            self.raise("unreadable_command", name, what);
        }
        for (_, option, form) in CARRIERS.iter().filter(|(known, ..)| *known == name) {
            for (at, word) in args.iter().enumerate() {
                let Some(value) = value_of(&word.text, option) else {
                    continue;
                };
                let behind = args.get(at + 1).map_or("", |word| word.text.as_str());
                let value = if value.is_empty() { behind } else { value };
                let Some((_, command)) = value.split_once(form).filter(|_| !value.is_empty())
                else {
                    continue;
                };
                self.certainty = Certainty::MayRunMore;
                self.script(command.trim_start_matches(['=', '!']), depth + 1);
            }
        }
    }

    /// Its program may run commands, which it spells out in strings.
    fn awk(&mut self, args: &[Word], depth: usize) {
        for word in args {
            let text = word.text.as_str();
            let pipes = text.contains('|') && (text.contains('"') || text.contains("getline"));
            if !text.starts_with('-') && (pipes || text.contains("system")) {
                self.certainty = Certainty::MayRunMore;
                self.code(text, depth + 1);
            }
        }
        if args.iter().any(|word| word.text.starts_with("-f")) {
            self.certainty = Certainty::MayRunMore;
        }
    }
}

/// Whether `sed` or `awk` is told to take its script from what it reads: `-f -`.
fn reads_its_script(args: &[Word]) -> bool {
    let texts = || args.iter().map(|word| word.text.as_str());
    let is_input = |it: &str| STDIN_NAMES.contains(&it);
    let attached = |it: &str| {
        let file = it.strip_prefix("-f").or_else(|| it.strip_prefix("--file="));
        file.is_some_and(is_input)
    };
    let is_option = |it: &str| it == "--file" || (it.starts_with('-') && it.ends_with('f'));
    let mut pairs = texts().zip(texts().skip(1));
    texts().any(attached) || pairs.any(|(option, file)| is_option(option) && is_input(file))
}

/// What is behind an option in its word; as much of a long one as is enough will do.
fn value_of<'t>(text: &'t str, option: &str) -> Option<&'t str> {
    let (name, value) = text.split_once('=').unwrap_or((text, ""));
    let is_begun = name.len() > 2 && name.starts_with("--") && option.starts_with(name);
    let attached = text.strip_prefix(option);
    // At the end of several letters: `script -qc '…'`.
    let letter = option.strip_prefix('-').filter(|it| it.len() == 1);
    let letters = text.strip_prefix('-').unwrap_or_default();
    let is_last = letter.is_some_and(|it| letters.ends_with(it))
        && letters.bytes().all(|it| it.is_ascii_alphabetic());
    attached.or_else(|| (is_begun || is_last).then_some(value))
}

/// Whether `sed` gets a script that may run something, or one that is not read.
fn sed_may_run(args: &[Word]) -> bool {
    let texts = || args.iter().map(|word| word.text.as_str());
    let is_from_file = |text: &str| text.starts_with("-f") || text.starts_with("--file");
    let named = texts().zip(texts().skip(1));
    let mut behind = named.filter(|(option, _)| matches!(*option, "-e" | "--expression" | "-ne"));
    let first = texts().find(|text| !text.starts_with('-'));
    texts().any(is_from_file)
        || behind.any(|(_, script)| sed_runs(script))
        || first.is_some_and(sed_runs)
}

/// Whether a script of `sed` may have the command `e`, or the flag `e` at a substitution.
fn sed_runs(script: &str) -> bool {
    let is_address =
        |sign: char| sign.is_ascii_digit() || matches!(sign, '$' | ',' | ' ' | '!' | '{');
    script.split([';', '\n', '}']).any(|part| {
        let command = part.trim_start_matches(is_address);
        let behind_pattern = command.strip_prefix('/').and_then(|it| it.rsplit_once('/'));
        let flags = command
            .strip_prefix('s')
            .and_then(|rest| rest.rsplit(rest.chars().next()?).next());
        let is_e = |text: &str| text.trim_start_matches(is_address).starts_with('e');
        is_e(command)
            || behind_pattern.is_some_and(|(_, rest)| is_e(rest))
            || flags.is_some_and(|flags| flags.contains('e'))
    })
}
