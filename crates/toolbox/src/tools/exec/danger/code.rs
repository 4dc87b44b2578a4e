//! Programs in other languages: what they spell out in strings.

use super::files::UNCERTAIN;
use super::hands::plain;
use super::wipes::is_recursive;
use super::{Judge, SCRIPT_DEPTH_MAX, Setters};
use crate::tools::exec::shell::{self, Word};

/// Strings of one line of a program from which on its strings are read as one command.
const LITERAL_STARTS_MAX: usize = 16;
/// Signs behind a string that are looked at.
const SIGNS_BEHIND_MAX: usize = 24;
/// Names behind a string that add nothing to it.
const COMPARING: &[&str] = &[
    "and", "as", "do", "else", "eq", "for", "if", "in", "is", "ne", "not", "or", "then", "unless",
    "while",
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
            self.strings(&literals, depth);
        }
        self.setters = before;
    }

    /// The strings of one line.
    fn strings(&mut self, literals: &[Literal<'_>], depth: usize) {
        if let Some(removal) = removal_of_computed(literals) {
            self.raise("destructive_command", removal, UNCERTAIN);
        }
        let texts: Vec<&str> = literals.iter().map(|it| it.text.as_str()).collect();
        let starts = texts.len().min(LITERAL_STARTS_MAX);
        let together = (0..starts).map(|at| texts.get(at..).unwrap_or_default().join(" "));
        let alone = texts.iter().filter(|_| texts.len() > 1);
        for command in alone.map(|it| (*it).to_owned()).chain(together) {
            if !self.may_read(&command) {
                return;
            }
            let script = shell::read(&command);
            // A sentence is none: its quotes seldom end.
            if !script.is_unreadable || script.is_deep {
                self.read_script(&command, script, depth + 1);
            }
        }
        // A string may be a program with strings of its own: `exec('…')`.
        let within = texts.iter().filter(|it| it.contains(['\'', '"', '`']));
        for inner in within.filter(|_| depth < SCRIPT_DEPTH_MAX) {
            if !self.may_read(inner) {
                return;
            }
            self.code(inner, depth + 1);
        }
    }
}

/// A string of a program.
#[derive(Debug, PartialEq, Eq)]
struct Literal<'t> {
    /// What is between it and the one before.
    before: &'t str,
    opened: char,
    text: String,
    /// The first signs of what follows it.
    behind: &'t str,
}

impl Literal<'_> {
    /// Whether nothing that is computed stands before it.
    fn is_next(&self) -> bool {
        matches!(self.before.trim(), "" | "," | "+" | ".")
    }

    fn is_option(&self) -> bool {
        self.text.trim().starts_with('-')
    }

    /// Whether the program adds something to it that is no string, or to the list that it ends.
    fn is_added_to(&self) -> bool {
        let behind = self.behind;
        let name: &str = behind
            .split(|sign: char| sign != '_' && !sign.is_alphanumeric())
            .next()
            .unwrap_or_default();
        // Strings are put together by standing beside names, but no commands in backquotes: those are in a
        // document more often than not.
        let is_named = !name.is_empty() && !COMPARING.contains(&name);
        let is_joined = if self.opened == '`' && !self.is_option() {
            behind.starts_with('+')
        } else {
            is_named
                || behind.starts_with(['+', ',', '.', '%', '$', '\\'])
                || behind.starts_with("<<")
        };
        let ended = behind.trim_start_matches([']', ')', ' ']);
        let is_list_joined = ended.starts_with(['+', '%']) || ended.starts_with(".concat");
        is_joined || is_list_joined || self.is_kept_open()
    }

    /// `c = "rm -rf "; c += x`: with a blank at its end that nothing is compared to.
    fn is_kept_open(&self) -> bool {
        let before = self.before.trim_end();
        let is_compared = before.ends_with(['~', '=']) && !before.ends_with(" =");
        let is_over = self.behind.is_empty() || self.behind.starts_with(';');
        self.text.ends_with(' ') && is_over && !is_compared
    }
}

/// What stands in quotes in one line of a program, by where they open.
fn literals<'t>(line: &'t str, next: fn(&'t str) -> Option<(char, &'t str)>) -> Vec<Literal<'t>> {
    let mut found = Vec::new();
    let mut rest = line;
    while let Some((opened, behind)) = next(rest) {
        let before = rest.get(..rest.len() - behind.len()).unwrap_or_default();
        let before = before.strip_suffix(opened).unwrap_or_default();
        let (text, left) = quoted(opened, behind);
        if !text.trim().is_empty() {
            found.push(Literal {
                before,
                opened,
                text,
                behind: first_signs(left.trim_start()),
            });
        }
        rest = left;
    }
    found
}

/// As much of a text as tells what it begins with.
fn first_signs(text: &str) -> &str {
    let end = text.char_indices().nth(SIGNS_BEHIND_MAX);
    end.and_then(|(at, _)| text.get(..at)).unwrap_or(text)
}

/// A string that removes directories of which the program only knows the names when it runs:
/// `"rm -rf " + x`, `["rm", "-rf", x]`, `f"rm -rf {x}"`.
fn removal_of_computed<'l>(literals: &'l [Literal<'_>]) -> Option<&'l str> {
    let mut literals = literals;
    while let Some((literal, behind)) = literals.split_first() {
        if removes_computed(literal, behind) {
            return Some(&literal.text);
        }
        literals = behind;
    }
    None
}

/// Whether the last command of a string does so. `behind` are the strings that follow.
fn removes_computed(literal: &Literal<'_>, behind: &[Literal<'_>]) -> bool {
    let last = literal
        .text
        .rsplit([';', '&', '|', '('])
        .next()
        .unwrap_or_default();
    let mut words = last.split_whitespace();
    let name = words.next().and_then(|it| it.rsplit('/').next());
    if !matches!(name, Some("rm" | "rimraf")) {
        return false;
    }
    let (mut options, named): (Vec<&str>, Vec<&str>) =
        words.partition(|word| word.starts_with('-'));
    let added: Vec<&Literal<'_>> = behind.iter().take_while(|it| it.is_option()).collect();
    options.extend(added.iter().map(|it| it.text.trim()));
    let options: Vec<Word> = options.into_iter().map(plain).collect();
    let is_left_open = if named.is_empty() {
        let next = behind.get(added.len());
        let last = added.last().copied().unwrap_or(literal);
        !next.is_some_and(Literal::is_next) && last.is_added_to()
    } else {
        named.iter().any(|word| is_filled_in(word))
    };
    is_left_open && (name == Some("rimraf") || is_recursive(&options))
}

/// Whether a word has a place in it that a program fills: `{x}`, `%s`, and not `{a,b}`.
fn is_filled_in(word: &str) -> bool {
    let is_braced = word.contains('{') && word.contains('}') && !word.contains(',');
    is_braced || word.contains("%s")
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

#[cfg(test)]
mod tests {
    use super::super::evasions::{asked, not_asked};

    /// What is removed is only known when it runs.
    const COMPUTED: &[&str] = &[
        "awk '{system(\"rm -rf \" $1)}' list",
        "awk '{cmd = \"rm -rf \" $1; system(cmd)}' list",
        "python3 -c 'import os,sys; os.system(\"rm -rf \" + sys.argv[1])'",
        "python3 -c 'import os,sys; os.system(\"rm -rf \" + sys.argv[1] + \" && echo done\")'",
        "python3 -c 'import os,sys; os.system(\"cd x && rm -rf \" + sys.argv[1]); print(\"done\")'",
        "python3 -c 'import subprocess; subprocess.run([\"rm\",\"-rf\",p])'",
        "python3 -c 'import subprocess; subprocess.run([\"rm\", \"-r\", \"-f\", p]); print(\"done\")'",
        "python3 -c 'import os; os.system(f\"rm -rf {p}\")'",
        "python3 -c 'import os; os.system(\"rm -rf %s\" % p)'",
        "python3 -c 'import os; os.system(\"rm -rf {}\".format(p))'",
        "ruby -e 'system(\"rm -rf #{ARGV[0]}\")'",
        "ruby -e 'system(\"rm\", \"-rf\", ARGV[0])'",
        "perl -e 'system(\"rm -rf $ARGV[0]\")' x",
        "node -e 'require(\"child_process\").execSync(\"/bin/rm --recursive \" + d)'",
        "node -e 'require(\"child_process\").execFileSync(\"rm\", [\"-rf\", d])'",
        "node -e 'require(\"child_process\").execSync(\"rimraf \" + d)'",
        "python3 - <<'E'\nimport os\nos.system('rm -rf ' + d)\nE",
        "python3 - <<'E'\nimport os\nc = 'rm -rf '\nc += d\nos.system(c)\nE",
        "python3 -c 'import os; c = \"rm -rf \"; c += d; os.system(c)'",
        "python3 -c 'import subprocess; subprocess.run([\"rm\", \"-rf\"] + paths)'",
        "node -e 'require(\"child_process\").execFileSync(\"rm\", [\"-rf\"].concat(d))'",
        "node -e 'require(\"child_process\").execFileSync(`rm`, [`-rf`, d])'",
        "node -e 'require(\"child_process\").execSync(`rm -rf ` + d)'",
        "php -r 'exec(\"rm -rf \" . $d);'",
        "ruby -e 'system(\"rm -rf \" << d)'",
        "awk '{system(\"rm -rf \" d)}' list",
    ];
    const KNOWN: &[&str] = &[
        "awk '{system(\"rm -f \" $1)}' list",
        "python3 -c 'import os; os.system(\"rm -rf build\")'",
        "python3 -c 'import os; os.system(\"rm -rf \" + \"build\")'",
        "python3 -c 'import os; os.system(\"rm -rf {build,dist}\")'",
        "python3 -c 'import subprocess; subprocess.run([\"rm\", \"-rf\", \"build\"]); print(x, \"done\")'",
        "node -e 'require(\"child_process\").execFileSync(\"rm\", [\"-rf\", \"dist\"])'",
        "python3 -c 'print(\"use rm -rf to remove\", x)'",
        "python3 -c \"import sys; [print(l) for l in sys.stdin if 'rm -rf' in l]\"",
        "python3 -c \"import sys; [print(l) for l in sys.stdin if 'rm -rf ' in l]\"",
        "python3 -c \"import sys; [print(l) for l in sys.stdin if l == 'rm -rf']\"",
        "awk '$0 ~ \"rm -rf\"' log",
        "awk '$0 ~ \"rm -rf \"' log",
        "awk '$0 ~ \"rm -rf\" {print $1}' log",
        "python3 - <<'E'\np = 'README.md'\ns = open(p).read()\ns = s.replace('never use `rm -rf` here', 'ask')\nopen(p, 'w').write(s)\nE",
        "python3 - <<'E'\ns = \"\"\"\nWhat `rm -rf` removes, `rm -rf`, is gone: `rm -rf`.\n\"\"\"\nE",
        "python3 -c 'import subprocess; subprocess.run([\"rm\", p])'",
    ];

    #[test]
    fn what_a_program_computes_is_not_removed_unseen() {
        let wrong = not_asked(&[("destructive_command", COMPUTED)]);
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        let wrong = asked(KNOWN);
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
