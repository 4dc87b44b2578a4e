//! One file a command.

mod approvals;
mod audit;
mod audit_log;
mod breaker;
mod call;
mod config;
mod dedupe;
mod demo;
mod docs;
mod doctor;
mod explain;
mod git;
mod judge;
mod memory;
mod openclaw;
mod operator;
mod parse;
mod reload;
mod remote;
mod run;
mod scan;
mod schema;
mod serve;
mod session;
mod sessions;
mod skills;
mod tools;
mod transfer;
mod trust;
mod undo;
mod watch;

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
        Command::Run(args) => run::run(&App::new(&cli.global)?, &args, json),
        Command::Resume(args) => run::resume(&App::new(&cli.global)?, &args, json),
        Command::Serve(args) => serve::run(&cli.global, &args),
        Command::Dedupe(args) => {
            let app = App::new(&cli.global)?;
            let operator = args.remote.operator.as_deref();
            if let Some(server) = &args.remote.server {
                return remote::dedupe(&app, server, operator, args.command, json);
            }
            let action = operator::of_records(&args.command);
            let run = || dedupe::run(&app, args.command, json);
            operator::audited(&app, operator, action, run)
        }
        Command::Breaker(args) => {
            let app = App::new(&cli.global)?;
            let operator = args.remote.operator.as_deref();
            if let Some(server) = &args.remote.server {
                return remote::breaker(&app, server, operator, args.command, json);
            }
            let action = operator::of_breakers(&args.command);
            let run = || breaker::run(&app, args.command, json);
            operator::audited(&app, operator, action, run)
        }
        Command::Mode(args) => remote::mode(&App::new(&cli.global)?, &args, json),
        Command::Approvals(command) => approvals::run(&App::new(&cli.global)?, command, json),
        Command::AuditLog(command) => audit_log::run(&App::new(&cli.global)?, &command, json),
        Command::Trust(command) => trust::run(&App::new(&cli.global)?, command, json),
        Command::Skills(command) => skills::run(&App::new(&cli.global)?, command, json),
        Command::Doctor(args) => doctor::run(&cli.global, &args),
        Command::Explain(args) => explain::run(&App::new(&cli.global)?, &args, json),
        Command::Config(command) => config::run(&cli.global, &command),
        Command::Scan(args) => scan::run(&cli.global, &args, json),
        Command::Watch(args) => watch::run(&cli.global, &args, json),
        Command::Session(command) => session::run(&command, json),
        Command::Sessions(command) => sessions::run(&App::new(&cli.global)?, &command, json),
        Command::Judge(args) => judge::run(&App::new(&cli.global)?, &args, json),
        Command::Undo(args) => undo::run(&App::new(&cli.global)?, &args, json),
        Command::Git(args) => git::run(&App::new(&cli.global)?, &args, json),
        Command::Audit(args) => audit::run(&App::new(&cli.global)?, &args, json),
        Command::OpenClaw(command) => Ok(openclaw::run(&App::new(&cli.global)?, &command, json)),
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
