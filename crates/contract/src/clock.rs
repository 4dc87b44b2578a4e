//! Time and randomness, injected.
//!
//! Nothing in Holdfast asks the operating system for the time or for a random number by itself:
//! a simulation that replays a failure from its seed has to own both.

use std::cell::Cell;
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
                let whole_ms = since.as_secs().saturating_mul(1000);
                whole_ms.saturating_add(u64::from(since.subsec_millis()))
            })
    }
}

/// Random numbers that the operating system seeds once per thread.
///
/// Asking it for every number would be a system call each, several per tool call. What is made of
/// them (jitter, ids, owners of claims) has to be unique, not secret: never use it for secrets.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn next_u64(&self) -> u64 {
        thread_local! {
            static STATE: Cell<[u64; 4]> = Cell::new(seed());
        }
        STATE.with(|state| {
            let (next, number) = xoshiro256_plus_plus(state.get());
            state.set(next);
            number
        })
    }
}

/// 244 random bits: a version 4 UUID fixes six of its own.
fn seed() -> [u64; 4] {
    let (a, b) = uuid::Uuid::new_v4().as_u64_pair();
    let (c, d) = uuid::Uuid::new_v4().as_u64_pair();
    [a, b, c, d]
}

/// The generator of Blackman and Vigna: the next state and its number.
const fn xoshiro256_plus_plus([a, b, c, d]: [u64; 4]) -> ([u64; 4], u64) {
    let number = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
    let (c2, d2) = (c ^ a, d ^ b);
    ([a ^ d2, b ^ c2, c2 ^ (b << 17), d2.rotate_left(45)], number)
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

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_generator_is_the_published_one() {
        let mut state = [1, 2, 3, 4];
        let numbers = [(); 4].map(|()| {
            let (next, number) = xoshiro256_plus_plus(state);
            state = next;
            number
        });
        assert_eq!(
            numbers,
            [
                41_943_041,
                58_720_359,
                3_588_806_011_781_223,
                3_591_011_842_654_386
            ]
        );
    }

    #[test]
    fn threads_do_not_share_numbers() {
        let threads: Vec<_> = (0..4)
            .map(|_| std::thread::spawn(|| [(); 1000].map(|()| SystemEntropy.next_u64())))
            .collect();
        let numbers: HashSet<u64> = threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect();
        assert_eq!(numbers.len(), 4000);
    }
}
