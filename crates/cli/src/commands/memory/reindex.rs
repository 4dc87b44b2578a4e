//! `holdfast memory reindex`

use std::process::ExitCode;

use holdfast_contract::{MemoryError, MemoryRead};
use holdfast_memory::Memory;
use holdfast_memory::reindex::Scope;
use indicatif::ProgressBar;
use serde_json::json;

use crate::fail::{Failure, Outcome};
use crate::output;

pub(super) async fn run(memory: &Memory, all: bool, json: bool) -> Outcome<ExitCode> {
    let scope = if all { Scope::All } else { Scope::Missing };
    let bar = ProgressBar::new(memory.count(None).await?);
    let done = memory.reindex(scope, |seen| bar.set_position(seen)).await;
    bar.finish_and_clear();
    let done = done.map_err(|error| match error {
        MemoryError::Invalid { reason, .. } => {
            Failure::usage(reason).hint("Name one under memory.embeddings in the configuration.")
        }
        other => other.into(),
    })?;
    if json {
        let refused: Vec<_> = done
            .refused
            .iter()
            .map(|(id, reason)| json!({"id": id, "reason": reason}))
            .collect();
        output::json(&json!({"embedded": done.embedded, "refused": refused}));
    } else {
        output::line(&format!(
            "{} got a vector",
            output::counted(done.embedded, "record")
        ));
    }
    if let Some((id, reason)) = done.refused.first() {
        return Err(Failure::failed(format!(
            "the model did not take {} records, such as {id}: {reason}",
            done.refused.len()
        ))
        .hint("They are kept and found by their words."));
    }
    Ok(ExitCode::SUCCESS)
}
