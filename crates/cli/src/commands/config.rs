//! `holdfast config`

use std::process::ExitCode;

use crate::app::App;
use crate::args::{ConfigCommand, GlobalArgs, Which};
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
        ConfigCommand::Check => {
            // Loading refuses what is wrong, with the place and the reason.
            let app = App::new(global)?;
            let source = match (
                &global.config,
                crate::config::user_file().filter(|path| path.exists()),
            ) {
                (Some(path), _) => path.display().to_string(),
                (None, Some(path)) => path.display().to_string(),
                (None, None) => "the built-in defaults".to_owned(),
            };
            if global.json {
                output::json(
                    &serde_json::json!({"ok": true, "source": source, "state": app.state_dir}),
                );
            } else {
                output::line(&format!("{} no problem in {source}", output::green("✓")));
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}
