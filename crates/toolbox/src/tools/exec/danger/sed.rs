//! Scripts of `sed`, far enough to see which commands they run.

use std::iter::Peekable;
use std::str::Chars;

use crate::tools::exec::shell::Word;

/// How far the end of brackets is looked for.
const BRACKET_CHARS_MAX: usize = 256;

/// What a script runs.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Runs {
    Command(String),
    /// The lines that it reads, or makes of them.
    Input,
}

/// What the scripts among the arguments of `sed` run, as far as they can be read.
pub(super) fn runs_of(args: &[Word]) -> Vec<Runs> {
    let mut scripts = Vec::new();
    let mut first = None;
    let mut has_other = false;
    let mut texts = args.iter().map(|word| word.text.as_str());
    while let Some(text) = texts.next() {
        if let Some(long) = text.strip_prefix("--") {
            let (name, value) = long.split_once('=').unwrap_or((long, ""));
            if name.len() > 1 && "expression".starts_with(name) {
                scripts.extend(if value.is_empty() {
                    texts.next()
                } else {
                    Some(value)
                });
            }
            has_other |= name.len() > 1 && "file".starts_with(name);
        } else if let Some(letters) = text.strip_prefix('-').filter(|it| !it.is_empty()) {
            // What is behind `-i` is the end of a name.
            let Some(at) = letters.find(['e', 'f', 'i', 'l']) else {
                continue;
            };
            let (option, value) = letters.split_at(at).1.split_at(1);
            let next = if value.is_empty() && option != "i" {
                texts.next()
            } else {
                Some(value)
            };
            match option {
                "e" => scripts.extend(next),
                "f" => has_other = true,
                _ => {}
            }
        } else if first.is_none() {
            first = Some(text);
        }
    }
    if scripts.is_empty() && !has_other {
        scripts.extend(first);
    }
    read(&scripts.join("\n"))
}

/// Reads a script up to its end, or to what is not known.
fn read(script: &str) -> Vec<Runs> {
    let mut found = Vec::new();
    let mut signs = script.chars().peekable();
    while command(&mut signs, &mut found).is_some() {}
    found
}

/// One command with its addresses; nothing at the end.
fn command(signs: &mut Peekable<Chars<'_>>, found: &mut Vec<Runs>) -> Option<()> {
    addresses(signs)?;
    match signs.next()? {
        's' => {
            let mark = signs.next()?;
            delimited(signs, mark)?;
            let replacement = delimited(signs, mark)?;
            let flags = until(signs, &[';', '}', '\n', '#', 'w']);
            if flags.contains('e') {
                found.extend([Runs::Command(replacement), Runs::Input]);
            }
            if signs.peek() == Some(&'w') {
                line(signs);
            }
        }
        'y' => {
            let mark = signs.next()?;
            delimited(signs, mark)?;
            delimited(signs, mark)?;
        }
        'e' => {
            let ran = line(signs);
            let ran = ran.trim_matches([' ', '\t']);
            let is_none = ran.is_empty() || ran.starts_with([';', '}']);
            found.push(if is_none {
                Runs::Input
            } else {
                Runs::Command(ran.to_owned())
            });
        }
        'a' | 'i' | 'c' | 'r' | 'R' | 'w' | 'W' | '#' => {
            line(signs);
        }
        'b' | 't' | 'T' | ':' => {
            until(signs, &[';', '\n']);
        }
        _ => {}
    }
    Some(())
}

/// Skips what says which lines a command is for, and what is between commands.
fn addresses(signs: &mut Peekable<Chars<'_>>) -> Option<()> {
    loop {
        match signs.peek()? {
            '/' => {
                signs.next();
                delimited(signs, '/')?;
                // How it is meant: `/x/I`.
                while signs.next_if(|it| matches!(it, 'I' | 'M')).is_some() {}
            }
            '\\' => {
                signs.next();
                let mark = signs.next()?;
                delimited(signs, mark)?;
            }
            it if it.is_ascii_digit() || " \t\n;,~+$!{}".contains(*it) => {
                signs.next();
            }
            _ => return Some(()),
        }
    }
}

/// What stands up to a mark, which a backslash or brackets make a sign like any other.
fn delimited(signs: &mut Peekable<Chars<'_>>, mark: char) -> Option<String> {
    let mut text = String::new();
    let mut in_set = false;
    loop {
        match signs.next()? {
            '\\' => {
                let next = signs.next()?;
                if next != mark {
                    text.push('\\');
                }
                text.push(next);
            }
            sign if sign == mark && !in_set => return Some(text),
            sign => {
                in_set = match sign {
                    '[' => has_end(signs, mark),
                    ']' => false,
                    _ => in_set,
                };
                text.push(sign);
            }
        }
    }
}

/// Whether brackets that were opened end before the line does, with the mark behind them.
fn has_end(signs: &Peekable<Chars<'_>>, mark: char) -> bool {
    let near = signs.clone().take(BRACKET_CHARS_MAX);
    let rest: String = near.take_while(|it| *it != '\n').collect();
    // The first sign may be a bracket that ends nothing: `[]/]`.
    let end = rest
        .char_indices()
        .nth(1)
        .and_then(|(at, _)| rest.get(at..)?.split_once(']'));
    end.is_some_and(|(_, behind)| behind.contains(mark))
}

/// What stands before one of these signs.
fn until(signs: &mut Peekable<Chars<'_>>, ends: &[char]) -> String {
    let mut text = String::new();
    while let Some(sign) = signs.next_if(|it| !ends.contains(it)) {
        text.push(sign);
    }
    text
}

/// The rest of a line, and of those that it goes on in.
fn line(signs: &mut Peekable<Chars<'_>>) -> String {
    let mut text = String::new();
    while let Some(sign) = signs.next_if(|it| *it != '\n') {
        if sign == '\\' {
            text.extend(signs.next());
        } else {
            text.push(sign);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_runs_is_found() {
        let ran = |text: &str| Runs::Command(text.to_owned());
        for (script, expected) in [
            ("s/a/b/", vec![]),
            ("s/e/e/g;p", vec![]),
            ("s/[/]e/x/", vec![]),
            ("s/[/x/e", vec![ran("x"), Runs::Input]),
            ("/e/d;y/e/f/", vec![]),
            ("1,3e ls", vec![ran("ls")]),
            ("$!{e ls\n}", vec![ran("ls")]),
            ("/x/I e", vec![Runs::Input]),
            ("a\\\ne text\np", vec![]),
            ("\\,x,els", vec![ran("ls")]),
            ("s/a/ls/w e", vec![]),
        ] {
            assert_eq!(read(script), expected, "{script}");
        }
    }
}
