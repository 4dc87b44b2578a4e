//! Where turns are kept.

use crate::guard::{
    Advice, CallIdentity, GuardConfig, Observation, RecordMark, TurnState, Verdict,
};
use crate::store::StoreFuture;

/// Which turn a call belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TurnKey {
    /// The session, prefixed when the guard only watches.
    pub session: String,
    /// The turn's id, or `None` for the session's implicit turn, which ends when the session has
    /// been quiet for [`IMPLICIT_TURN_IDLE_MS`].
    pub turn: Option<String>,
}

/// A caller that names no turns still has them: a pause this long ends one.
pub const IMPLICIT_TURN_IDLE_MS: u64 = 10 * 60 * 1000;
/// A turn nobody has touched for this long is forgotten.
pub const TURN_IDLE_MS_MAX: u64 = 24 * 60 * 60 * 1000;
/// Turns kept at most; the one that was idle longest goes first.
pub const TURNS_MAX: usize = 4096;

impl TurnKey {
    /// How long the turn may be quiet before it has ended.
    pub fn idle_ms_max(&self) -> u64 {
        if self.turn.is_some() {
            TURN_IDLE_MS_MAX
        } else {
            IMPLICIT_TURN_IDLE_MS
        }
    }
}

/// What the guard says before a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// Whether it may run.
    pub verdict: Verdict,
    /// The failures of its turn so far, for [`Sent::failures_seen`](crate::guard::Sent).
    pub failures_seen: u32,
    /// The records of its turn that answer no more.
    pub superseded: Vec<RecordMark>,
}

impl Checked {
    /// What a turn says of a call.
    pub fn of(turn: &TurnState, call: &CallIdentity<'_>, config: &GuardConfig) -> Self {
        Self {
            verdict: turn.check(call, config),
            failures_seen: turn.failures_seen(),
            superseded: turn.superseded(),
        }
    }
}

/// Keeps the loop guard's turns.
pub trait GuardStore: Send + Sync {
    /// Asks before a call.
    fn check<'a>(
        &'a self,
        turn: &'a TurnKey,
        call: &'a CallIdentity<'a>,
        config: &'a GuardConfig,
    ) -> StoreFuture<'a, Checked>;

    /// Tells after a call, with how long it took.
    fn observe<'a>(
        &'a self,
        turn: &'a TurnKey,
        call: &'a CallIdentity<'a>,
        observation: Observation<'a>,
        took_ms: u64,
        config: &'a GuardConfig,
    ) -> StoreFuture<'a, Advice>;

    /// The answer that a record gives has arrived.
    fn delivered<'a>(&'a self, turn: &'a TurnKey, record: RecordMark) -> StoreFuture<'a, ()>;

    /// Ends a turn: its counts are forgotten.
    fn end_turn<'a>(&'a self, turn: &'a TurnKey) -> StoreFuture<'a, ()>;
}
