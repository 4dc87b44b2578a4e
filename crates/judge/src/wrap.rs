//! Programs whose arguments are a command by their own documentation.

use crate::reading::Simple;
use crate::word::{Piece, Word};

/// A command in another one's arguments.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Inner {
    Words(Vec<Word>),
    /// A text that a shell reads, and the words that are its `$0`, `$1` ….
    Text(String, Vec<Word>),
    /// A text that a shell reads, and nobody knows which.
    Unknown(Vec<Piece>),
    /// The standard input of the whole text, which a shell reads.
    Input,
}

/// How a wrapper's own arguments end.
struct Wrapper {
    name: &'static str,
    /// Options that take the next word for their value.
    values: &'static [&'static str],
    /// Words of its own in front of the command.
    own: usize,
    /// Words that have to follow the name: `docker exec`.
    verbs: &'static [&'static str],
}

const fn wrapper(name: &'static str, values: &'static [&'static str], own: usize) -> Wrapper {
    let verbs = &[];
    Wrapper {
        name,
        values,
        own,
        verbs,
    }
}

const fn under(
    name: &'static str,
    verbs: &'static [&'static str],
    values: &'static [&'static str],
    own: usize,
) -> Wrapper {
    Wrapper {
        name,
        values,
        own,
        verbs,
    }
}

const DOCKER: &[&str] = &[
    "-e",
    "--env",
    "-u",
    "--user",
    "-w",
    "--workdir",
    "--env-file",
    "--index",
];

const WRAPPERS: &[Wrapper] = &[
    wrapper("env", &["-u", "--unset", "-C", "--chdir"], 0),
    wrapper("nice", &["-n", "--adjustment"], 0),
    wrapper("nohup", &[], 0),
    wrapper("setsid", &[], 0),
    wrapper("timeout", &["-s", "--signal", "-k", "--kill-after"], 1),
    wrapper("gtimeout", &["-s", "--signal", "-k", "--kill-after"], 1),
    wrapper("time", &["-f", "--format", "-o", "--output"], 0),
    wrapper(
        "sudo",
        &[
            "-u", "--user", "-g", "--group", "-h", "--host", "-p", "--prompt", "-C", "-r", "-t",
            "-T", "-U", "-D", "--chdir", "-R",
        ],
        0,
    ),
    wrapper("doas", &["-u", "-C"], 0),
    wrapper(
        "xargs",
        &[
            "-I",
            "-n",
            "-P",
            "-L",
            "-d",
            "-s",
            "-a",
            "-E",
            "--max-args",
            "--max-procs",
            "--delimiter",
            "--arg-file",
            "--max-chars",
            "--process-slot-var",
        ],
        0,
    ),
    wrapper("command", &[], 0),
    wrapper("builtin", &[], 0),
    wrapper("exec", &["-a"], 0),
    wrapper("coproc", &[], 0),
    wrapper(
        "stdbuf",
        &["-i", "--input", "-o", "--output", "-e", "--error"],
        0,
    ),
    wrapper("ionice", &["-c", "--class", "-n", "--classdata", "-p"], 0),
    wrapper("chrt", &["-p"], 1),
    wrapper("taskset", &["-p"], 1),
    wrapper("flock", &["-w", "--timeout", "-E"], 1),
    wrapper("chroot", &[], 1),
    wrapper("busybox", &[], 0),
    wrapper("toybox", &[], 0),
    wrapper("npx", &["-p", "--package"], 0),
    wrapper("bunx", &[], 0),
    wrapper("uvx", &["--from", "--with", "-p", "--python"], 0),
    under("pnpm", &["dlx", "exec"], &[], 0),
    under("yarn", &["dlx", "exec"], &[], 0),
    under("npm", &["exec", "x"], &["-p", "--package"], 0),
    under(
        "uv",
        &["run"],
        &[
            "--with",
            "--project",
            "-p",
            "--python",
            "--extra",
            "--group",
        ],
        0,
    ),
    under("poetry", &["run"], &[], 0),
    under("pipenv", &["run"], &[], 0),
    under("pipx", &["run"], &["--spec"], 0),
    under("pdm", &["run"], &["-p"], 0),
    under("bundle", &["exec"], &[], 0),
    under("mise", &["exec"], &[], 0),
    under("docker", &["exec"], DOCKER, 1),
    under("podman", &["exec"], DOCKER, 1),
    under("compose", &["exec", "run"], DOCKER, 1),
    under("docker-compose", &["exec", "run"], DOCKER, 1),
    under(
        "kubectl",
        &["exec"],
        &["-c", "--container", "-n", "--namespace"],
        1,
    ),
];
/// Wrappers that run a package by its name, perhaps with a version.
const PACKAGES: &[&str] = &["npx", "bunx", "pnpm", "yarn", "npm", "bun", "uvx", "pipx"];
const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "ash"];

/// Whether the name is one of a wrapper that has no verb.
pub(crate) fn is_wrapper(name: &str) -> bool {
    WRAPPERS
        .iter()
        .any(|it| it.name == name && it.verbs.is_empty())
}

/// The commands in a command's arguments.
pub(crate) fn inner(simple: &Simple) -> Vec<Inner> {
    let Some(program) = simple.program() else {
        return Vec::new();
    };
    let arguments = simple.words.get(1..).unwrap_or_default();
    if SHELLS.contains(&program) {
        return shell(arguments, simple);
    }
    match program {
        "eval" => return vec![evaluated(arguments)],
        "trap" => return trapped(arguments),
        "find" => return found(arguments),
        "source" | "." if arguments.first().is_some_and(is_input) => return fed(simple),
        "docker" if arguments.first().is_some_and(|it| it.raw() == "compose") => {
            return behind_name("compose", arguments.get(1..).unwrap_or_default());
        }
        "command" if given(arguments, "-v") || given(arguments, "-V") => return Vec::new(),
        _ => {}
    }
    if is_python(program) {
        let module = arguments.iter().position(|it| it.raw() == "-m");
        let tail = module.and_then(|at| arguments.get(at + 1..));
        return tail
            .map(|tail| Inner::Words(tail.to_vec()))
            .into_iter()
            .collect();
    }
    behind_name(program, arguments)
}

fn is_python(program: &str) -> bool {
    let version = program.strip_prefix("python");
    version.is_some_and(|it| it.chars().all(|sign| sign.is_ascii_digit() || sign == '.'))
}

fn given(arguments: &[Word], option: &str) -> bool {
    arguments.first().is_some_and(|word| word.raw() == option)
}

fn behind_name(program: &str, arguments: &[Word]) -> Vec<Inner> {
    let tails = WRAPPERS.iter().filter(|it| it.name == program);
    let tails = tails.filter_map(|it| behind(it, arguments));
    tails.collect()
}

/// What stands behind a wrapper's own arguments.
fn behind(wrapper: &Wrapper, mut rest: &[Word]) -> Option<Inner> {
    if !wrapper.verbs.is_empty() {
        let at = rest
            .iter()
            .position(|it| wrapper.verbs.contains(&it.raw()))?;
        rest = rest.get(at + 1..)?;
    }
    let mut own = wrapper.own;
    let mut placeholder = None;
    loop {
        let (first, behind) = rest.split_first()?;
        let word = first.shown();
        if word == "--" {
            rest = behind;
            // `kubectl exec pod -- command`
            if wrapper.own > 0 && own == wrapper.own {
                continue;
            }
            break;
        }
        if word.starts_with('-') && word.len() > 1 {
            if wrapper.name == "env" && (word.starts_with("-S") || word.starts_with("--split")) {
                let apart = word == "-S" || word == "--split-string";
                let words = if apart {
                    joined(behind)
                } else {
                    Word::unknown(&word).pieces
                };
                return Some(Inner::Unknown(words));
            }
            if wrapper.name == "xargs" && word.starts_with("-I") {
                let next = || behind.first().map(|it| it.shown().into_owned());
                placeholder = if word.len() > 2 {
                    word.get(2..).map(str::to_owned)
                } else {
                    next()
                };
            }
            rest = if takes_next(&word, wrapper.values) {
                behind.get(1..)?
            } else {
                behind
            };
            continue;
        }
        let assigns = matches!(wrapper.name, "env" | "sudo" | "doas") && word.contains('=');
        if assigns {
            rest = behind;
        } else if own > 0 {
            own -= 1;
            rest = behind;
        } else {
            break;
        }
    }
    let mut words = rest.to_vec();
    if PACKAGES.contains(&wrapper.name) {
        // `npx vercel@latest` runs `vercel`.
        let first = words.first_mut();
        if let Some(first) = first
            && let Some(text) = first.literal()
            && let Some((name, _)) = text.rsplit_once('@').filter(|(name, _)| !name.is_empty())
        {
            let name = name.rsplit('/').next().unwrap_or(name).to_owned();
            *first = Word::text(name);
        }
    }
    if wrapper.name == "xargs" {
        match &placeholder {
            Some(mark) => hide(&mut words, mark),
            None => words.push(Word::unknown("…")),
        }
    }
    (!words.is_empty()).then_some(Inner::Words(words))
}

/// Whether an option's value is the next word: `-u root`, `-nu root`, not `-uroot`.
fn takes_next(word: &str, values: &[&str]) -> bool {
    if word.starts_with("--") {
        return values.contains(&word);
    }
    let takes = |letter: char| {
        values
            .iter()
            .any(|it| it.strip_prefix('-') == Some(&*letter.to_string()))
    };
    let first = word
        .char_indices()
        .skip(1)
        .find(|(_, letter)| takes(*letter));
    first.is_some_and(|(at, letter)| at + letter.len_utf8() == word.len())
}

/// The pieces of words, with blanks between the words.
fn joined(words: &[Word]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for word in words {
        pieces.extend(word.pieces.iter().cloned());
        pieces.push(Piece::Text(" ".to_owned()));
    }
    pieces
}

/// Words with the placeholder are only known when the command runs.
fn hide(words: &mut [Word], mark: &str) {
    for word in words {
        if !mark.is_empty() && word.shown().contains(mark) {
            *word = Word::unknown(word.raw());
        }
    }
}

/// What a command reads from its standard input, as texts for a shell.
fn fed(simple: &Simple) -> Vec<Inner> {
    let texts = simple.fed.iter();
    texts
        .map(|text| Inner::Text(text.clone(), Vec::new()))
        .chain(simple.input.is_some().then_some(Inner::Input))
        .collect()
}

/// Whether the word is a file that stands for the standard input.
fn is_input(word: &Word) -> bool {
    matches!(
        &*word.shown(),
        "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0"
    )
}

/// Whether a shell with these arguments takes its commands from the standard input.
fn reads_input(arguments: &[Word]) -> bool {
    let mut rest = arguments.iter();
    let mut options = true;
    while let Some(word) = rest.next() {
        let shown = word.shown();
        // An unquoted variable may be no word at all.
        if word.splits() {
            continue;
        }
        if !options || !shown.starts_with(['-', '+']) {
            return is_input(word);
        }
        if shown == "-" || shown == "--" {
            options = false;
        } else if shown.starts_with("--") {
            if matches!(&*shown, "--rcfile" | "--init-file") {
                rest.next();
            }
        } else if shown.starts_with('-') && shown.contains('s') {
            return true;
        } else if shown.starts_with('-') && shown.contains('c') {
            return false;
        } else if shown.contains(['o', 'O']) {
            rest.next();
        }
    }
    true
}

fn shell(arguments: &[Word], simple: &Simple) -> Vec<Inner> {
    let mut inner = if reads_input(arguments) {
        fed(simple)
    } else {
        Vec::new()
    };
    inner.extend(given_text(arguments));
    inner
}

/// The text behind `-c`.
fn given_text(arguments: &[Word]) -> Option<Inner> {
    let is_command = |word: &Word| {
        let raw = word.shown();
        raw.starts_with('-') && !raw.starts_with("--") && raw.contains('c')
    };
    let at = arguments.iter().position(is_command)?;
    // More options may stand between `-c` and the text.
    let behind = arguments.get(at + 1..).unwrap_or_default();
    let at = behind
        .iter()
        .position(|it| !it.raw().starts_with(['-', '+']))?;
    let rest = behind.get(at + 1..).unwrap_or_default();
    let word = behind.get(at)?;
    Some(word.literal().map_or_else(
        || Inner::Unknown(word.pieces.clone()),
        |text| Inner::Text(text.into_owned(), rest.to_vec()),
    ))
}

fn evaluated(arguments: &[Word]) -> Inner {
    let options = usize::from(given(arguments, "--"));
    let arguments = arguments.get(options..).unwrap_or_default();
    let known: Option<Vec<_>> = arguments.iter().map(Word::literal).collect();
    if let Some(words) = known {
        return Inner::Text(words.join(" "), Vec::new());
    }
    Inner::Unknown(joined(arguments))
}

fn trapped(arguments: &[Word]) -> Vec<Inner> {
    let options = arguments.iter().take_while(|it| it.raw().starts_with("--"));
    let text = arguments.get(options.count());
    match text.map(|text| (text.literal(), text)) {
        Some((Some(text), _)) if text != "-" && !text.starts_with('-') => {
            vec![Inner::Text(text.into_owned(), Vec::new())]
        }
        Some((None, text)) => vec![Inner::Unknown(text.pieces.clone())],
        _ => Vec::new(),
    }
}

/// The commands behind `find -exec`.
fn found(arguments: &[Word]) -> Vec<Inner> {
    let mut inner = Vec::new();
    let mut rest = arguments;
    let runs = |it: &Word| matches!(it.raw(), "-exec" | "-execdir" | "-ok" | "-okdir");
    while let Some(at) = rest.iter().position(runs) {
        rest = rest.get(at + 1..).unwrap_or_default();
        let ends = |it: &Word| matches!(&*it.shown(), ";" | "+");
        let end = rest.iter().position(ends).unwrap_or(rest.len());
        let mut words = rest.get(..end).unwrap_or_default().to_vec();
        hide(&mut words, "{}");
        if !words.is_empty() {
            inner.push(Inner::Words(words));
        }
        rest = rest.get(end..).unwrap_or_default();
    }
    inner
}
