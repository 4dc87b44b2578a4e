//! Breakers that are not closed, as far as a process knows.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use crate::breaker::{BreakerKey, CircuitBreakerState};

/// As many as a store keeps, at most.
#[derive(Default)]
pub(super) struct ShutBreakers(Mutex<BTreeMap<BreakerKey, CircuitBreakerState>>);

impl ShutBreakers {
    /// One has changed.
    pub(super) fn set(&self, key: &BreakerKey, state: CircuitBreakerState) {
        let mut shut = self.0.lock();
        if state == CircuitBreakerState::Closed {
            shut.remove(key);
        } else {
            shut.insert(key.clone(), state);
        }
    }

    /// All of them, as a store has them; hands out those from before. What the store has no more is
    /// closed.
    pub(super) fn replace(
        &self,
        all: impl IntoIterator<Item = (BreakerKey, CircuitBreakerState)>,
    ) -> Vec<BreakerKey> {
        let is_shut =
            |(_, state): &(BreakerKey, CircuitBreakerState)| *state != CircuitBreakerState::Closed;
        let all = all.into_iter().filter(is_shut).collect();
        std::mem::replace(&mut *self.0.lock(), all)
            .into_keys()
            .collect()
    }

    /// The worst state among these.
    pub(super) fn worst(&self, of: impl Fn(&BreakerKey) -> bool) -> CircuitBreakerState {
        let shut = self.0.lock();
        let states = shut.iter().filter(|(key, _)| of(key)).map(|(_, it)| *it);
        states
            .max_by_key(|state| severity(*state))
            .unwrap_or(CircuitBreakerState::Closed)
    }
}

/// How bad a state is for those who call.
fn severity(state: CircuitBreakerState) -> u8 {
    match state {
        CircuitBreakerState::Closed => 0,
        CircuitBreakerState::HalfOpen => 1,
        CircuitBreakerState::Open => 2,
        CircuitBreakerState::ForcedOpen => 3,
    }
}
