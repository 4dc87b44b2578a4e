//! `holdfast config`

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::ExitCode;

use holdfast_reliability::config::StoreKind;

use crate::app::{App, runtime};
use crate::args::{ConfigCommand, GlobalArgs, Which};
use crate::config::LOG_AUTO;
use crate::executor_file;
use crate::fail::{Failure, Outcome};
use crate::logfile;
use crate::output;

pub(super) fn run(global: &GlobalArgs, command: &ConfigCommand) -> Outcome<ExitCode> {
    match command {
        ConfigCommand::Schema => Ok(super::schema::run(Which::Config)),
        ConfigCommand::Show => {
            let app = App::new(global)?;
            if global.json {
                let mut shown = serde_json::to_value(&app.config)
                    .map_err(|error| Failure::failed(error.to_string()))?;
                if app.config.file.is_some() {
                    shown["executorFile"] = executor_file::given(&app.config);
                }
                output::json(&shown);
            } else {
                let text = serde_saphyr::to_string(&app.config)
                    .map_err(|error| Failure::failed(error.to_string()))?;
                output::line(&format!("# state: {}", app.state_dir.display()));
                output::line(text.trim_end());
                for line in executor_file::given_lines(&app.config) {
                    output::line(&line);
                }
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
            super::serve::check(&app)?;
            check_log(&app)?;
            check_hooks(&app)?;
            #[cfg(feature = "web")]
            crate::web::check(&app.config, *offline)?;
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

/// The log is opened by every command that calls tools; one that can not be is found here without
/// making it.
fn check_log(app: &App) -> Outcome<()> {
    match app.config.observability.log.as_str() {
        "off" | "stderr" | LOG_AUTO => Ok(()),
        path => logfile::check(path),
    }
}

/// A hook that can not be started refuses every call it is asked about.
fn check_hooks(app: &App) -> Outcome<()> {
    let hooks = &app.config.hooks;
    let lists = [
        ("admit", &hooks.admit),
        ("before", &hooks.before),
        ("after", &hooks.after),
    ];
    for (name, list) in lists {
        for (index, hook) in list.iter().enumerate() {
            let program = hook.command.first().map_or("", String::as_str);
            if !is_program(program) {
                let problem = format!("hooks.{name}[{index}]: there is no program {program:?}");
                return Err(Failure::usage(problem)
                    .hint("Give its whole path, or see that it is in a directory of PATH."));
            }
        }
    }
    Ok(())
}

fn is_program(name: &str) -> bool {
    let runs = |path: &Path| {
        let found = std::fs::metadata(path);
        found.is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
    };
    if name.contains('/') {
        return runs(Path::new(name));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| runs(&dir.join(name)))
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
