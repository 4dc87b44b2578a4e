//! What a text sets its variables to.

use std::collections::HashMap;

use crate::limits::VALUES_MAX;
use crate::word::Word;

/// Names that the shell itself sets.
const OF_THE_SHELL: &[&str] = &[
    "_",
    "REPLY",
    "MAPFILE",
    "COPROC",
    "OPTARG",
    "OPTIND",
    "DIRSTACK",
    "FUNCNAME",
    "PIPESTATUS",
];

#[derive(Debug, Default)]
pub(crate) struct Variables {
    known: HashMap<String, Values>,
    all_unknown: bool,
    splits_otherwise: bool,
}

#[derive(Debug, Default)]
struct Values {
    texts: Vec<String>,
    more: bool,
}

/// What a variable may hold.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    /// What the environment says: the text does not set it.
    Environment,
    /// One of these.
    OneOf(&'a [String]),
    Anything,
}

impl Variables {
    pub(crate) fn assign(&mut self, name: &str, value: &str) {
        self.splits_otherwise |= name == "IFS";
        let values = self.known.entry(name.to_owned()).or_default();
        if values.texts.iter().any(|known| known == value) {
            return;
        }
        if values.texts.len() < VALUES_MAX {
            values.texts.push(value.to_owned());
        } else {
            values.more = true;
        }
    }

    pub(crate) fn unknown(&mut self, name: &str) {
        self.splits_otherwise |= name == "IFS";
        self.known.entry(name.to_owned()).or_default().more = true;
    }

    pub(crate) fn all_unknown(&mut self) {
        self.all_unknown = true;
    }

    /// Builtins that set the variables which they are given.
    pub(crate) fn by_builtin(&mut self, words: &[Word]) {
        let Some(program) = words.first().and_then(Word::basename) else {
            return;
        };
        let arguments = words.get(1..).unwrap_or_default();
        match program {
            "read" | "mapfile" | "readarray" | "getopts" | "wait" | "coproc" | "export"
            | "declare" | "typeset" | "readonly" | "local" => {}
            "printf"
                if arguments
                    .first()
                    .is_some_and(|it| it.shown().starts_with("-v")) => {}
            "source" | "." => return self.all_unknown(),
            _ => return,
        }
        for word in arguments {
            match word.literal() {
                Some(name) if name.contains('=') => {
                    let (name, value) = name.split_once('=').unwrap_or_default();
                    self.assign(name.trim_end_matches('+'), value);
                }
                Some(name) => {
                    let name = name.strip_prefix("-v").unwrap_or(&name);
                    self.unknown(name.split('[').next().unwrap_or_default());
                }
                None if program == "printf" && word != &arguments[0] => {}
                None => self.all_unknown(),
            }
        }
    }

    pub(crate) fn value(&self, name: &str) -> Value<'_> {
        if self.all_unknown || OF_THE_SHELL.contains(&name) || name.starts_with("BASH") {
            return Value::Anything;
        }
        match self.known.get(name) {
            None => Value::Environment,
            Some(values) if values.more || values.texts.is_empty() => Value::Anything,
            Some(values) => Value::OneOf(&values.texts),
        }
    }

    /// Whether words are split elsewhere than at blanks.
    pub(crate) fn splits_otherwise(&self) -> bool {
        self.splits_otherwise
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.all_unknown |= other.all_unknown;
        self.splits_otherwise |= other.splits_otherwise;
        for (name, values) in other.known {
            for text in &values.texts {
                self.assign(&name, text);
            }
            if values.more {
                self.unknown(&name);
            }
        }
    }
}
