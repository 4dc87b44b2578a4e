//! The journal: what became of the last calls, for `holdfast explain`.

use futures_util::FutureExt;

use super::SqliteState;
use super::writer::Durability;
use crate::journal::{JOURNAL_CALLS_MAX, Journal, JournalEntry};
use crate::store::StoreFuture;

impl Journal for SqliteState {
    fn append(&self, entry: JournalEntry) {
        let body = serde_json::to_string(&entry).unwrap_or_default();
        // Best effort: a journal that can not keep up must not slow calls down.
        self.write_detached(Durability::Relaxed, move |step| {
            step.conn
                .prepare_cached("INSERT INTO calls (request_id, body) VALUES (?1, ?2)")?
                .execute((&entry.request_id, &body))?;
            step.conn
                .prepare_cached("DELETE FROM calls WHERE id <= (SELECT max(id) FROM calls) - ?1")?
                .execute([i64::try_from(JOURNAL_CALLS_MAX).unwrap_or(i64::MAX)])?;
            Ok(())
        });
    }

    fn find<'a>(
        &'a self,
        request_prefix: &'a str,
        limit: usize,
    ) -> StoreFuture<'a, Vec<JournalEntry>> {
        let prefix = request_prefix.to_owned();
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.read(move |conn| {
            // substr, not LIKE: a request id may hold the signs that LIKE takes for wildcards.
            let mut rows = conn.prepare(if prefix.is_empty() {
                "SELECT body FROM calls WHERE ?1 = '' ORDER BY id DESC LIMIT ?2"
            } else {
                "SELECT body FROM calls WHERE id IN
                     (SELECT max(id) FROM calls WHERE substr(request_id, 1, length(?1)) = ?1
                      GROUP BY request_id)
                 ORDER BY request_id = ?1 DESC, id DESC LIMIT ?2"
            })?;
            let found = rows
                .query_map((&prefix, limit), |row| row.get::<_, String>(0))?
                .collect::<rusqlite::Result<Vec<_>>>()?;
            Ok(found
                .iter()
                .filter_map(|body| serde_json::from_str(body).ok())
                .collect())
        })
        .boxed()
        .into()
    }
}
