//! What a key may hold, and how a value is held to it.

use super::yaml::Yaml;

/// What a key may hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// Any text.
    Text,
    /// A text that is never shown.
    Secret,
    /// The address of an HTTP server.
    Address,
    /// A file or directory; empty for none.
    File,
    /// A whole number.
    Number {
        /// The least.
        min: u64,
        /// The most.
        max: u64,
    },
    /// A number.
    Decimal {
        /// The least.
        min: f64,
        /// The most.
        max: f64,
    },
    /// A number, or nothing.
    MaybeDecimal {
        /// The least.
        min: f64,
        /// The most.
        max: f64,
    },
    /// One of these words; empty for none.
    Choice(&'static [&'static str]),
    /// A list of texts.
    Texts,
}

/// A value that was held to its kind.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Held {
    Text(String),
    Number(u64),
    Decimal(f64),
    Texts(Vec<String>),
}

impl Kind {
    /// What it is, for people.
    pub fn words(self) -> String {
        match self {
            Self::Text => "a text".to_owned(),
            Self::Secret => "a secret".to_owned(),
            Self::Address => "an address (`http://…` or `https://…`)".to_owned(),
            Self::File => "a path".to_owned(),
            Self::Number { min, max } => format!("a whole number from {min} to {max}"),
            Self::Decimal { min, max } => format!("a number from {min} to {max}"),
            Self::MaybeDecimal { min, max } => format!("a number from {min} to {max}, or nothing"),
            Self::Choice(words) => format!("one of {}", words.join(", ")),
            Self::Texts => "a list of texts".to_owned(),
        }
    }

    /// Holds a value to it. The error is what is wrong, without the value of a secret.
    pub(super) fn hold(self, value: &Yaml) -> Result<Held, String> {
        let wanted = || format!("has to be {}, and is {}", self.words(), value.kind());
        match (self, value) {
            (Self::Texts, Yaml::List(list)) => {
                let texts = list.iter().map(|one| match &one.value {
                    Yaml::Text(text) => Some(text.clone()),
                    Yaml::Number(number) => Some(number.to_string()),
                    _ => None,
                });
                let texts: Option<Vec<String>> = texts.collect();
                texts
                    .map(Held::Texts)
                    .ok_or_else(|| "has to be a list of texts only".to_owned())
            }
            (Self::Texts, Yaml::Nothing) => Ok(Held::Texts(Vec::new())),
            (Self::Texts, Yaml::Text(text)) => Ok(Held::Texts(from_commas(text))),
            (_, Yaml::Text(text)) => self.hold_text(text),
            (
                Self::Number { .. } | Self::Decimal { .. } | Self::MaybeDecimal { .. },
                Yaml::Number(number),
            ) => self.hold_number(*number),
            (
                Self::Text
                | Self::Secret
                | Self::File
                | Self::Choice(_)
                | Self::MaybeDecimal { .. },
                Yaml::Nothing,
            ) => Ok(Held::Text(String::new())),
            // A key of digits, or a model that is called by a number.
            (Self::Text | Self::Secret, Yaml::Number(number)) => Ok(Held::Text(number.to_string())),
            _ => Err(wanted()),
        }
    }

    /// The same for a text, as variables and `${…}` give them.
    pub(super) fn hold_text(self, text: &str) -> Result<Held, String> {
        let wrong = || format!("has to be {}, and is {text:?}", self.words());
        match self {
            Self::Texts => Ok(Held::Texts(from_commas(text))),
            Self::Choice(words) if !text.is_empty() && !words.contains(&text) => Err(wrong()),
            Self::Address if !is_address(text) => Err(wrong() + &hint_of_scheme(text)),
            Self::Text | Self::Secret | Self::File | Self::Choice(_) | Self::Address => {
                Ok(Held::Text(text.to_owned()))
            }
            Self::MaybeDecimal { .. } if ["", "null"].contains(&text.trim()) => {
                Ok(Held::Text(String::new()))
            }
            Self::Number { .. } | Self::Decimal { .. } | Self::MaybeDecimal { .. } => {
                let number = text.trim().parse().map_err(|_| wrong())?;
                self.hold_number(number)
            }
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "held to bounds that a double holds exactly"
    )]
    fn hold_number(self, number: f64) -> Result<Held, String> {
        let wrong = || format!("has to be {}, and is {number}", self.words());
        match self {
            Self::Number { min, max } => {
                let is_in = number.fract() == 0.0 && number >= min as f64 && number <= max as f64;
                is_in
                    .then_some(Held::Number(number as u64))
                    .ok_or_else(wrong)
            }
            Self::Decimal { min, max } | Self::MaybeDecimal { min, max } => {
                let is_in = number >= min && number <= max;
                is_in.then_some(Held::Decimal(number)).ok_or_else(wrong)
            }
            _ => Err(wrong()),
        }
    }
}

fn from_commas(text: &str) -> Vec<String> {
    let parts = text
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty());
    parts.map(str::to_owned).collect()
}

/// What was most likely meant by an address without a scheme, as the end of an error.
pub(crate) fn hint_of_scheme(text: &str) -> String {
    let meant = format!("http://{text}");
    // A misspelt scheme is no host, and a password is not said once more.
    let is_other = text.contains("://") || text.starts_with("http") || text.contains('@');
    if is_other || !is_address(&meant) {
        return String::new();
    }
    format!("; did you mean {meant}?")
}

/// Whether a client could be built for it: the scheme, and a host behind it.
pub(super) fn is_address(text: &str) -> bool {
    let rest = text
        .strip_prefix("http://")
        .or_else(|| text.strip_prefix("https://"));
    rest.is_some_and(|rest| {
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        !host.is_empty() && !host.starts_with(':') && !host.contains(char::is_whitespace)
    })
}
