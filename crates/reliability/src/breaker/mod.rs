//! The circuit breaker: stops calling what keeps failing, and finds out when it works again.
//!
//! The breaker is a value and one function. [`BreakerState`] is small, bounded and serialisable,
//! so it can live in one row of a store that several processes share. [`step`] takes that
//! value, one thing that happened ([`BreakerOp`]), the [`BreakerPolicy`] and the time, and
//! changes the value. It never waits, never reads a clock and never fails, so a store can run
//! it inside a transaction or a compare-and-set loop.
//!
//! ```text
//!             consecutive failures or failure rate
//!   CLOSED ────────────────────────────────────────▶ OPEN ◀──────────────┐
//!     ▲                                               │ cooldown over,   │ a probe
//!     │                                               ▼ next admit       │ failed
//!     └───────────── enough probes succeeded ──── HALF_OPEN ─────────────┘
//!
//!   any state ──force──▶ FORCED_OPEN          any state ──reset──▶ CLOSED
//! ```
//!
//! ```
//! use holdfast_reliability::breaker::{
//!     Admission, AttemptResult, BreakerOp, BreakerPolicy, BreakerState, CircuitBreakerState,
//!     ProbeId, step,
//! };
//!
//! let policy = BreakerPolicy::standard();
//! let mut state = BreakerState::default();
//! for attempt in 0..5 {
//!     let admit = BreakerOp::Admit { prober: ProbeId::new(attempt) };
//!     let Some(Admission::Pass(permit)) = step(&mut state, admit, &policy, 1_000).admission
//!     else {
//!         panic!("a closed breaker lets everything pass");
//!     };
//!     let failed = BreakerOp::Record { permit, result: AttemptResult::Failure, part: None };
//!     step(&mut state, failed, &policy, 1_000);
//! }
//! assert_eq!(state.circuit(), CircuitBreakerState::Open);
//!
//! let admit = BreakerOp::Admit { prober: ProbeId::new(9) };
//! assert_eq!(
//!     step(&mut state, admit, &policy, 11_000).admission,
//!     Some(Admission::Rejected {
//!         state: CircuitBreakerState::Open,
//!         retry_after_ms: Some(20_000),
//!     }),
//! );
//! ```

mod key;
mod layer;
mod policy;
mod snapshot;
mod state;
mod step;
mod store;
mod window;

#[cfg(test)]
mod tests;

pub use holdfast_contract::CircuitBreakerState;
pub use key::{BreakerKey, BreakerKeyError, BreakerTarget};
pub use layer::{Breaker, CUT_OFF_COUNTS_AFTER_MS, FORCED_OPEN_RETRY_AFTER_MS, PARTS_PER_TOOL_MAX};
pub use policy::{BreakerOverrides, BreakerPolicy};
pub use snapshot::BreakerSnapshot;
pub use state::{BreakerState, PART_NAMES_MAX, Permit, ProbeId};
pub use step::{
    Admission, AttemptResult, BreakerOp, NO_REASON, StepOutcome, Transition, TransitionReason, step,
};
pub use store::{BREAKERS_MAX, BreakerStore, Told};
