//! `holdfast doctor`
//!
//! Looks at everything that a call depends on, and says what to do about what it finds. Changes
//! nothing but what opening a state changes.

mod confinement;
mod servers;
mod state;

use std::process::ExitCode;

use serde::Serialize;
use serde_json::json;

use crate::app::{App, runtime};
use crate::args::executor::ModelArgs;
use crate::args::{DoctorArgs, GlobalArgs};
use crate::fail::Outcome;
use crate::output;

/// How something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
enum Status {
    /// As it should be.
    Ok,
    /// It works, and somebody should know.
    Warn,
    /// Calls are refused, or not protected.
    Bad,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Check {
    name: &'static str,
    status: Status,
    found: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<String>,
}

impl Check {
    fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self {
            name,
            status: Status::Ok,
            found: found.into(),
            advice: None,
        }
    }

    fn warn(name: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self {
            status: Status::Warn,
            advice: Some(advice.into()),
            ..Self::ok(name, found)
        }
    }

    fn bad(name: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self {
            status: Status::Bad,
            ..Self::warn(name, found, advice)
        }
    }
}

pub(super) fn run(global: &GlobalArgs, args: &DoctorArgs) -> Outcome<ExitCode> {
    let checks = match App::new(global) {
        Ok(app) => {
            let source = match app.config_file.as_ref().filter(|file| file.exists()) {
                Some(file) => format!("no problem in {}", file.display()),
                None => "the built-in defaults".to_owned(),
            };
            let mut checks = vec![Check::ok("configuration", source)];
            let runtime = runtime()?;
            checks.extend(runtime.block_on(state::checks(&app)));
            checks.extend(runtime.block_on(servers::checks(&app, &args.model)));
            checks.extend(runtime.block_on(confinement::checks(&app, &args.workspace)));
            checks
        }
        // Nothing else is known without one.
        Err(failure) => {
            let advice = failure
                .hint
                .unwrap_or_else(|| "Mend it; `holdfast config check` looks again.".to_owned());
            vec![Check::bad("configuration", failure.message, advice)]
        }
    };
    let is_well = checks.iter().all(|check| check.status != Status::Bad);
    if global.json {
        output::json(&json!({"ok": is_well, "checks": checks}));
    } else {
        tell(&checks);
    }
    Ok(if is_well {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    })
}

/// A server, and whether it answers.
pub(super) struct ServerFound {
    /// What it is for.
    pub(super) name: &'static str,
    /// Whether it answers, and if not, why.
    pub(super) found: String,
}

/// Asks the model's servers and the gateway whether they are there.
pub(super) async fn servers(app: &App, args: &ModelArgs) -> Vec<ServerFound> {
    let checks = servers::checks(app, args).await;
    let found = checks.into_iter().map(|check| ServerFound {
        name: check.name.strip_suffix(" server").unwrap_or(check.name),
        found: check.found,
    });
    found.collect()
}

fn tell(checks: &[Check]) {
    for check in checks {
        let sign = match check.status {
            Status::Ok => output::green("✓"),
            Status::Warn => output::yellow("!"),
            Status::Bad => output::red("✗"),
        };
        let text = format!("{}: {}", check.name, check.found);
        output::line(&format!("{sign} {}", output::harmless(&text)));
        if let Some(advice) = &check.advice {
            output::line(&format!("    {}", output::harmless(advice)));
        }
    }
}
