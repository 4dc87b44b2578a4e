//! Programs in other languages that stand in arguments: what they spell out in strings, and whether they
//! run what they read.

use super::tables::STDIN_NAMES;
use super::{Judge, SCRIPT_DEPTH_MAX, Setters, program};
use crate::tools::exec::shell::{self, Word};

/// Strings of one line of a program from which on its strings are read as one command.
const LITERAL_STARTS_MAX: usize = 16;

/// Modules of Python that only print what they make of what they read.
const READING_MODULES: &[&str] = &["ast", "base64", "gzip", "json", "json.tool", "tokenize"];
/// All names that a line of Python may use for what it reads to be data: with no others it can neither run
/// nor write anything. A list of what is dangerous would never be whole.
const PLAIN_NAMES: &[&str] = &[
    "False",
    "None",
    "True",
    "all",
    "and",
    "any",
    "append",
    "bool",
    "body",
    "content",
    "count",
    "csv",
    "data",
    "dict",
    "doc",
    "dumps",
    "elif",
    "else",
    "endswith",
    "enumerate",
    "ensure_ascii",
    "filter",
    "float",
    "for",
    "get",
    "id",
    "if",
    "import",
    "in",
    "indent",
    "int",
    "is",
    "item",
    "items",
    "join",
    "json",
    "key",
    "keys",
    "lambda",
    "len",
    "line",
    "lines",
    "list",
    "load",
    "loads",
    "lower",
    "lstrip",
    "map",
    "max",
    "message",
    "min",
    "name",
    "names",
    "not",
    "obj",
    "or",
    "out",
    "print",
    "range",
    "re",
    "read",
    "reader",
    "readline",
    "readlines",
    "replace",
    "res",
    "resp",
    "result",
    "results",
    "reverse",
    "round",
    "row",
    "rows",
    "rstrip",
    "sep",
    "separators",
    "set",
    "sort_keys",
    "sorted",
    "split",
    "splitlines",
    "startswith",
    "status",
    "stdin",
    "str",
    "strip",
    "sum",
    "sys",
    "tag",
    "tags",
    "text",
    "total",
    "tuple",
    "upper",
    "url",
    "value",
    "values",
    "version",
    "zip",
];
/// Ways in which a program names what it reads.
const READING: &[&str] = &[
    "stdin",
    "STDIN",
    "input(",
    "readFileSync(0",
    "<>",
    "$<",
    "gets",
    "ARGF",
    "$_",
    "/dev/",
];

impl Judge<'_> {
    /// A program in another language. Only the commands it spells out in strings are seen: one by
    /// one, as for `system("…")`, and those of a line together from each on, as for
    /// `run(["rm", "…"])`.
    pub(super) fn code(&mut self, text: &str, depth: usize) {
        if !self.may_look(text.len()) {
            return;
        }
        // A variable in a string of its own is not the shell's.
        self.forget_here();
        let before = std::mem::replace(&mut self.setters, Setters::Unknown);
        let both = text.lines().flat_map(|line| {
            let (plain, more) = (literals(line, next_plain), literals(line, next_quote));
            let differ = plain != more;
            [Some(plain), differ.then_some(more)]
        });
        for literals in both.flatten() {
            if self.has_too_much() {
                break;
            }
            let starts = literals.len().min(LITERAL_STARTS_MAX);
            let together = (0..starts).map(|at| literals.get(at..).unwrap_or_default().join(" "));
            let alone = literals.iter().filter(|_| literals.len() > 1).cloned();
            for command in alone.chain(together) {
                if !self.may_read(&command) {
                    break;
                }
                let script = shell::read(&command);
                // A sentence is none: its quotes seldom end.
                if !script.is_unreadable || script.is_deep {
                    self.read_script(&command, script, depth + 1);
                }
            }
            // A string may be a program with strings of its own: `exec('…')`.
            let within = literals.iter().filter(|it| it.contains(['\'', '"', '`']));
            for inner in within.filter(|_| depth < SCRIPT_DEPTH_MAX) {
                self.judged_bytes += inner.len();
                if self.is_too_much() {
                    break;
                }
                self.code(inner, depth + 1);
            }
        }
        self.setters = before;
    }
}

/// What stands in quotes in one line of a program, by where they open.
fn literals(line: &str, next: fn(&str) -> Option<(char, &str)>) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = line;
    while let Some((opened, behind)) = next(rest) {
        let (literal, left) = quoted(opened, behind);
        if !literal.trim().is_empty() {
            found.push(literal);
        }
        rest = left;
    }
    found
}

/// The next quote that opens, and what is behind it.
fn next_plain(text: &str) -> Option<(char, &str)> {
    let (at, sign) = text
        .char_indices()
        .find(|(_, it)| matches!(it, '\'' | '"' | '`'))?;
    Some((sign, text.get(at + 1..).unwrap_or_default()))
}

/// The same, also those of Perl and Ruby: `qx(…)`, `%x{…}`. In other languages they may be numbers to be
/// divided, so both are read.
fn next_quote(text: &str) -> Option<(char, &str)> {
    let mut before = None;
    for (at, sign) in text.char_indices() {
        let behind = text.get(at + sign.len_utf8()..).unwrap_or_default();
        if matches!(sign, '\'' | '"' | '`') {
            return Some((sign, behind));
        }
        let is_word = |it: char| it == '_' || it.is_alphanumeric();
        if matches!(sign, 'q' | '%') && !before.is_some_and(is_word) {
            let named = behind.trim_start_matches(['q', 'x', 'w', 'Q', 'W', 'i']);
            let is_short = behind.len() - named.len() <= 1;
            let opened = named.chars().next();
            if let Some(opened) = opened.filter(|it| is_short && "([{<|/!~".contains(*it)) {
                return Some((opened, named.get(1..).unwrap_or_default()));
            }
        }
        before = Some(sign);
    }
    None
}

/// What stands behind a quote up to the one that ends it, and the rest.
fn quoted(opened: char, text: &str) -> (String, &str) {
    let ends = match opened {
        '(' => ')',
        '[' => ']',
        '{' => '}',
        '<' => '>',
        other => other,
    };
    let mut literal = String::new();
    let mut open = 1_usize;
    let mut signs = text.chars();
    while let Some(sign) = signs.next() {
        if sign == ends {
            open -= 1;
        } else if sign == opened {
            open += 1;
        }
        if open == 0 {
            break;
        }
        literal.extend(if sign == '\\' {
            signs.next()
        } else {
            Some(sign)
        });
    }
    (literal, signs.as_str())
}

/// The program behind `-c`, `-e` and their like, in another language: also at the end of several
/// options in one (`perl -lane`), and without a blank between (`perl -e'…'`).
pub(super) fn inline_program(args: &[Word]) -> Option<&str> {
    const NAMES: [&str; 4] = ["-E", "--eval", "--print", "eval"];
    const LETTERS: [char; 4] = ['c', 'e', 'r', 'p'];
    args.iter().enumerate().find_map(|(at, word)| {
        let text = word.text.as_str();
        let behind = || args.get(at + 1).map(|word| word.text.as_str());
        if NAMES.contains(&text) {
            return behind();
        }
        let options = text.strip_prefix('-').filter(|it| !it.starts_with('-'))?;
        let is_bundle = options.chars().all(|sign| sign.is_ascii_alphabetic());
        if is_bundle && options.ends_with(LETTERS) {
            return behind();
        }
        let attached = options.strip_prefix(['c', 'e']);
        attached.filter(|_| !is_bundle)
    })
}

/// Whether an interpreter has all of its program in its arguments, and what it reads is surely data to that.
/// `words` are those of the whole command: a variable before it may change what it does.
pub(super) fn only_reads_data(words: &[Word]) -> bool {
    let is_plain = |word: &Word| !word.has_variable && !word.has_substitution;
    let Some((first, args)) = words.split_first() else {
        return false;
    };
    let is_python = program(first)
        .strip_prefix("python")
        .is_some_and(|version| version.chars().all(|it| it == '.' || it.is_ascii_digit()));
    let texts: Vec<&str> = args.iter().map(|word| word.text.as_str()).collect();
    let is_data = match texts.as_slice() {
        ["-m", module, ..] => READING_MODULES.contains(module),
        ["-c", code, ..] => has_plain_names(code),
        _ => false,
    };
    is_python
        && is_data
        && words.iter().all(is_plain)
        && !texts.iter().any(|it| STDIN_NAMES.contains(it))
}

/// Whether Python text uses no names but plain ones, and no signs that hide others.
fn has_plain_names(code: &str) -> bool {
    let mut signs = code.chars().peekable();
    while let Some(sign) = signs.next() {
        match sign {
            '\'' | '"' => {
                let mut is_escaped = false;
                let ends = |it: &char| {
                    let is_end = *it == sign && !is_escaped;
                    is_escaped = *it == '\\' && !is_escaped;
                    is_end
                };
                if signs.by_ref().find(ends).is_none() {
                    return false;
                }
            }
            _ if sign == '_' || sign.is_ascii_alphabetic() => {
                let mut name = String::from(sign);
                let is_part = |it: &char| *it == '_' || it.is_ascii_alphanumeric();
                while let Some(part) = signs.next_if(is_part) {
                    name.push(part);
                }
                // A letter before a quote makes another string of it, which may hold code: `f"{…}"`.
                let is_prefix = matches!(signs.peek(), Some('\'' | '"'));
                let is_short = name.len() == 1;
                if is_prefix || !(is_short || PLAIN_NAMES.contains(&&*name)) {
                    return false;
                }
            }
            '\\' | '#' | '@' | '`' => return false,
            _ if !sign.is_ascii() => return false,
            _ => {}
        }
    }
    true
}

/// Whether the program in the arguments of an interpreter runs what it reads.
pub(super) fn runs_what_it_reads(args: &[Word]) -> bool {
    let text = inline_program(args).unwrap_or_default();
    READING.iter().any(|it| text.contains(it))
        && ["exec", "eval", "system", "popen", "/ee", "Function("]
            .iter()
            .any(|it| text.contains(it))
}
