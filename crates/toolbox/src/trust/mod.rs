//! What a session has read, and what its tools may do with it.
//!
//! `holdfast_trust` decides; here is what drives it for calls and keeps what has to be kept.
//!
//! | module | what it does |
//! |---|---|
//! | [`book`] | keeps what each session has read, and what holds it |
//! | [`layer`] | asks before a call, and looks at what comes back |

pub mod book;
pub mod layer;

pub use book::{
    KNOWN_MS, SESSION_TRUST_KEPT_MS, SESSIONS_KNOWN_MAX, SESSIONS_UNRECORDED_MAX, Speaker,
    TrustBook,
};
pub use layer::Vouch;

/// The code of the reason why a held call waits.
pub const HELD_BY_SIGNAL: &str = "held_by_signal";
/// The code of the reason why a call waits whose session has read what is trusted too little.
pub const INPUT_TRUST: &str = "input_trust";

/// The code of the reason that a call was read from prose.
pub(crate) const GUESSED: &str = "guessed";

/// Whether a reason comes from here, and not from a tool or the policy.
pub(crate) fn is_concern(code: &str) -> bool {
    [HELD_BY_SIGNAL, INPUT_TRUST, GUESSED].contains(&code)
}
