//! `holdfast breaker`

use std::process::ExitCode;

use holdfast_reliability::admin::{self, ALL_BREAKERS, FoundBreaker, HeldOpen};
use holdfast_reliability::breaker::{
    BreakerKey, BreakerOp, BreakerPolicy, BreakerSnapshot, BreakerStore,
};
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::app::{App, runtime};
use crate::args::BreakerCommand;
use crate::fail::{Failure, Outcome};
use crate::output;

pub(super) fn run(app: &App, command: BreakerCommand, json: bool) -> Outcome<ExitCode> {
    let state = app.open_records()?;
    runtime()?.block_on(async {
        match command {
            BreakerCommand::List => list(app, state.breakers(), json).await,
            BreakerCommand::Reset { key } => reset(app, state.breakers(), &key, json).await,
            BreakerCommand::ForceOpen { key, reason } => {
                force_open(app, state.breakers(), &key, reason, json).await
            }
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Forcing and resetting need no settings; any policy will do.
fn policy() -> BreakerPolicy {
    BreakerPolicy::standard()
}

async fn list(app: &App, store: &dyn BreakerStore, json: bool) -> Outcome<()> {
    let known = store.breakers().await?;
    let now_ms = app.clock.now_ms();
    let views = admin::breaker_views(&known, &held_open(app), now_ms);
    if json {
        output::json(&views);
    } else {
        show(&views, now_ms);
    }
    Ok(())
}

/// What the configuration holds open.
fn held_open(app: &App) -> Vec<HeldOpen> {
    let tools = app.config.tools();
    let policies = tools
        .iter()
        .map(|tool| app.config.reliability.policy_for(&**tool));
    // A setting that can not be was told when the configuration was read.
    let held = policies.filter_map(|policy| policy.ok()?.held_open());
    held.collect()
}

/// The breakers as a table.
pub(super) fn show(views: &[Value], now_ms: u64) {
    if views.is_empty() {
        output::line("No breakers: no tool has been called yet.");
        return;
    }
    let rows = views.iter().filter_map(|view| {
        let snapshot = BreakerSnapshot::deserialize(view).ok()?;
        // A server of an earlier version says no name.
        let name = view["name"].as_str().or(view["key"].as_str())?;
        Some(vec![
            name.to_owned(),
            snapshot.state.to_string(),
            format!("{} of {}", snapshot.failures, snapshot.calls),
            snapshot.consecutive_failures.to_string(),
            match snapshot.since_ms {
                // It has never changed.
                0 => String::new(),
                since_ms => output::ago(since_ms, now_ms),
            },
            snapshot.forced_reason.unwrap_or_default(),
        ])
    });
    let header = ["breaker", "state", "failed", "in a row", "since", "reason"];
    output::line(&output::table(&header, rows));
}

async fn reset(app: &App, store: &dyn BreakerStore, name: &str, json: bool) -> Outcome<()> {
    // A tool's name closes the breakers of its parts too.
    let mut found = admin::find_breakers(store, name).await?;
    if name != ALL_BREAKERS {
        if found.is_empty() {
            found.push(find(app, store, name).await?.into());
        }
        if let Some(held) = admin::first_held(&found, &held_open(app)) {
            return Err(Failure::failed(held));
        }
    }
    for it in &found {
        let _ = store.apply(&it.key, BreakerOp::Reset, &policy()).await?;
    }
    tell("reset", &found, json);
    Ok(())
}

async fn force_open(
    app: &App,
    store: &dyn BreakerStore,
    key: &str,
    reason: String,
    json: bool,
) -> Outcome<()> {
    let key = find(app, store, key).await?;
    let _ = store
        .apply(&key, BreakerOp::ForceOpen { reason }, &policy())
        .await?;
    tell("forcedOpen", &[key.into()], json);
    Ok(())
}

fn tell(what: &str, found: &[FoundBreaker], json: bool) {
    if json {
        let keys: Vec<String> = found.iter().map(|it| it.key.to_string()).collect();
        output::json(&json!({what: keys}));
    } else {
        let names: Vec<String> = found.iter().map(|it| it.name.clone()).collect();
        say(what, &names);
    }
}

/// Says what was done, by the names that people use.
pub(super) fn say(what: &str, names: &[String]) {
    let word = if what == "reset" {
        "closed"
    } else {
        "held open"
    };
    if names.is_empty() {
        output::line("No breakers: no tool has been called yet.");
    } else {
        let names = output::harmless_line(&names.join(", "));
        output::line(&format!("{names} {word}."));
    }
}

/// A breaker's own key, or the name of the tool it stands for, which need not have been called yet.
async fn find(app: &App, store: &dyn BreakerStore, name: &str) -> Outcome<BreakerKey> {
    if let Some(key) = admin::find_breaker(store, name).await? {
        return Ok(key);
    }
    let tools = app.config.tools();
    match tools.iter().find(|tool| tool.name() == name) {
        Some(tool) => Ok(BreakerKey::tool(tool.namespace(), name)),
        None => Err(Failure::failed(format!("there is no breaker {name:?}"))
            .hint("`holdfast breaker list` shows them; keys look like tool:NAMESPACE/NAME, dependency:NAME or global.")),
    }
}
