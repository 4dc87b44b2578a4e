//! `holdfast session`

use std::path::Path;
use std::process::ExitCode;

use holdfast_contract::clock::new_request_id;
use holdfast_contract::{Clock, SystemClock, SystemEntropy};
use holdfast_transcript::checkpoint::{
    Checkpoint, CheckpointError, Operation, archive_and_reset, checkpoint, checkpoints, roll_back,
};
use serde_json::json;

use crate::args::{CheckpointFor, SessionCommand};
use crate::fail::{Failure, Outcome};
use crate::output;

impl From<CheckpointFor> for Operation {
    fn from(typed: CheckpointFor) -> Self {
        match typed {
            CheckpointFor::ToolCycle => Self::ToolCycle,
            CheckpointFor::Compaction => Self::Compaction,
            CheckpointFor::ApiCall => Self::ApiCall,
            CheckpointFor::Manual => Self::Manual,
        }
    }
}

pub(super) fn run(command: &SessionCommand, json: bool) -> Outcome<ExitCode> {
    let now_ms = SystemClock.now_ms();
    match command {
        SessionCommand::Checkpoint { file, operation } => {
            let id = new_request_id(&SystemClock, &SystemEntropy);
            let made = checkpoint(file, (*operation).into(), id, now_ms).map_err(said(file))?;
            if json {
                output::json(&made);
            } else {
                output::line(&made.id);
            }
        }
        SessionCommand::List { file } => {
            let all = checkpoints(file).map_err(said(file))?;
            if json {
                output::json(&all);
            } else {
                show(&all);
            }
        }
        SessionCommand::Rollback { file, checkpoint } => {
            let id = match checkpoint {
                Some(id) => id.clone(),
                None => last(file)?,
            };
            let backup = roll_back(file, &id, now_ms).map_err(said(file))?;
            done(json, "backup", "as it was", &backup);
        }
        SessionCommand::Reset { file } => {
            let archive = archive_and_reset(file, now_ms).map_err(said(file))?;
            done(json, "archive", "archived as", &archive);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn last(file: &Path) -> Outcome<String> {
    let all = checkpoints(file).map_err(said(file))?;
    all.last().map(|last| last.id.clone()).ok_or_else(|| {
        Failure::failed(format!("{} has no checkpoints", file.display()))
            .hint("`holdfast session checkpoint FILE` makes one")
    })
}

fn done(json: bool, key: &str, words: &str, path: &Path) {
    if json {
        output::json(&json!({ key: path }));
    } else {
        let path = path.display().to_string();
        output::line(&format!("{words}: {}", output::harmless(&path)));
    }
}

fn show(all: &[Checkpoint]) {
    let rows = all.iter().map(|checkpoint| {
        vec![
            checkpoint.id.clone(),
            checkpoint.timestamp.clone(),
            checkpoint.message_index.to_string(),
            serde_json::to_value(checkpoint.operation)
                .ok()
                .and_then(|name| name.as_str().map(str::to_owned))
                .unwrap_or_default(),
        ]
    });
    output::line(&output::table(
        &["checkpoint", "made", "entries", "for"],
        rows,
    ));
}

fn said(file: &Path) -> impl Fn(CheckpointError) -> Failure {
    move |error| Failure::failed(format!("{}: {error}", file.display()))
}
