//! `holdfast breaker`

use std::process::ExitCode;

use holdfast_reliability::breaker::{
    BreakerKey, BreakerOp, BreakerPolicy, BreakerState, BreakerStore, BreakerTarget,
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
            BreakerCommand::Reset { key } => reset(state.breakers(), &key, json).await,
            BreakerCommand::ForceOpen { key, reason } => {
                force_open(state.breakers(), &key, reason, json).await
            }
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Cooldowns differ by class and tool; a listing shows the standard one's view.
fn policy() -> BreakerPolicy {
    BreakerPolicy::standard()
}

async fn list(app: &App, store: &dyn BreakerStore, json: bool) -> Outcome<()> {
    let breakers = store.breakers().await?;
    let now_ms = app.clock.now_ms();
    let view = |state: &BreakerState| state.snapshot(&policy(), now_ms);
    if json {
        let list: Vec<Value> = breakers
            .iter()
            .map(|(key, state)| {
                let mut value = serde_json::to_value(view(state)).unwrap_or_default();
                value["key"] = json!(key.to_string());
                value
            })
            .collect();
        output::json(&list);
        return Ok(());
    }
    if breakers.is_empty() {
        output::line("No breakers: no tool has been called yet.");
        return Ok(());
    }
    let rows = breakers.iter().map(|(key, state)| {
        let snapshot = view(state);
        vec![
            key.to_string(),
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
    Ok(())
}

async fn reset(store: &dyn BreakerStore, key: &str, json: bool) -> Outcome<()> {
    let keys: Vec<BreakerKey> = if key == "all" {
        store
            .breakers()
            .await?
            .into_iter()
            .map(|(key, _)| key)
            .collect()
    } else {
        vec![find(store, key).await?]
    };
    for key in &keys {
        let _ = store.apply(key, BreakerOp::Reset, &policy()).await?;
    }
    tell("reset", &keys, json);
    Ok(())
}

async fn force_open(
    store: &dyn BreakerStore,
    key: &str,
    reason: String,
    json: bool,
) -> Outcome<()> {
    let key = find(store, key).await?;
    let _ = store
        .apply(&key, BreakerOp::ForceOpen { reason }, &policy())
        .await?;
    tell("forcedOpen", &[key], json);
    Ok(())
}

fn tell(what: &str, keys: &[BreakerKey], json: bool) {
    let names: Vec<String> = keys.iter().map(ToString::to_string).collect();
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

/// A breaker's own key, or the name of the tool it stands for.
async fn find(store: &dyn BreakerStore, name: &str) -> Outcome<BreakerKey> {
    if let Ok(key) = name.parse::<BreakerKey>() {
        return Ok(key);
    }
    let known = store.breakers().await?;
    let of_tool = known.into_iter().map(|(key, _)| key).find(|key| {
        key.context().is_empty()
            && matches!(key.target(), BreakerTarget::Tool { name: tool, .. } if tool == name)
    });
    match of_tool {
        Some(key) => Ok(key),
        None if holdfast_toolbox::tools::base_tools().iter().any(|tool| tool.name() == name) => {
            Ok(BreakerKey::tool("holdfast.tools", name))
        }
        None => Err(Failure::failed(format!("there is no breaker {name:?}"))
            .hint("`holdfast breaker list` shows them; keys look like tool:NAMESPACE/NAME, dependency:NAME or global.")),
    }
}
