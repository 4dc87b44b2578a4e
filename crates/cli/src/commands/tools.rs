//! `holdfast tools`

use std::process::ExitCode;

use holdfast_agent::subagents::SUBAGENT_TOOLS;
use holdfast_reliability::policy::{Mode, Switches, ToolPolicy};
use holdfast_toolbox::declare;
use holdfast_toolbox::registry::Registry;
use serde_json::{Value, json};

use crate::app::App;
use crate::args::{SchemaFormat, ToolsArgs};
use crate::fail::{Failure, Outcome};
use crate::output;

pub(super) fn run(app: &App, args: &ToolsArgs, json: bool) -> Outcome<ExitCode> {
    let mut registry = Registry::new();
    for tool in app.config.tools() {
        registry
            .register(tool)
            .map_err(|error| Failure::failed(error.to_string()))?;
    }
    if let Some(format) = args.format {
        let denied = &app.config.permissions.denied_tools;
        return declare(&registry, format, args.tool.as_deref(), denied);
    }
    if let Some(name) = &args.tool {
        return show(app, &registry, name, json);
    }
    let tools: Vec<Value> = registry.iter().map(|found| describe(found, None)).collect();
    if json {
        output::json(&tools);
        return Ok(ExitCode::SUCCESS);
    }
    let rows = registry.iter().map(|found| {
        let tool = &found.tool;
        vec![
            tool.name().to_owned(),
            format!("{:?}", tool.permission_tier()),
            format!("{:?}", tool.effect()).to_lowercase(),
            if tool.is_idempotent() { "yes" } else { "no" }.to_owned(),
            first_sentence(tool.description()).to_owned(),
        ]
    });
    output::line(&output::table(
        &["tool", "tier", "effect", "idempotent", "what it does"],
        rows,
    ));
    output::line(&format!(
        "Only in runs and under `holdfast serve`: {}.",
        SUBAGENT_TOOLS.join(", ")
    ));
    Ok(ExitCode::SUCCESS)
}

/// Always JSON, except for a prompt: it goes into a request as it is. A model is not offered what it
/// could never use.
fn declare(
    registry: &Registry,
    format: SchemaFormat,
    only: Option<&str>,
    denied: &[String],
) -> Outcome<ExitCode> {
    let mut chosen = Registry::new();
    for found in registry.iter() {
        let name = found.tool.name();
        if only.is_none_or(|only| only == name) && !denied.iter().any(|denied| denied == name) {
            chosen
                .register(found.tool.clone())
                .map_err(|error| Failure::failed(error.to_string()))?;
        }
    }
    if let Some(name) = only.filter(|_| chosen.iter().next().is_none()) {
        if denied.iter().any(|denied| denied == name) {
            let why = format!("{name} is denied by permissions.deniedTools");
            return Err(Failure::usage(why));
        }
        return Err(unknown(registry, name));
    }
    match format {
        SchemaFormat::OpenAi => output::json(&declare::openai(&chosen)),
        SchemaFormat::Anthropic => output::json(&declare::anthropic(&chosen)),
        SchemaFormat::Mcp => output::json(&declare::mcp(&chosen)),
        SchemaFormat::Prompt => output::line(&declare::prompt(&chosen)),
    }
    Ok(ExitCode::SUCCESS)
}

fn unknown(registry: &Registry, name: &str) -> Failure {
    let alike = registry.suggest(name);
    let failure = Failure::usage(format!("there is no tool named {name:?}"));
    if alike.is_empty() {
        failure.hint("`holdfast tools` lists them.")
    } else {
        failure.hint(format!("Did you mean {}?", alike.join(" or ")))
    }
}

fn show(app: &App, registry: &Registry, name: &str, json: bool) -> Outcome<ExitCode> {
    let found = registry
        .resolve(name)
        .ok_or_else(|| unknown(registry, name))?;
    let policy = app
        .config
        .reliability
        .policy_for(&*found.tool)
        .map_err(|problems| {
            Failure::usage(
                problems
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join("\n"),
            )
        })?;
    let switches = Switches::default();
    app.config.reliability.apply_switches(&switches);
    let mode = switches.modes_for(&policy).idempotency;
    let described = describe(found, Some((&policy, mode)));
    if json {
        output::json(&described);
    } else {
        output::line(&format!(
            "{} — {}",
            output::bold(found.tool.name()),
            found.tool.description()
        ));
        output::pretty_json(&described);
    }
    Ok(ExitCode::SUCCESS)
}

fn describe(
    found: &holdfast_toolbox::registry::Registered,
    policy: Option<(&ToolPolicy, Mode)>,
) -> Value {
    let tool = &found.tool;
    let mut described = json!({
        "name": tool.name(),
        "namespace": tool.namespace(),
        "description": tool.description(),
        "tier": tool.permission_tier(),
        "effect": tool.effect(),
        "idempotent": tool.is_idempotent(),
        "parameters": *found.schema,
    });
    if let Some((policy, mode)) = policy {
        described["policy"] = json!({
            "mode": mode,
            "timeoutMs": policy.timeout_ms,
            "maxAttempts": policy.retry.max_attempts(),
            "records": policy.keep,
        });
    }
    described
}

fn first_sentence(text: &str) -> &str {
    text.split_inclusive(". ").next().unwrap_or(text).trim_end()
}
