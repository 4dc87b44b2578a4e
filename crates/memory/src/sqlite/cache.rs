//! All vectors of one model in memory, kept up with what other processes write.

use holdfast_contract::MemoryType;
use rusqlite::{Connection, OptionalExtension, params};

use super::StepResult;
use crate::vector::{CodeIndex, Row};

/// The codes of one model, and how far they were read.
pub(super) struct Vectors {
    model: i64,
    pub(super) index: CodeIndex,
    seen: Marks,
}

/// How far the database is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Marks {
    /// The newest vector.
    vector_id: i64,
    /// The newest entry in the list of removed ones.
    removed: i64,
}

impl Marks {
    fn of(conn: &Connection) -> StepResult<Self> {
        // The sequences, not the greatest rows: the newest vector may be gone again.
        let mark = |table: &str| -> StepResult<i64> {
            let found = conn
                .prepare_cached("SELECT seq FROM sqlite_sequence WHERE name = ?1")?
                .query_row([table], |row| row.get(0))
                .optional()?;
            Ok(found.unwrap_or(0))
        };
        Ok(Self {
            vector_id: mark("vectors")?,
            removed: mark("vectors_removed")?,
        })
    }
}

impl Vectors {
    /// Whether these are this model's and as new as what `conn` sees, or newer.
    pub(super) fn is_current(&self, conn: &Connection, model: i64) -> StepResult<bool> {
        let now = Marks::of(conn)?;
        Ok(self.model == model
            && self.seen.vector_id >= now.vector_id
            && self.seen.removed >= now.removed)
    }

    /// These, brought up to date, or afresh when they can not be.
    pub(super) fn refreshed(
        old: Option<Self>,
        conn: &Connection,
        model: i64,
        dimensions: usize,
    ) -> StepResult<Self> {
        let now = Marks::of(conn)?;
        let usable = match old {
            Some(old) if old.model == model && old.can_catch_up(conn)? => Some(old),
            _ => None,
        };
        let mut vectors = usable.unwrap_or_else(|| Self {
            model,
            index: CodeIndex::new(dimensions),
            seen: Marks {
                vector_id: 0,
                removed: now.removed,
            },
        });
        vectors.take_out(conn)?;
        vectors.take_in(conn)?;
        vectors.seen.vector_id = vectors.seen.vector_id.max(now.vector_id);
        vectors.seen.removed = vectors.seen.removed.max(now.removed);
        Ok(vectors)
    }

    /// Whether the list of removed vectors still goes back far enough.
    fn can_catch_up(&self, conn: &Connection) -> StepResult<bool> {
        let oldest: Option<i64> = conn
            .prepare_cached("SELECT min(n) FROM vectors_removed")?
            .query_row([], |row| row.get(0))?;
        Ok(oldest.is_none_or(|oldest| oldest <= self.seen.removed + 1))
    }

    fn take_out(&mut self, conn: &Connection) -> StepResult<()> {
        let mut statement =
            conn.prepare_cached("SELECT vector_id FROM vectors_removed WHERE n > ?1 ORDER BY n")?;
        let mut rows = statement.query([self.seen.removed])?;
        while let Some(row) = rows.next()? {
            self.index.remove(row.get(0)?);
        }
        Ok(())
    }

    fn take_in(&mut self, conn: &Connection) -> StepResult<()> {
        let mut statement = conn.prepare_cached(
            "SELECT vector_id, memory_type, factor, steps, seq FROM vectors
             WHERE vector_id > ?1 AND model = ?2 ORDER BY vector_id",
        )?;
        let mut rows = statement.query(params![self.seen.vector_id, self.model])?;
        let mut steps: Vec<i8> = Vec::new();
        while let Some(row) = rows.next()? {
            let name = row.get_ref(1)?.as_str().unwrap_or_default();
            let Some(memory_type) = MemoryType::from_name(name) else {
                continue;
            };
            let bytes = row.get_ref(3)?.as_blob().unwrap_or_default();
            steps.clear();
            steps.extend(bytes.iter().map(|byte| byte.cast_signed()));
            #[expect(
                clippy::cast_possible_truncation,
                reason = "it was widened from single precision when it was stored"
            )]
            let factor = row.get::<_, f64>(2)? as f32;
            self.index.add(Row {
                vector_id: row.get(0)?,
                record: row.get(4)?,
                memory_type,
                steps: &steps,
                factor,
            });
        }
        Ok(())
    }
}
