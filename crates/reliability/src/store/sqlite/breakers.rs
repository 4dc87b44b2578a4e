//! Breakers: one row each, so that an outage seen by one process is known to the next.

use futures_util::FutureExt;
use rusqlite::{Connection, OptionalExtension};

use super::SqliteState;
use super::errors::StepResult;
use super::writer::{Durability, Step};
use crate::breaker::{
    BREAKERS_MAX, BreakerKey, BreakerOp, BreakerPolicy, BreakerState, BreakerStore, StepOutcome,
    Told, step as advance,
};
use crate::store::{StoreError, StoreFuture};

/// One step of one breaker, inside a transaction.
fn apply(
    step: &Step<'_>,
    key: &str,
    op: BreakerOp,
    policy: &BreakerPolicy,
) -> StepResult<StepOutcome> {
    let found = load(step.conn, key)?;
    let is_new = found.is_none();
    let mut state = found.unwrap_or_default();
    let outcome = advance(&mut state, op, policy, step.now_ms);
    if outcome.changed || is_new {
        if is_new && count(step.conn)? >= BREAKERS_MAX {
            let message = format!("{BREAKERS_MAX} circuit breakers are kept already");
            return Err(StoreError::Full(message).into());
        }
        step.conn
            .prepare_cached("INSERT OR REPLACE INTO breakers (key, state) VALUES (?1, ?2)")?
            .execute((key, serde_json::to_string(&state).unwrap_or_default()))?;
    }
    Ok(outcome)
}

/// A row that can not be read any more is a breaker that has seen nothing: closed.
fn load(conn: &Connection, key: &str) -> rusqlite::Result<Option<BreakerState>> {
    let text: Option<String> = conn
        .prepare_cached("SELECT state FROM breakers WHERE key = ?1")?
        .query_row([key], |row| row.get(0))
        .optional()?;
    Ok(text.map(|text| serde_json::from_str(&text).unwrap_or_default()))
}

fn count(conn: &Connection) -> rusqlite::Result<usize> {
    let rows: i64 = conn
        .prepare_cached("SELECT count(*) FROM breakers")?
        .query_row([], |row| row.get(0))?;
    Ok(usize::try_from(rows).unwrap_or(usize::MAX))
}

impl BreakerStore for SqliteState {
    fn apply<'a>(
        &'a self,
        key: &'a BreakerKey,
        op: BreakerOp,
        policy: &'a BreakerPolicy,
    ) -> StoreFuture<'a, StepOutcome> {
        let (key, policy) = (key.to_string(), policy.clone());
        self.write(Durability::Relaxed, move |step| {
            apply(step, &key, op.clone(), &policy)
        })
        .boxed()
        .into()
    }

    fn apply_detached(
        &self,
        key: &BreakerKey,
        op: BreakerOp,
        policy: &BreakerPolicy,
        told: Option<Told>,
    ) {
        let (key, policy) = (key.to_string(), policy.clone());
        // When even the detached queue is full, the probe's lease frees its place.
        self.write_detached(Durability::Relaxed, move |step| {
            let outcome = apply(step, &key, op.clone(), &policy)?;
            if let Some(told) = told.clone() {
                step.after_commit(move || told(&outcome));
            }
            Ok(())
        });
    }

    fn breakers(&self) -> StoreFuture<'_, Vec<(BreakerKey, BreakerState)>> {
        self.read(|conn| {
            let mut rows = conn.prepare("SELECT key, state FROM breakers ORDER BY key")?;
            let found = rows
                .query_map([], |row| {
                    Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
                })?
                .collect::<rusqlite::Result<Vec<_>>>()?;
            // A key of a newer version is passed over rather than failing the whole list.
            Ok(found
                .into_iter()
                .filter_map(|(key, state)| {
                    Some((
                        key.parse().ok()?,
                        serde_json::from_str(&state).unwrap_or_default(),
                    ))
                })
                .collect())
        })
        .boxed()
        .into()
    }
}
