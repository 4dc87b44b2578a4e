//! `holdfast dedupe export` and `import`: records from one store to another.
//!
//! One JSON object a line; the first says what the file is. Outputs are in it as they are, so the
//! file is for its owner only.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, BufWriter, IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

use holdfast_reliability::idempotency::record::DedupeRecord;
use holdfast_reliability::store::{DedupeStore, RecordFilter};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::app::App;
use crate::fail::{Failure, Outcome};
use crate::output;

/// The version of the file's form.
const VERSION: u32 = 1;
/// What the first line says.
const KIND: &str = "holdfast-dedupe-records";
/// A line longer than this is no record of ours.
const LINE_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Records are read in as many parts, so that a large store does not have to fit into memory.
const PARTS: &str = "0123456789abcdef";
/// How often progress is shown on a terminal.
const PROGRESS_EVERY: u64 = 500;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Heading {
    kind: String,
    version: u32,
    exported_at_ms: u64,
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::failed(format!("{} can not be written: {error}", path.display()))
}

/// Shows how far it is, on a terminal only.
fn progress(what: &str, count: u64) {
    if count.is_multiple_of(PROGRESS_EVERY) && std::io::stderr().is_terminal() {
        // A terminal that has gone away is no reason to stop.
        let _ = write!(std::io::stderr(), "\r{what} {count} records");
    }
}

fn end_progress() {
    if std::io::stderr().is_terminal() {
        let _ = write!(std::io::stderr(), "\r\x1b[K");
    }
}

/// Writes all records to a new file.
pub(super) async fn export(
    app: &App,
    store: &dyn DedupeStore,
    path: &Path,
    json: bool,
) -> Outcome<()> {
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(|error| unwritable(path, &error))?;
    let mut out = BufWriter::new(file);
    let heading = Heading {
        kind: KIND.to_owned(),
        version: VERSION,
        exported_at_ms: app.clock.now_ms(),
    };
    let mut write = |line: &dyn erased::Line| -> Outcome<()> {
        line.write_to(&mut out)
            .map_err(|error| unwritable(path, &error))
    };
    write(&heading)?;
    let mut count = 0;
    for part in PARTS.chars() {
        let filter = RecordFilter {
            key_prefix: Some(part.to_string()),
            ..RecordFilter::default()
        };
        for record in store.list(&filter).await? {
            write(&*record)?;
            count += 1;
            progress("exported", count);
        }
    }
    end_progress();
    let written = out
        .into_inner()
        .map_err(std::io::IntoInnerError::into_error);
    written
        .and_then(|file| file.sync_all())
        .map_err(|error| unwritable(path, &error))?;
    if json {
        output::json(&json!({"exported": count}));
    } else {
        output::line(&format!("Exported {count} records to {}.", path.display()));
    }
    Ok(())
}

/// Lines of different kinds through one closure.
mod erased {
    use std::io::Write;

    pub(super) trait Line {
        fn write_to(&self, out: &mut dyn Write) -> std::io::Result<()>;
    }

    impl<T: serde::Serialize> Line for T {
        fn write_to(&self, out: &mut dyn Write) -> std::io::Result<()> {
            serde_json::to_writer(&mut *out, self)?;
            out.write_all(b"\n")
        }
    }
}

/// Takes over the records of a file that are not known yet and have not expired.
pub(super) async fn import(
    app: &App,
    store: &dyn DedupeStore,
    path: &Path,
    json: bool,
) -> Outcome<()> {
    let file = std::fs::File::open(path)
        .map_err(|error| Failure::usage(format!("{} can not be read: {error}", path.display())))?;
    let mut lines = Lines {
        reader: BufReader::new(file),
        number: 0,
        path,
    };
    let heading: Heading = lines.next()?.ok_or_else(|| lines.wrong("is empty"))?;
    if heading.kind != KIND || heading.version != VERSION {
        return Err(lines.wrong("is no export of this version"));
    }
    let (mut restored, mut known, mut expired) = (0_u64, 0_u64, 0_u64);
    while let Some(record) = lines.next::<DedupeRecord>()? {
        if record.is_forgettable(app.clock.now_ms()) {
            expired += 1;
        } else if store.restore(Arc::new(record)).await? {
            restored += 1;
        } else {
            known += 1;
        }
        progress("imported", restored + known + expired);
    }
    end_progress();
    if json {
        output::json(&json!({"imported": restored, "known": known, "expired": expired}));
    } else {
        output::line(&format!(
            "Imported {restored} records; {known} were known already, {expired} had expired."
        ));
    }
    Ok(())
}

/// The lines of a file, each a JSON value.
struct Lines<'a> {
    reader: BufReader<std::fs::File>,
    number: u64,
    path: &'a Path,
}

impl Lines<'_> {
    fn wrong(&self, why: &str) -> Failure {
        Failure::failed(format!(
            "{}, line {}: {why}",
            self.path.display(),
            self.number
        ))
    }

    fn next<T: for<'de> Deserialize<'de>>(&mut self) -> Outcome<Option<T>> {
        use std::io::Read;
        let mut line = Vec::new();
        self.number += 1;
        let read = (&mut self.reader)
            .take(LINE_BYTES_MAX)
            .read_until(b'\n', &mut line)
            .map_err(|error| self.wrong(&error.to_string()))?;
        if read == 0 {
            return Ok(None);
        }
        if line.last() != Some(&b'\n') {
            // A file that was cut off must not look like a whole one.
            return Err(self.wrong("is cut off"));
        }
        let mut deserializer = serde_json::Deserializer::from_slice(&line);
        deserializer.disable_recursion_limit();
        T::deserialize(&mut deserializer)
            .map(Some)
            .map_err(|error| self.wrong(&error.to_string()))
    }
}
