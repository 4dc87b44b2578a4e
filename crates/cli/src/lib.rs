//! `holdfast`: the command line. Arguments in, readable output or JSON out.
//!
//! A library, so that a binary can be built that knows more than the ordinary one does: see
//! [`Extras`].
//!
//! What was typed is in `args`; what is built from it in `app`; each command has a file of its
//! own under `commands`. Exit codes: 0 success, 1 the call or check failed, 2 bad usage.

mod app;
mod args;
mod commands;
mod config;
mod environment;
mod executor;
mod executor_file;
mod extras;
mod fail;
mod logfile;
mod loud;
mod mistakes;
mod output;
mod records;
mod remembering;
mod running;
mod secrets;
mod server_terminal;
mod telemetry;
mod terminal;
mod undoing;
mod variables;
mod waiting;
#[cfg(feature = "web")]
mod web;

use std::process::ExitCode;

use clap::Parser;

pub use extras::{Extras, MemoryOpener, MemoryPlace};

/// Does what the process was asked to do.
pub fn run(extras: Extras) -> ExitCode {
    extras.install();
    let cli = match args::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return args::refused::end(&error),
    };
    let json = cli.global.json;
    match commands::run(cli) {
        Ok(code) => code,
        Err(failure) => {
            output::failure(&failure, json);
            ExitCode::from(failure.exit_code)
        }
    }
}
