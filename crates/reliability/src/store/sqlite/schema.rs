//! The tables, and how older ones become these.

use holdfast_database::Schema;

/// The file says that it is ours with "HOLD".
pub(super) const SCHEMA: Schema = Schema {
    application_id: 0x484F_4C44,
    migrations: &[VERSION_1, VERSION_2, VERSION_3, VERSION_4],
};

/// `body` is the whole record as JSON and the truth about it. The other columns repeat what has to
/// be found by SQL; numbers beyond `SQLite`'s integers are cut there and whole in the body.
const VERSION_1: &str = "
    CREATE TABLE records (
        id INTEGER PRIMARY KEY,
        key BLOB NOT NULL UNIQUE,
        state TEXT NOT NULL,
        updated_at_ms INTEGER NOT NULL,
        expires_at_ms INTEGER NOT NULL,
        lock_until_ms INTEGER,
        version INTEGER NOT NULL,
        owner TEXT NOT NULL,
        session_key TEXT NOT NULL,
        tool TEXT NOT NULL,
        content_key BLOB,
        lock_file TEXT,
        bytes INTEGER NOT NULL,
        body TEXT NOT NULL
    ) STRICT;
    CREATE INDEX records_by_session ON records (session_key);
    CREATE INDEX records_by_tool ON records (tool);
    CREATE INDEX records_by_expiry ON records (expires_at_ms);
    CREATE INDEX records_by_content ON records (content_key, updated_at_ms)
        WHERE content_key IS NOT NULL;
    CREATE INDEX records_in_flight ON records (id) WHERE state = 'inflight';
    CREATE INDEX records_evictable ON records (updated_at_ms)
        WHERE state IN ('done', 'failed', 'cancelled');

    -- What the records take up, kept by triggers so that no statement can forget it.
    CREATE TABLE records_usage (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        records INTEGER NOT NULL,
        bytes INTEGER NOT NULL
    ) STRICT;
    INSERT INTO records_usage VALUES (1, 0, 0);
    CREATE TRIGGER records_added AFTER INSERT ON records BEGIN
        UPDATE records_usage SET records = records + 1, bytes = bytes + new.bytes;
    END;
    CREATE TRIGGER records_removed AFTER DELETE ON records BEGIN
        UPDATE records_usage SET records = records - 1, bytes = bytes - old.bytes;
    END;
    CREATE TRIGGER records_resized AFTER UPDATE OF bytes ON records WHEN old.bytes <> new.bytes BEGIN
        UPDATE records_usage SET bytes = bytes + new.bytes - old.bytes;
    END;
";

/// Breakers and turns are small JSON states; the journal keeps the last calls in their order.
const VERSION_2: &str = "
    CREATE TABLE breakers (
        key TEXT NOT NULL PRIMARY KEY,
        state TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE turns (
        key TEXT NOT NULL PRIMARY KEY,
        state TEXT NOT NULL,
        version INTEGER NOT NULL,
        touched_at_ms INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX turns_by_touch ON turns (touched_at_ms);
    CREATE TABLE calls (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        request_id TEXT NOT NULL,
        body TEXT NOT NULL
    ) STRICT;
    CREATE INDEX calls_by_request ON calls (request_id);
";

/// What the records take up is counted by the writer from here on, once a transaction, instead of by
/// triggers on every row and an index for the count. And `IN` with three values or more, in
/// the condition of an index, has every write build a table of them; `OR` does not.
const VERSION_3: &str = "
    DROP TRIGGER records_added;
    DROP TRIGGER records_removed;
    DROP TRIGGER records_resized;
    DROP INDEX records_in_flight;
    DROP INDEX records_evictable;
    CREATE INDEX records_evictable ON records (updated_at_ms)
        WHERE state = 'done' OR state = 'failed' OR state = 'cancelled';
    ALTER TABLE records_usage ADD COLUMN in_flight INTEGER NOT NULL DEFAULT 0;
    UPDATE records_usage SET in_flight = (SELECT count(*) FROM records WHERE state = 'inflight');
";

/// Documents: approvals, rules, sessions, and whatever else is small and has to be durable.
const VERSION_4: &str = "
    CREATE TABLE documents (
        kind TEXT NOT NULL,
        id TEXT NOT NULL,
        \"group\" TEXT NOT NULL,
        version INTEGER NOT NULL,
        body TEXT NOT NULL,
        created_at_ms INTEGER NOT NULL,
        updated_at_ms INTEGER NOT NULL,
        expires_at_ms INTEGER,
        PRIMARY KEY (kind, id)
    ) STRICT;
    CREATE INDEX documents_by_group ON documents (kind, \"group\", id);
    CREATE INDEX documents_by_expiry ON documents (expires_at_ms) WHERE expires_at_ms IS NOT NULL;
";
