//! `permissions:` in the configuration.

use std::collections::BTreeMap;

use holdfast_contract::{ChannelLevel, Gate, PermissionTier};
use holdfast_reliability::config::ConfigProblem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tools::CommandRules;

/// Default of [`ApprovalConfig::wait_ms`].
pub const APPROVAL_WAIT_MS: u64 = 120_000;
/// Wait for an answer about `write` and `edit`, unless configured otherwise.
pub const APPROVAL_WRITE_WAIT_MS: u64 = 60_000;
/// Longest wait that can be configured: a week.
pub const APPROVAL_WAIT_MS_MAX: u64 = 7 * 24 * 60 * 60 * 1000;
/// Default of [`ApprovalConfig::use_within_ms`].
pub const APPROVAL_USE_WITHIN_MS: u64 = 15 * 60 * 1000;
/// Default of [`ApprovalConfig::denial_ms`].
pub const APPROVAL_DENIAL_MS: u64 = 10 * 60 * 1000;

/// `permissions:` in the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PermissionConfig {
    /// Calls of a higher tier are denied. `Elevated` calls need a person's answer besides, and
    /// without anybody to ask they are denied.
    pub max_tier: PermissionTier,
    /// Tools that are denied whatever their tier.
    pub denied_tools: Vec<String>,
    /// When it is not empty, only these tools are allowed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_tools: Vec<String>,
    /// Which commands `exec` runs at all.
    pub commands: CommandRules,
    /// How a person is asked about an Elevated call where no tool, agent or channel says otherwise.
    pub gate: Gate,
    /// By tool.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tools: BTreeMap<String, ToolPermission>,
    /// By agent.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub agents: BTreeMap<String, PartyPermission>,
    /// By channel: the one the session's people are on.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub channels: BTreeMap<String, ChannelPermission>,
    /// How long people are waited for.
    pub approvals: ApprovalConfig,
}

impl Default for PermissionConfig {
    fn default() -> Self {
        Self {
            max_tier: PermissionTier::Elevated,
            denied_tools: Vec::new(),
            allowed_tools: Vec::new(),
            commands: CommandRules::default(),
            gate: Gate::Required,
            tools: BTreeMap::new(),
            agents: BTreeMap::new(),
            channels: BTreeMap::new(),
            approvals: ApprovalConfig::default(),
        }
    }
}

/// `permissions.tools.NAME`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ToolPermission {
    /// The tier in the place of the declared one. What arguments raise stays raised.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<PermissionTier>,
    /// Calls of a higher tier, raised by their arguments, are denied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tier: Option<PermissionTier>,
    /// How a person is asked about every call of this tool, whatever its tier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gate: Option<Gate>,
    /// How long the answer is waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
}

/// `permissions.agents.NAME`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PartyPermission {
    /// Calls of a higher tier are denied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tier: Option<PermissionTier>,
    /// Tools that are denied.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub denied_tools: Vec<String>,
    /// When it is not empty, only these tools are allowed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_tools: Vec<String>,
    /// How a person is asked about Elevated calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gate: Option<Gate>,
}

/// `permissions.channels.NAME`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ChannelPermission {
    /// How far its sessions may go, if not as far as the channel itself says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<ChannelLevel>,
    /// Calls of a higher tier are denied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tier: Option<PermissionTier>,
    /// Tools that are denied.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub denied_tools: Vec<String>,
    /// When it is not empty, only these tools are allowed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_tools: Vec<String>,
    /// How a person is asked about Elevated calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gate: Option<Gate>,
}

/// Whether somebody is there to approve calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum People {
    /// They are asked, and waited for.
    #[default]
    Asked,
    /// Nobody is: a call that no rule of theirs covers is denied at once.
    Nobody,
}

/// `permissions.approvals`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ApprovalConfig {
    /// `nobody` for a server without people: what a person would have to approve is denied at once,
    /// with the reason. Rules that people made before still hold.
    pub people: People,
    /// How long an answer is waited for before silence means "no", for tools that set no `waitMs`
    /// of their own. `write` and `edit` wait half as long by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
    /// An approval that is not used within this time after the answer is over.
    pub use_within_ms: u64,
    /// An identical call is answered with an earlier "no" for this long, and nobody is asked.
    pub denial_ms: u64,
    /// Who may answer by a message on a channel, by the names that the channel has for them; when
    /// it is empty, nobody: prompts hold no code then, and replies are refused.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub senders: Vec<String>,
}

impl Default for ApprovalConfig {
    fn default() -> Self {
        Self {
            people: People::default(),
            wait_ms: None,
            use_within_ms: APPROVAL_USE_WITHIN_MS,
            denial_ms: APPROVAL_DENIAL_MS,
            senders: Vec::new(),
        }
    }
}

impl PermissionConfig {
    /// How long an answer about this tool is waited for.
    pub fn wait_ms(&self, tool: &str) -> u64 {
        let own = self.tools.get(tool).and_then(|tool| tool.wait_ms);
        own.or(self.approvals.wait_ms).unwrap_or(match tool {
            "write" | "edit" => APPROVAL_WRITE_WAIT_MS,
            _ => APPROVAL_WAIT_MS,
        })
    }

    /// Everything that is wrong, given the names of the tools there are. A misspelt name in a
    /// list would leave a tool allowed.
    pub fn problems(&self, is_tool: impl Fn(&str) -> bool) -> Vec<ConfigProblem> {
        let mut problems = Vec::new();
        let mut tools = |path: String, names: &[String]| {
            for name in names.iter().filter(|name| !is_tool(name)) {
                let reason = format!("there is no tool named {name:?}");
                problems.push(ConfigProblem::new(path.clone(), reason));
            }
        };
        tools("permissions.deniedTools".to_owned(), &self.denied_tools);
        tools("permissions.allowedTools".to_owned(), &self.allowed_tools);
        for name in self.tools.keys() {
            tools("permissions.tools".to_owned(), std::slice::from_ref(name));
        }
        let agents = self.agents.iter().map(|(name, of)| {
            (
                format!("permissions.agents.{name}"),
                &of.denied_tools,
                &of.allowed_tools,
            )
        });
        let channels = self.channels.iter().map(|(name, of)| {
            (
                format!("permissions.channels.{name}"),
                &of.denied_tools,
                &of.allowed_tools,
            )
        });
        for (path, denied, allowed) in agents.chain(channels) {
            tools(format!("{path}.deniedTools"), denied);
            tools(format!("{path}.allowedTools"), allowed);
        }
        for (name, rules) in [
            ("allowed", &self.commands.allowed),
            ("blocked", &self.commands.blocked),
        ] {
            if rules.iter().any(|rule| rule.trim().is_empty()) {
                let path = format!("permissions.commands.{name}");
                let reason = "a rule begins with a program, as in \"git push\"";
                problems.push(ConfigProblem::new(path, reason));
            }
        }
        problems.extend(self.odd_values());
        problems
    }

    fn odd_values(&self) -> Vec<ConfigProblem> {
        let approvals = &self.approvals;
        let mut waits = vec![
            ("permissions.approvals.waitMs".to_owned(), approvals.wait_ms),
            (
                "permissions.approvals.useWithinMs".to_owned(),
                Some(approvals.use_within_ms),
            ),
        ];
        for (name, tool) in &self.tools {
            waits.push((format!("permissions.tools.{name}.waitMs"), tool.wait_ms));
        }
        let mut problems: Vec<ConfigProblem> = waits
            .into_iter()
            .filter(|(_, wait_ms)| wait_ms.is_some_and(|ms| ms == 0 || ms > APPROVAL_WAIT_MS_MAX))
            .map(|(path, _)| {
                let reason = format!("has to be from 1 to {APPROVAL_WAIT_MS_MAX} ms");
                ConfigProblem::new(path, reason)
            })
            .collect();
        for (name, tool) in &self.tools {
            if let (Some(tier), Some(max_tier)) = (tool.tier, tool.max_tier)
                && tier > max_tier
            {
                let reason =
                    format!("{tier:?} is above its own maxTier {max_tier:?}: no call could run");
                problems.push(ConfigProblem::new(
                    format!("permissions.tools.{name}.tier"),
                    reason,
                ));
            }
        }
        problems
    }
}
