//! What a breaker watches over: one tool, one dependency, or everything.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The thing one breaker stands in front of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BreakerTarget {
    /// One tool.
    Tool {
        /// The tool's namespace, for example `agents.tools.messaging`.
        namespace: String,
        /// The tool's name.
        name: String,
    },
    /// A part of what one tool reaches, where each is up or down by itself: some of its hosts.
    Part {
        /// The tool's name.
        tool: String,
        /// Which of its parts.
        place: u8,
    },
    /// Something that several tools call, for example one API.
    Dependency {
        /// The name the tools' metadata give it.
        name: String,
    },
    /// Every call of this installation.
    Global,
}

/// The name of one breaker: a target and the context in which it is watched.
///
/// The string form is stable, because it is a key in stores and an argument of the command
/// line: `tool:NAMESPACE/NAME`, `part:TOOL/PLACE`, `dependency:NAME`, `global`, with `CONTEXT@` in front where a
/// context is set. Characters that have a meaning in it are percent-encoded inside the parts,
/// so that no tool can be named into another one's breaker.
///
/// ```
/// use holdfast_reliability::breaker::BreakerKey;
///
/// let key = BreakerKey::tool("agents.tools", "message");
/// assert_eq!(key.to_string(), "tool:agents.tools/message");
/// assert_eq!("tool:agents.tools/message".parse(), Ok(key.clone()));
///
/// // Shadow mode counts in a keyspace of its own.
/// assert_eq!(key.in_context(BreakerKey::SHADOW).to_string(), "shadow@tool:agents.tools/message");
/// ```
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(into = "String", try_from = "String")]
#[schemars(with = "String")]
pub struct BreakerKey {
    /// Empty outside any context, so that one type covers both and keys sort by context.
    context: String,
    target: BreakerTarget,
}

/// Text that is not the name of a breaker.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a breaker key: {text:?}: {reason}")]
pub struct BreakerKeyError {
    /// The text as it was given.
    pub text: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

impl BreakerKey {
    /// The context of shadow mode, which must not touch what real calls count.
    pub const SHADOW: &'static str = "shadow";

    /// The breaker of one tool.
    pub fn tool(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self::of(BreakerTarget::Tool {
            namespace: namespace.into(),
            name: name.into(),
        })
    }

    /// The breaker of one of a tool's parts.
    pub fn part(tool: impl Into<String>, place: u8) -> Self {
        Self::of(BreakerTarget::Part {
            tool: tool.into(),
            place,
        })
    }

    /// The breaker of one dependency.
    pub fn dependency(name: impl Into<String>) -> Self {
        Self::of(BreakerTarget::Dependency { name: name.into() })
    }

    /// The breaker of all calls.
    pub fn global() -> Self {
        Self::of(BreakerTarget::Global)
    }

    /// The breaker of `target`, outside any context.
    pub fn of(target: BreakerTarget) -> Self {
        Self {
            context: String::new(),
            target,
        }
    }

    /// The same target watched apart from all other contexts; an empty name leaves the context.
    #[must_use]
    pub fn in_context(mut self, context: impl Into<String>) -> Self {
        self.context = context.into();
        self
    }

    /// The context; empty when there is none.
    pub fn context(&self) -> &str {
        &self.context
    }

    /// The breaker as people call it: a tool by its name, one of its parts with the hosts that share
    /// it, as `web_fetch (docs.rs)`. What has no such name is called by its key.
    pub fn called(&self, hosts: &[String]) -> String {
        let name = match &self.target {
            BreakerTarget::Tool { name, .. } => name.clone(),
            BreakerTarget::Part { tool, place } if hosts.is_empty() => {
                format!("{tool} (part {place})")
            }
            BreakerTarget::Part { tool, .. } => format!("{tool} ({})", hosts.join(", ")),
            BreakerTarget::Dependency { .. } | BreakerTarget::Global => return self.to_string(),
        };
        if self.context.is_empty() {
            name
        } else {
            format!("{}@{name}", self.context)
        }
    }

    /// The tool that it belongs to.
    pub fn tool_name(&self) -> Option<&str> {
        match &self.target {
            BreakerTarget::Tool { name: tool, .. } | BreakerTarget::Part { tool, .. } => Some(tool),
            BreakerTarget::Dependency { .. } | BreakerTarget::Global => None,
        }
    }

    /// What is watched.
    pub fn target(&self) -> &BreakerTarget {
        &self.target
    }
}

impl fmt::Display for BreakerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.context.is_empty() {
            write!(f, "{}@", Escaped(&self.context))?;
        }
        match &self.target {
            BreakerTarget::Tool { namespace, name } => {
                write!(f, "tool:{}/{}", Escaped(namespace), Escaped(name))
            }
            BreakerTarget::Part { tool, place } => write!(f, "part:{}/{place}", Escaped(tool)),
            BreakerTarget::Dependency { name } => write!(f, "dependency:{}", Escaped(name)),
            BreakerTarget::Global => f.write_str("global"),
        }
    }
}

impl FromStr for BreakerKey {
    type Err = BreakerKeyError;

    fn from_str(text: &str) -> Result<Self, BreakerKeyError> {
        let refuse = |reason| BreakerKeyError {
            text: text.to_owned(),
            reason,
        };
        let part = |encoded| unescape(encoded).ok_or_else(|| refuse("bad percent-encoding"));
        let (context, rest) = match text.split_once('@') {
            Some(("", _)) => return Err(refuse("the context before @ is empty")),
            Some((context, rest)) => (part(context)?, rest),
            None => (String::new(), text),
        };
        let target = match rest.split_once(':') {
            None if rest == "global" => BreakerTarget::Global,
            Some(("tool", path)) => {
                let (namespace, name) = path
                    .split_once('/')
                    .ok_or_else(|| refuse("want tool:NAMESPACE/NAME"))?;
                BreakerTarget::Tool {
                    namespace: part(namespace)?,
                    name: part(name)?,
                }
            }
            Some(("part", path)) => {
                let (tool, place) = path
                    .split_once('/')
                    .and_then(|(tool, place)| Some((tool, place.parse().ok()?)))
                    .ok_or_else(|| refuse("want part:TOOL/PLACE"))?;
                BreakerTarget::Part {
                    tool: part(tool)?,
                    place,
                }
            }
            Some(("dependency", name)) => BreakerTarget::Dependency { name: part(name)? },
            _ => {
                return Err(refuse(
                    "want tool:NAMESPACE/NAME, dependency:NAME or global",
                ));
            }
        };
        match &target {
            BreakerTarget::Tool { name, .. }
            | BreakerTarget::Part { tool: name, .. }
            | BreakerTarget::Dependency { name }
                if name.is_empty() =>
            {
                Err(refuse("the name is empty"))
            }
            _ => Ok(Self { context, target }),
        }
    }
}

impl From<BreakerKey> for String {
    fn from(key: BreakerKey) -> Self {
        key.to_string()
    }
}

impl TryFrom<String> for BreakerKey {
    type Error = BreakerKeyError;

    fn try_from(text: String) -> Result<Self, BreakerKeyError> {
        text.parse()
    }
}

/// Writes one part of a key so that it can not be taken for structure, nor break a log line.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            let structural = matches!(character, '%' | '/' | ':' | '@' | ' ');
            if structural || character.is_ascii_control() {
                write!(f, "%{:02X}", u32::from(character))?;
            } else {
                f.write_char(character)?;
            }
        }
        Ok(())
    }
}

/// Undoes [`Escaped`]; more leniently than it writes, because people type keys too.
fn unescape(encoded: &str) -> Option<String> {
    let mut parts = encoded.split('%');
    let mut plain = parts.next()?.to_owned();
    for part in parts {
        let (digits, rest) = part.split_at_checked(2)?;
        // `from_str_radix` alone would take a sign for a digit.
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let code = u8::from_str_radix(digits, 16).ok().filter(u8::is_ascii)?;
        plain.push(char::from(code));
        plain.push_str(rest);
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn keys_have_a_stable_form() {
        #[track_caller]
        fn check(key: BreakerKey, form: &str) {
            assert_eq!(key.to_string(), form);
            assert_eq!(form.parse(), Ok(key));
        }
        check(BreakerKey::tool("ns", "name"), "tool:ns/name");
        check(BreakerKey::tool("", "name"), "tool:/name");
        check(
            BreakerKey::tool("a/b", "c:d@e%f g"),
            "tool:a%2Fb/c%3Ad%40e%25f%20g",
        );
        check(BreakerKey::part("web_fetch", 17), "part:web_fetch/17");
        check(BreakerKey::dependency("Stripe"), "dependency:Stripe");
        check(BreakerKey::global(), "global");
        check(
            BreakerKey::global().in_context(BreakerKey::SHADOW),
            "shadow@global",
        );
        check(
            BreakerKey::tool("ns", "näme\n").in_context("a@b"),
            "a%40b@tool:ns/näme%0A",
        );
    }

    #[test]
    fn people_call_a_breaker_by_tool_and_hosts() {
        let hosts = ["docs.rs".to_owned(), "crates.io".to_owned()];
        let part = BreakerKey::part("web_fetch", 18);
        assert_eq!(part.called(&hosts), "web_fetch (docs.rs, crates.io)");
        assert_eq!(part.called(&[]), "web_fetch (part 18)");
        let tool = BreakerKey::tool("holdfast.tools", "exec");
        assert_eq!(tool.called(&[]), "exec");
        assert_eq!(tool.in_context("shadow").called(&[]), "shadow@exec");
        let dependency = BreakerKey::dependency("stripe");
        assert_eq!(dependency.called(&[]), "dependency:stripe");
    }

    #[test]
    fn other_text_is_refused() {
        for text in [
            "",
            "tool",
            "tool:",
            "tool:name",
            "tool:ns/",
            "part:web_fetch",
            "part:web_fetch/256",
            "part:/1",
            "dependency:",
            "Global",
            "global:",
            "@global",
            "shadow@",
            "tool:ns/%",
            "tool:ns/%4",
            "tool:ns/%zz",
            "tool:ns/%+1",
            "tool:ns/%FF",
            "tool:ns/%é",
        ] {
            assert!(text.parse::<BreakerKey>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn keys_are_strings_on_the_wire() {
        let key = BreakerKey::tool("ns", "name");
        let json = serde_json::to_string(&key).unwrap();
        assert_eq!(json, r#""tool:ns/name""#);
        assert_eq!(serde_json::from_str::<BreakerKey>(&json).unwrap(), key);
    }

    proptest! {
        #[test]
        fn every_name_survives_and_different_keys_differ(
            context in ".{0,4}", namespace in ".{0,6}", name in ".{1,6}", other in ".{1,6}",
        ) {
            let key = BreakerKey::tool(namespace.clone(), name.clone()).in_context(context.clone());
            prop_assert_eq!(key.to_string().parse::<BreakerKey>(), Ok(key.clone()));
            let second = BreakerKey::tool(namespace, other.clone()).in_context(context);
            prop_assert_eq!(key.to_string() == second.to_string(), name == other);
        }

        #[test]
        fn parsing_never_panics(text in ".{0,40}") {
            let _ = text.parse::<BreakerKey>();
        }
    }
}
