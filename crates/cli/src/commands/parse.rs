//! `holdfast parse`

use std::io::Read;
use std::path::Path;
use std::process::ExitCode;

use holdfast_intent::{FinishReason, Parser, Strategy, StreamParser, ToolSet};

use crate::args::ParseArgs;
use crate::fail::{Failure, Outcome};
use crate::output;

/// How much of standard input is read; a reply is never that long.
const REPLY_BYTES_MAX: u64 = 64 * 1024 * 1024;

pub(super) fn run(args: &ParseArgs) -> Outcome<ExitCode> {
    let primary = strategy(&args.strategy)?;
    let fallback = args.fallback.as_deref().map(strategy).transpose()?;
    let tools = match &args.tools {
        Some(file) => tools(file)?,
        None => ToolSet::built_in(),
    };
    let finish = args
        .finish_reason
        .as_deref()
        .map_or(FinishReason::Unknown, FinishReason::from_wire);
    let parser = Parser::new(tools).with_strategies(primary, fallback);
    let mut reply = Vec::new();
    std::io::stdin()
        .lock()
        .take(REPLY_BYTES_MAX)
        .read_to_end(&mut reply)
        .map_err(|error| Failure::failed(format!("standard input can not be read: {error}")))?;
    let mut stream = StreamParser::new(&parser);
    stream.feed(&reply);
    output::json(&stream.finish(finish));
    Ok(ExitCode::SUCCESS)
}

fn strategy(name: &str) -> Outcome<Strategy> {
    Strategy::from_name(name).ok_or_else(|| {
        let names: Vec<&str> = Strategy::ALL.iter().map(|known| known.name()).collect();
        Failure::usage(format!("there is no strategy `{name}`"))
            .hint(format!("use one of: {}", names.join(", ")))
    })
}

fn tools(file: &Path) -> Outcome<ToolSet> {
    let shown = file.display();
    let text = std::fs::read_to_string(file)
        .map_err(|error| Failure::usage(format!("{shown} can not be read: {error}")))?;
    let value = serde_json::from_str(&text)
        .map_err(|error| Failure::usage(format!("{shown} is not JSON: {error}")))?;
    ToolSet::from_json(&value).ok_or_else(|| {
        Failure::usage(format!("{shown} holds no list of tools"))
            .hint("a list of {\"name\", \"parameters\"}, as sent to a model")
    })
}
