//! L2: what can be done, by family and action, and who is granted it.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use holdfast_contract::Trust;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Length of an action's name.
pub const ACTION_BYTES_MAX: usize = 64;

/// What a capability is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// Files.
    Fs,
    /// The network.
    Net,
    /// Processes.
    Proc,
    /// The environment, with its secrets.
    Env,
    /// What is remembered and kept.
    Data,
    /// Other agents and people.
    Agent,
    /// The system itself.
    Sys,
}

impl Family {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Fs,
        Self::Net,
        Self::Proc,
        Self::Env,
        Self::Data,
        Self::Agent,
        Self::Sys,
    ];

    /// The name as it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fs => "fs",
            Self::Net => "net",
            Self::Proc => "proc",
            Self::Env => "env",
            Self::Data => "data",
            Self::Agent => "agent",
            Self::Sys => "sys",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.as_str() == name)
    }
}

/// Why a text is no capability or grant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CapabilityError {
    /// No colon in it.
    #[error("{0:?} is not of the form family:action, such as fs:read")]
    Form(String),
    /// A family there is not.
    #[error("there is no family {0:?}; there are fs, net, proc, env, data, agent and sys")]
    Family(String),
    /// An action that can not be.
    #[error("{0:?} is no action: lower-case letters, digits and _ are")]
    Action(String),
}

/// One thing that can be done: `fs:read`, `proc:exec`, `agent:message` …
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Capability {
    family: Family,
    action: Cow<'static, str>,
}

/// Reading files and the network, by the lowest trust that may ask for it: what tools say is enough.
const READING: &[(Family, &str)] = &[
    (Family::Fs, "read"),
    (Family::Fs, "list"),
    (Family::Net, "request"),
    (Family::Net, "search"),
    (Family::Data, "read"),
    (Family::Agent, "read"),
    (Family::Sys, "read"),
];

/// What is not reading and goes on while a signal stands: what is kept is trusted as little as what
/// the session has read, and what is spoken changes nothing. All else is held, also what nobody
/// knows.
const HARMLESS: &[(Family, &str)] = &[(Family::Data, "write"), (Family::Sys, "speak")];

impl Capability {
    /// One of our own.
    pub(crate) const fn new(family: Family, action: &'static str) -> Self {
        Self {
            family,
            action: Cow::Borrowed(action),
        }
    }

    /// What it is about.
    pub fn family(&self) -> Family {
        self.family
    }

    /// What is done.
    pub fn action(&self) -> &str {
        &self.action
    }

    /// The lowest trust of an input that may lead to it. What is not known to be reading is taken
    /// for the worst.
    pub fn lowest_trust(&self) -> Trust {
        if self.is_one_of(READING) {
            Trust::Tool
        } else {
            Trust::User
        }
    }

    /// Whether a call with it waits while a signal holds its session.
    pub fn is_held(&self) -> bool {
        !self.is_one_of(READING) && !self.is_one_of(HARMLESS)
    }

    fn is_one_of(&self, list: &[(Family, &str)]) -> bool {
        list.iter()
            .any(|(family, action)| *family == self.family && *action == self.action)
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.family.as_str(), self.action)
    }
}

fn parts(text: &str) -> Result<(Family, &str), CapabilityError> {
    let form = || CapabilityError::Form(text.to_owned());
    let (family, action) = text.split_once(':').ok_or_else(form)?;
    let known = Family::from_name(family);
    let family = known.ok_or_else(|| CapabilityError::Family(family.to_owned()))?;
    Ok((family, action))
}

fn checked_action(action: &str) -> Result<Cow<'static, str>, CapabilityError> {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let is_good = !action.is_empty() && action.len() <= ACTION_BYTES_MAX;
    if is_good && action.bytes().all(fits) {
        Ok(Cow::Owned(action.to_owned()))
    } else {
        Err(CapabilityError::Action(action.to_owned()))
    }
}

impl FromStr for Capability {
    type Err = CapabilityError;

    fn from_str(text: &str) -> Result<Self, CapabilityError> {
        let (family, action) = parts(text)?;
        Ok(Self {
            family,
            action: checked_action(action)?,
        })
    }
}

/// Capabilities that are granted: one, or with `*` all of a family.
///
/// ```
/// use holdfast_trust::Grant;
/// let files: Grant = "fs:*".parse().unwrap();
/// assert!(files.covers(&"fs:write".parse().unwrap()));
/// assert!(!files.covers(&"proc:exec".parse().unwrap()));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Grant {
    /// All of a family.
    Family(Family),
    /// This one.
    One(Capability),
}

impl Grant {
    /// Whether it covers a capability.
    pub fn covers(&self, capability: &Capability) -> bool {
        match self {
            Self::Family(family) => *family == capability.family,
            Self::One(one) => one == capability,
        }
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Family(family) => write!(out, "{}:*", family.as_str()),
            Self::One(one) => one.fmt(out),
        }
    }
}

impl FromStr for Grant {
    type Err = CapabilityError;

    fn from_str(text: &str) -> Result<Self, CapabilityError> {
        let (family, action) = parts(text)?;
        if action == "*" {
            return Ok(Self::Family(family));
        }
        text.parse().map(Self::One)
    }
}

/// Written and read as text, in files and in the schema.
macro_rules! as_text {
    ($type:ty, $name:literal, $pattern:literal, $about:literal) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
                out.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
                let text = String::deserialize(input)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({"type": "string", "pattern": $pattern, "description": $about})
            }
        }
    };
}

as_text!(
    Capability,
    "Capability",
    "^(fs|net|proc|env|data|agent|sys):[a-z0-9_]+$",
    "A family and an action, such as fs:read."
);
as_text!(
    Grant,
    "Grant",
    "^(fs|net|proc|env|data|agent|sys):([a-z0-9_]+|\\*)$",
    "A family and an action, or a family and * for all of it."
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capability_is_read_as_it_is_written() {
        for text in ["fs:read", "agent:message", "sys:a_1"] {
            assert_eq!(text.parse::<Capability>().unwrap().to_string(), text);
            assert_eq!(text.parse::<Grant>().unwrap().to_string(), text);
        }
        assert_eq!("net:*".parse::<Grant>().unwrap().to_string(), "net:*");
        for wrong in [
            "fs",
            "fs:",
            "fs:*",
            "disk:read",
            "fs:Read",
            "fs:a b",
            ":read",
        ] {
            assert!(wrong.parse::<Capability>().is_err(), "{wrong}");
        }
        assert!("*:*".parse::<Grant>().is_err());
    }

    #[test]
    fn the_lowest_trust_is_as_the_layers_table_says() {
        let table = [
            ("fs:read", Trust::Tool),
            ("net:request", Trust::Tool),
            ("fs:write", Trust::User),
            ("fs:delete", Trust::User),
            ("proc:exec", Trust::User),
            ("env:secrets", Trust::User),
            ("agent:message", Trust::User),
            ("agent:spawn", Trust::User),
            ("sys:nobody_knows", Trust::User),
        ];
        for (text, lowest) in table {
            let capability: Capability = text.parse().unwrap();
            assert_eq!(capability.lowest_trust(), lowest, "{text}");
        }
    }

    #[test]
    fn all_that_acts_is_held_but_what_is_known_to_be_harmless() {
        let free = "fs:read fs:list net:request net:search data:read agent:read sys:read \
                    data:write sys:speak";
        let held = "fs:write fs:delete net:drive proc:exec env:secrets agent:message agent:spawn \
                    sys:act sys:unknown sys:schedule sys:configure sys:devices sys:display \
                    data:delete env:nobody_knows";
        for (list, is_held) in [(free, false), (held, true)] {
            for text in list.split_whitespace() {
                let capability: Capability = text.parse().unwrap();
                assert_eq!(capability.is_held(), is_held, "{text}");
            }
        }
    }
}
