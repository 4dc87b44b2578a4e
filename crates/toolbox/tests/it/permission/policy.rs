//! Every tier under every policy in every kind of session.

use holdfast_contract::{
    Answer, ChannelLevel, Effect, Gate, PermissionTier, Reason, Scope, SessionKind, TierVerdict,
};
use holdfast_toolbox::permit::{
    Asked, ChannelPermission, Decision, PartyPermission, PermissionConfig, ToolPermission, decide,
};
use holdfast_toolbox::session::Spawn;
use serde_json::json;

use crate::permission::bench::{Build, Probe, Recorded, ask, message, word};

const TIERS: [PermissionTier; 4] = [
    PermissionTier::ReadOnly,
    PermissionTier::Workspace,
    PermissionTier::System,
    PermissionTier::Elevated,
];
const GATES: [Gate; 4] = [Gate::None, Gate::Advisory, Gate::Required, Gate::Strict];
const KINDS: [SessionKind; 3] = [SessionKind::Main, SessionKind::Branch, SessionKind::Worker];

#[tokio::test(start_paused = true)]
async fn every_tier_under_every_policy_in_every_session() {
    for (at, tier) in TIERS.into_iter().enumerate() {
        for (bound_at, max_tier) in TIERS.into_iter().enumerate() {
            for gate in GATES {
                for kind in KINDS {
                    for yes in [true, false] {
                        let answer = if yes {
                            Answer::Approve { scope: Scope::Once }
                        } else {
                            Answer::Deny { reason: None }
                        };
                        let channel = Recorded::new(ChannelLevel::Elevated, Some(answer));
                        let probe = Probe::new("probe", tier, Effect::External);
                        let permissions = PermissionConfig {
                            max_tier,
                            gate,
                            ..PermissionConfig::default()
                        };
                        let build = Build {
                            permissions,
                            ..Build::default()
                        };
                        let bench = build.bench(vec![probe.clone()]);
                        bench.main("/nowhere".into(), Some(channel.clone())).await;
                        let session = match kind {
                            SessionKind::Main => "main".to_owned(),
                            kind => {
                                let wish = Spawn {
                                    kind,
                                    context_summary: String::new(),
                                    token_budget: None,
                                };
                                bench.tree.spawn("main", wish).await.unwrap().id
                            }
                        };
                        let result = bench.stack.call(ask("probe", &session, json!({}))).await;
                        // By hand, and not by the code under test.
                        let allowed = at <= bound_at;
                        let elevated = at == 3;
                        let asked =
                            allowed && elevated && matches!(gate, Gate::Required | Gate::Strict);
                        let noted = allowed && elevated && gate == Gate::Advisory;
                        let runs = allowed && (!asked || yes);
                        let cell = format!(
                            "{tier:?} under {max_tier:?}, gate {gate:?}, in a {kind:?}, {yes}"
                        );
                        assert_eq!(
                            word(&result),
                            if runs { "ran" } else { "permission_denied" },
                            "{cell}"
                        );
                        assert_eq!(probe.runs(), u64::from(runs), "{cell}");
                        assert_eq!(channel.prompts.lock().len(), usize::from(asked), "{cell}");
                        assert_eq!(channel.told.lock().len(), usize::from(noted), "{cell}");
                        if asked {
                            let prompt = channel.prompts.lock()[0].clone();
                            assert_eq!((prompt.tier, prompt.gate), (tier, gate), "{cell}");
                        }
                    }
                }
            }
        }
    }
}

/// A configuration, and what it makes of a call of `tool` by `agent` on `channel`.
fn decided(config: &PermissionConfig, verdict: &TierVerdict, level: ChannelLevel) -> Decision {
    decide(
        config,
        &Asked {
            tool: "tool",
            declared: PermissionTier::System,
            verdict,
            arguments: &json!({}),
            agent: "agent",
            concerns: &[],
            channel: Some(("channel", level)),
        },
    )
}

fn rule(config: &PermissionConfig) -> String {
    let verdict = TierVerdict::declared(PermissionTier::System);
    match decided(config, &verdict, ChannelLevel::Elevated) {
        Decision::Deny(rule) => rule,
        other => panic!("not denied: {other:?}"),
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of rules, one a row")]
fn a_denial_names_its_rule() {
    let names = |list: &[&str]| {
        list.iter()
            .map(|it| (*it).to_owned())
            .collect::<Vec<String>>()
    };
    let base = PermissionConfig::default;
    let agent = |of: PartyPermission| PermissionConfig {
        agents: [("agent".to_owned(), of)].into(),
        ..base()
    };
    let channel = |of: ChannelPermission| PermissionConfig {
        channels: [("channel".to_owned(), of)].into(),
        ..base()
    };
    let tool = |of: ToolPermission| PermissionConfig {
        tools: [("tool".to_owned(), of)].into(),
        ..base()
    };
    let workspace = Some(PermissionTier::Workspace);
    let table = [
        (
            PermissionConfig {
                denied_tools: names(&["tool"]),
                ..base()
            },
            "denied by permissions.deniedTools",
        ),
        (
            PermissionConfig {
                allowed_tools: names(&["other"]),
                ..base()
            },
            "not among permissions.allowedTools",
        ),
        (
            PermissionConfig {
                max_tier: PermissionTier::Workspace,
                ..base()
            },
            "permissions.maxTier allows Workspace",
        ),
        (
            agent(PartyPermission {
                denied_tools: names(&["tool"]),
                ..Default::default()
            }),
            "permissions.agents.agent.deniedTools",
        ),
        (
            agent(PartyPermission {
                allowed_tools: names(&["x"]),
                ..Default::default()
            }),
            "permissions.agents.agent.allowedTools",
        ),
        (
            agent(PartyPermission {
                max_tier: workspace,
                ..Default::default()
            }),
            "permissions.agents.agent.maxTier",
        ),
        (
            channel(ChannelPermission {
                denied_tools: names(&["tool"]),
                ..Default::default()
            }),
            "permissions.channels.channel.deniedTools",
        ),
        (
            channel(ChannelPermission {
                allowed_tools: names(&["x"]),
                ..Default::default()
            }),
            "permissions.channels.channel.allowedTools",
        ),
        (
            channel(ChannelPermission {
                max_tier: workspace,
                ..Default::default()
            }),
            "permissions.channels.channel.maxTier",
        ),
        (
            channel(ChannelPermission {
                level: Some(ChannelLevel::ReadOnly),
                ..Default::default()
            }),
            "the level ReadOnly of the channel channel",
        ),
        (
            tool(ToolPermission {
                max_tier: workspace,
                ..Default::default()
            }),
            "permissions.tools.tool.maxTier",
        ),
    ];
    for (config, says) in table {
        let said = rule(&config);
        assert!(said.contains(says), "not {says:?}: {said}");
    }
    // What is for others does not concern this call.
    let others = PermissionConfig {
        denied_tools: names(&["other"]),
        allowed_tools: names(&["tool"]),
        agents: [(
            "other".to_owned(),
            PartyPermission {
                max_tier: Some(PermissionTier::ReadOnly),
                ..Default::default()
            },
        )]
        .into(),
        channels: [(
            "other".to_owned(),
            ChannelPermission {
                level: Some(ChannelLevel::ReadOnly),
                ..Default::default()
            },
        )]
        .into(),
        ..base()
    };
    let verdict = TierVerdict::declared(PermissionTier::System);
    assert_eq!(
        decided(&others, &verdict, ChannelLevel::Standard),
        Decision::Allow
    );
}

#[test]
fn a_channel_is_never_raised_above_its_own_level() {
    let config = PermissionConfig {
        channels: [(
            "channel".to_owned(),
            ChannelPermission {
                level: Some(ChannelLevel::Elevated),
                ..Default::default()
            },
        )]
        .into(),
        ..PermissionConfig::default()
    };
    let verdict = TierVerdict::declared(PermissionTier::System);
    let decision = decided(&config, &verdict, ChannelLevel::ReadOnly);
    assert!(matches!(decision, Decision::Deny(_)), "{decision:?}");
}

#[test]
fn arguments_raise_and_an_override_does_not_lower_what_they_raise() {
    let mut raised = TierVerdict::declared(PermissionTier::System);
    raised.raise(Reason::new("why", "subject", "text"));
    let lowered = PermissionConfig {
        tools: [(
            "tool".to_owned(),
            ToolPermission {
                tier: Some(PermissionTier::ReadOnly),
                ..Default::default()
            },
        )]
        .into(),
        ..PermissionConfig::default()
    };
    let Decision::Ask(need) = decided(&lowered, &raised, ChannelLevel::Elevated) else {
        panic!("nobody was asked");
    };
    assert_eq!(
        (need.tier, need.gate, need.reasons.len()),
        (PermissionTier::Elevated, Gate::Required, 1)
    );
    let plain = TierVerdict::declared(PermissionTier::System);
    assert_eq!(
        decided(&lowered, &plain, ChannelLevel::ReadOnly),
        Decision::Allow
    );
    // A standard channel can not even ask.
    let decision = decided(
        &PermissionConfig::default(),
        &raised,
        ChannelLevel::Standard,
    );
    assert!(
        matches!(&decision, Decision::Deny(rule) if rule.contains("text") && rule.contains("Standard")),
        "{decision:?}"
    );
}

#[test]
fn of_several_gates_the_strictest_counts() {
    let gates = |tool, agent, channel| PermissionConfig {
        gate: Gate::Required,
        tools: [(
            "tool".to_owned(),
            ToolPermission {
                gate: tool,
                ..Default::default()
            },
        )]
        .into(),
        agents: [(
            "agent".to_owned(),
            PartyPermission {
                gate: agent,
                ..Default::default()
            },
        )]
        .into(),
        channels: [(
            "channel".to_owned(),
            ChannelPermission {
                gate: channel,
                ..Default::default()
            },
        )]
        .into(),
        ..PermissionConfig::default()
    };
    let mut raised = TierVerdict::declared(PermissionTier::System);
    raised.raise(Reason::new("why", "subject", "text"));
    let plain = TierVerdict::declared(PermissionTier::System);
    let gate = |config: &PermissionConfig, verdict: &TierVerdict| match decided(
        config,
        verdict,
        ChannelLevel::Elevated,
    ) {
        Decision::Ask(need) => need.gate,
        Decision::Allow => Gate::None,
        Decision::Deny(rule) => panic!("{rule}"),
    };
    let table = [
        // tool, agent, channel: for a raised call, for a plain one
        (None, None, None, Gate::Required, Gate::None),
        (Some(Gate::Strict), None, None, Gate::Strict, Gate::Strict),
        (
            Some(Gate::Required),
            Some(Gate::Strict),
            None,
            Gate::Strict,
            Gate::Required,
        ),
        (
            None,
            Some(Gate::Advisory),
            Some(Gate::None),
            Gate::Advisory,
            Gate::None,
        ),
        (Some(Gate::None), None, None, Gate::None, Gate::None),
        (None, None, Some(Gate::Strict), Gate::Strict, Gate::None),
    ];
    for (tool, agent, channel, for_raised, for_plain) in table {
        let config = gates(tool, agent, channel);
        assert_eq!(
            gate(&config, &raised),
            for_raised,
            "{tool:?} {agent:?} {channel:?}"
        );
        assert_eq!(
            gate(&config, &plain),
            for_plain,
            "{tool:?} {agent:?} {channel:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn without_anybody_to_ask_it_is_denied_at_once() {
    let probe = Probe::new("probe", PermissionTier::Elevated, Effect::External);
    let bench = Build::default().bench(vec![probe.clone()]);
    bench.main("/nowhere".into(), None).await;
    let result = bench.stack.call(ask("probe", "main", json!({}))).await;
    assert_eq!(word(&result), "permission_denied");
    assert!(
        message(&result).contains("nobody to approve it"),
        "{result:?}"
    );
    let stranger = bench.stack.call(ask("probe", "nobody", json!({}))).await;
    assert!(
        message(&stranger).contains("no such session"),
        "{stranger:?}"
    );
    assert_eq!(probe.runs(), 0);
}

/// A model hears of what it could use: also of what a person has to approve, as long as there is one.
#[tokio::test]
async fn what_is_denied_whatever_its_arguments_is_not_offered() {
    let names = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect();
    let party = |denied: &[&str]| PartyPermission {
        denied_tools: names(denied),
        ..PartyPermission::default()
    };
    let standard = PermissionConfig::default;
    let asking = ToolPermission {
        gate: Some(Gate::Required),
        ..ToolPermission::default()
    };
    let cases = [
        (standard(), true, "elevated look system"),
        (standard(), false, "look system"),
        (
            PermissionConfig {
                denied_tools: names(&["look"]),
                ..standard()
            },
            true,
            "elevated system",
        ),
        (
            PermissionConfig {
                allowed_tools: names(&["look"]),
                ..standard()
            },
            true,
            "look",
        ),
        (
            PermissionConfig {
                max_tier: PermissionTier::Workspace,
                ..standard()
            },
            true,
            "look",
        ),
        (
            PermissionConfig {
                agents: [("agent".to_owned(), party(&["system"]))].into(),
                ..standard()
            },
            true,
            "elevated look",
        ),
        (
            PermissionConfig {
                agents: [("other".to_owned(), party(&["system"]))].into(),
                ..standard()
            },
            true,
            "elevated look system",
        ),
        (
            PermissionConfig {
                tools: [("look".to_owned(), asking.clone())].into(),
                ..standard()
            },
            true,
            "elevated look system",
        ),
        (
            PermissionConfig {
                tools: [("look".to_owned(), asking)].into(),
                ..standard()
            },
            false,
            "system",
        ),
        (
            PermissionConfig {
                gate: Gate::Advisory,
                ..standard()
            },
            false,
            "elevated look system",
        ),
    ];
    for (permissions, has_people, expected) in cases {
        let build = Build {
            permissions: permissions.clone(),
            ..Build::default()
        };
        let bench = build.bench(vec![
            Probe::new("look", PermissionTier::ReadOnly, Effect::None),
            Probe::new("system", PermissionTier::System, Effect::External),
            Probe::new("elevated", PermissionTier::Elevated, Effect::External),
        ]);
        let channel = has_people.then(Recorded::silent);
        bench.main("/nowhere".into(), channel).await;
        let context = bench.tree.context("main").expect("it lives");
        let offered = bench.stack.offered(&context);
        let offered: Vec<&str> = offered.iter().map(|found| found.tool.name()).collect();
        assert_eq!(offered.join(" "), expected, "{permissions:?}");
    }
}
