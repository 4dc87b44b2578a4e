//! Sessions in a database of `SQLite`: `OpenClaw`'s and Crush's, read and repaired, and Goose's, which is
//! only read.
//!
//! `OpenClaw` has one for each agent, with the events of all its sessions. The events are the entries
//! that older versions wrote as lines, one a row, larger ones compressed. Reading never writes. Repair
//! happens in one transaction, after an online backup, and only when nobody has the database open: a
//! gateway keeps projections of the rows in memory.

mod crush;
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
    /// Nobody but its agent writes it.
    #[error(
        "left alone: Holdfast does not write Goose's database; Goose itself drops what does not \
         belong whenever it sends a session"
    )]
    OnlyRead,
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
    /// The format of its entries.
    pub format: Format,
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
        check(&self.index, adapter(self.format).pairing())
    }

    /// The same in words. `store` is the file that it is in.
    pub fn findings(&self, store: &Path) -> io::Result<Vec<Finding>> {
        let words = Words {
            file: &format!("{}#{}", store.display(), self.id),
            format: self.format,
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
        plan(&self.index, adapter(self.format).pairing(), strategy)
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
    /// Whose it is.
    format: Format,
    has_compression: bool,
}

/// What is read of the table that Crush keeps its messages in.
const CRUSH_MESSAGE: &str = r#"'{"id":' || json_quote(id) || ',"role":' || json_quote(role) || ',"model":' || json_quote(model) || ',"created_at":' || created_at || ',"parts":' || parts || '}'"#;

/// A message of Goose's, as it exports it: other columns are beside what it says.
const GOOSE_MESSAGE: &str = r#"'{"role":' || json_quote(role) || ',"created":' || coalesce(created_timestamp, 0) || ',"content":' || content_json || ',"metadata":' || coalesce(nullif(metadata_json, ''), 'null') || '}'"#;

impl Store {
    /// Opens a store to read.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        Self::with(Connection::open_with_flags(path, flags)?)
    }

    fn with(connection: Connection) -> Result<Self, StoreError> {
        connection.busy_timeout(BUSY)?;
        let format = if has_table(&connection, "transcript_events")? {
            Format::OpenClaw
        } else if has_columns(&connection, "messages", &["session_id", "content_json"])? {
            Format::Goose
        } else if has_columns(&connection, "messages", &["session_id", "parts", "model"])? {
            Format::Crush
        } else {
            for (table, column, name) in DATABASES {
                if has_column(&connection, table, column)? {
                    return Err(StoreError::NotUnderstood(name));
                }
            }
            return Err(StoreError::NoTranscripts);
        };
        let has_compression = has_column(&connection, "transcript_events", "event_zstd")?;
        Ok(Self {
            connection,
            format,
            has_compression,
        })
    }

    /// The format of its sessions' entries.
    pub const fn format(&self) -> Format {
        self.format
    }

    /// The ids of its sessions.
    pub fn sessions(&self) -> Result<Vec<String>, StoreError> {
        let table = match self.format {
            Format::OpenClaw => "transcript_events",
            _ => "messages",
        };
        let sql = format!("SELECT DISTINCT session_id FROM {table} ORDER BY session_id");
        let mut statement = self.connection.prepare(&sql)?;
        let ids = statement.query_map([], |row| row.get(0))?;
        Ok(ids.collect::<Result<_, _>>()?)
    }

    /// Reads a session.
    pub fn session(&self, id: &str) -> Result<StoredSession, StoreError> {
        let session = read_session(&self.connection, self.format, self.has_compression, id)?;
        match session.index.strange() {
            // Calls that were passed over, and none that was read.
            Some(name) if session.index.items().next().is_none() => {
                Err(StoreError::NotUnderstood(name))
            }
            _ => Ok(StoredSession {
                key: self.key(id)?,
                ..session
            }),
        }
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

/// Reads a session's rows in the order in which its agent does.
fn read_session(
    connection: &Connection,
    format: Format,
    has_compression: bool,
    id: &str,
) -> Result<StoredSession, StoreError> {
    let (what, order) = match (format, has_compression) {
        (Format::Goose, _) => (format!("id, {GOOSE_MESSAGE}, NULL FROM messages"), "id"),
        (Format::Crush, _) => {
            let what = format!("rowid, {CRUSH_MESSAGE}, NULL FROM messages");
            (what, "created_at, rowid")
        }
        (_, true) => {
            let what = "seq, event_json, event_zstd FROM transcript_events";
            (what.to_owned(), "seq")
        }
        (_, false) => (
            "seq, event_json, NULL FROM transcript_events".to_owned(),
            "seq",
        ),
    };
    let sql = format!("SELECT {what} WHERE session_id = ?1 ORDER BY {order}");
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query([id])?;
    let mut session = StoredSession {
        id: id.to_owned(),
        key: None,
        format,
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
            let seen = read::entry(session.format, &text);
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

fn has_columns(
    connection: &Connection,
    table: &str,
    names: &[&str],
) -> Result<bool, rusqlite::Error> {
    for name in names {
        if !has_column(connection, table, name)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn has_column(connection: &Connection, table: &str, name: &str) -> Result<bool, rusqlite::Error> {
    let sql = "SELECT 1 FROM pragma_table_info(?1) WHERE name = ?2";
    connection.prepare_cached(sql)?.exists([table, name])
}
