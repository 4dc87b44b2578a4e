//! `holdfast memory export` and `import`

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter};
use std::path::Path;
use std::process::ExitCode;

use holdfast_contract::Trust;
use holdfast_memory::Memory;
use holdfast_memory::transfer::{self, Imported, TransferError};
use holdfast_toolbox::draft::{self, Draft};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use crate::app::App;
use crate::fail::{Failure, Outcome};
use crate::output;

/// Conflicting ids that are named.
const CONFLICTS_SHOWN_MAX: usize = 10;
/// Buffer between us and the file.
const BUFFER_BYTES: usize = 256 * 1024;
/// What agents remember is for their owner only.
const EXPORT_MODE: u32 = 0o600;

pub(super) async fn export(
    app: &App,
    memory: &Memory,
    file: &str,
    agent: &str,
    json: bool,
) -> Outcome<ExitCode> {
    let mut snapshot = memory.snapshot().await?;
    let now_ms = app.clock.now_ms();
    let bar = bar("exported");
    let tell = |progress| show(&bar, progress);
    if file == "-" {
        let mut out = BufWriter::with_capacity(BUFFER_BYTES, std::io::stdout().lock());
        transfer::export(&mut *snapshot, agent, now_ms, &mut out, tell).map_err(failed)?;
        bar.finish_and_clear();
        return Ok(ExitCode::SUCCESS);
    }
    let cannot = |error| Failure::failed(format!("{file} can not be written: {error}"));
    let (dir, name) = draft::place_of(Path::new(file)).map_err(cannot)?;
    let draft = Draft::begin(&dir, EXPORT_MODE).map_err(cannot)?;
    let mut out = BufWriter::with_capacity(BUFFER_BYTES, draft.file());
    let records =
        transfer::export(&mut *snapshot, agent, now_ms, &mut out, tell).map_err(failed)?;
    drop(out);
    draft.sync().map_err(cannot)?;
    draft.finish(name).map_err(cannot)?;
    bar.finish_and_clear();
    if json {
        output::json(&json!({"records": records, "file": file}));
    } else {
        output::line(&format!(
            "Wrote {} to {file}",
            output::counted(records, "record")
        ));
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn import(
    memory: &Memory,
    file: &str,
    trust_max: Trust,
    json: bool,
) -> Outcome<ExitCode> {
    let source: Box<dyn BufRead> = if file == "-" {
        Box::new(std::io::stdin().lock())
    } else {
        let opened = File::open(file)
            .map_err(|error| Failure::usage(format!("{file} can not be read: {error}")))?;
        Box::new(BufReader::with_capacity(BUFFER_BYTES, opened))
    };
    let bar = bar("imported");
    let done = transfer::import(memory, source, trust_max, |progress| show(&bar, progress)).await;
    bar.finish_and_clear();
    let done = done.map_err(failed)?;
    if json {
        output::json(&json!({
            "added": done.added,
            "unchanged": done.unchanged,
            "conflicting": done.conflicting,
            "lowered": done.lowered,
        }));
    } else {
        output::line(&format!(
            "{} added, {} known already",
            done.added, done.unchanged
        ));
        if done.lowered > 0 {
            output::line(&output::yellow(&format!(
                "The file trusts {} more than an import may, and {} is what they got",
                output::counted(done.lowered, "record"),
                trust_max.as_str()
            )));
        }
    }
    if done.conflicting.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    let hint = "Delete them first to take those of the file.";
    Err(Failure::failed(conflicts(&done)).hint(hint))
}

/// Which records were left as they are, and in what those of the file differ.
fn conflicts(done: &Imported) -> String {
    let all = done.conflicting.len() as u64;
    let differ = match done.other_trust {
        0 => "other content".to_owned(),
        only if only == all => "the same content and another trust".to_owned(),
        some => format!("other content or, {some} of them, only another trust"),
    };
    let are = if all == 1 { "is" } else { "are" };
    let shown = done.conflicting.iter().take(CONFLICTS_SHOWN_MAX);
    let shown: Vec<&str> = shown.map(String::as_str).collect();
    format!(
        "{} {are} there already with {differ}; all were left as they are: {}",
        output::counted(all, "record"),
        shown.join(", ")
    )
}

fn failed(error: TransferError) -> Failure {
    match error {
        TransferError::Memory(error) => error.into(),
        TransferError::Line(error) => Failure::failed(error.to_string())
            .hint("Mend the line and import again: what is in already stays as it is."),
        TransferError::Write(_) => Failure::failed(error.to_string()),
    }
}

/// A bar on standard error, and none where nobody looks.
fn bar(done: &str) -> ProgressBar {
    let bar = ProgressBar::no_length();
    let template = format!("{{bar:30}} {{human_pos}} of {{human_len}} {done} {{eta}}");
    if let Ok(style) = ProgressStyle::with_template(&template) {
        bar.set_style(style);
    }
    bar
}

fn show(bar: &ProgressBar, progress: transfer::Progress) {
    if let Some(total) = progress.total {
        bar.set_length(total);
    }
    bar.set_position(progress.records);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_said() {
        let told = |ids: &[&str], other_trust| {
            conflicts(&Imported {
                conflicting: ids.iter().map(|id| (*id).to_owned()).collect(),
                other_trust,
                ..Imported::default()
            })
        };
        assert_eq!(
            told(&["a"], 0),
            "1 record is there already with other content; all were left as they are: a"
        );
        assert_eq!(
            told(&["a", "b"], 2),
            "2 records are there already with the same content and another trust; all were left as they are: a, b"
        );
        assert!(told(&["a", "b", "c"], 1).contains("or, 1 of them, only another trust"));
    }
}
