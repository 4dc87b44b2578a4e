//! What happens on other machines: in their shells, their databases, their clouds.

use std::path::Path;

use super::tables::{AWS_REMOVES, DROPPED, REMOVES_CLOUD, SSH_VALUED};
use super::{Judge, Setters, input, program, written};
use crate::tools::exec::shell::{self, Simple, Word};

/// No path leads into the workspace there.
const THERE: &str = "/another machine";

impl Judge<'_> {
    /// Judges what a shell on another machine is given as that. Every path is outside there.
    pub(super) fn ssh(
        &mut self,
        args: &[Word],
        simple: &Simple,
        all: &[Simple],
        depth: usize,
        whole: &str,
    ) {
        let (workspace, places) = (self.workspace, std::mem::take(&mut self.places));
        let aside = std::mem::take(&mut self.aside);
        self.workspace = Path::new(THERE);
        self.places = vec![None];
        // What is set here is not set there.
        let before = std::mem::replace(&mut self.setters, Setters::Unknown);
        let command = written(behind_host(args));
        self.script(&command, depth + 1);
        let first = shell::read(&command).commands.into_iter().next();
        let runs_input = first.is_none_or(|first| {
            let words = first.words;
            let name = words.first().map(program);
            let args = words.get(1..).unwrap_or_default();
            name.is_some_and(|name| {
                input::is_interpreter(name) && input::reads_its_program(name, args)
            })
        });
        if runs_input {
            let fed = self.fed(simple, all);
            if let Some(text) = &fed.text {
                self.script(text, depth + 1);
            } else {
                self.feeding.runs();
            }
            if fed.is_unknown || !simple.reads.is_empty() {
                let what = "runs elsewhere what another command prints";
                self.raise("unreadable_command", whole, what);
            }
        }
        (self.workspace, self.places, self.aside) = (workspace, places, aside);
        self.setters = before;
    }

    /// Statements for a database.
    pub(super) fn database(&mut self, args: &[Word], simple: &Simple, all: &[Simple], whole: &str) {
        let fed = self.fed(simple, all).text.unwrap_or_default();
        if removes_data(&written(args)) || removes_data(&fed) {
            self.raise("irreversible_command", whole, super::DROPS_DATA);
        }
        if simple.reads_from.is_none() {
            self.feeding.states();
        }
    }

    pub(super) fn aws(&mut self, args: &[Word], whole: &str) {
        let has = |known: &str| args.iter().any(|word| word.text == known);
        let removes = args.iter().any(|word| {
            let mut begins = AWS_REMOVES.iter();
            begins.any(|begin| word.text.starts_with(begin))
        });
        let in_store = (has("s3") || has("s3api")) && (has("rm") || has("rb") || has("--delete"));
        if removes || in_store {
            self.raise("irreversible_command", whole, REMOVES_CLOUD);
        }
    }
}

/// The words behind the machine's name, which options may stand on both sides of.
fn behind_host(args: &[Word]) -> &[Word] {
    let mut has_host = false;
    let mut rest = args;
    while let Some(word) = rest.first() {
        let letters = word.text.strip_prefix('-').filter(|it| !it.is_empty());
        match letters {
            Some("-") => {
                let skipped = if has_host { 1 } else { 2 };
                return rest.get(skipped..).unwrap_or_default();
            }
            Some(letters) => {
                // The last letter of several may have the next word for its value.
                let at = letters.find(|letter| SSH_VALUED.contains(letter));
                let takes_next = at.is_some_and(|at| at + 1 == letters.len());
                rest = rest.get(1 + usize::from(takes_next)..).unwrap_or_default();
            }
            None if has_host => return rest,
            None => {
                has_host = true;
                rest = rest.get(1..).unwrap_or_default();
            }
        }
    }
    rest
}

/// Whether a statement among these drops or empties something.
pub(super) fn removes_data(text: &str) -> bool {
    text.to_ascii_uppercase().split(';').any(|statement| {
        let words: Vec<&str> = statement
            .split(|sign: char| sign != '_' && !sign.is_ascii_alphanumeric())
            .filter(|word| !word.is_empty())
            .collect();
        let has = |known: &str| words.contains(&known);
        let pair = |first: &str, second: &[&str]| {
            let mut pairs = words.iter().zip(words.iter().skip(1));
            pairs.any(|(one, two)| {
                // `mysql -e'DROP …'`: an option's letter stands before it.
                let one = one.strip_prefix('E').unwrap_or(one);
                one == first && second.contains(two)
            })
        };
        pair("DROP", DROPPED)
            || (pair("DELETE", &["FROM"]) && !has("WHERE"))
            || [
                "TRUNCATE",
                "ETRUNCATE",
                "FLUSHALL",
                "FLUSHDB",
                "DROPDATABASE",
            ]
            .into_iter()
            .any(has)
    })
}
