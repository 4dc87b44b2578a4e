//! One file a command.

mod approvals;
mod audit_log;
mod breaker;
mod call;
mod config;
mod dedupe;
mod demo;
mod docs;
mod explain;
mod memory;
mod parse;
mod schema;
mod tools;

use std::process::ExitCode;

use clap::CommandFactory;

use crate::app::App;
use crate::args::{Cli, Command};
use crate::fail::Outcome;

/// Runs what was typed.
pub(crate) fn run(cli: Cli) -> Outcome<ExitCode> {
    let json = cli.global.json;
    match cli.command {
        Command::Call(args) => call::run(&App::new(&cli.global)?, &args, json),
        Command::Tools(args) => tools::run(&App::new(&cli.global)?, &args, json),
        Command::Memory(command) => memory::run(&App::new(&cli.global)?, command, json),
        Command::Dedupe(command) => dedupe::run(&App::new(&cli.global)?, command, json),
        Command::Breaker(command) => breaker::run(&App::new(&cli.global)?, command, json),
        Command::Approvals(command) => approvals::run(&App::new(&cli.global)?, command, json),
        Command::AuditLog(command) => audit_log::run(&App::new(&cli.global)?, &command, json),
        Command::Explain(args) => explain::run(&App::new(&cli.global)?, &args, json),
        Command::Config(command) => config::run(&cli.global, &command),
        Command::Parse(args) => parse::run(&args),
        Command::Schema(args) => Ok(schema::run(args.which)),
        Command::Demo(args) => demo::run(&args, json),
        Command::Completions(args) => {
            let mut command = Cli::command();
            clap_complete::generate(args.shell, &mut command, "holdfast", &mut std::io::stdout());
            Ok(ExitCode::SUCCESS)
        }
        Command::Docs(args) => docs::run(&args),
    }
}
