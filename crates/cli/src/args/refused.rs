//! What is said of arguments that are wrong.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::CommandFactory;
use clap::error::{ContextKind, Error};

use super::Cli;
use crate::fail::Failure;
use crate::output;

/// Says what is wrong, and what the process ends with. Where an argument came from a variable of the
/// environment, that is what is named: nobody has written the option. Help is no mistake.
pub(crate) fn end(error: &Error) -> ExitCode {
    let named = of_variable(error);
    let error = named.as_ref().unwrap_or(error);
    if error.use_stderr() && wants_json(std::env::args_os().skip(1)) {
        output::failure(&as_failure(error), true);
    } else {
        // Nobody may be there to read it.
        let _ = error.print();
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

/// Whether JSON was asked for, in words of which some are wrong.
fn wants_json(words: impl Iterator<Item = OsString>) -> bool {
    words
        .take_while(|word| word != "--")
        .any(|word| word == "--json")
}

/// What is wrong, and everything behind that as advice: what is near, how it is used.
fn as_failure(error: &Error) -> Failure {
    let text = error.to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let (message, advice) = text.split_once("\n\n").unwrap_or((text, ""));
    let failure = Failure::usage(message.trim());
    match advice.trim() {
        "" => failure,
        advice => failure.hint(advice),
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

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    /// Words need not be text.
    #[test]
    fn json_is_asked_for_before_the_words_that_are_not_ours() {
        let wants = |words: &[&[u8]]| {
            let words = words.iter().map(|word| OsString::from_vec(word.to_vec()));
            wants_json(words)
        };
        assert!(wants(&[b"call", b"\xff", b"--json"]));
        assert!(!wants(&[b"\xff", b"--", b"--json"]));
    }
}
