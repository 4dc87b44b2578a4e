//! A YAML text as values that know their line.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::{Error, MessageFormatter, Spanned, UserMessageFormatter};

/// A value, and where it stands.
pub(super) type Node = Spanned<Yaml>;

/// What a file can hold.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Yaml {
    Nothing,
    Switch(bool),
    Number(f64),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(Spanned<String>, Node)>),
}

impl Yaml {
    /// What it is, for people.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Switch(_) => "a switch",
            Self::Number(_) => "a number",
            Self::Text(_) => "a text",
            Self::List(_) => "a list",
            Self::Map(_) => "a section",
        }
    }
}

/// The line of a value, from 1.
pub(super) fn line_of<T>(value: &Spanned<T>) -> u64 {
    value.referenced.line()
}

/// Reads a text; the error says where it is no YAML.
pub(super) fn read(text: &str) -> Result<Option<Node>, String> {
    let is_empty = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('#');
    if text.lines().all(is_empty) {
        return Ok(None);
    }
    serde_saphyr::from_str(text)
        .map(Some)
        .map_err(|error| explained(&error))
}

/// What is wrong with a text and where, in words for the person who wrote it: the reader's own speak
/// of its types and of its options.
#[must_use]
pub fn explained(error: &Error) -> String {
    let text = error.render_with_formatter(&ForItsAuthor);
    // Whoever shows it has said already that it is an error.
    text.strip_prefix("error: ").unwrap_or(&text).to_owned()
}

struct ForItsAuthor;

impl MessageFormatter for ForItsAuthor {
    fn format_message<'a>(&self, error: &'a Error) -> Cow<'a, str> {
        match error {
            Error::WithSnippet { error, .. } => self.format_message(error),
            Error::DuplicateMappingKey { key: Some(key), .. } => {
                Cow::Owned(format!("{key} is there twice; keep one"))
            }
            Error::DuplicateMappingKey { key: None, .. } => {
                Cow::Borrowed("the same key is there twice; keep one")
            }
            Error::InvalidScalar { ty, .. } => Cow::Owned(format!("it should be {}", kind(ty))),
            Error::Unexpected { expected, .. } => {
                Cow::Owned(format!("it should be {}", kind(expected)))
            }
            _ => UserMessageFormatter.format_message(error),
        }
    }
}

/// The kind of a value that the reader names after a type.
fn kind(of: &str) -> Cow<'_, str> {
    Cow::Borrowed(match of {
        "u8" | "u16" | "u32" | "u64" | "u128" | "usize" => "a whole number that is not negative",
        "i8" | "i16" | "i32" | "i64" | "i128" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "bool" | "boolean" => "true or false",
        "string scalar" => "a text",
        "mapping start" => "a section of `key: value` lines",
        "sequence start" => "a list",
        other => other,
    })
}

struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = Yaml;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Yaml, E> {
        Ok(Yaml::Nothing)
    }

    fn visit_none<E>(self) -> Result<Yaml, E> {
        Ok(Yaml::Nothing)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Yaml, E> {
        Ok(Yaml::Switch(value))
    }

    #[expect(clippy::cast_precision_loss, reason = "no setting is larger than 2^53")]
    fn visit_i64<E>(self, value: i64) -> Result<Yaml, E> {
        Ok(Yaml::Number(value as f64))
    }

    #[expect(clippy::cast_precision_loss, reason = "no setting is larger than 2^53")]
    fn visit_u64<E>(self, value: u64) -> Result<Yaml, E> {
        Ok(Yaml::Number(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Yaml, E> {
        Ok(Yaml::Number(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Yaml, E> {
        Ok(Yaml::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Yaml, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = seq.next_element()? {
            list.push(value);
        }
        Ok(Yaml::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Yaml, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Yaml::Map(members))
    }
}

impl<'de> Deserialize<'de> for Yaml {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Any)
    }
}
