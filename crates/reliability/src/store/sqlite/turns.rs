//! Turns of the loop guard: one row each, changed by compare-and-set.
//!
//! Processes that work on one turn at the same time are rare, and each loses at most a round.

use futures_util::FutureExt;
use rusqlite::{Connection, OptionalExtension};

use super::SqliteState;
use super::errors::StepResult;
use super::writer::{Durability, Step};
use crate::guard::{
    Advice, CallIdentity, Checked, GuardConfig, GuardStore, Observation, RecordMark, TURNS_MAX,
    TurnKey, TurnState,
};
use crate::store::{StoreError, StoreFuture, StoreResult};

/// Rounds of compare-and-set before giving up; each lost one means that somebody else won.
const ROUNDS_MAX: u32 = 64;

/// A turn as it stands.
struct Stored {
    state: TurnState,
    version: i64,
}

/// What tells turns apart in the table. The session may hold any character but this one.
fn row_key(turn: &TurnKey) -> String {
    match &turn.turn {
        Some(id) => format!("{}\u{1}{id}", turn.session),
        None => turn.session.clone(),
    }
}

fn load(conn: &Connection, key: &str, idle_ms_max: u64, now_ms: u64) -> StepResult<Stored> {
    let row: Option<(String, i64, i64)> = conn
        .prepare_cached("SELECT state, version, touched_at_ms FROM turns WHERE key = ?1")?
        .query_row([key], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    let Some((text, version, touched_at_ms)) = row else {
        return Ok(Stored {
            state: TurnState::default(),
            version: 0,
        });
    };
    let idle_ms = now_ms.saturating_sub(u64::try_from(touched_at_ms).unwrap_or(0));
    let state = if idle_ms > idle_ms_max {
        TurnState::default()
    } else {
        // A state of another version counts for nothing: a loop is then found a little later.
        serde_json::from_str(&text).unwrap_or_default()
    };
    Ok(Stored { state, version })
}

/// Stores the next version; `false` when somebody else did so first.
fn save(step: &Step<'_>, key: &str, state: &str, seen: i64) -> StepResult<bool> {
    let now_ms = i64::try_from(step.now_ms).unwrap_or(i64::MAX);
    let changed = if seen == 0 {
        let added = step
            .conn
            .prepare_cached(
                "INSERT INTO turns (key, state, version, touched_at_ms) VALUES (?1, ?2, 1, ?3)
                 ON CONFLICT (key) DO NOTHING",
            )?
            .execute((key, state, now_ms))?;
        step.conn
            .prepare_cached(
                "DELETE FROM turns WHERE key IN
                 (SELECT key FROM turns ORDER BY touched_at_ms DESC LIMIT -1 OFFSET ?1)",
            )?
            .execute([i64::try_from(TURNS_MAX).unwrap_or(i64::MAX)])?;
        added
    } else {
        step.conn
            .prepare_cached(
                "UPDATE turns SET state = ?2, version = version + 1, touched_at_ms = ?3
                 WHERE key = ?1 AND version = ?4",
            )?
            .execute((key, state, now_ms, seen))?
    };
    Ok(changed == 1)
}

impl SqliteState {
    async fn load_turn(&self, turn: &TurnKey) -> StoreResult<Stored> {
        let (key, idle_ms_max) = (row_key(turn), turn.idle_ms_max());
        let now_ms = self.shared.clock.now_ms();
        self.read(move |conn| load(conn, &key, idle_ms_max, now_ms))
            .await
    }

    async fn save_turn(&self, turn: &TurnKey, stored: &Stored) -> StoreResult<bool> {
        let (key, seen) = (row_key(turn), stored.version);
        let text = serde_json::to_string(&stored.state).unwrap_or_default();
        self.write(Durability::Relaxed, move |step| {
            save(step, &key, &text, seen)
        })
        .await
    }

    /// Changes a turn, and hands out what the change says.
    async fn change_turn<T>(
        &self,
        turn: &TurnKey,
        change: impl Fn(&mut TurnState) -> T,
    ) -> StoreResult<T> {
        for _ in 0..ROUNDS_MAX {
            let mut stored = self.load_turn(turn).await?;
            let before = stored.state.clone();
            let said = change(&mut stored.state);
            if stored.state == before || self.save_turn(turn, &stored).await? {
                return Ok(said);
            }
        }
        Err(StoreError::Unavailable(
            "too many processes work on this turn at once".to_owned(),
        ))
    }
}

impl GuardStore for SqliteState {
    fn check<'a>(
        &'a self,
        turn: &'a TurnKey,
        call: &'a CallIdentity<'a>,
        config: &'a GuardConfig,
    ) -> StoreFuture<'a, Checked> {
        async move {
            let stored = self.load_turn(turn).await?;
            Ok(Checked::of(&stored.state, call, config))
        }
        .boxed()
        .into()
    }

    fn observe<'a>(
        &'a self,
        turn: &'a TurnKey,
        call: &'a CallIdentity<'a>,
        observation: Observation<'a>,
        took_ms: u64,
        config: &'a GuardConfig,
    ) -> StoreFuture<'a, Advice> {
        let observed = async move {
            self.change_turn(turn, |state| {
                state.passed(took_ms);
                state.observe(call, &observation, config)
            })
            .await
        };
        observed.boxed().into()
    }

    fn delivered<'a>(&'a self, turn: &'a TurnKey, record: RecordMark) -> StoreFuture<'a, ()> {
        async move {
            self.change_turn(turn, |state| state.delivered(record))
                .await
        }
        .boxed()
        .into()
    }

    fn end_turn<'a>(&'a self, turn: &'a TurnKey) -> StoreFuture<'a, ()> {
        let key = row_key(turn);
        self.write(Durability::Relaxed, move |step| {
            step.conn
                .prepare_cached("DELETE FROM turns WHERE key = ?1")?
                .execute([&key])?;
            Ok(())
        })
        .boxed()
        .into()
    }
}
