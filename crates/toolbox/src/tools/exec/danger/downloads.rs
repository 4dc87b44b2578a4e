//! What was just downloaded and is then run.

use super::tables::{DOWNLOADERS, INTERPRETER_VALUED, SHELLS};
use super::{Judge, input, program};
use crate::tools::exec::shell::{Simple, Word};

impl Judge<'_> {
    /// Notes the files that a download ends up in, by their names: a `cd` may stand between.
    pub(super) fn note_downloads(
        &mut self,
        name: &str,
        args: &[Word],
        simple: &Simple,
        all: &[Simple],
    ) {
        let is_one = DOWNLOADERS.contains(&name);
        if is_one {
            for (at, word) in args.iter().enumerate() {
                let behind = args.get(at + 1);
                let file = match output_of(&word.text) {
                    Some("") => behind.map(|word| word.text.as_str()),
                    Some(attached) => Some(attached),
                    // Without a name for it, it is that of its address.
                    None => word.text.contains("://").then_some(word.text.as_str()),
                };
                self.downloaded.extend(file.map(base));
            }
        }
        let copies = args.iter().filter(|_| name == "tee");
        let files: Vec<&Word> = simple.writes.iter().chain(copies).collect();
        if !files.is_empty() && (is_one || input::is_download(simple, all)) {
            let names = files.into_iter().map(|word| base(&word.text));
            self.downloaded.extend(names);
        }
    }

    /// Whether a command runs one of them.
    pub(super) fn runs_downloaded(&mut self, words: &[Word], simple: &Simple, whole: &str) {
        let Some((first, args)) = words.split_first() else {
            return;
        };
        if self.downloaded.is_empty() {
            return;
        }
        let is_one = |word: &Word| {
            let computed = word.has_variable || word.has_substitution || word.has_pattern();
            computed || self.downloaded.contains(&base(&word.text))
        };
        let itself = first.text.contains('/') && !first.has_variable && is_one(first);
        let interprets = input::is_interpreter(program(first));
        let script = script(program(first), args).filter(|_| interprets);
        let fed = simple.reads.iter().filter(|_| interprets);
        if itself || script.into_iter().chain(fed).any(is_one) {
            self.raise("runs_download", whole, "runs what it downloads");
        }
    }
}

/// What an option says about where a download goes: its value, or nothing where that is the next
/// word. `-so x`, `-O`, `--output=x`.
fn output_of(option: &str) -> Option<&str> {
    if let Some(long) = option.strip_prefix("--output") {
        return Some(long.split_once('=').map_or("", |(_, value)| value));
    }
    let letters = option.strip_prefix('-').filter(|it| !it.starts_with('-'))?;
    let at = letters.find(['o', 'O'])?;
    letters.get(at + 1..)
}

/// The script among the arguments of an interpreter.
fn script<'w>(name: &str, args: &'w [Word]) -> Option<&'w Word> {
    let mut rest = args.iter();
    while let Some(word) = rest.next() {
        let text = word.text.as_str();
        let is_inline = matches!(text, "-e" | "-m" | "--eval") && !SHELLS.contains(&name);
        if is_inline || text == "-c" {
            return None;
        }
        if INTERPRETER_VALUED.contains(&text) {
            rest.next();
        } else if !text.starts_with(['-', '+']) {
            return Some(word);
        }
    }
    None
}

/// The name of a file, also of one behind an address.
fn base(path: &str) -> String {
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let name = path.trim_end_matches('/').rsplit('/').next();
    name.unwrap_or_default().to_owned()
}
