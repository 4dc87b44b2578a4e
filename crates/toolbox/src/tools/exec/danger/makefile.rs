//! Rules for `make` that stand in a command: what their lines run.

use std::collections::BTreeMap;

use super::{COMPUTED, Judge};
use crate::tools::exec::shell::{self, Simple};

/// What a shell is told in place of what only `make` knows.
const UNKNOWN: &str = "${made}";
/// Bytes of a value that is put into lines: there may be very many places for it.
const VALUE_BYTES_MAX: usize = 64;
/// How a command begins that `make` runs to put what it prints into a line.
const RUNS: &[&str] = &["$(shell ", "${shell "];
/// Variables that `make` sets itself.
const GIVEN: &[(&str, &str)] = &[
    ("AR", "ar"),
    ("AS", "as"),
    ("CC", "cc"),
    ("CPP", "cc -E"),
    ("CXX", "c++"),
    ("FC", "f77"),
    ("LD", "ld"),
    ("LEX", "lex"),
    ("MAKE", "make"),
    ("RM", "rm -f"),
    ("YACC", "yacc"),
];

/// What the rules set variables to; nothing where that is not one plain text.
type Values<'t> = BTreeMap<&'t str, Option<&'t str>>;

impl Judge<'_> {
    /// Judges each line with what it runs, and what it sets a variable to, which another may run.
    pub(super) fn rules(&mut self, text: &str, depth: usize) {
        if !self.may_look(text.len()) {
            return;
        }
        let text = text.replace("\\t", "\t").replace("\\\n", " ");
        let values = values(&text);
        for start in RUNS {
            for (at, _) in text.match_indices(start) {
                let inner = bracketed(text.get(at + 1..).unwrap_or_default());
                let ran = inner.get(start.len() - 2..).unwrap_or_default();
                // One may stand in another, and another in that.
                if !self.may_look(ran.len()) {
                    return;
                }
                self.recipe(&as_shell(ran, &values), depth);
            }
        }
        for line in text.lines() {
            if self.has_too_much() {
                return;
            }
            self.rule(line, &values, depth);
        }
    }

    fn rule(&mut self, line: &str, values: &Values<'_>, depth: usize) {
        let is_recipe = line.starts_with('\t');
        match assigned(line).filter(|_| !is_recipe) {
            Some((_, value)) => self.may_be_recipe(&as_shell(value, values), depth),
            None if is_recipe => self.recipe(&as_shell(line, values), depth),
            None => {
                self.may_be_recipe(&as_shell(line, values), depth);
                if let Some((_, ran)) = line.split_once(';') {
                    self.recipe(&as_shell(ran, values), depth);
                }
            }
        }
    }

    /// What is run as it stands there.
    fn recipe(&mut self, line: &str, depth: usize) {
        let ran = line.trim_start_matches([' ', '\t', '@', '-', '+']);
        if !self.may_read(ran) {
            return;
        }
        let script = shell::read(ran);
        let is_computed = |it: &Simple| it.words.first().is_some_and(|word| word.has_variable);
        if script.commands.iter().any(is_computed) {
            self.raise("computed_command", ran, COMPUTED);
        }
        self.read_script(ran, script, depth + 1);
    }

    /// What may be run, or a list of files, or a sentence.
    fn may_be_recipe(&mut self, line: &str, depth: usize) {
        if !self.may_read(line) {
            return;
        }
        let script = shell::read(line);
        if !script.is_unreadable || script.is_deep {
            self.read_script(line, script, depth + 1);
        }
    }
}

fn values(text: &str) -> Values<'_> {
    let mut found = Values::new();
    for line in text.lines().filter(|line| !line.starts_with('\t')) {
        let Some((name, value)) = assigned(line) else {
            continue;
        };
        let is_whole = !line.split('=').next().is_some_and(|it| it.ends_with('+'));
        let is_short = value.len() <= VALUE_BYTES_MAX;
        let is_plain = is_whole && is_short && !value.contains('$') && !found.contains_key(name);
        found.insert(name, Some(value).filter(|_| is_plain));
    }
    found
}

/// The variable that a line sets, and to what: `a := b`, `export a = b`, `x: a = b`.
fn assigned(line: &str) -> Option<(&str, &str)> {
    let (left, value) = line.split_once('=')?;
    let left = left.trim_end_matches([':', '?', '+', '!']).trim();
    let name = left.rsplit([' ', '\t', ':']).next()?;
    let is_sign = |sign: char| sign.is_alphanumeric() || "_-.".contains(sign);
    let is_name = !name.is_empty() && name.chars().all(is_sign) && !left.contains(';');
    is_name.then_some((name, value.trim()))
}

/// A line as the shell gets it: `$$` is the shell's, all else is `make`'s.
fn as_shell(line: &str, values: &Values<'_>) -> String {
    let mut told = String::new();
    let mut rest = line;
    while let Some((before, behind)) = rest.split_once('$') {
        told.push_str(before);
        let Some(sign) = behind.chars().next() else {
            break;
        };
        let inner = if matches!(sign, '(' | '{') {
            bracketed(behind)
        } else {
            behind.get(..sign.len_utf8()).unwrap_or_default()
        };
        let taken = inner.len() + if matches!(sign, '(' | '{') { 2 } else { 0 };
        match sign {
            '$' => told.push('$'),
            _ => told.push_str(&meaning(inner, values)),
        }
        rest = behind.get(taken..).unwrap_or_default();
    }
    told.push_str(rest);
    told
}

/// What a variable of `make`'s holds, as far as that is known.
fn meaning(name: &str, values: &Values<'_>) -> String {
    let given = GIVEN.iter().find(|(known, _)| *known == name);
    let value = match values.get(name) {
        Some(value) => *value,
        None => given.map(|(_, value)| *value),
    };
    let is_name = name
        .chars()
        .all(|it| it == '_' || it.is_ascii_alphanumeric());
    match value {
        Some(value) => value.to_owned(),
        None if is_name && !name.is_empty() => format!("${{{name}}}"),
        None => UNKNOWN.to_owned(),
    }
}

/// What stands between the bracket that a text begins with and the one that ends it.
fn bracketed(text: &str) -> &str {
    let opened = text.chars().next();
    let ends = if opened == Some('{') { '}' } else { ')' };
    let mut open = 0_usize;
    for (at, sign) in text.char_indices() {
        if Some(sign) == opened {
            open += 1;
        } else if sign == ends {
            open -= 1;
        }
        if open == 0 {
            return text.get(1..at).unwrap_or_default();
        }
    }
    text.get(1..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::evasions::{asked, not_asked};

    const REMOVES: &[&str] = &[
        "make -f - <<'E'\nx:\n\trm -rf ../victim; echo done\nE",
        "make -f - <<'E'\nx:\n\techo begin; rm -rf ../victim\nE",
        "make -f - <<'E'\nx: ; @echo begin; rm -rf ../victim\nE",
        "make --eval='x: ; $(RM) -r ../victim' x",
        "make --eval='x: ; ${RM} -r ../victim' x",
        "make -f - <<'E'\nx:\n\trm \\\n\t-rf \\\n\t../victim\nE",
        "make -f - <<'E'\nR = rm -rf\nx:\n\t$(R) ../victim\nE",
        "make -f - <<'E'\nR = rm -rf ../victim\nx:\n\t@$(R)\nE",
        "make -f - <<'E'\nD := ../victim\nx:\n\trm -rf $(D)\nE",
        "make -f - <<'E'\nx:\n\trm -rf $(D)\nE",
        "make -f - <<'E'\nx:\n\trm -rf $(wildcard *)\nE",
        "make -f - <<'E'\nx:\n\trm -rf \"$$D\"\nE",
        "make -f - <<'E'\nX := $(info $(shell rm -rf ../victim))\nE",
        "make -f - <<'E'\nX != rm -rf ../victim\nE",
        "make -f - <<'E'\ndefine R\nrm -rf ../victim\nendef\nE",
    ];
    const COMPUTED: &[&str] = &[
        "make -f - <<'E'\nx:\n\t$(X) y\nE",
        "make -f - <<'E'\nx:\n\techo a; $(X) y\nE",
        "make -f - <<'E'\nx:\n\t@$(shell cat f) y\nE",
        "make -f - <<'E'\nCC += x\nx:\n\t$(CC) y\nE",
    ];
    const UNASKED: &[&str] = &[
        "make -f - <<'E'\nCFLAGS = -Wextra -O2\nx: x.c\n\t$(CC) $(CFLAGS) -o $@ $<\nE",
        "make -f - <<'E'\nPYTHON ?= python3\ntest:\n\t$(PYTHON) -m pytest\n.PHONY: test\nE",
        "make -f - <<'E'\nB = build\nclean:\n\trm -rf $(B) dist\n\t$(RM) *.o\nE",
        "make -f - <<'E'\nifeq ($(X),y)\nM = it's\nendif\nx:\n\t@echo $(N) \"$$HOME\"\nE",
        "make --eval='print-%: ; @echo $*=$($*)' print-CC",
        "make -f build.mk all",
    ];

    #[test]
    fn what_rules_run_is_judged() {
        let wrong = not_asked(&[
            ("destructive_command", REMOVES),
            ("computed_command", COMPUTED),
        ]);
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        let wrong = asked(UNASKED);
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
