//! `holdfast dedupe export` and `import`: records from one store to another.
//!
//! One JSON object a line. The first says what the file is, the last how many records there are and
//! the digest of all lines before it, so that a file that was cut off or changed is not taken for a
//! whole one. Outputs are in it as they are, so the file is for its owner only.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, BufWriter, IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

use holdfast_reliability::canonical::Digest;
use holdfast_reliability::idempotency::record::DedupeRecord;
use holdfast_reliability::store::{DedupeStore, RecordFilter};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::app::App;
use crate::fail::{Failure, Outcome};
use crate::output;

/// The version of the file's form. The first had no last line of its own, and is still read.
const VERSION: u32 = 2;
/// The version from which on the last line tells whether the file is whole.
const VERSION_WITH_END: u32 = 2;
/// What the first line says.
const KIND: &str = "holdfast-dedupe-records";
/// What the last line says.
const END_KIND: &str = "holdfast-dedupe-records-end";
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

/// The last line.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct End {
    kind: String,
    records: u64,
    digest: Digest,
}

/// The digest of the lines so far: of each line behind the digest of those before it.
#[derive(Clone, Copy)]
struct Chain(Digest);

impl Chain {
    fn new() -> Self {
        Self(Digest::of(&[]))
    }

    fn add(&mut self, line: &[u8]) {
        self.0 = Digest::of(&[self.0.as_bytes(), line].concat());
    }
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
    let mut chain = Chain::new();
    let mut write = |line: Vec<u8>| -> Outcome<()> {
        chain.add(&line);
        out.write_all(&line)
            .map_err(|error| unwritable(path, &error))
    };
    write(line_of(&heading)?)?;
    let mut count = 0;
    for part in PARTS.chars() {
        let filter = RecordFilter {
            key_prefix: Some(part.to_string()),
            ..RecordFilter::default()
        };
        let listing = store.listing(&filter).await?;
        if let Some(unread) = listing.unread.first() {
            let key = unread.key;
            return Err(Failure::failed(format!(
                "the record {key} can not be read ({}), so not all of them can be exported",
                unread.why
            ))
            .hint("Export with the Holdfast that wrote it, or clear it first: `holdfast dedupe clear`."));
        }
        for record in listing.records {
            write(line_of(&*record)?)?;
            count += 1;
            progress("exported", count);
        }
    }
    let end = End {
        kind: END_KIND.to_owned(),
        records: count,
        digest: chain.0,
    };
    out.write_all(&line_of(&end)?)
        .map_err(|error| unwritable(path, &error))?;
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
        output::line(&format!(
            "Exported {} to {}.",
            output::counted(count, "record"),
            path.display()
        ));
    }
    Ok(())
}

fn line_of(value: &impl Serialize) -> Outcome<Vec<u8>> {
    let mut line = serde_json::to_vec(value)
        .map_err(|error| Failure::failed(format!("a record can not be written: {error}")))?;
    line.push(b'\n');
    Ok(line)
}

/// Takes over the records of a file that are not known yet and have not expired.
pub(super) async fn import(
    app: &App,
    store: &dyn DedupeStore,
    path: &Path,
    json: bool,
) -> Outcome<()> {
    // Twice: nothing is taken over from a file that is not whole.
    let records = count_records(path)?;
    let mut lines = Lines::open(path)?;
    lines.heading()?;
    let (mut restored, mut known, mut expired) = (0_u64, 0_u64, 0_u64);
    for _ in 0..records {
        let record: DedupeRecord = lines.next()?.ok_or_else(|| lines.wrong("is missing"))?;
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

/// How many records a whole file has. One that is not whole is an error.
fn count_records(path: &Path) -> Outcome<u64> {
    let mut lines = Lines::open(path)?;
    let mut chain = Chain::new();
    let heading = lines.heading()?;
    chain.add(&line_of(&heading)?);
    let mut records = 0;
    let mut last: Option<Vec<u8>> = None;
    while let Some(line) = lines.next_line()? {
        if let Some(record) = last.replace(line) {
            chain.add(&record);
            records += 1;
        }
    }
    if heading.version < VERSION_WITH_END {
        return Ok(records + u64::from(last.is_some()));
    }
    let end = last.and_then(|line| serde_json::from_slice::<End>(&line).ok());
    match end {
        Some(end) if end.kind == END_KIND && end.records == records && end.digest == chain.0 => {
            Ok(records)
        }
        Some(end) if end.kind == END_KIND => Err(lines.wrong(&format!(
            "says that {} other records stand before it: the file was changed",
            end.records
        ))),
        _ => Err(lines.wrong("is not the end of an export: the file was cut off")),
    }
}

/// The lines of a file, each a JSON value.
struct Lines<'a> {
    reader: BufReader<std::fs::File>,
    number: u64,
    path: &'a Path,
}

impl<'a> Lines<'a> {
    fn open(path: &'a Path) -> Outcome<Self> {
        let file = std::fs::File::open(path).map_err(|error| {
            Failure::usage(format!("{} can not be read: {error}", path.display()))
        })?;
        Ok(Self {
            reader: BufReader::new(file),
            number: 0,
            path,
        })
    }

    fn heading(&mut self) -> Outcome<Heading> {
        let heading: Heading = self.next()?.ok_or_else(|| self.wrong("is empty"))?;
        if heading.kind != KIND || heading.version > VERSION {
            return Err(self.wrong("is no export that this version can read"));
        }
        Ok(heading)
    }

    fn wrong(&self, why: &str) -> Failure {
        Failure::failed(format!(
            "{}, line {}: {why}",
            self.path.display(),
            self.number
        ))
    }

    fn next_line(&mut self) -> Outcome<Option<Vec<u8>>> {
        use std::io::Read;
        let mut line = Vec::new();
        let read = (&mut self.reader)
            .take(LINE_BYTES_MAX)
            .read_until(b'\n', &mut line)
            .map_err(|error| self.wrong(&error.to_string()))?;
        if read == 0 {
            return Ok(None);
        }
        self.number += 1;
        if line.last() != Some(&b'\n') {
            // A file that was cut off must not look like a whole one.
            return Err(self.wrong("is cut off"));
        }
        Ok(Some(line))
    }

    fn next<T: for<'de> Deserialize<'de>>(&mut self) -> Outcome<Option<T>> {
        let Some(line) = self.next_line()? else {
            return Ok(None);
        };
        let mut deserializer = serde_json::Deserializer::from_slice(&line);
        deserializer.disable_recursion_limit();
        T::deserialize(&mut deserializer)
            .map(Some)
            .map_err(|error| self.wrong(&error.to_string()))
    }
}
