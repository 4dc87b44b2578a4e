//! What `holdfast serve` does when it hears SIGHUP: reads its configuration again and exchanges limits,
//! policies and models. A file that is wrong changes nothing, and is said.

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
use crate::args::executor::ModelArgs;
use crate::config::Config;
use crate::executor::{self, ExecutorConfig};
use crate::executor_file;
use crate::fail::{Failure, Outcome};
use crate::output;

/// What is exchanged, and what it is read from.
pub(super) struct Reload {
    pub(super) global: GlobalArgs,
    pub(super) listen: Option<String>,
    pub(super) model: ModelArgs,
    /// What can not be exchanged stays as it was at the start, however often it is read again.
    pub(super) started: Config,
    pub(super) server: Arc<Server>,
    pub(super) stack: Arc<ToolStack>,
}

impl Reload {
    /// Listens for the signal until it is aborted.
    pub(super) fn on_hangup(self) -> Outcome<JoinHandle<()>> {
        let mut hangups = signal(SignalKind::hangup())
            .map_err(|error| Failure::failed(format!("signals can not be listened to: {error}")))?;
        Ok(tokio::spawn(async move {
            let json = self.global.json;
            while hangups.recv().await.is_some() {
                match self.reload() {
                    Ok(fixed) => said(json, &fixed, &self.stack.modes()),
                    Err(failure) => refused(json, &failure),
                }
            }
        }))
    }

    /// Says what needs a restart. All that can fail comes before the first exchange.
    fn reload(&self) -> Outcome<Vec<&'static str>> {
        let app = App::new_for_server(&self.global)?;
        let config = &app.config;
        let settings = settings(config, self.listen.as_deref())?;
        let model = executor::model(&app, &self.model)?;
        let keys = executor::keys(&config.executor)?;
        let fixed = fixed(
            &self.started,
            config,
            if model.is_some() == self.server.has_model() {
                Model::Stays
            } else {
                Model::CameOrWent
            },
        );
        let (permissions, guard) = (config.permissions.clone(), config.guard.clone());
        let exchanged = self.stack.exchange(&config.reliability, permissions, guard);
        exchanged.map_err(|problems| {
            let list: Vec<String> = problems.iter().map(ToString::to_string).collect();
            Failure::usage(list.join("\n"))
        })?;
        // Without one, the models of before go on: nobody can serve none.
        let limits = model.map(|model| ModelLimits {
            model,
            common: executor_file::settings(config),
            models: executor_file::served(config),
            requests_per_minute_max: config.executor.requests_per_minute_max,
        });
        self.server.exchange(&settings, keys, limits);
        executor_file::warn(config);
        Ok(fixed)
    }
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

/// Whether there is a model as there was one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Model {
    Stays,
    CameOrWent,
}

/// Sections that have changed and stay as they were until the server is started again. Of `server`
/// only the bounds of bodies are exchanged, of `executor` the model, the keys of clients and how often one may ask. A
/// model where there was none, or none where there was one, needs another server.
fn fixed(old: &Config, new: &Config, model: Model) -> Vec<&'static str> {
    let mut server = new.server.clone();
    server.body_bytes_max = old.server.body_bytes_max;
    server.body_ms_max = old.server.body_ms_max;
    let executor = ExecutorConfig {
        model_url: old.executor.model_url.clone(),
        model: old.executor.model.clone(),
        api_key_env: old.executor.api_key_env.clone(),
        requests_per_minute_max: old.executor.requests_per_minute_max,
        keys_file: old.executor.keys_file.clone(),
        ..new.executor.clone()
    };
    let log = |config: &Config| config.file.as_ref().map(|file| file.log.clone());
    // Whoever calls the gateway has it since the start.
    #[cfg(feature = "web")]
    let token = |config: &Config| config.file.as_ref().map(|file| file.gateway_token.clone());
    let changed = [
        ("server", server != old.server),
        (
            "executor",
            executor != old.executor || model == Model::CameOrWent,
        ),
        ("logging", log(new) != log(old)),
        // Where the guard writes is fixed, its limits are not.
        ("guard.logPath", new.guard.log_path != old.guard.log_path),
        #[cfg(feature = "web")]
        ("web", new.web != old.web),
        #[cfg(feature = "web")]
        (
            "gateway",
            new.gateway != old.gateway || token(new) != token(old),
        ),
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
            "Read the configuration again; limits, policies and models are exchanged ({modes})."
        ));
    } else {
        output::line(&format!(
            "Read the configuration again; limits, policies and models are exchanged ({modes}). What changed in {} needs a restart.",
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
