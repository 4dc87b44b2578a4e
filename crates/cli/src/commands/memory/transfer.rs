//! `holdfast memory export` and `import`

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, BufWriter};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use holdfast_memory::Memory;
use holdfast_memory::transfer::{self, TransferError};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use crate::app::App;
use crate::fail::{Failure, Outcome};
use crate::output;

/// Conflicting ids that are named.
const CONFLICTS_SHOWN_MAX: usize = 10;
/// Buffer between us and the file.
const BUFFER_BYTES: usize = 256 * 1024;

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
    let target = Path::new(file);
    let draft = Draft::begin(target)?;
    let mut out = BufWriter::with_capacity(BUFFER_BYTES, &draft.file);
    let records =
        transfer::export(&mut *snapshot, agent, now_ms, &mut out, tell).map_err(failed)?;
    drop(out);
    draft.finish(target)?;
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

pub(super) async fn import(memory: &Memory, file: &str, json: bool) -> Outcome<ExitCode> {
    let source: Box<dyn BufRead> = if file == "-" {
        Box::new(std::io::stdin().lock())
    } else {
        let opened = File::open(file)
            .map_err(|error| Failure::usage(format!("{file} can not be read: {error}")))?;
        Box::new(BufReader::with_capacity(BUFFER_BYTES, opened))
    };
    let bar = bar("imported");
    let done = transfer::import(memory, source, |progress| show(&bar, progress)).await;
    bar.finish_and_clear();
    let done = done.map_err(failed)?;
    if json {
        output::json(&json!({
            "added": done.added,
            "unchanged": done.unchanged,
            "conflicting": done.conflicting,
        }));
    } else {
        output::line(&format!(
            "{} added, {} known already",
            done.added, done.unchanged
        ));
    }
    if done.conflicting.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    let shown: Vec<&str> = done
        .conflicting
        .iter()
        .take(CONFLICTS_SHOWN_MAX)
        .map(String::as_str)
        .collect();
    Err(Failure::failed(format!(
        "{} records are there already with other content, and were left as they are: {}",
        done.conflicting.len(),
        shown.join(", ")
    ))
    .hint("Delete them first to take those of the file."))
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

/// A file under another name until it is whole.
struct Draft {
    file: File,
    path: PathBuf,
}

impl Draft {
    fn begin(target: &Path) -> Outcome<Self> {
        let mut name = target.as_os_str().to_owned();
        name.push(format!(".{}.part", std::process::id()));
        let path = PathBuf::from(name);
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(|error| cannot(target, &error))?;
        Ok(Self { file, path })
    }

    fn finish(self, target: &Path) -> Outcome<()> {
        self.file
            .sync_all()
            .and_then(|()| std::fs::rename(&self.path, target))
            .map_err(|error| cannot(target, &error))
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // Gone already when it got its name.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn cannot(target: &Path, error: &std::io::Error) -> Failure {
    Failure::failed(format!("{} can not be written: {error}", target.display()))
}
