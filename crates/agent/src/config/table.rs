//! What is known of a key of `executor.yaml`. All of them are in one table, [`ROWS`]: they are read, checked and
//! documented from there.

use super::kind::Kind::{self, Choice, Number};
pub use super::rows::ROWS;

/// A key.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Where it stands. `NAME` stands for any name.
    pub path: &'static str,
    /// What it may hold.
    pub kind: Kind,
    /// What it is without the file, for people.
    pub default: &'static str,
    /// A variable that sets it, beside the one that every key has.
    pub short: Option<&'static str>,
    /// What it does.
    pub meaning: &'static str,
    /// Whether it does that here. Every key has to say.
    pub used: Used,
}

/// Whether a key has its effect here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Used {
    /// It has.
    Yes,
    /// Only with this value; what is done otherwise.
    Only(&'static str, &'static str),
    /// It has none; why not.
    No(&'static str),
}

impl Used {
    /// For people.
    pub fn words(self) -> String {
        match self {
            Self::Yes => "yes".to_owned(),
            Self::Only(only, why) => format!("only `{only}`: {why}"),
            Self::No(why) => format!("no: {why}"),
        }
    }

    /// What is to be said about a value that is set and has no effect.
    pub fn warning(self, value: &str) -> Option<&'static str> {
        match self {
            Self::Yes => None,
            Self::Only(only, why) => (value != only).then_some(why),
            Self::No(why) => Some(why),
        }
    }
}

/// How every variable begins.
pub const PREFIX: &str = "GPTOSS_EXECUTOR_";

impl Row {
    /// The variables that set it, where its path has no `NAME`: `GPTOSS_EXECUTOR_<SECTION>_<KEY>`,
    /// for the first section also without its name, and the short one.
    pub fn variables(&self) -> Vec<String> {
        let upper = |path: &str| format!("{PREFIX}{}", path.replace('.', "_").to_uppercase());
        let mut names = vec![upper(self.path)];
        if let Some(key) = self.path.strip_prefix("executor.") {
            names.push(upper(key));
        }
        names.extend(self.short.map(str::to_owned));
        names
    }
}

pub(super) const STRATEGIES: Kind = Choice(&[
    "guided_json",
    "react",
    "markers",
    "fuzzy",
    "native",
    "harmony",
    "auto",
]);
pub(super) const FIELDS: Kind = Choice(&["reasoning", "content"]);
pub(super) const GUESSES: Kind = Choice(&["ask_model", "ask_person", "run"]);
pub(super) const OUTPUTS: Kind = Choice(&["response_format", "guided_json", "off"]);
pub(super) const HTTP2: Kind = Choice(&["negotiated", "always", "never"]);
pub(super) const THOUGHTS: Kind = Choice(&["tagged", "opened"]);
pub(super) const PLACES: Kind = Choice(&["system", "user"]);

pub(super) const fn row(
    path: &'static str,
    kind: Kind,
    used: Used,
    default: &'static str,
    meaning: &'static str,
) -> Row {
    Row {
        path,
        kind,
        default,
        short: None,
        meaning,
        used,
    }
}

pub(super) const fn short(row: Row, short: &'static str) -> Row {
    Row {
        short: Some(short),
        ..row
    }
}

pub(super) const fn whole(min: u64, max: u64) -> Kind {
    Number { min, max }
}
