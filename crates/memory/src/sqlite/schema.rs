//! The tables, and how older ones become these.

use holdfast_database::Schema;

/// The file says that it is a memory of ours with "HMEM".
pub(super) const SCHEMA: Schema = Schema {
    application_id: 0x484D_454D,
    migrations: &[VERSION_1],
};

/// Records are counted by triggers, so that no statement can forget it and a count is one look.
///
/// The words are indexed without a second copy of the text. Vectors have numbers of their own that
/// only ever grow: whoever knows up to which number it has seen them, and up to which entry the list of
/// removed ones, knows all of them by reading the rest.
const VERSION_1: &str = "
    CREATE TABLE memories (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        memory_type TEXT NOT NULL,
        content TEXT NOT NULL,
        metadata TEXT,
        session_id TEXT NOT NULL,
        created_at_ms INTEGER NOT NULL,
        trust TEXT NOT NULL,
        fingerprint BLOB NOT NULL
    ) STRICT;
    CREATE INDEX memories_by_time ON memories (created_at_ms, id);
    CREATE INDEX memories_by_fingerprint ON memories (fingerprint);

    CREATE TABLE memories_count (
        memory_type TEXT NOT NULL PRIMARY KEY,
        records INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TRIGGER memories_added AFTER INSERT ON memories BEGIN
        INSERT INTO memories_count VALUES (new.memory_type, 1)
        ON CONFLICT DO UPDATE SET records = records + 1;
    END;
    CREATE TRIGGER memories_gone AFTER DELETE ON memories BEGIN
        UPDATE memories_count SET records = records - 1 WHERE memory_type = old.memory_type;
    END;

    CREATE VIRTUAL TABLE memories_text USING fts5 (
        content,
        content = '',
        contentless_delete = 1,
        tokenize = 'porter unicode61 remove_diacritics 2'
    );

    CREATE TABLE models (
        model INTEGER PRIMARY KEY,
        name TEXT NOT NULL,
        dimensions INTEGER NOT NULL,
        UNIQUE (name, dimensions)
    ) STRICT;
    CREATE TABLE vectors (
        vector_id INTEGER PRIMARY KEY AUTOINCREMENT,
        seq INTEGER NOT NULL UNIQUE,
        model INTEGER NOT NULL,
        memory_type TEXT NOT NULL,
        factor REAL NOT NULL,
        steps BLOB NOT NULL
    ) STRICT;
    CREATE TABLE vectors_exact (
        vector_id INTEGER PRIMARY KEY,
        numbers BLOB NOT NULL
    ) STRICT;
    CREATE TABLE vectors_removed (
        n INTEGER PRIMARY KEY AUTOINCREMENT,
        vector_id INTEGER NOT NULL
    ) STRICT;
";
