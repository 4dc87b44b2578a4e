//! What the records take up.
//!
//! One row holds it. A transaction gathers what its operations add and take away, and writes the
//! row once, before the commit.

use std::cell::Cell;

use rusqlite::Connection;

use super::errors::StepResult;
use super::rows::from_sql_int;
use crate::store::StoreSize;

/// What one record counts for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Weight {
    pub(super) bytes: i64,
    pub(super) in_flight: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Change {
    records: i64,
    bytes: i64,
    in_flight: i64,
}

/// What a transaction changes.
#[derive(Debug, Clone, Default)]
pub(super) struct Usage {
    /// As it was before the transaction, once somebody has asked.
    before: Cell<Option<StoreSize>>,
    change: Cell<Change>,
}

impl Usage {
    /// Starts again, with a new transaction.
    pub(super) fn forget(&self) {
        self.set(&Self::default());
    }

    pub(super) fn set(&self, other: &Self) {
        self.before.set(other.before.get());
        self.change.set(other.change.get());
    }

    pub(super) fn add(&self, added: Weight) {
        self.count(added, 1);
    }

    pub(super) fn remove(&self, removed: Weight) {
        self.count(removed, -1);
    }

    fn count(&self, weight: Weight, sign: i64) {
        let change = self.change.get();
        self.change.set(Change {
            records: change.records + sign,
            bytes: change.bytes + sign * weight.bytes,
            in_flight: change.in_flight + sign * i64::from(weight.in_flight),
        });
    }

    /// As it stands inside the transaction.
    pub(super) fn now(&self, conn: &Connection) -> StepResult<StoreSize> {
        let before = match self.before.get() {
            Some(before) => before,
            None => stored(conn)?,
        };
        self.before.set(Some(before));
        let change = self.change.get();
        Ok(StoreSize {
            records: before.records.saturating_add_signed(change.records),
            bytes: before.bytes.saturating_add_signed(change.bytes),
            in_flight: before.in_flight.saturating_add_signed(change.in_flight),
        })
    }

    /// Writes what has changed.
    pub(super) fn store(&self, conn: &Connection) -> rusqlite::Result<()> {
        let change = self.change.get();
        if change == Change::default() {
            return Ok(());
        }
        conn.prepare_cached(
            "UPDATE records_usage SET records = records + ?1, bytes = bytes + ?2,
                 in_flight = in_flight + ?3",
        )?
        .execute((change.records, change.bytes, change.in_flight))?;
        Ok(())
    }
}

/// As of the last commit.
pub(super) fn stored(conn: &Connection) -> StepResult<StoreSize> {
    Ok(conn
        .prepare_cached("SELECT records, bytes, in_flight FROM records_usage")?
        .query_row([], |row| {
            Ok(StoreSize {
                records: from_sql_int(row.get(0)?),
                bytes: from_sql_int(row.get(1)?),
                in_flight: from_sql_int(row.get(2)?),
            })
        })?)
}
