//! Turns in memory.

use std::num::NonZeroUsize;
use std::sync::Arc;

use holdfast_contract::Clock;
use lru::LruCache;
use parking_lot::Mutex;

use crate::guard::{
    Advice, CallIdentity, Checked, GuardConfig, GuardStore, Observation, RecordMark, TURNS_MAX,
    TurnKey, TurnState,
};
use crate::store::StoreFuture;

struct Turn {
    state: TurnState,
    touched_at_ms: u64,
}

/// The turns of one process.
pub struct MemoryGuardStore {
    clock: Arc<dyn Clock>,
    turns: Mutex<LruCache<TurnKey, Turn>>,
}

impl MemoryGuardStore {
    /// No turns yet.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let turns_max = NonZeroUsize::new(TURNS_MAX).unwrap_or(NonZeroUsize::MIN);
        Self {
            clock,
            turns: Mutex::new(LruCache::new(turns_max)),
        }
    }

    /// Works on a turn that has not ended by being quiet for too long.
    fn with_turn<T>(&self, key: &TurnKey, work: impl FnOnce(&mut TurnState) -> T) -> T {
        let now_ms = self.clock.now_ms();
        let mut turns = self.turns.lock();
        let turn = turns.get_or_insert_mut_ref(key, || Turn {
            state: TurnState::default(),
            touched_at_ms: now_ms,
        });
        if now_ms.saturating_sub(turn.touched_at_ms) > key.idle_ms_max() {
            turn.state = TurnState::default();
        }
        turn.touched_at_ms = now_ms;
        work(&mut turn.state)
    }
}

impl GuardStore for MemoryGuardStore {
    fn check<'a>(
        &'a self,
        turn: &'a TurnKey,
        call: &'a CallIdentity<'a>,
        config: &'a GuardConfig,
    ) -> StoreFuture<'a, Checked> {
        StoreFuture::ready(Ok(
            self.with_turn(turn, |state| Checked::of(state, call, config))
        ))
    }

    fn observe<'a>(
        &'a self,
        turn: &'a TurnKey,
        call: &'a CallIdentity<'a>,
        observation: Observation<'a>,
        took_ms: u64,
        config: &'a GuardConfig,
    ) -> StoreFuture<'a, Advice> {
        StoreFuture::ready(Ok(self.with_turn(turn, |state| {
            state.passed(took_ms);
            state.observe(call, &observation, config)
        })))
    }

    fn delivered<'a>(&'a self, turn: &'a TurnKey, record: RecordMark) -> StoreFuture<'a, ()> {
        self.with_turn(turn, |state| state.delivered(record));
        StoreFuture::ready(Ok(()))
    }

    fn end_turn<'a>(&'a self, turn: &'a TurnKey) -> StoreFuture<'a, ()> {
        self.turns.lock().pop(turn);
        StoreFuture::ready(Ok(()))
    }
}
