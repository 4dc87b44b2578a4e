//! Programs that have a language of their own in which a command may stand: `make`, `vim`, `sed`, `awk`.

use super::feeding::ReadAs;
use super::sed::{Runs, runs_of};
use super::tables::STDIN_NAMES;
use super::{Certainty, Judge};
use crate::tools::exec::shell::{Simple, Word};

const PRINTED: &str = "runs what it reads";
/// Editors that take their commands from the arguments.
const EDITORS: &[&str] = &["vim", "vi", "ex", "view", "nvim", "gvim", "vimdiff", "rvim"];
/// Programs that run what stands behind an option, beside those that have more to them.
const CARRYING: &[&str] = &["split", "npx", "npm", "nix-shell"];

impl Judge<'_> {
    pub(super) fn hands_script(
        &mut self,
        name: &str,
        args: &[Word],
        simple: &Simple,
        all: &[Simple],
        depth: usize,
        whole: &str,
    ) {
        match name {
            "make" | "gmake" => self.makes(args, simple, all, depth, whole),
            "sed" | "gsed" => self.sed(args, depth, whole),
            "awk" | "gawk" | "mawk" | "nawk" => self.awk_runs(args, whole),
            _ if EDITORS.contains(&name) => self.edits(args, depth),
            _ if CARRYING.contains(&name) => self.carried(name, args, depth),
            _ => {}
        }
    }

    /// `make --eval=…`, and one whose rules are read from the standard input.
    fn makes(&mut self, args: &[Word], simple: &Simple, all: &[Simple], depth: usize, whole: &str) {
        for rules in values(args, "--eval", 'E') {
            self.certainty = Certainty::MayRunMore;
            self.rules(rules, depth);
        }
        let mut files =
            values(args, "--file", 'f')
                .into_iter()
                .chain(values(args, "--makefile", 'f'));
        if !files.any(|file| STDIN_NAMES.contains(&file)) {
            return;
        }
        self.certainty = Certainty::MayRunMore;
        let fed = self.fed(simple, all);
        if fed.is_unknown && fed.text.is_none() {
            self.raise("unreadable_command", whole, PRINTED);
        }
        match fed.text {
            Some(text) => self.rules(&text, depth),
            None if simple.reads_from.is_none() => self.feeding.is_read_as(ReadAs::Rules),
            None => {}
        }
    }

    /// `vim -c '!…'`
    fn edits(&mut self, args: &[Word], depth: usize) {
        let named = values(args, "--cmd", 'c').into_iter();
        let added = args.iter().filter_map(|word| word.text.strip_prefix('+'));
        let told: Vec<String> = named.chain(added).map(str::to_owned).collect();
        for command in told {
            if let Some((_, ran)) = command.split_once('!') {
                self.certainty = Certainty::MayRunMore;
                self.script(ran, depth + 1);
            }
            if command.contains("system") || command.contains("term") {
                self.certainty = Certainty::MayRunMore;
                self.code(&command, depth + 1);
            }
        }
    }

    fn sed(&mut self, args: &[Word], depth: usize, whole: &str) {
        for run in runs_of(args) {
            self.certainty = Certainty::MayRunMore;
            match run {
                Runs::Command(command) => self.script(&command, depth + 1),
                Runs::Input => self.raise("unreadable_command", whole, PRINTED),
            }
        }
    }

    /// An `awk` that runs the lines it reads, or hands them to a shell.
    fn awk_runs(&mut self, args: &[Word], whole: &str) {
        let bare = |word: &Word| -> String {
            word.text.chars().filter(|it| !it.is_whitespace()).collect()
        };
        let runs = |text: &String| {
            let shells = ["|\"sh\"", "|\"bash\"", "|\"/bin/sh\"", "|\"sh-", "|\"bash-"];
            text.contains("system($") || shells.iter().any(|it| text.contains(it))
        };
        if args.iter().map(bare).any(|text| runs(&text)) {
            self.certainty = Certainty::MayRunMore;
            self.raise("unreadable_command", whole, PRINTED);
        }
    }
}

/// What an option is given each time: `--eval=x`, `--eval x`, `-E x`, `-Ex`, `-sE x`.
fn values<'w>(args: &'w [Word], name: &str, letter: char) -> Vec<&'w str> {
    let mut found = Vec::new();
    let mut texts = args.iter().map(|word| word.text.as_str());
    while let Some(text) = texts.next() {
        let value = if text.starts_with("--") {
            let (long, value) = text.split_once('=').unwrap_or((text, ""));
            (long.len() > 2 && name.starts_with(long)).then_some(value)
        } else {
            let letters = text.strip_prefix('-');
            letters
                .and_then(|it| it.split_once(letter))
                .map(|(_, it)| it)
        };
        match value {
            Some("") => found.extend(texts.next()),
            Some(value) => found.push(value),
            None => {}
        }
    }
    found
}
