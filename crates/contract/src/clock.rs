//! Time and randomness, injected.
//!
//! Nothing in Holdfast asks the operating system for the time or for a random number by itself:
//! a simulation that replays a failure from its seed has to own both.

use std::time::{SystemTime, UNIX_EPOCH};

/// A wall clock in Unix milliseconds.
///
/// Records are shared between processes, so their times are wall times. Waiting is done with
/// tokio's timers, which tests can pause.
pub trait Clock: Send + Sync {
    /// Milliseconds since the Unix epoch.
    fn now_ms(&self) -> u64;
}

/// A source of random numbers for jitter and ids.
pub trait Entropy: Send + Sync {
    /// The next 64 random bits.
    fn next_u64(&self) -> u64;
}

/// The operating system's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> u64 {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| {
                u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
            })
    }
}

/// The operating system's randomness.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn next_u64(&self) -> u64 {
        uuid::Uuid::new_v4().as_u64_pair().0
    }
}

/// A new request id: a UUID version 7, so that ids sort by time.
///
/// ```
/// use holdfast_contract::clock::{new_request_id, SystemClock, SystemEntropy};
/// let first = new_request_id(&SystemClock, &SystemEntropy);
/// assert_eq!(first.len(), 36);
/// assert_ne!(first, new_request_id(&SystemClock, &SystemEntropy));
/// ```
pub fn new_request_id(clock: &dyn Clock, entropy: &dyn Entropy) -> String {
    let mut random = [0_u8; 10];
    random[..8].copy_from_slice(&entropy.next_u64().to_le_bytes());
    random[8..].copy_from_slice(&entropy.next_u64().to_le_bytes()[..2]);
    uuid::Builder::from_unix_timestamp_millis(clock.now_ms(), &random)
        .into_uuid()
        .to_string()
}
