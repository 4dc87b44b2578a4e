//! L2: what each tool needs.

use std::collections::BTreeSet;

use holdfast_contract::names::at_gateway;
use holdfast_contract::{Effect, Trust};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::capability::{Capability, Family};

/// What a tool needs, and what it accepts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Manifest {
    /// What it does. A tool that names nothing here may do nothing.
    pub capabilities: BTreeSet<Capability>,
    /// The lowest trust of the session's content that may lead to a call; by default the highest
    /// that one of its capabilities asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lowest_trust: Option<Trust>,
    /// How far its results are trusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_trust: Option<Trust>,
    /// When it is not empty, addresses in the arguments have to be at one of these hosts or beneath.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub domains: Vec<String>,
    /// When it is not empty, paths in the arguments have to be one of these or beneath, relative to
    /// the workspace.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Bounds of its calls.
    pub limits: ManifestLimits,
}

/// Bounds of a tool's calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ManifestLimits {
    /// Arguments as JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments_bytes_max: Option<usize>,
    /// Calls of one session within a minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls_per_minute_max: Option<u32>,
}

/// Capabilities, as they are written in a table.
type Needs = &'static [(Family, &'static str)];

/// The built-in manifests: a tool, what it needs, and how far its results are trusted. What comes
/// from the web, from mails and from other programs is nobody's word but its own.
const BUILT_IN: &[(&str, Needs, Trust)] = &[
    ("read", &[(Family::Fs, "read")], Trust::Tool),
    ("write", &[(Family::Fs, "write")], Trust::Tool),
    (
        "edit",
        &[(Family::Fs, "read"), (Family::Fs, "write")],
        Trust::Tool,
    ),
    ("exec", &[(Family::Proc, "exec")], Trust::Tool),
    ("message", &[(Family::Agent, "message")], Trust::Tool),
    ("memory_search", &[(Family::Data, "read")], Trust::Tool),
    ("memory_store", &[(Family::Data, "write")], Trust::Tool),
    // What a subagent gives back carries its own trust, which the tree hands on.
    ("sessions_spawn", &[(Family::Agent, "spawn")], Trust::Tool),
    ("sessions_list", &[(Family::Agent, "read")], Trust::Tool),
    ("sessions_resume", &[(Family::Agent, "spawn")], Trust::Tool),
    ("sessions_kill", &[(Family::Agent, "spawn")], Trust::Tool),
    ("web_search", &[(Family::Net, "search")], Trust::Untrusted),
    ("web_fetch", &[(Family::Net, "request")], Trust::Untrusted),
];

/// The same for the tools of a gateway, by their names there. They run elsewhere, so all that they
/// say is untrusted.
const GATEWAY: &[(&str, Needs)] = &[
    ("web_search", &[(Family::Net, "search")]),
    ("web_fetch", &[(Family::Net, "request")]),
    ("memory_search", &[(Family::Data, "read")]),
    ("memory_get", &[(Family::Data, "read")]),
    ("sessions_list", &[(Family::Agent, "read")]),
    ("sessions_history", &[(Family::Agent, "read")]),
    ("session_status", &[(Family::Agent, "read")]),
    ("agents_list", &[(Family::Agent, "read")]),
    ("sessions_send", &[(Family::Agent, "message")]),
    ("sessions_spawn", &[(Family::Agent, "spawn")]),
    ("subagents", &[(Family::Agent, "spawn")]),
    ("message", &[(Family::Agent, "message")]),
    (
        "browser",
        &[(Family::Net, "request"), (Family::Net, "drive")],
    ),
    ("canvas", &[(Family::Sys, "display")]),
    ("nodes", &[(Family::Sys, "devices")]),
    ("tts", &[(Family::Sys, "speak")]),
    ("cron", &[(Family::Sys, "schedule")]),
    ("gateway", &[(Family::Sys, "configure")]),
    ("read", &[(Family::Fs, "read")]),
    ("write", &[(Family::Fs, "write")]),
    ("edit", &[(Family::Fs, "read"), (Family::Fs, "write")]),
    ("exec", &[(Family::Proc, "exec")]),
    ("process", &[(Family::Proc, "exec")]),
    (
        "apply_patch",
        &[(Family::Fs, "read"), (Family::Fs, "write")],
    ),
    ("ls", &[(Family::Fs, "read")]),
    ("find", &[(Family::Fs, "read")]),
    ("grep", &[(Family::Fs, "read")]),
    ("image", &[(Family::Fs, "read")]),
    ("pdf", &[(Family::Fs, "read")]),
    ("sessions_search", &[(Family::Agent, "read")]),
    ("tool_search", &[(Family::Sys, "read")]),
    ("tool_describe", &[(Family::Sys, "read")]),
];

impl Manifest {
    fn made(capabilities: &[(Family, &'static str)], result_trust: Trust) -> Self {
        let capabilities = capabilities
            .iter()
            .map(|(family, action)| Capability::new(*family, action));
        Self {
            capabilities: capabilities.collect(),
            result_trust: Some(result_trust),
            ..Self::default()
        }
    }

    /// The built-in manifest of one of our tools, or of a gateway's.
    pub fn built_in(tool: &str) -> Option<Self> {
        if let Some((_, needs, trust)) = BUILT_IN.iter().find(|(name, ..)| *name == tool) {
            return Some(Self::made(needs, *trust));
        }
        let remote = at_gateway(tool)?;
        let known = GATEWAY.iter().find(|(name, _)| *name == remote);
        // What nobody knows may do anything there.
        let needs = known.map_or(&[(Family::Sys, "unknown")] as &[_], |(_, needs)| *needs);
        Some(Self::made(needs, Trust::Untrusted))
    }

    /// For a tool that brings none: what its declared effect lets it do.
    pub fn by_effect(effect: Effect) -> Self {
        let needs = match effect {
            Effect::None => (Family::Data, "read"),
            Effect::Workspace => (Family::Fs, "write"),
            Effect::External => (Family::Sys, "act"),
        };
        Self::made(&[needs], Trust::Tool)
    }

    /// The lowest trust of content that may lead to a call.
    pub fn lowest_trust(&self) -> Trust {
        let by_needs = || self.capabilities.iter().map(Capability::lowest_trust).max();
        self.lowest_trust.or_else(by_needs).unwrap_or(Trust::User)
    }

    /// How far its results are trusted, when it says nothing of one result.
    pub fn result_trust(&self) -> Trust {
        self.result_trust.unwrap_or(Trust::Tool)
    }

    /// Whether a call waits while a signal holds its session.
    pub fn is_held(&self) -> bool {
        self.capabilities.iter().any(Capability::is_held)
    }

    /// This one where it says something, else the other.
    #[must_use]
    pub fn or(mut self, other: &Self) -> Self {
        if self.capabilities.is_empty() {
            self.capabilities.clone_from(&other.capabilities);
        }
        self.lowest_trust = self.lowest_trust.or(other.lowest_trust);
        self.result_trust = self.result_trust.or(other.result_trust);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_needs_a_users_word_and_what_looks_does_not() {
        let acts = ["write", "edit", "exec", "message", "gateway_sessions_send"];
        for tool in acts {
            let manifest = Manifest::built_in(tool).unwrap();
            assert_eq!(manifest.lowest_trust(), Trust::User, "{tool}");
            assert!(manifest.is_held(), "{tool}");
        }
        for tool in ["read", "web_fetch", "memory_search", "gateway_agents_list"] {
            let manifest = Manifest::built_in(tool).unwrap();
            assert_eq!(manifest.lowest_trust(), Trust::Tool, "{tool}");
            assert!(!manifest.is_held(), "{tool}");
        }
        let unknown = Manifest::built_in("gateway_what_is_this").unwrap();
        assert_eq!(unknown.lowest_trust(), Trust::User);
        assert!(unknown.is_held());
        assert!(Manifest::by_effect(Effect::External).is_held());
        assert_eq!(unknown.result_trust(), Trust::Untrusted);
        assert_eq!(Manifest::built_in("mine"), None);
        assert_eq!(Manifest::default().lowest_trust(), Trust::User);
    }

    #[test]
    fn a_configured_manifest_keeps_what_it_does_not_say() {
        let configured = Manifest {
            domains: vec!["docs.rs".to_owned()],
            ..Manifest::default()
        };
        let fetch = configured.or(&Manifest::built_in("web_fetch").unwrap());
        assert_eq!(fetch.result_trust(), Trust::Untrusted);
        assert_eq!(fetch.capabilities.len(), 1);
        assert_eq!(fetch.domains, ["docs.rs"]);
    }
}
