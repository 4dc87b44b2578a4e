//! `trust:` in the configuration.

use std::collections::BTreeMap;

use holdfast_contract::{Effect, Trust};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::capability::{Family, Grant};
use crate::manifest::Manifest;
use crate::session::HOLD_MS;
use crate::signal::{Findings, scan};
use crate::skill::{PublicKey, Standing};

/// Longest hold that can be configured: a day.
pub const HOLD_MS_MAX: u64 = 24 * 60 * 60 * 1000;

/// What a layer does about what it finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TrustMode {
    /// It acts.
    Enforce,
    /// It says what it would have done, and lets the call go on.
    Audit,
    /// It stands aside.
    Off,
}

/// What becomes of a call that is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnHold {
    /// It waits for a person's approval.
    Ask,
    /// It is denied.
    Deny,
}

/// `trust:` in the configuration.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct TrustConfig {
    /// L2: what tools may do, and with whose words.
    pub capabilities: CapabilityConfig,
    /// L4: what in results and messages speaks for an attack.
    pub signals: SignalConfig,
    /// L5: skills as they were when somebody looked at them.
    pub skills: SkillConfig,
}

/// `trust.capabilities`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct CapabilityConfig {
    /// What happens to a call whose tool's manifest does not cover it: `enforce`, `audit`, `off`.
    pub mode: TrustMode,
    /// The same for a call made after the session has read content below the tool's lowest trust.
    /// `enforce` asks a person about every write, command and message that follows a read.
    pub input_trust: TrustMode,
    /// What is granted; all else is denied.
    pub grants: Vec<Grant>,
    /// What is granted to single agents instead.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub agents: BTreeMap<String, Vec<Grant>>,
    /// Manifests by tool. What one does not say is taken from the built-in manifest.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, Manifest>,
}

impl Default for CapabilityConfig {
    fn default() -> Self {
        Self {
            mode: TrustMode::Enforce,
            input_trust: TrustMode::Audit,
            grants: Family::ALL.map(Grant::Family).to_vec(),
            agents: BTreeMap::new(),
            tools: BTreeMap::new(),
        }
    }
}

/// `trust.signals`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SignalConfig {
    /// `enforce` holds risky tools after a high signal, `audit` only says what it found, `off` does
    /// not look.
    pub mode: TrustMode,
    /// Confidence from 0 to 1 from which a signal holds.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub hold_at: f64,
    /// How long it holds when no user message comes before.
    pub hold_ms: u64,
    /// What becomes of a held call.
    pub on_hold: OnHold,
    /// The tools that are held; when it is empty, those that write, run, send and start sessions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hold_tools: Vec<String>,
}

impl Default for SignalConfig {
    fn default() -> Self {
        Self {
            mode: TrustMode::Enforce,
            hold_at: 0.8,
            hold_ms: HOLD_MS,
            on_hold: OnHold::Ask,
            hold_tools: Vec::new(),
        }
    }
}

/// `trust.skills`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SkillConfig {
    /// Directories whose subdirectories are skills.
    pub dirs: Vec<String>,
    /// Keys whose signatures count, by the name of their owner: `ed25519:` and 64 hex digits.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub keys: BTreeMap<String, String>,
    /// What a skill has to be for `holdfast skills verify` to be content.
    pub require: Standing,
}

impl Default for SkillConfig {
    fn default() -> Self {
        Self {
            dirs: vec!["~/.openclaw/skills".to_owned()],
            keys: BTreeMap::new(),
            require: Standing::Known,
        }
    }
}

impl TrustConfig {
    /// The manifest of a tool: the configured one, on top of the built-in one.
    pub fn manifest(&self, tool: &str, effect: Effect) -> Manifest {
        let own = Manifest::built_in(tool).unwrap_or_else(|| Manifest::by_effect(effect));
        match self.capabilities.tools.get(tool) {
            Some(configured) => configured.clone().or(&own),
            None => own,
        }
    }

    /// What is granted to an agent.
    pub fn grants(&self, agent: &str) -> &[Grant] {
        let own = self.capabilities.agents.get(agent);
        own.unwrap_or(&self.capabilities.grants)
    }

    /// What speaks against a text, where it is looked for at all.
    pub fn look(&self, text: &str, trust: Trust) -> Findings {
        match self.signals.mode {
            TrustMode::Off => Findings::default(),
            TrustMode::Enforce | TrustMode::Audit => scan(text, trust),
        }
    }

    /// Whether calls of a tool wait while a signal holds their session.
    pub fn is_held(&self, tool: &str, manifest: &Manifest) -> bool {
        match self.signals.hold_tools.as_slice() {
            [] => manifest.is_held(),
            named => named.iter().any(|name| name == tool),
        }
    }

    /// Everything that is wrong, as the setting and the reason, given the names of the tools.
    pub fn problems(&self, is_tool: impl Fn(&str) -> bool) -> Vec<(String, String)> {
        let mut problems = Vec::new();
        let signals = &self.signals;
        if !(0.0..=1.0).contains(&signals.hold_at) {
            let reason = "has to be from 0 to 1".to_owned();
            problems.push(("signals.holdAt".to_owned(), reason));
        }
        if signals.hold_ms == 0 || signals.hold_ms > HOLD_MS_MAX {
            let reason = format!("has to be from 1 to {HOLD_MS_MAX} ms");
            problems.push(("signals.holdMs".to_owned(), reason));
        }
        let lists = [
            ("signals.holdTools", signals.hold_tools.iter().collect()),
            (
                "capabilities.tools",
                self.capabilities.tools.keys().collect::<Vec<_>>(),
            ),
        ];
        for (path, names) in lists {
            for name in names.into_iter().filter(|name| !is_tool(name)) {
                problems.push((path.to_owned(), format!("there is no tool named {name:?}")));
            }
        }
        for (name, key) in &self.skills.keys {
            if let Err(error) = key.parse::<PublicKey>() {
                problems.push((format!("skills.keys.{name}"), error.to_string()));
            }
        }
        problems
    }
}
