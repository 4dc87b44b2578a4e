//! Reading beside the writer.

use std::sync::Arc;

use holdfast_database::connection::open_reader;
use parking_lot::Mutex;
use rusqlite::Connection;
use tokio::sync::Semaphore;

use super::Shared;
use super::errors::{StepResult, closed, explain_step};
use crate::store::{StoreError, StoreResult};

/// Reads at the same time; further ones wait. A write never waits for a read, nor a read for a write.
pub(crate) const READERS_MAX: usize = 4;

/// Connections that only read, opened when first needed.
pub(super) struct Readers {
    idle: Mutex<Vec<Connection>>,
    turns: Arc<Semaphore>,
}

impl Readers {
    pub(super) fn new() -> Self {
        Self {
            idle: Mutex::default(),
            turns: Arc::new(Semaphore::new(READERS_MAX)),
        }
    }
}

/// Reads on a thread that may block.
pub(super) async fn read<T, F>(shared: Arc<Shared>, look: F) -> StoreResult<T>
where
    T: Send + 'static,
    F: FnOnce(&Connection) -> StepResult<T> + Send + 'static,
{
    let turn = shared
        .readers
        .turns
        .clone()
        .acquire_owned()
        .await
        .map_err(|_| closed())?;
    let reading = tokio::task::spawn_blocking(move || {
        // Held until the end, also when the caller has gone by then.
        let _turn = turn;
        let idle = shared.readers.idle.lock().pop();
        let conn = match idle {
            Some(conn) => conn,
            None => open_reader(&shared.place, &shared.options.opening())?,
        };
        let found = look(&conn).map_err(|error| explain_step(&shared.place, error))?;
        // After an error the connection is dropped instead: the next read starts afresh.
        shared.readers.idle.lock().push(conn);
        Ok(found)
    });
    reading.await.unwrap_or_else(|error| {
        Err(StoreError::Unavailable(format!(
            "reading the store was cut short: {error}"
        )))
    })
}
