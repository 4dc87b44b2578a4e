//! What the policy says about one call, as a pure function.

use std::fmt;

use holdfast_contract::{ChannelLevel, Gate, Need, PermissionTier, Reason, TierVerdict};

use serde_json::Value;

use super::config::PermissionConfig;
use crate::approval::model::digest_of_value;
use crate::tools::exec;

/// Who calls what.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The tool.
    pub tool: &'a str,
    /// Its declared tier.
    pub declared: PermissionTier,
    /// What it says about the arguments.
    pub verdict: &'a TierVerdict,
    /// The arguments.
    pub arguments: &'a Value,
    /// The agent.
    pub agent: &'a str,
    /// Why a person is to be asked whatever the policy says.
    pub concerns: &'a [Reason],
    /// The channel of the people behind the session, when there are any.
    pub channel: Option<(&'a str, ChannelLevel)>,
}

/// What the policy says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It may run.
    Allow,
    /// It may not: the rule.
    Deny(String),
    /// It may run when this is met.
    Ask(Box<Need>),
}

/// Decides one call.
pub fn decide(config: &PermissionConfig, asked: &Asked<'_>) -> Decision {
    let of_tool = config.tools.get(asked.tool);
    let tier = effective_tier(asked, of_tool.and_then(|tool| tool.tier));
    if let Some(reason) = &asked.verdict.forbidden {
        return Decision::Deny(reason.text.clone());
    }
    if let Some(rule) =
        denied_by_list(config, asked).or_else(|| denied_by_tier(config, asked, tier))
    {
        return Decision::Deny(rule);
    }
    let mut gate = gate(config, asked, tier);
    if !asked.concerns.is_empty() {
        // Being told of a call is not enough where its words may be a stranger's.
        gate = gate.max(Gate::Required);
    }
    if gate == Gate::None {
        return Decision::Allow;
    }
    let mut reasons = asked.verdict.reasons.clone();
    if !asked.verdict.exact.is_empty() {
        let digest = digest_of_value(asked.arguments);
        let exact = asked.verdict.exact.iter();
        reasons.extend(exact.map(|reason| reason.clone().bound_to(digest.clone())));
    }
    if gate.waits() && reasons.iter().any(exec::is_for_once) {
        // The words of such a command do not say all it does: what it sends, or runs once it is let
        // out, may be another thing the next time. So one answer is good for one call.
        gate = Gate::Strict;
    }
    reasons.extend_from_slice(asked.concerns);
    if reasons.is_empty() {
        let (code, text) = if tier == PermissionTier::Elevated {
            (
                "elevated_tool",
                format!("{} is of the Elevated tier", asked.tool),
            )
        } else {
            (
                "gate",
                format!("permissions ask about every call of {}", asked.tool),
            )
        };
        // Nothing is known of the call but its arguments: a yes to these is no yes to others.
        let digest = digest_of_value(asked.arguments);
        reasons.push(Reason::new(code, asked.tool, text).bound_to(digest));
    }
    Decision::Ask(Box::new(Need {
        tier,
        gate,
        reasons,
        grants: asked.verdict.grants.clone(),
    }))
}

/// The declared tier, or the configured one in its place; what the arguments raise stays raised.
fn effective_tier(asked: &Asked<'_>, configured: Option<PermissionTier>) -> PermissionTier {
    let base = configured.unwrap_or(asked.declared);
    if asked.verdict.tier > asked.declared {
        base.max(asked.verdict.tier)
    } else {
        base
    }
}

/// Where in the configuration a rule stands. Written out only for a call that it forbids.
#[derive(Clone, Copy)]
enum Place<'a> {
    All,
    Tool(&'a str),
    Agent(&'a str),
    Channel(&'a str),
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("permissions"),
            Self::Tool(name) => write!(f, "permissions.tools.{name}"),
            Self::Agent(name) => write!(f, "permissions.agents.{name}"),
            Self::Channel(name) => write!(f, "permissions.channels.{name}"),
        }
    }
}

fn denied_by_list(config: &PermissionConfig, asked: &Asked<'_>) -> Option<String> {
    let agent = config.agents.get(asked.agent);
    let agent = agent.map(|of| (Place::Agent(asked.agent), of));
    let channel = asked.channel.and_then(|(name, _)| {
        let of = config.channels.get(name)?;
        Some((Place::Channel(name), of))
    });
    let lists = [
        Some((Place::All, &config.denied_tools, &config.allowed_tools)),
        agent.map(|(place, of)| (place, &of.denied_tools, &of.allowed_tools)),
        channel.map(|(place, of)| (place, &of.denied_tools, &of.allowed_tools)),
    ];
    let tool = asked.tool;
    for (place, denied, allowed) in lists.into_iter().flatten() {
        if denied.iter().any(|name| name == tool) {
            return Some(format!("the tool {tool} is denied by {place}.deniedTools"));
        }
        if !allowed.is_empty() && !allowed.iter().any(|name| name == tool) {
            return Some(format!("the tool {tool} is not among {place}.allowedTools"));
        }
    }
    None
}

fn denied_by_tier(
    config: &PermissionConfig,
    asked: &Asked<'_>,
    tier: PermissionTier,
) -> Option<String> {
    let over = |bound: Option<PermissionTier>| bound.filter(|bound| tier > *bound);
    let of_tool = config.tools.get(asked.tool).and_then(|of| of.max_tier);
    let of_agent = config.agents.get(asked.agent).and_then(|of| of.max_tier);
    let general = [
        (Place::All, Some(config.max_tier)),
        (Place::Tool(asked.tool), of_tool),
        (Place::Agent(asked.agent), of_agent),
    ];
    for (place, bound) in general {
        if let Some(bound) = over(bound) {
            return Some(too_high(asked, tier, &format!("{place}.maxTier"), bound));
        }
    }
    let (name, level) = asked.channel?;
    let of_channel = config.channels.get(name);
    let level = of_channel
        .and_then(|of| of.level)
        .map_or(level, |set| set.min(level));
    if let Some(bound) = over(Some(level.max_tier())) {
        let rule = format!("the level {level:?} of the channel {name}");
        return Some(too_high(asked, tier, &rule, bound));
    }
    let bound = over(of_channel.and_then(|of| of.max_tier))?;
    let rule = format!("{}.maxTier", Place::Channel(name));
    Some(too_high(asked, tier, &rule, bound))
}

fn too_high(asked: &Asked<'_>, tier: PermissionTier, rule: &str, bound: PermissionTier) -> String {
    let reason = asked.verdict.all_reasons().next();
    let why = reason.map_or_else(String::new, |reason| format!(" ({})", reason.text));
    format!(
        "this call of {} is of the {tier:?} tier{why}, and {rule} allows {bound:?} at most",
        asked.tool
    )
}

/// A tool's own gate is for all its calls; agents, channels and the default are for Elevated ones.
/// Of several that say something the strictest counts.
fn gate(config: &PermissionConfig, asked: &Asked<'_>, tier: PermissionTier) -> Gate {
    let own = config.tools.get(asked.tool).and_then(|tool| tool.gate);
    if tier < PermissionTier::Elevated {
        return own.unwrap_or(Gate::None);
    }
    let of_agent = config.agents.get(asked.agent).and_then(|of| of.gate);
    let of_channel = asked
        .channel
        .and_then(|(name, _)| config.channels.get(name)?.gate);
    [own, of_agent, of_channel]
        .into_iter()
        .flatten()
        .max()
        .unwrap_or(config.gate)
}
