//! Which commands a person has to see first.
//!
//! A command is read, not run: every simple command in it, also inside `$(…)`, `sh -c`, `eval`,
//! `xargs` and here-documents, is held against the tables below. This raises the tier of what is
//! plainly irreversible; it is no confinement, and does not claim to know what a script does.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use holdfast_contract::Reason;

use self::bounds::Extent;
use self::elsewhere::Keeps;
use self::feeding::{Feeding, ReadAs};
use self::functions::{Body, Called};
use self::paths::is_device;
pub(super) use self::paths::normal;
pub(super) use self::people::answers_for_people;
pub(super) use self::ran::runs;
use self::tables::{DATABASES, DESTROYERS};
pub(super) use self::temporary::Temporary;
use self::variables::{Variables, printed};
use super::confined::lets_out;
use super::shell::{self, Script, Simple, Splitting, Word};

mod actions;
mod aliases;
mod arguments;
mod assign;
mod bounds;
mod braces;
mod carriers;
mod certain;
mod choices;
mod code;
mod deciding;
mod deeds;
mod directories;
mod disk;
mod downloads;
mod elsewhere;
mod expansion;
mod feeders;
mod feeding;
mod files;
mod functions;
mod git;
mod hands;
mod here;
mod input;
mod losses;
mod makefile;
mod options;
mod parted;
mod paths;
mod people;
mod programs;
mod ran;
mod reading;
mod reasons;
mod rounds;
mod runners;
mod scripts;
mod sed;
mod tables;
mod temporary;
mod variables;
mod wipes;
mod wrappers;

/// Characters of a command in a reason.
const SUBJECT_CHARS_MAX: usize = 200;
/// Scripts inside scripts (`sh -c`, `eval`, here-documents) that are followed.
const SCRIPT_DEPTH_MAX: usize = 8;
/// Directories a command may be in that are told apart; each `cd` can double them.
const PLACES_MAX: usize = 64;
/// Reasons that are told apart; whatever comes after them is one more.
const REASONS_MAX: usize = 64;

const COMPUTED: &str = "runs a command that is only known when it runs";
const DROPS_DATA: &str = "removes what a database holds";

/// A command with all that decides what it does.
#[derive(Debug, Clone, Copy)]
pub(super) struct Judged<'a> {
    pub(super) command: &'a str,
    /// What it can read.
    pub(super) stdin: Option<&'a str>,
    pub(super) workspace: &'a Path,
    pub(super) working_dir: Option<&'a str>,
    pub(super) temporary: Temporary,
}

/// Everything in the command, and in what it is given to run, that a person has to see.
pub(super) fn reasons(judged: &Judged<'_>) -> Vec<Reason> {
    let found = judge(judged).found;
    // Approved, it is let out, and then what is left of `$TMPDIR` is another one, or none.
    if judged.relies_on_temporary() && found.iter().any(lets_out) {
        let judged = Judged {
            temporary: Temporary::Anywhere,
            ..*judged
        };
        return judge(&judged).found;
    }
    found
}

fn judge<'a>(judged: &Judged<'a>) -> Judge<'a> {
    let start = match judged.working_dir {
        Some(dir) => judged.workspace.join(dir),
        None => judged.workspace.to_owned(),
    };
    let mut judge = Judge {
        workspace: judged.workspace,
        places: vec![Some(normal(&start))],
        aside: Vec::new(),
        keeps: Keeps::Files,
        depth: 0,
        binding: Binding::ToPlaces,
        whole: None,
        judged: *judged,
        feeding: Feeding::new(judged.stdin),
        downloaded: BTreeSet::new(),
        variables: BTreeMap::new(),
        aliases: BTreeMap::new(),
        functions: BTreeMap::new(),
        called: BTreeMap::new(),
        handlers: BTreeSet::new(),
        followed: 0,
        noted: 0,
        is_repeated: false,
        judged_commands: 0,
        judged_bytes: 0,
        looked_bytes: 0,
        looks: 0,
        extent: Extent::Whole,
        called_commands: 0,
        loop_is_fed: false,
        found: Vec::new(),
        said: BTreeSet::new(),
        unclear: BTreeSet::new(),
        setters: Setters::Known,
        is_shifted: false,
        ways: 0,
        runs: Vec::new(),
        open: BTreeSet::new(),
        certainty: Certainty::Known,
    };
    judge.script(judged.command, 0);
    for handler in std::mem::take(&mut judge.handlers) {
        judge.script(&handler, 1);
    }
    judge.standard_input();
    // What came last may have been more than is judged.
    judge.is_too_much();
    judge
}

/// What a later command has to share for an answer to cover it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Binding {
    /// The simple command, and where it may run: its words say all else.
    ToPlaces,
    /// Everything: what it does depends on a variable, a substitution or what it reads.
    ToAll,
}

/// Whether all that sets variables can be named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Setters {
    Known,
    Unknown,
}

struct Judge<'a> {
    workspace: &'a Path,
    judged: Judged<'a>,
    binding: Binding,
    /// The digest of the command and its input, once it was needed.
    whole: Option<String>,
    /// Where a command may run: every directory a `cd` before it named, `None` when that is only
    /// known when it runs. A relative path is judged in all of them, because a subshell ends and
    /// `&&` may not be reached.
    places: Vec<Option<PathBuf>>,
    /// Where it may be again once those are over that are certainly in `places`.
    aside: Vec<Option<PathBuf>>,
    keeps: Keeps,
    /// How many scripts the one that is read stands in.
    depth: usize,
    /// What the commands make of the standard input.
    feeding: Feeding<'a>,
    /// Names of files that were downloaded.
    downloaded: BTreeSet<String>,
    /// What the command line has set, what names it has given to commands (`git x` for those that
    /// git knows), its functions, how many of the first two were run, and whether a loop reads a file.
    variables: Variables,
    aliases: BTreeMap<String, String>,
    functions: BTreeMap<String, Vec<Body>>,
    /// The functions that are being judged.
    called: BTreeMap<String, Called>,
    /// What `trap` runs when all else has run.
    handlers: BTreeSet<String>,
    followed: usize,
    loop_is_fed: bool,
    /// How often a variable was seen to hold something new, and whether this is not the first round of
    /// a loop.
    noted: usize,
    is_repeated: bool,
    /// How many commands were judged, bytes of scripts and of what variables hold, those that were
    /// looked at for words and reasons, looks at the disk, and whether all of it is judged.
    judged_commands: usize,
    judged_bytes: usize,
    looked_bytes: usize,
    looks: usize,
    extent: Extent,
    /// How many commands of functions were judged once more.
    called_commands: usize,
    found: Vec<Reason>,
    /// Variables that are not only set to what stands in the command line, and whether something sets
    /// variables that nobody can name.
    unclear: BTreeSet<String>,
    setters: Setters,
    /// What was said of the current command, by its code, and how many ways of commands are followed
    /// within one another.
    said: BTreeSet<(String, String)>,
    ways: usize,
    /// Arguments were taken away before others: `shift`.
    is_shifted: bool,
    /// What is run; empty words where that is not known.
    runs: Vec<Vec<String>>,
    /// See [`ran::Runs::open`].
    open: BTreeSet<String>,
    certainty: Certainty,
}

/// Whether everything that is run was noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Certainty {
    Known,
    /// A program is told to run something in a way that is not read in full.
    MayRunMore,
}

impl Judge<'_> {
    fn script(&mut self, text: &str, depth: usize) {
        if self.may_read(text) {
            self.read_script(text, shell::read(text), depth);
        }
    }

    /// Judges a script that has been counted and taken apart.
    fn read_script(&mut self, text: &str, script: Script, depth: usize) {
        if is_fork_bomb(text) {
            self.raise("fork_bomb", text, "multiplies itself without end");
        }
        if script.is_unreadable || depth >= SCRIPT_DEPTH_MAX {
            self.raise("unreadable_command", text, "can not be read in full");
        }
        if depth >= SCRIPT_DEPTH_MAX {
            // `eval eval eval …` would take all of the stack.
            return;
        }
        let is_fed = |simple: &Simple| simple.input.is_some() || !simple.reads.is_empty();
        let mut ends = script.commands.iter().filter(|simple| simple.ends_loop());
        self.loop_is_fed |= ends.any(is_fed);
        let commands = self.note_functions(script);
        let around = std::mem::replace(&mut self.depth, depth);
        self.in_order(&commands, 0..commands.len(), depth);
        self.depth = around;
    }

    fn simple(&mut self, simple: &Simple, all: &[Simple], depth: usize) {
        self.judged_commands += 1;
        if self.is_too_much() {
            return;
        }
        if depth > 0 {
            // What others run, git or `find`, they may run elsewhere.
            self.widen();
        }
        let before = self.binding;
        let said = if self.ways == 0 {
            std::mem::take(&mut self.said)
        } else {
            BTreeSet::new()
        };
        let mut words = simple.words.iter().chain(&simple.writes);
        let depends = simple.input.is_some()
            || simple.reads_from.is_some()
            || words.any(|word| word.has_variable || word.has_substitution || word.is_home);
        if depends {
            self.binding = Binding::ToAll;
        }
        self.simple_bound(simple, all, depth);
        self.simple_resolved(simple, all, depth);
        self.simple_spread(simple, all, depth);
        self.simple_parted(simple, all, depth);
        self.binding = before;
        self.said.extend(said);
    }

    /// Judges the command once more with what its variables hold, as far as the command line sets
    /// them. It is judged without, too: something that was not seen may set them to something else.
    fn simple_resolved(&mut self, simple: &Simple, all: &[Simple], depth: usize) {
        let words = self.resolved(&simple.words);
        let writes = self.resolved(&simple.writes);
        if words.is_none() && writes.is_none() {
            return;
        }
        let resolved = Simple {
            words: words.unwrap_or_else(|| simple.words.clone()),
            writes: writes.unwrap_or_else(|| simple.writes.clone()),
            ..simple.clone()
        };
        self.simple_bound(&resolved, all, depth);
        self.simple_in_each_way(simple, &resolved, all, depth);
    }

    fn simple_bound(&mut self, simple: &Simple, all: &[Simple], depth: usize) {
        if !self.may_look_at(simple) {
            return;
        }
        let whole = shown(&simple.words);
        self.overwrites(simple, &whole);
        if simple.ends_subshell.is_some() {
            return;
        }
        let words = self.unwrapped(&simple.words, &whole);
        let before = simple.words.len() - words.len();
        let set = simple.words.get(..before).unwrap_or_default();
        self.note_assignments(set, simple, all);
        if let Some(array) = &simple.fills {
            self.note_array(array, &simple.words);
        }
        self.note_defaults(simple);
        self.environment(set, depth);
        self.fed_by_words(words, simple, all, depth);
        let Some(first) = words.first() else { return };
        let (name, args) = (program(first), words.get(1..).unwrap_or_default());
        self.note_run(words);
        let option = set.last().map(|word| word.text.as_str());
        if matches!(option, Some("-c" | "--command")) {
            // `flock x -c '…'`: not a program, but a script.
            self.script(&first.text, depth + 1);
        }
        self.hands_on(words, simple, all, depth, &whole);
        self.stands_for(&first.text, args, simple, all, depth);
        self.calls(&first.text, args, simple, all, depth);
        if first.has_substitution || first.has_pattern() {
            self.raise("computed_command", &whole, COMPUTED);
        }
        if input::is_interpreter(name) {
            self.interpreter(name, args, simple, all, depth, &whole);
        }
        self.runs_downloaded(words, simple, &whole);
        self.note_downloads(name, args, simple, all);
        self.note_set(name, args, simple, all);
        if let Some((_, what)) = DESTROYERS.iter().find(|(known, _)| *known == name) {
            self.raise("destructive_command", &whole, what);
        }
        if name.starts_with("mkfs") {
            self.raise("destructive_command", &whole, "erases what was on a device");
        }
        self.does(name, args, simple, all, &whole);
        match name {
            "rm" | "rmdir" | "unlink" | "truncate" => self.removal(name, args, &whole),
            "chmod" | "chown" | "chgrp" => {
                self.removal(name, &wipes::without_first_name(args), &whole);
            }
            "mv" => self.removal(name, &wipes::moved(args), &whole),
            "cp" | "tee" | "install" if args.iter().any(|word| is_device(&word.text)) => {
                self.raise("destructive_command", &whole, "writes to a device");
            }
            "dd" => self.disk_dump(args, &whole),
            "find" => self.find(args, &whole, depth),
            "rsync" => {
                self.synchronises(args, &whole);
                self.carried(name, args, depth);
            }
            "zip" => self.moves_into_archive(args, &whole),
            "git" => self.git(args, printed(simple, all), &whole, depth),
            "git-push" | "git-send-pack" => {
                self.push_to_others(args, &whole);
                self.may_push_more(args, printed(simple, all), &whole);
            }
            "export" | "declare" | "local" | "readonly" | "typeset" => {
                self.environment(args, depth);
            }
            "kill" if args.iter().skip(1).any(|word| word.text == "-1") => {
                self.raise("destructive_command", &whole, "ends every process");
            }
            "cd" | "pushd" => self.change_dir(args),
            "trap" | "awk" | "gawk" | "mawk" | "nawk" | "sed" | "sort" | "su" | "script"
            | "make" => {
                self.carried(name, args, depth);
            }
            "tar" => {
                self.archive(args, &whole);
                self.carried(name, args, depth);
            }
            "ssh" => {
                self.carried(name, args, depth);
                self.ssh(args, simple, all, depth, &whole);
            }
            "aws" => self.aws(args, &whole),
            _ if DATABASES.contains(&name) => self.database(args, simple, all, &whole),
            // A name may mean another command from here on.
            "alias" | "hash" | "enable" if !args.is_empty() => {
                self.certainty = Certainty::MayRunMore;
                if name == "alias" {
                    self.note_aliases(args, &whole, depth);
                }
            }
            _ if first.has_variable || first.has_pattern() => {
                self.any_command(first, args, &whole, depth);
            }
            _ => {}
        }
    }

    /// A command that is not known: it could be `rm`, and the words of its braces arguments.
    fn any_command(&mut self, first: &Word, args: &[Word], whole: &str, depth: usize) {
        self.feeding.is_read_as(ReadAs::Commands);
        let braced = first.text.trim_matches(['{', '}']).split(',');
        let spelt = braced.filter(|_| first.has_pattern()).map(|text| Word {
            text: text.to_owned(),
            ..Word::default()
        });
        let args: Vec<Word> = spelt.skip(1).chain(args.iter().cloned()).collect();
        self.removal("rm", &args, whole);
        self.follow(first, &args, whole, depth);
        // Where it holds nothing, what is behind it is the command.
        let vanishes = first.splitting == Splitting::Splits && first.text.starts_with('$');
        let is_command = |word: &Word| !word.text.starts_with(['-', '$']);
        if vanishes && args.first().is_some_and(is_command) && depth < SCRIPT_DEPTH_MAX {
            let simple = Simple {
                words: args,
                ..Simple::default()
            };
            self.simple(&simple, &[], depth + 1);
        }
    }
}

fn program(word: &Word) -> &str {
    word.text.rsplit('/').next().unwrap_or_default()
}

fn written(words: &[Word]) -> String {
    let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    texts.join(" ")
}

/// The words as they were written, for people.
fn shown(words: &[Word]) -> String {
    let texts: Vec<Cow<'_, str>> = words.iter().map(Word::shown).collect();
    texts.join(" ")
}

/// `name() { name | name & }; name`
fn is_fork_bomb(text: &str) -> bool {
    let bare: String = text.chars().filter(|sign| !sign.is_whitespace()).collect();
    bare.split_once("(){").is_some_and(|(before, body)| {
        let name = before.rsplit([';', '&', '|']).next().unwrap_or_default();
        !name.is_empty() && body.starts_with(&format!("{name}|{name}&}}"))
    })
}

#[cfg(test)]
mod amounts;
#[cfg(test)]
mod evasions;
#[cfg(test)]
mod grouped;
#[cfg(test)]
mod handed;
#[cfg(test)]
mod stand_ins;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod unknowns;
#[cfg(test)]
mod ways;
