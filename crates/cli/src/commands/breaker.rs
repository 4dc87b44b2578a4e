//! `holdfast breaker`

use std::process::ExitCode;

use holdfast_reliability::admin;
use holdfast_reliability::breaker::{
    BreakerKey, BreakerOp, BreakerPolicy, BreakerSnapshot, BreakerStore,
};
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
    let breakers = store.breakers().await?;
    let now_ms = app.clock.now_ms();
    if json {
        let list: Vec<Value> = breakers
            .iter()
            .map(|(key, state)| admin::breaker_view(key, state, now_ms))
            .collect();
        output::json(&list);
        return Ok(());
    }
    let known = breakers
        .iter()
        .map(|(key, state)| (key.to_string(), state.snapshot(&policy(), now_ms)));
    show(known.collect(), now_ms);
    Ok(())
}

/// The breakers as a table.
pub(super) fn show(breakers: Vec<(String, BreakerSnapshot)>, now_ms: u64) {
    if breakers.is_empty() {
        output::line("No breakers: no tool has been called yet.");
        return;
    }
    let rows = breakers.into_iter().map(|(key, snapshot)| {
        vec![
            key,
            snapshot.state.to_string(),
            format!("{} of {}", snapshot.failures, snapshot.calls),
            snapshot.consecutive_failures.to_string(),
            match snapshot.since_ms {
                // It has never changed.
                0 => String::new(),
                since_ms => output::ago(since_ms, now_ms),
            },
            snapshot.forced_reason.unwrap_or_default(),
        ]
    });
    let header = ["breaker", "state", "failed", "in a row", "since", "reason"];
    output::line(&output::table(&header, rows));
}

async fn reset(app: &App, store: &dyn BreakerStore, key: &str, json: bool) -> Outcome<()> {
    let keys: Vec<BreakerKey> = if key == "all" {
        store
            .breakers()
            .await?
            .into_iter()
            .map(|(key, _)| key)
            .collect()
    } else {
        // A tool's name closes the breakers of its parts too.
        let found = admin::find_breakers(store, key).await?;
        if found.is_empty() {
            vec![find(app, store, key).await?]
        } else {
            found
        }
    };
    for key in &keys {
        let _ = store.apply(key, BreakerOp::Reset, &policy()).await?;
    }
    tell("reset", &names(&keys), json);
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
    tell("forcedOpen", &names(&[key]), json);
    Ok(())
}

fn names(keys: &[BreakerKey]) -> Vec<String> {
    keys.iter().map(ToString::to_string).collect()
}

pub(super) fn tell(what: &str, names: &[String], json: bool) {
    if json {
        output::json(&json!({what: names}));
    } else {
        let word = if what == "reset" {
            "closed"
        } else {
            "held open"
        };
        output::line(&format!("{} {word}.", names.join(", ")));
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
