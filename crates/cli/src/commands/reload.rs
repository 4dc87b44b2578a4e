//! What `holdfast serve` does when it hears SIGHUP: reads its configuration again and exchanges limits
//! and policies. A file that is wrong changes nothing, and is said.

use std::sync::Arc;

use holdfast_reliability::policy::Modes;
use holdfast_server::executor::ModelLimits;
use holdfast_server::{Server, Settings};
use holdfast_toolbox::stack::ToolStack;
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;

use crate::app::App;
use crate::args::GlobalArgs;
use crate::args::server::ServeArgs;
use crate::config::Config;
use crate::executor_file;
use crate::fail::{Failure, Outcome};
use crate::output;

/// Listens for the signal until it is aborted.
pub(super) fn on_hangup(
    app: &App,
    global: &GlobalArgs,
    args: &ServeArgs,
    server: &Arc<Server>,
    stack: &Arc<ToolStack>,
) -> Outcome<JoinHandle<()>> {
    let mut hangups = signal(SignalKind::hangup())
        .map_err(|error| Failure::failed(format!("signals can not be listened to: {error}")))?;
    let (global, listen) = (global.clone(), args.listen.clone());
    let (server, stack) = (server.clone(), stack.clone());
    // What can not be exchanged stays as it was at the start, however often it is read again.
    let started = app.config.clone();
    Ok(tokio::spawn(async move {
        while hangups.recv().await.is_some() {
            match reload(&global, listen.as_deref(), &started, &server, &stack) {
                Ok(new) => said(global.json, &fixed(&started, &new), &stack.modes()),
                Err(failure) => refused(global.json, &failure),
            }
        }
    }))
}

fn reload(
    global: &GlobalArgs,
    listen: Option<&str>,
    started: &Config,
    server: &Server,
    stack: &ToolStack,
) -> Outcome<Config> {
    let config = App::new_for_server(global)?.config;
    let settings = settings(&config, listen)?;
    let (permissions, guard) = (config.permissions.clone(), config.guard.clone());
    let exchanged = stack.exchange(&config.reliability, permissions, guard);
    exchanged.map_err(|problems| {
        let list: Vec<String> = problems.iter().map(ToString::to_string).collect();
        Failure::usage(list.join("\n"))
    })?;
    // A name that is new has no server here yet: it would be answered by another model.
    let known = executor_file::served(started);
    let mut models = executor_file::served(&config);
    models.retain(|model| known.iter().any(|it| it.name == model.name));
    let model = ModelLimits {
        models,
        requests_per_minute_max: config.executor.requests_per_minute_max,
    };
    server.exchange(&settings, Some(model));
    Ok(config)
}

fn settings(config: &Config, listen: Option<&str>) -> Outcome<Settings> {
    let mut server = config.server.clone();
    if let Some(listen) = listen {
        listen.clone_into(&mut server.listen);
    }
    server.settings().map_err(|problems| {
        let list: Vec<String> = problems.iter().map(ToString::to_string).collect();
        Failure::usage(list.join("\n"))
    })
}

/// Sections that have changed and stay as they were until the server is started again. Of `server`
/// only the bounds of bodies are exchanged, of `executor` only how often a client may ask, of
/// `executor.yaml` not the servers.
fn fixed(old: &Config, new: &Config) -> Vec<&'static str> {
    let mut server = new.server.clone();
    server.body_bytes_max = old.server.body_bytes_max;
    server.body_ms_max = old.server.body_ms_max;
    let mut executor = new.executor.clone();
    executor.requests_per_minute_max = old.executor.requests_per_minute_max;
    let changed = [
        ("server", server != old.server),
        ("executor", executor != old.executor),
        // Where the guard writes is fixed, its limits are not.
        ("guard.logPath", new.guard.log_path != old.guard.log_path),
        #[cfg(feature = "web")]
        ("web", new.web != old.web),
        #[cfg(feature = "web")]
        ("gateway", new.gateway != old.gateway),
        #[cfg(feature = "web")]
        ("channel", new.channel != old.channel),
        ("trust", new.trust != old.trust),
        ("confinement", new.confinement != old.confinement),
        ("output", new.output != old.output),
        ("sessions", new.sessions != old.sessions),
        ("hooks", new.hooks != old.hooks),
        ("redaction", new.redaction != old.redaction),
        ("memory", new.memory != old.memory),
        ("observability", new.observability != old.observability),
        (
            "reliability.store",
            new.reliability.store != old.reliability.store,
        ),
    ];
    let changed = changed.into_iter().filter(|(_, is_other)| *is_other);
    changed.map(|(section, _)| section).collect()
}

fn said(json: bool, fixed: &[&str], modes: &Modes) {
    if json {
        output::json(&json!({"event": "server_reloaded", "needRestart": fixed, "modes": modes}));
    } else if fixed.is_empty() {
        output::line(&format!(
            "Read the configuration again; limits and policies are exchanged ({modes})."
        ));
    } else {
        output::line(&format!(
            "Read the configuration again; limits and policies are exchanged ({modes}). What changed in {} needs a restart.",
            fixed.join(", ")
        ));
    }
}

fn refused(json: bool, failure: &Failure) {
    if json {
        output::json(&json!({"event": "server_reload_failed", "reason": &failure.message}));
    } else {
        output::note(&format!(
            "The configuration is wrong and was not taken; the old one stays. {}",
            failure.message
        ));
    }
}
