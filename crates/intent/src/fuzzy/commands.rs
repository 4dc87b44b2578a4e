//! Command lines that stand in prose without marks: "run tail -n 5 a.log and see".

use std::collections::HashSet;
use std::sync::LazyLock;

use super::lists;
use super::table::{FURTHER_PROGRAMS, PROGRAMS};

/// Words of one command that are looked at.
const WORDS_MAX: usize = 24;

/// Programs that are run as they are, behind a word that says so.
const LONE: &[&str] = &[
    "ls",
    "pwd",
    "date",
    "whoami",
    "uptime",
    "make",
    "df",
    "env",
    "hostname",
    "pytest",
    "nproc",
    "lscpu",
    "uname",
    "ps",
    "printenv",
    "nvidia-smi",
    "lsof",
];
/// Words before such programs.
pub(super) const LEADS: &[&str] = &[
    "run",
    "running",
    "execute",
    "executing",
    "command",
    "exec",
    "rerun",
    "try",
];
/// Programs whose names are everyday words: what they are given has to look like a command.
static EVERYDAY: LazyLock<&[&str]> = LazyLock::new(|| lists::list("everyday programs"));
/// What programs are told to do.
static SUBCOMMANDS: LazyLock<&[&str]> = LazyLock::new(|| lists::list("subcommands"));
/// Words that end a command, for no command has them.
static PROSE: LazyLock<&[&str]> = LazyLock::new(|| lists::list("ends command"));

/// Programs that are everyday words, and only what they are given tells.
pub(super) fn everyday_programs() -> Vec<&'static str> {
    programs().filter(|it| is_everyday(it)).collect()
}

/// All other programs.
pub(super) fn distinct_programs() -> Vec<&'static str> {
    programs().filter(|it| !is_everyday(it)).collect()
}

fn programs() -> impl Iterator<Item = &'static str> {
    PROGRAMS.iter().chain(FURTHER_PROGRAMS).copied()
}

fn is_everyday(program: &str) -> bool {
    EVERYDAY.contains(&program)
}

/// Where the command ends that begins at this word, when one does.
pub(super) fn command_end(text: &str, at: usize) -> Option<usize> {
    let first = word(text, at);
    let program = first.trim_end_matches([',', '.', ';', ':']);
    let is_script = program.starts_with("./") && program.len() > 3;
    let is_last = program.len() < first.len();
    if is_last && !LONE.contains(&program) || !is_script && !is_program(program) {
        return None;
    }
    let mut end = at + program.len();
    let led = || {
        let before = text[..at].trim_end();
        let last = before
            .rsplit(char::is_whitespace)
            .next()
            .unwrap_or_default();
        LEADS.contains(&last.to_lowercase().as_str())
    };
    let mut shelly = is_script || LONE.contains(&program) && led();
    let everyday = EVERYDAY.contains(&program);
    let mut may_be = false;
    let mut is_operand = false;
    for number in 0..WORDS_MAX {
        let rest = &text[end..];
        let blank = rest.len() - rest.trim_start_matches(' ').len();
        let from = end + blank;
        if blank == 0 || from >= text.len() || text[from..].starts_with('\n') {
            break;
        }
        let raw = word(text, from);
        let is_operator = matches!(
            raw,
            "|" | "&&" | "||" | ";" | ">" | ">>" | "<" | "2>&1" | "&" | "--"
        );
        let bare = raw.trim_end_matches([',', '.', ';', ':', '!', '?']);
        // The folder that one is in, and the folder above.
        let bare = if matches!(raw, "." | ".." | "./" | "-" | "--") {
            raw
        } else {
            bare
        };
        let is_subcommand = number == 0 && SUBCOMMANDS.contains(&bare);
        if bare.is_empty()
            || raw.starts_with(['(', '`', '“', '„', '«', '→', '—', '–'])
            || raw == "->"
            || !is_operator && !is_operand && !is_subcommand && PROSE.contains(&bare)
            || !bare.is_ascii() && !looks_shelly(bare)
        {
            break;
        }
        let looks = is_operator || looks_shelly(bare);
        if !looks && !is_operand && !bare.starts_with(|letter: char| letter.is_ascii_alphanumeric())
        {
            break;
        }
        let is_sign = is_flag(bare) || matches!(bare, "." | "..") || bare.contains('/');
        may_be |= number == 0 && (is_sign || is_subcommand);
        shelly |= if everyday {
            is_operator || may_be && is_sign
        } else {
            looks || is_subcommand
        };
        is_operand = is_operator;
        end = from + bare.len();
        if bare.len() < raw.len() {
            break;
        }
    }
    shelly.then_some(end)
}

fn is_flag(word: &str) -> bool {
    let name = word.trim_start_matches('-');
    name.len() < word.len() && name.starts_with(|letter: char| letter.is_ascii_alphanumeric())
}

/// Whether no everyday word looks like this: flags, paths, quotations, patterns.
fn looks_shelly(word: &str) -> bool {
    is_flag(word)
        || word.starts_with(['"', '\'', '.', '/', '~', '$', '*'])
        || word.contains(['/', '=', '$', '*', '|', '<', '>', '@', '_', ':', '\\'])
        || word.contains('.') && !word.ends_with('.')
        || word.bytes().all(|byte| byte.is_ascii_digit())
}

/// The word at a place, with what it has between marks.
fn word(text: &str, at: usize) -> &str {
    let rest = &text[at..];
    let mut mark = None;
    for (place, letter) in rest.char_indices() {
        match mark {
            Some(open) if letter == open => mark = None,
            None if matches!(letter, '"' | '\'') && rest[place + 1..].contains(letter) => {
                mark = Some(letter);
            }
            None if letter.is_whitespace() || matches!(letter, '，' | '。' | '`') => {
                return &rest[..place];
            }
            Some(_) | None => {}
        }
    }
    rest
}

/// Whether a text in marks is a command line.
pub(super) fn is_command(text: &str) -> bool {
    let program = text.split_whitespace().next().unwrap_or_default();
    program.starts_with("./") || is_program(program)
}

fn is_program(word: &str) -> bool {
    static ALL: LazyLock<HashSet<&str>> = LazyLock::new(|| programs().collect());
    ALL.contains(word)
}
