//! Out to a file, and back in.
//!
//! An export is one JSON object a line. The first line says what it is: the version of the format,
//! when and for which agent it was made, which types of records it holds and how many. Every later
//! line is a record, oldest first, so that two exports of the same records are the same bytes.
//!
//! A newer Holdfast reads all older versions: [`mod@format`] takes each line through pure functions, one
//! for each step from a version to the next.

use std::io::{BufRead, Write};

use holdfast_contract::memory::MemoryResult;
use holdfast_contract::time::rfc3339;
use holdfast_contract::{MemoryError, MemoryRecord, MemoryStore, Trust};

use crate::backend::{Snapshot, is_equal};
use crate::memory::Memory;

pub mod format;
mod lines;

pub use format::{FORMAT_VERSION, Header};
pub use lines::{EXPORT_LINE_BYTES_MAX, ImportReader, LineError};

/// Records that are put in at once.
pub const IMPORT_BATCH: usize = 1_000;
/// Records that are read at once for an export.
const EXPORT_BATCH: usize = 1_000;

/// Why records could not be moved.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// The memory itself.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// A line of the file.
    #[error(transparent)]
    Line(#[from] LineError),
    /// The file can not be written.
    #[error("the export can not be written: {0}")]
    Write(#[source] std::io::Error),
}

/// What an import did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Imported {
    /// New records.
    pub added: u64,
    /// Records that were there already.
    pub unchanged: u64,
    /// Ids that were there already with other content; what was there has stayed.
    pub conflicting: Vec<String>,
    /// How many of those have another trust, and else nothing that differs.
    pub other_trust: u64,
    /// New records whose trust the file puts higher than it may, and that have the highest it may.
    pub lowered: u64,
}

impl Imported {
    /// Puts records in, and counts what became of them.
    async fn put(
        &mut self,
        store: &dyn MemoryStore,
        records: Vec<MemoryRecord>,
    ) -> MemoryResult<()> {
        let without_vector = |record: &MemoryRecord| MemoryRecord {
            id: record.id.clone(),
            content: record.content.clone(),
            metadata: record.metadata.clone(),
            session_id: record.session_id.clone(),
            embedding: None,
            ..*record
        };
        let offered: Vec<MemoryRecord> = records.iter().map(without_vector).collect();
        let inserted = store.insert(records).await?;
        for id in &inserted.conflicting {
            let (Some(offered), Some(known)) =
                (offered.iter().find(|it| it.id == *id), store.get(id).await?)
            else {
                continue;
            };
            let trusted_alike = MemoryRecord {
                trust: known.trust,
                ..offered.clone()
            };
            self.other_trust += u64::from(is_equal(&trusted_alike, &known));
        }
        self.added += inserted.added;
        self.unchanged += inserted.unchanged;
        self.conflicting.extend(inserted.conflicting);
        Ok(())
    }
}

/// How far a transfer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Records so far.
    pub records: u64,
    /// Records in all, when that is known.
    pub total: Option<u64>,
}

impl Memory {
    /// A view of everything as it is now, for [`export`].
    pub async fn snapshot(&self) -> MemoryResult<Box<dyn Snapshot>> {
        self.backend.snapshot().await
    }
}

/// Writes all records of a snapshot; says how many. Blocks.
pub fn export(
    snapshot: &mut dyn Snapshot,
    agent: &str,
    now_ms: u64,
    out: &mut dyn Write,
    mut tell: impl FnMut(Progress),
) -> Result<u64, TransferError> {
    let counts = snapshot.counts()?;
    let total = counts.values().sum();
    let header = Header {
        schema_version: FORMAT_VERSION,
        exported_at: rfc3339(now_ms),
        agent: agent.to_owned(),
        record_types: counts.into_keys().collect(),
        records: Some(total),
    };
    write_line(out, &header)?;
    let mut records = 0;
    loop {
        let batch = snapshot.next(EXPORT_BATCH)?;
        if batch.is_empty() {
            break;
        }
        for record in &batch {
            write_line(out, &format::to_wire(record))?;
        }
        records += batch.len() as u64;
        tell(Progress {
            records,
            total: Some(total),
        });
    }
    out.flush().map_err(TransferError::Write)?;
    Ok(records)
}

fn write_line(out: &mut dyn Write, value: &impl serde::Serialize) -> Result<(), TransferError> {
    let failed = |error| TransferError::Write(error);
    let line = serde_json::to_vec(value).map_err(|error| failed(error.into()))?;
    out.write_all(&line).map_err(failed)?;
    out.write_all(b"\n").map_err(failed)
}

/// Reads a file into a memory, batch by batch. Records that are there already stay as they are, so
/// an import that was cut short can simply be made again.
///
/// No record is trusted more than `trust_max`, the trust of whoever brings the file: what it says of
/// itself can lower its trust and not raise it.
pub async fn import(
    store: &dyn MemoryStore,
    source: impl BufRead,
    trust_max: Trust,
    mut tell: impl FnMut(Progress),
) -> Result<Imported, TransferError> {
    let mut reader = ImportReader::new(source)?;
    let total = reader.header().records;
    let mut done = Imported::default();
    let mut records = 0;
    loop {
        let mut batch = Vec::with_capacity(IMPORT_BATCH);
        // Apart from the others, because only those of them that are new count.
        let mut lowered = Vec::new();
        let mut broken = None;
        while batch.len() + lowered.len() < IMPORT_BATCH {
            match reader.next() {
                None => break,
                Some(Ok(record)) if record.trust > trust_max => lowered.push(MemoryRecord {
                    trust: trust_max,
                    ..record
                }),
                Some(Ok(record)) => batch.push(record),
                Some(Err(error)) => {
                    broken = Some(error);
                    break;
                }
            }
        }
        let read = batch.len() + lowered.len();
        let is_last = read < IMPORT_BATCH;
        records += read as u64;
        done.put(store, batch).await?;
        if !lowered.is_empty() {
            let before = done.added;
            done.put(store, lowered).await?;
            done.lowered += done.added - before;
        }
        tell(Progress { records, total });
        if let Some(error) = broken {
            // What came before it is in, and is told to be there when the file is mended.
            return Err(error.after(records).into());
        }
        if is_last {
            return Ok(done);
        }
    }
}
