//! Where an interpreter has its program from, by its own rules for options.

use super::input::{inline, is_interpreter};
use super::tables::{INTERPRETER_VALUED, SHELLS};
use crate::tools::exec::shell::Word;

/// Where an interpreter has its program from.
pub(super) enum Given<'w> {
    /// It stands there, in one part or several.
    Here(Vec<Spelt<'w>>),
    /// It is the first word that is read, or may be.
    Read,
    /// From a file, or it is none that takes a program in its arguments.
    File,
}

/// A program in an argument, which may be all of a word or what stands behind an option in it.
pub(super) struct Spelt<'w> {
    pub(super) word: &'w Word,
    pub(super) text: &'w str,
}

/// The letters of an interpreter's options.
struct Letters {
    name: &'static str,
    /// With the program behind them, in the same word or the next.
    program: &'static str,
    /// With a value behind them, in the same word or the next.
    valued: &'static str,
    /// With the rest of their word as a value, if there is one.
    attached: &'static str,
    /// With a file or a module behind them that is the program.
    file: &'static str,
}

const fn letters(
    name: &'static str,
    program: &'static str,
    valued: &'static str,
    attached: &'static str,
    file: &'static str,
) -> Letters {
    Letters {
        name,
        program,
        valued,
        attached,
        file,
    }
}

const LETTERS: &[Letters] = &[
    letters("bun", "ep", "r", "", ""),
    letters("lua", "e", "l", "", ""),
    letters("node", "ep", "rC", "", ""),
    letters("perl", "eE", "I", "CDFMVdimx", ""),
    letters("php", "rBRE", "cdtz", "", "fFS"),
    letters("python", "c", "WX", "", "m"),
    letters("ruby", "e", "CEIr", "FKTWix", ""),
    letters("tclsh", "", "", "", ""),
];
/// Options in words that have the program behind them.
const NAMED: &[&str] = &[
    "--eval",
    "--print",
    "--process-begin",
    "--process-code",
    "--process-end",
    "--run",
];
/// Interpreters of which `-pe` is two options, and not one with a program of one letter.
const BUNDLING: &[&str] = &["bun", "node"];

pub(super) fn given_program<'w>(name: &str, args: &'w [Word]) -> Given<'w> {
    match name {
        _ if SHELLS.contains(&name) => given_to_shell(args),
        "deno" => given_to_deno(args),
        "pwsh" => given_to_pwsh(args),
        _ => match LETTERS.iter().find(|it| it.name == name) {
            Some(letters) => given_by_letters(letters, args),
            // How it is told is not known.
            None if is_interpreter(name) => Given::Read,
            None => Given::File,
        },
    }
}

fn given_to_shell(args: &[Word]) -> Given<'_> {
    let takes_script = |word: &Word| is_bundle(&word.text) && word.text.contains('c');
    match inline(args) {
        Some(script) => Given::Here(vec![whole(script)]),
        None if args.iter().any(takes_script) => Given::Read,
        None => Given::File,
    }
}

/// `deno eval '…'`: a word decides, and not an option.
fn given_to_deno(args: &[Word]) -> Given<'_> {
    let mut rest = args.iter().skip_while(|word| word.text.starts_with('-'));
    match rest.next().map(|word| word.text.as_str()) {
        Some("eval") => match rest.find(|word| !word.text.starts_with('-')) {
            Some(script) => Given::Here(vec![whole(script)]),
            None => Given::Read,
        },
        Some(_) => Given::File,
        None => Given::Read,
    }
}

/// All that stands behind `-Command` is part of the program, so what is read is too.
fn given_to_pwsh(args: &[Word]) -> Given<'_> {
    for word in args {
        let Some(option) = word.text.strip_prefix('-') else {
            continue;
        };
        let option = option.trim_start_matches('-').to_ascii_lowercase();
        let is_begun = |known: &str| !option.is_empty() && known.starts_with(&option);
        if is_begun("file") {
            break;
        }
        if is_begun("commandwithargs")
            || is_begun("encodedcommand")
            || matches!(&*option, "ec" | "cwa")
        {
            return Given::Read;
        }
    }
    Given::File
}

fn given_by_letters<'w>(letters: &Letters, args: &'w [Word]) -> Given<'w> {
    let mut found = Vec::new();
    let mut rest = args.iter();
    while let Some(word) = rest.next() {
        match option(letters, &word.text) {
            Means::Program("") => match rest.next() {
                Some(script) => found.push(whole(script)),
                None => return Given::Read,
            },
            Means::Program(text) => found.push(Spelt { word, text }),
            Means::Value => {
                rest.next();
            }
            Means::Flags => {}
            Means::End => break,
        }
        if letters.name == "python" && !found.is_empty() {
            // All else are arguments of the program.
            break;
        }
    }
    if found.is_empty() {
        Given::File
    } else {
        Given::Here(found)
    }
}

/// What a word means to an interpreter.
enum Means<'t> {
    /// The program stands here, or in the next word if this is empty.
    Program(&'t str),
    /// The next word is its value.
    Value,
    Flags,
    /// What follows is no option.
    End,
}

fn option<'t>(letters: &Letters, text: &'t str) -> Means<'t> {
    if text.starts_with("--") {
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        return match name {
            _ if NAMED.contains(&name) => Means::Program(value),
            "--" => Means::End,
            _ if INTERPRETER_VALUED.contains(&text) => Means::Value,
            _ => Means::Flags,
        };
    }
    let Some(given) = text.strip_prefix('-').filter(|it| !it.is_empty()) else {
        return Means::End;
    };
    for (at, letter) in given.char_indices() {
        let behind = given.get(at + letter.len_utf8()..).unwrap_or_default();
        if letters.program.contains(letter) {
            let is_more = BUNDLING.contains(&letters.name)
                && behind.chars().all(|it| it.is_ascii_alphanumeric());
            return Means::Program(if is_more { "" } else { behind });
        }
        if letters.file.contains(letter) {
            return Means::End;
        }
        if letters.valued.contains(letter) && behind.is_empty() {
            return Means::Value;
        }
        if letters.valued.contains(letter) || letters.attached.contains(letter) {
            return Means::Flags;
        }
    }
    Means::Flags
}

fn whole(word: &Word) -> Spelt<'_> {
    Spelt {
        word,
        text: &word.text,
    }
}

/// Whether it is one letter behind a dash, or several.
pub(super) fn is_bundle(option: &str) -> bool {
    let letters = option.strip_prefix('-').unwrap_or_default();
    !letters.is_empty() && letters.chars().all(|it| it.is_ascii_alphanumeric())
}
