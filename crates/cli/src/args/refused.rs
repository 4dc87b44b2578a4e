//! What is said of arguments that are wrong.

use clap::CommandFactory;
use clap::error::{ContextKind, Error};

use super::Cli;

/// Says what is wrong, and ends the process. Where an argument came from a variable of the environment,
/// that is what is named: nobody has written the option.
pub(crate) fn end(error: &Error) -> ! {
    match of_variable(error) {
        Some(named) => named.exit(),
        None => error.exit(),
    }
}

fn of_variable(error: &Error) -> Option<Error> {
    let argument = error.get(ContextKind::InvalidArg)?.to_string();
    let option = argument.split([' ', '=']).next()?;
    let is_written = std::env::args_os().any(|word| {
        let word = word.to_string_lossy();
        let rest = word.strip_prefix(option);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    });
    let variable = variable(&Cli::command(), option.strip_prefix("--")?)?;
    if is_written || std::env::var_os(&variable).is_none() {
        return None;
    }
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    let line = line.strip_prefix("error: ").unwrap_or(line);
    let said = line.replace(
        &format!("'{argument}'"),
        &format!("the variable {variable}"),
    );
    Some(Cli::command().error(error.kind(), said))
}

/// The variable that an option can come from.
fn variable(command: &clap::Command, long: &str) -> Option<String> {
    let mut own = command.get_arguments();
    let found = own.find(|argument| argument.get_long() == Some(long));
    let named = found.and_then(clap::Arg::get_env);
    named
        .map(|name| name.to_string_lossy().into_owned())
        .or_else(|| command.get_subcommands().find_map(|it| variable(it, long)))
}
