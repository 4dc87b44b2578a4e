//! What git is told to do: by its arguments, its settings and its environment.

use std::collections::BTreeSet;

use super::options::Options;
use super::tables::{
    GIT_FORCING, GIT_HARMLESS, GIT_PUSHES, GIT_RUNS, GIT_VALUED, NO_LETTER, RUN_VARIABLES,
};
use super::variables::{Printed, Set};
use super::wrappers::assigned;
use super::{COMPUTED, Certainty, Judge, SCRIPT_DEPTH_MAX, written};
use crate::tools::exec::shell::{self, Simple, Word};

const OVERWRITES: &str = "overwrites or removes what others have";
/// Variables that name a setting of git and what it is set to; a number is behind them.
const KEY: &str = "GIT_CONFIG_KEY_";
const VALUE: &str = "GIT_CONFIG_VALUE_";

impl Judge<'_> {
    pub(super) fn git(&mut self, args: &[Word], printed: Printed, whole: &str, depth: usize) {
        if args.iter().any(|word| word.text.starts_with("alias.")) {
            self.certainty = Certainty::MayRunMore;
        }
        self.settings(args, whole, depth);
        let is_push = |word: &Word| GIT_PUSHES.contains(&word.text.as_str());
        if let Some(at) = args.iter().position(is_push) {
            let behind = args.get(at + 1..).unwrap_or_default();
            if !is_rehearsed(args.get(at), behind) {
                self.push_to_others(behind, whole);
            }
        }
        let Some((name, rest)) = subcommand(args) else {
            return;
        };
        self.may_be_any(name, args, rest, whole);
        let name = name.text.as_str();
        if GIT_PUSHES.contains(&name) {
            self.may_push_more(rest, printed, whole);
        }
        self.loses(name, args, rest, whole);
        self.loses_by_index(name, rest, whole);
        self.loses_commits(name, rest, whole);
        match name {
            "config" => self.configures(rest, whole, depth),
            "remote" if mirrors(rest) => self.raise("irreversible_command", whole, OVERWRITES),
            "submodule" => self.run_by_git("foreach", rest, depth),
            "bisect" => self.run_by_git("run", rest, depth),
            _ => {}
        }
        let options = Options::of(name, rest);
        for (_, letter, option) in GIT_RUNS.iter().filter(|(known, ..)| *known == name) {
            for command in options.values(*letter, option).flatten() {
                self.script(command, depth + 1);
            }
        }
        let alias = format!("git {}", name.to_ascii_lowercase());
        self.stands_for(&alias, rest, &Simple::default(), &[], depth);
    }

    /// `git push` and its like, by what stands behind.
    pub(super) fn push_to_others(&mut self, args: &[Word], whole: &str) {
        if is_forced(args) {
            self.raise("irreversible_command", whole, OVERWRITES);
        }
    }

    /// The command behind a word of `git submodule` or `git bisect`.
    fn run_by_git(&mut self, word: &str, args: &[Word], depth: usize) {
        let behind = args.iter().skip_while(|it| it.text != word).skip(1);
        let ran: Vec<Word> = behind
            .skip_while(|it| it.text.starts_with('-'))
            .cloned()
            .collect();
        if let [script] = ran.as_slice() {
            self.script(&script.text, depth + 1);
        } else if !ran.is_empty() && depth < SCRIPT_DEPTH_MAX {
            let simple = Simple {
                words: ran,
                ..Simple::default()
            };
            self.simple(&simple, &[], depth + 1);
        }
    }

    /// Settings for one command: `-c key=value`, `--config-env=key=NAME`.
    fn settings(&mut self, args: &[Word], whole: &str, depth: usize) {
        for (at, word) in args.iter().enumerate() {
            let text = word.text.as_str();
            let behind = args.get(at + 1).map(|word| word.text.as_str());
            let held = match text {
                "--config-env" => behind,
                _ => text.strip_prefix("--config-env="),
            };
            if let Some((key, variable)) = held.and_then(|it| it.rsplit_once('=')) {
                self.setting_held(key, variable, whole, depth);
            }
            let setting = match text {
                "-c" | "--config" => behind,
                _ => text
                    .strip_prefix("--config=")
                    .or_else(|| text.strip_prefix("-c")),
            };
            match setting.map(|it| (it, it.split_once('='))) {
                Some((_, Some((key, value)))) => self.setting(key, value, whole, depth),
                Some((key, None)) if key.contains('.') => self.setting(key, "true", whole, depth),
                _ => {}
            }
            if text.starts_with("--exec-path=") {
                self.certainty = Certainty::MayRunMore;
            }
        }
    }

    /// `git config key value`: whichever two words that may be.
    fn configures(&mut self, args: &[Word], whole: &str, depth: usize) {
        let words = || args.iter().filter(|word| !word.text.starts_with('-'));
        for (key, value) in words().zip(words().skip(1)) {
            if !key.text.contains('.') {
                continue;
            }
            if value.has_substitution && key.text.to_ascii_lowercase().starts_with("alias.") {
                self.raise("computed_command", whole, COMPUTED);
            }
            self.setting(&key.text, &value.text, whole, depth);
        }
    }

    /// Judges what a setting makes of later commands.
    fn setting(&mut self, key: &str, value: &str, whole: &str, depth: usize) {
        let key = key.to_ascii_lowercase();
        if forces(&key, value.trim()) {
            self.raise("irreversible_command", whole, OVERWRITES);
        }
        if is_harmless(&key) {
            return;
        }
        self.certainty = Certainty::MayRunMore;
        let value = value.trim_start_matches('=');
        let Some(alias) = key.strip_prefix("alias.") else {
            self.script(value.trim_start_matches('!'), depth + 1);
            return;
        };
        let command = value
            .strip_prefix('!')
            .map_or_else(|| format!("git {value}"), str::to_owned);
        self.script(&command, depth + 1);
        self.aliases.insert(format!("git {alias}"), command);
    }

    /// A setting whose value stands in a variable.
    fn setting_held(&mut self, key: &str, variable: &str, whole: &str, depth: usize) {
        let sets = self.variables.get(variable).cloned().unwrap_or_default();
        if sets.is_empty() {
            self.certainty = Certainty::MayRunMore;
        }
        for set in sets {
            match set {
                Set::To(value) => self.setting(key, &value, whole, depth),
                Set::Computed if !is_harmless(&key.to_ascii_lowercase()) => {
                    self.raise("computed_command", whole, COMPUTED);
                }
                Set::Computed | Set::ToName | Set::Untold => {
                    self.certainty = Certainty::MayRunMore;
                }
            }
        }
    }

    /// Variables of the environment that name a command, or settings of git. They have been noted.
    pub(super) fn environment(&mut self, words: &[Word], depth: usize) {
        let mut numbers = BTreeSet::new();
        for word in words {
            let Some((name, value)) = assigned(word) else {
                continue;
            };
            let prefixes = [KEY, VALUE].into_iter();
            numbers.extend(prefixes.filter_map(|it| name.strip_prefix(it)));
            let is_computed = word.has_substitution && (value.is_empty() || value.starts_with('$'));
            match name {
                "GIT_CONFIG_PARAMETERS" if word.has_substitution => {
                    self.raise("computed_command", &word.text, COMPUTED);
                }
                "GIT_CONFIG_PARAMETERS" => {
                    let set = shell::read(value).commands;
                    for word in set.iter().flat_map(|it| &it.words) {
                        let (key, value) = word
                            .text
                            .split_once('=')
                            .unwrap_or((word.text.as_str(), "true"));
                        self.setting(key, value, &word.text, depth);
                    }
                }
                "GIT_CONFIG" | "GIT_CONFIG_GLOBAL" | "GIT_CONFIG_SYSTEM" | "GIT_EXEC_PATH"
                    if value != "/dev/null" =>
                {
                    self.certainty = Certainty::MayRunMore;
                }
                _ if !RUN_VARIABLES.contains(&name) => {}
                _ if is_computed => self.raise("computed_command", &word.text, COMPUTED),
                _ => self.script(value, depth + 1),
            }
        }
        let whole = written(words);
        for number in numbers {
            let keys = self.variables.get(&format!("{KEY}{number}")).cloned();
            if keys.is_none() {
                // It comes from elsewhere, or later.
                self.certainty = Certainty::MayRunMore;
            }
            for key in keys.unwrap_or_default() {
                match key {
                    Set::To(key) => {
                        self.setting_held(&key, &format!("{VALUE}{number}"), &whole, depth);
                    }
                    _ => {
                        self.raise("computed_command", &whole, COMPUTED);
                    }
                }
            }
        }
    }
}

/// What git is to do, with the words behind it.
fn subcommand(args: &[Word]) -> Option<(&Word, &[Word])> {
    let mut rest = args;
    while let Some((first, behind)) = rest.split_first() {
        let text = first.text.as_str();
        if !text.starts_with('-') {
            return Some((first, behind));
        }
        let taken = usize::from(GIT_VALUED.contains(&text));
        rest = behind.get(taken..).unwrap_or_default();
    }
    None
}

/// `git push --dry-run`, which does nothing whatever else is there.
fn is_rehearsed(name: Option<&Word>, args: &[Word]) -> bool {
    let options = Options::of("push", args);
    let is_plain = |word: &Word| !word.has_variable && !word.has_substitution;
    name.is_some_and(|it| it.text == "push")
        && args.iter().all(is_plain)
        && options.has_surely('n', "dry-run")
        && !options.spelt().any(|name| name.starts_with("no-d"))
}

/// Whether a push overwrites or removes.
pub(super) fn is_forced(args: &[Word]) -> bool {
    let options = Options::of("push", args);
    let mut names = options.named.iter().chain(&options.may_be_named);
    options.has_letter('f')
        || options.has_letter('d')
        || GIT_FORCING.iter().any(|name| options.has_name(name))
        || options.spelt().any(|name| name.starts_with("force"))
        || names.any(|word| word.text.starts_with(['+', ':']))
}

/// Whether a setting makes later pushes overwrite or remove.
fn forces(key: &str, value: &str) -> bool {
    let name = key.rsplit('.').next().unwrap_or_default();
    let is_off = ["false", "no", "off", "0", ""];
    key.starts_with("remote.")
        && match name {
            "push" => value.starts_with(['+', ':']),
            "mirror" => !is_off.contains(&value.to_ascii_lowercase().as_str()),
            _ => false,
        }
}

/// Whether a setting, in small letters, names no command.
fn is_harmless(key: &str) -> bool {
    let name = key.rsplit('.').next().unwrap_or_default();
    let is_place = key.starts_with("remote.") && !matches!(name, "receivepack" | "uploadpack");
    is_place || GIT_HARMLESS.iter().any(|known| key.starts_with(known))
}

/// `git remote add --mirror=push`
fn mirrors(args: &[Word]) -> bool {
    let options = Options::of("remote", args);
    let mut values = options.values(NO_LETTER, "mirror");
    values.any(|value| value != Some("fetch"))
}
