//! What sets variables in a syntax tree, and where the values of expansions come from.

use tree_sitter::Node;

use crate::check;
use crate::tree::{Unsure, Walk};
use crate::word::From;

/// Commands that print one path, as in `$(npm bin)/eslint`.
const PATH_PRINTERS: &[&str] = &[
    "npm bin",
    "pnpm bin",
    "yarn bin",
    "npm prefix",
    "npm root",
    "go env GOPATH",
    "go env GOROOT",
    "pwd",
    "brew --prefix",
    "git rev-parse --show-toplevel",
    "rustc --print sysroot",
    "python3 -m site --user-base",
    "bundle show",
    "composer config bin-dir",
    "poetry env info -p",
    "poetry env info --path",
];

/// Commands whose output is meant for `eval`.
const INITIALIZERS: &[&str] = &[
    "ssh-agent -s",
    "ssh-agent",
    "conda shell.bash hook",
    "direnv hook bash",
    "direnv export bash",
    "pyenv init -",
    "pyenv init --path",
    "rbenv init -",
    "brew shellenv",
    "/opt/homebrew/bin/brew shellenv",
    "fnm env",
    "fnm env --use-on-cd",
    "opam env",
    "mise activate bash",
    "dircolors -b",
    "minikube docker-env",
    "zoxide init bash",
];

impl<'t> Walk<'t> {
    pub(crate) fn assignment(&mut self, node: Node<'t>) -> Result<(), Unsure> {
        let source = self.of(node);
        let name = check::assigned_name(source).ok_or(Unsure)?;
        check::variable(name, source)?;
        let value = node.child_by_field_name("value");
        let added = source.contains("+=");
        match value {
            Some(value) if value.kind() == "array" => {
                let mut cursor = value.walk();
                for element in value.named_children(&mut cursor) {
                    if element.kind() == "variable_assignment" || element.kind() == "comment" {
                        continue;
                    }
                    let word = self.word(&[element])?;
                    self.note(&word);
                }
                self.found.variables.unknown(name);
            }
            Some(value) => {
                let word = self.word(&[value])?;
                self.note(&word);
                match word.literal() {
                    Some(literal) if !added => self.found.variables.assign(name, &literal),
                    _ => self.found.variables.unknown(name),
                }
            }
            None => self.found.variables.assign(name, ""),
        }
        Ok(())
    }

    pub(crate) fn loops(&mut self, node: Node<'t>) -> Result<(), Unsure> {
        let name = self.of(node.child_by_field_name("variable").ok_or(Unsure)?);
        check::variable(name, self.of(node))?;
        let mut cursor = node.walk();
        let values: Vec<_> = node.children_by_field_name("value", &mut cursor).collect();
        let values = self.words(&values)?;
        if values.is_empty() || self.of(node).starts_with("select") {
            self.found.variables.unknown(name);
        }
        for word in values {
            match word.literal() {
                Some(literal) => self.found.variables.assign(name, &literal),
                None => self.found.variables.unknown(name),
            }
        }
        Ok(())
    }

    pub(crate) fn declaration(&mut self, node: Node<'t>) -> Result<(), Unsure> {
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            let source = self.of(child);
            match child.kind() {
                "variable_assignment" => {}
                "variable_name" => self.found.variables.unknown(source),
                _ => {
                    let word = self.word(&[child])?;
                    match word.literal() {
                        Some(option) if option.starts_with(['-', '+']) => {
                            self.found.reevaluates |= option.contains('i');
                            if option.contains('n') {
                                self.found.reevaluates = true;
                                self.found.variables.all_unknown();
                            }
                        }
                        Some(name) => {
                            let name = name.split('=').next().unwrap_or_default();
                            check::variable(name, source)?;
                            self.found.variables.unknown(name);
                        }
                        None => {
                            self.found.reevaluates = true;
                            self.found.variables.all_unknown();
                        }
                    }
                }
            }
        }
        Ok(())
    }

    pub(crate) fn expansion(&mut self, source: &str) {
        let inner = source.trim_start_matches("${");
        self.found.reevaluates |= inner.starts_with('!') || inner.contains(['@', ':', '[']);
        let name = inner.split(|sign: char| !sign.is_ascii_alphanumeric() && sign != '_');
        let name = name.into_iter().next().unwrap_or_default();
        let behind = inner.get(name.len()..).unwrap_or_default();
        if behind.starts_with('=') || behind.starts_with(":=") {
            self.found.variables.unknown(name);
        }
    }
}

/// Where the value of an expansion comes from.
pub(crate) fn source_of(source: &str) -> From {
    let is_name = |name: &str| {
        let known = |sign: char| sign.is_ascii_alphanumeric() || sign == '_';
        !name.is_empty()
            && name.chars().all(known)
            && !name.starts_with(|it: char| it.is_ascii_digit())
    };
    let plain = |text: &str| {
        text.chars()
            .all(|it| it.is_ascii_alphanumeric() || "_-./+".contains(it))
    };
    if let Some(inner) = source
        .strip_prefix("$(")
        .and_then(|it| it.strip_suffix(')'))
    {
        let words: Vec<_> = inner.split_whitespace().collect();
        if INITIALIZERS.contains(&&*words.join(" ")) {
            return From::Initializer;
        }
        if PATH_PRINTERS.contains(&&*words.join(" ")) {
            return From::Path;
        }
        return match words.as_slice() {
            ["which", name] | ["command", "-v", name] | ["type", "-p" | "-P", name]
                if plain(name) =>
            {
                From::Which((*name).to_owned())
            }
            _ => From::Other,
        };
    }
    let inner = source
        .strip_prefix("${")
        .and_then(|it| it.strip_suffix('}'));
    let inner = inner
        .or_else(|| source.strip_prefix('$'))
        .unwrap_or_default();
    if is_name(inner) {
        return From::Variable(inner.to_owned());
    }
    if let Some((name, value)) = inner.split_once(":-").or_else(|| inner.split_once('-'))
        && is_name(name)
        && plain(value)
    {
        return From::Default(name.to_owned(), value.to_owned());
    }
    // `${1:-x}` and the like may be something else.
    let digits = |text: &str| !text.is_empty() && text.chars().all(|it| it.is_ascii_digit());
    let rest = inner.strip_prefix(['@', '*']);
    let all = rest.is_some_and(|it| it.is_empty() || it.strip_prefix(':').is_some_and(digits));
    if all || digits(inner) && inner != "0" {
        From::Positional
    } else {
        From::Other
    }
}
