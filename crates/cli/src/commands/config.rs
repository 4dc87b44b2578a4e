//! `holdfast config`

use std::process::ExitCode;

use holdfast_reliability::config::StoreKind;

use crate::app::{App, runtime};
use crate::args::{ConfigCommand, GlobalArgs, Which};
use crate::executor_file;
use crate::fail::{Failure, Outcome};
use crate::output;

pub(super) fn run(global: &GlobalArgs, command: &ConfigCommand) -> Outcome<ExitCode> {
    match command {
        ConfigCommand::Schema => Ok(super::schema::run(Which::Config)),
        ConfigCommand::Show => {
            let app = App::new(global)?;
            if global.json {
                output::json(&app.config);
            } else {
                let text = serde_saphyr::to_string(&app.config)
                    .map_err(|error| Failure::failed(error.to_string()))?;
                output::line(&format!("# state: {}", app.state_dir.display()));
                output::line(text.trim_end());
            }
            Ok(ExitCode::SUCCESS)
        }
        ConfigCommand::Check { file, offline } => {
            // Loading refuses what is wrong, with the place and the reason.
            let global = &GlobalArgs {
                config: file.clone().or_else(|| global.config.clone()),
                ..global.clone()
            };
            let app = App::new(global)?;
            let source = match (
                &global.config,
                crate::config::user_file().filter(|path| path.exists()),
            ) {
                (Some(path), _) => path.display().to_string(),
                (None, Some(path)) => path.display().to_string(),
                (None, None) => "the built-in defaults".to_owned(),
            };
            let tried = try_store(&app, *offline)?;
            if global.json {
                output::json(&serde_json::json!({
                    "ok": true, "source": source, "state": app.state_dir, "redis": tried.word(),
                    "warnings": app.config.warnings(),
                }));
            } else {
                executor_file::warn(&app.config);
                let end = match tried {
                    Tried::None => "",
                    Tried::Answers => "; Redis answers",
                    Tried::Skipped => "; Redis was not tried",
                };
                output::line(&format!(
                    "{} no problem in {source}{end}",
                    output::green("✓")
                ));
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// What is known of the store that other machines share.
#[derive(Clone, Copy)]
enum Tried {
    /// The configuration names none.
    None,
    Answers,
    Skipped,
}

impl Tried {
    fn word(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Answers => Some("answers"),
            Self::Skipped => Some("not tried"),
        }
    }
}

/// Connects to a Redis, within the times that the configuration gives it.
fn try_store(app: &App, offline: bool) -> Outcome<Tried> {
    if app.config.reliability.store.kind != StoreKind::Redis {
        return Ok(Tried::None);
    }
    if offline {
        return Ok(Tried::Skipped);
    }
    let records = app.open_records()?;
    runtime()?.block_on(records.size()).map_err(|error| {
        Failure::failed(format!("the configuration can be read, but {error}"))
            .hint("Is the server there, and are address, user, password and certificates right? `--offline` only reads the file.")
    })?;
    Ok(Tried::Answers)
}
