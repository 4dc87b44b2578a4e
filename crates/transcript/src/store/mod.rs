//! `OpenClaw`'s current store: a database of `SQLite` for each agent, with the events of all its sessions.
//!
//! The events are the entries that older versions wrote as lines, one a row, larger ones compressed.
//! Reading never writes. Repair happens in one transaction, after an online backup, and only when
//! no gateway has the database open: it keeps projections of the rows in memory.

mod repair;

use std::fs;
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

pub use repair::{StoreRepaired, repair_store};
use rusqlite::{Connection, OpenFlags, OptionalExtension};

use crate::adapter::adapter;
use crate::check::{Found, check};
use crate::finding::{Finding, Words};
use crate::foreign::DATABASES;
use crate::format::Format;
use crate::index::{Index, Number, TooLong};
use crate::json::Invalid;
use crate::limits::ROW_BYTES_MAX;
use crate::plan::{Plan, Strategy, plan};
use crate::read;
use crate::render::Texts;
use crate::write::{Live, Tail};

/// The first bytes of every database of `SQLite`.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
/// How long a reader waits for a writer.
const BUSY: Duration = Duration::from_secs(2);

/// Whether a file is a database of `SQLite`.
pub fn is_store(path: &Path) -> io::Result<bool> {
    let mut magic = [0; MAGIC.len()];
    match fs::File::open(path)?.read_exact(&mut magic) {
        Ok(()) => Ok(&magic == MAGIC),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// Why a store can not be read or repaired.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database says no.
    #[error("can not be read: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// The operating system says no.
    #[error("can not be read: {0}")]
    Io(#[from] io::Error),
    /// It has no transcripts.
    #[error("is a database without transcripts")]
    NoTranscripts,
    /// It has sessions of another agent.
    #[error("is not understood: it holds {0}, and Holdfast can not read their calls")]
    NotUnderstood(&'static str),
    /// A session is too long.
    #[error(transparent)]
    TooLong(#[from] TooLong),
    /// Somebody uses it.
    #[error("left alone: {0}")]
    Live(#[from] Live),
    /// What was written is not what was meant to be.
    #[error("the repaired session {0} still has faults; nothing was changed")]
    NotMended(String),
}

/// One session of a store, in memory.
#[derive(Debug)]
pub struct StoredSession {
    /// Its id.
    pub id: String,
    /// Its key, such as `agent:main:main`, where the store knows it.
    pub key: Option<String>,
    /// Its entries; their offsets are the rows' sequence numbers.
    pub index: Index,
    texts: Vec<Vec<u8>>,
}

impl StoredSession {
    /// The session, when it is known what its end is.
    #[must_use]
    pub const fn ending(mut self, tail: Tail) -> Self {
        tail.close(&mut self.index);
        self
    }

    /// What is wrong with it.
    pub fn check(&self) -> Vec<Found> {
        check(&self.index, adapter(Format::OpenClaw).pairing())
    }

    /// The same in words. `store` is the file that it is in.
    pub fn findings(&self, store: &Path) -> io::Result<Vec<Finding>> {
        let words = Words {
            file: &format!("{}#{}", store.display(), self.id),
            format: Format::OpenClaw,
            index: &self.index,
        };
        words.findings(&self.check(), |_, number, text| {
            text.extend_from_slice(self.text(number));
            Ok(())
        })
    }

    /// The text of an entry.
    pub fn text(&self, number: Number) -> &[u8] {
        self.texts.get(number as usize).map_or(&[], Vec::as_slice)
    }

    /// What a strategy would change.
    pub fn plan(&self, strategy: Strategy) -> Plan {
        plan(&self.index, adapter(Format::OpenClaw).pairing(), strategy)
    }

    pub(crate) fn texts(&self) -> impl Texts + '_ {
        InMemory(&self.texts)
    }
}

struct InMemory<'t>(&'t [Vec<u8>]);

impl Texts for InMemory<'_> {
    fn beginning(&mut self, number: Number, bytes_max: usize) -> io::Result<(Vec<u8>, u64)> {
        let text = self.0.get(number as usize);
        let text = text.ok_or_else(|| io::Error::other("no such row"))?;
        Ok((
            text[..bytes_max.min(text.len())].to_vec(),
            text.len() as u64,
        ))
    }
}

/// A store, open to read.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    has_compression: bool,
}

impl Store {
    /// Opens a store to read.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        Self::with(Connection::open_with_flags(path, flags)?)
    }

    fn with(connection: Connection) -> Result<Self, StoreError> {
        connection.busy_timeout(BUSY)?;
        if !has_table(&connection, "transcript_events")? {
            for (table, column, name) in DATABASES {
                if has_column(&connection, table, column)? {
                    return Err(StoreError::NotUnderstood(name));
                }
            }
            return Err(StoreError::NoTranscripts);
        }
        let has_compression = has_column(&connection, "transcript_events", "event_zstd")?;
        Ok(Self {
            connection,
            has_compression,
        })
    }

    /// The ids of its sessions.
    pub fn sessions(&self) -> Result<Vec<String>, StoreError> {
        let mut statement = self
            .connection
            .prepare("SELECT DISTINCT session_id FROM transcript_events ORDER BY session_id")?;
        let ids = statement.query_map([], |row| row.get(0))?;
        Ok(ids.collect::<Result<_, _>>()?)
    }

    /// Reads a session.
    pub fn session(&self, id: &str) -> Result<StoredSession, StoreError> {
        let sql = if self.has_compression {
            "SELECT seq, event_json, event_zstd FROM transcript_events WHERE session_id = ?1 ORDER BY seq"
        } else {
            "SELECT seq, event_json, NULL FROM transcript_events WHERE session_id = ?1 ORDER BY seq"
        };
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query([id])?;
        let mut session = StoredSession {
            id: id.to_owned(),
            key: self.key(id)?,
            index: Index::default(),
            texts: Vec::new(),
        };
        while let Some(row) = rows.next()? {
            let seq: i64 = row.get(0)?;
            let plain = row.get_ref(1)?.as_bytes_or_null().ok().flatten();
            let packed = row.get_ref(2)?.as_blob_or_null().ok().flatten();
            let text = match (plain, packed) {
                (Some(text), _) => Ok(text.to_vec()),
                (None, Some(packed)) => unpack(packed),
                (None, None) => Err(Invalid::new(0, "a row without an event")),
            };
            push(&mut session, seq.cast_unsigned(), text)?;
        }
        Ok(session)
    }

    fn key(&self, id: &str) -> Result<Option<String>, StoreError> {
        if !has_table(&self.connection, "session_windows")? {
            return Ok(None);
        }
        let sql = "SELECT session_key FROM session_windows WHERE session_id = ?1";
        let key = self.connection.query_row(sql, [id], |row| row.get(0));
        Ok(key.optional()?)
    }
}

fn unpack(packed: &[u8]) -> Result<Vec<u8>, Invalid> {
    let wrong = |_| Invalid::new(0, "a compressed row that can not be unpacked");
    let decoder = zstd::Decoder::with_buffer(packed).map_err(wrong)?;
    let mut text = Vec::new();
    let mut bounded = decoder.take(ROW_BYTES_MAX as u64 + 1);
    bounded.read_to_end(&mut text).map_err(wrong)?;
    if text.len() > ROW_BYTES_MAX {
        return Err(Invalid::new(ROW_BYTES_MAX, "a row that is too large"));
    }
    Ok(text)
}

fn push(
    session: &mut StoredSession,
    seq: u64,
    text: Result<Vec<u8>, Invalid>,
) -> Result<(), StoreError> {
    let (text, read) = match text {
        Ok(text) => {
            let seen = read::entry(Format::OpenClaw, &text);
            (text, seen)
        }
        Err(why) => (Vec::new(), Err(why)),
    };
    match read {
        Ok(seen) => session.index.push(seq, &text, &seen)?,
        Err(why) => {
            let len = u32::try_from(text.len()).unwrap_or(u32::MAX);
            session.index.push_invalid(seq, len, why)?;
        }
    }
    session.texts.push(text);
    Ok(())
}

fn has_table(connection: &Connection, name: &str) -> Result<bool, rusqlite::Error> {
    let sql = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1";
    connection.prepare_cached(sql)?.exists([name])
}

fn has_column(connection: &Connection, table: &str, name: &str) -> Result<bool, rusqlite::Error> {
    let sql = "SELECT 1 FROM pragma_table_info(?1) WHERE name = ?2";
    connection.prepare_cached(sql)?.exists([table, name])
}
