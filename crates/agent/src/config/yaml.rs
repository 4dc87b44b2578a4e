//! A YAML text as values that know their line.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

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
        .map_err(|error| error.to_string())
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
