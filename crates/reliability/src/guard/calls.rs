//! The calls of this turn that ran, what they returned, and whether anything was new.
//!
//! A result is *new* when this call has not returned it before in this turn. Every new result
//! starts an epoch. Repeats are counted within an epoch only, so they mean: this often in a row
//! without anything new in between, however many calls take turns. That is what makes A A A, A B A B
//! and A B C A B C one case, and leaves edit–test–edit–test and read–edit–read alone.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, Serializer};

use super::failures::Waiting;
use super::hash::{Hash64, Hash128};

/// Most calls remembered. Above it the calls used longest ago are forgotten: they would count as
/// new again, which can only make the guard more patient.
pub const CALLS_KEPT_MAX: usize = 256;
/// Most different results remembered per call, so that a result flipping to and fro is no news.
pub const OUTCOMES_KEPT_MAX: usize = 4;
/// The time within which results that always differ make a loop. A model that looks every six seconds
/// how far something is never gets there.
pub const VARYING_WINDOW_MS: u64 = 10 * 60 * 1000;
/// How many are forgotten at once, so that a long turn does not search for the oldest every time.
const FORGOTTEN_AT_ONCE: usize = CALLS_KEPT_MAX / 4;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Outcome {
    digest: Hash64,
    epoch: u64,
    repeats: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct CallRecord {
    used: u64,
    succeeded: bool,
    outcomes: Vec<Outcome>,
    #[serde(default)]
    varying: Varying,
}

/// Results of one call in a row that were new each time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Varying {
    count: u32,
    since_ms: u64,
    /// The last of them, in the time that tools took.
    waited_ms: u64,
}

/// When a result came, as far as the host says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct When {
    pub(super) now_ms: Option<u64>,
    pub(super) waiting: Waiting,
}

impl Varying {
    fn add(&mut self, When { now_ms, waiting }: When) {
        let has_waited = waiting.now_ms.saturating_sub(self.waited_ms) >= waiting.wait_ms;
        let begins = self.count == 0 || has_waited || !self.is_within(now_ms);
        if begins {
            self.since_ms = now_ms.unwrap_or_default();
        }
        self.count = if begins {
            1
        } else {
            self.count.saturating_add(1)
        };
        self.waited_ms = waiting.now_ms;
    }

    fn is_within(&self, now_ms: Option<u64>) -> bool {
        now_ms.is_some_and(|now| now.saturating_sub(self.since_ms) <= VARYING_WINDOW_MS)
    }
}

/// Memory of results, bounded by [`CALLS_KEPT_MAX`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "StoredCalls")]
pub(super) struct Calls {
    epoch: u64,
    used: u64,
    by_call: BTreeMap<Hash128, CallRecord>,
}

/// What a result adds to what is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Noted {
    /// This call has not succeeded before in this turn.
    pub(super) first_success: bool,
    /// How often this result has come without anything new in between, this time included.
    pub(super) repeats: u32,
    /// How often in a row this call has returned something new, soon and without waiting.
    pub(super) varying: u32,
}

impl Calls {
    /// Takes note of a result. `counted` is false for calls that may repeat as they like.
    pub(super) fn note(
        &mut self,
        call: Hash128,
        digest: Hash64,
        success: bool,
        counted: bool,
        when: When,
    ) -> Noted {
        self.used = self.used.saturating_add(1);
        if self.by_call.len() >= CALLS_KEPT_MAX && !self.by_call.contains_key(&call) {
            self.forget_oldest();
        }
        let record = self.by_call.entry(call).or_default();
        record.used = self.used;
        let first_success = success && !record.succeeded;
        record.succeeded |= success;
        let known = record
            .outcomes
            .iter_mut()
            .find(|known| known.digest == digest);
        if known.is_some() || !counted {
            record.varying = Varying::default();
        } else {
            record.varying.add(when);
        }
        let varying = record.varying.count;
        let repeats = match known {
            None => {
                self.epoch = self.epoch.saturating_add(1);
                if record.outcomes.len() >= OUTCOMES_KEPT_MAX {
                    record.outcomes.remove(0);
                }
                record.outcomes.push(Outcome {
                    digest,
                    epoch: self.epoch,
                    repeats: 1,
                });
                1
            }
            Some(_) if !counted => 1,
            Some(known) if known.epoch == self.epoch => {
                known.repeats = known.repeats.saturating_add(1);
                known.repeats
            }
            Some(known) => {
                known.epoch = self.epoch;
                known.repeats = 1;
                1
            }
        };
        Noted {
            first_success,
            repeats,
            varying,
        }
    }

    /// How often in a row this call has returned something new, if all of that is not long ago.
    pub(super) fn varying(&self, call: Hash128, now_ms: Option<u64>) -> u32 {
        let record = self
            .by_call
            .get(&call)
            .filter(|it| it.varying.is_within(now_ms));
        record.map_or(0, |record| record.varying.count)
    }

    /// Something was changed: whoever looks again may see something else.
    pub(super) fn world_changed(&mut self) {
        for record in self.by_call.values_mut() {
            record.varying = Varying::default();
        }
    }

    /// How often this call has returned one and the same result since anything was new.
    pub(super) fn repeats(&self, call: Hash128) -> u32 {
        self.by_call.get(&call).map_or(0, |record| {
            record
                .outcomes
                .iter()
                .filter(|known| known.epoch == self.epoch)
                .map(|known| known.repeats)
                .max()
                .unwrap_or(0)
        })
    }

    fn forget_oldest(&mut self) {
        let mut used: Vec<u64> = self.by_call.values().map(|record| record.used).collect();
        let (_, newest_forgotten, _) = used.select_nth_unstable(FORGOTTEN_AT_ONCE - 1);
        let newest_forgotten = *newest_forgotten;
        self.by_call
            .retain(|_, record| record.used > newest_forgotten);
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.by_call.len()
    }
}

#[derive(Deserialize)]
struct StoredCalls {
    epoch: u64,
    used: u64,
    by_call: Vec<(Hash128, CallRecord)>,
}

impl From<StoredCalls> for Calls {
    /// A stored state is not trusted to keep the limits.
    fn from(stored: StoredCalls) -> Self {
        let mut calls = Self {
            epoch: stored.epoch,
            used: stored.used,
            by_call: stored.by_call.into_iter().collect(),
        };
        while calls.by_call.len() > CALLS_KEPT_MAX {
            calls.forget_oldest();
        }
        for record in calls.by_call.values_mut() {
            record.outcomes.truncate(OUTCOMES_KEPT_MAX);
        }
        calls
    }
}

impl Serialize for Calls {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Borrowed<'a> {
            epoch: u64,
            used: u64,
            by_call: Vec<(Hash128, &'a CallRecord)>,
        }
        let by_call = self
            .by_call
            .iter()
            .map(|(call, record)| (*call, record))
            .collect();
        Borrowed {
            epoch: self.epoch,
            used: self.used,
            by_call,
        }
        .serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(calls: &mut Calls, call: u128, digest: u64) -> u32 {
        calls
            .note(Hash128(call), Hash64(digest), true, true, When::default())
            .repeats
    }

    #[test]
    fn repeats_count_until_something_is_new() {
        let mut calls = Calls::default();
        assert_eq!([note(&mut calls, 1, 1), note(&mut calls, 1, 1)], [1, 2]);
        assert_eq!(calls.repeats(Hash128(1)), 2);
        assert_eq!(note(&mut calls, 2, 1), 1);
        assert_eq!(calls.repeats(Hash128(1)), 0);
        assert_eq!(note(&mut calls, 1, 1), 1);
        assert_eq!(note(&mut calls, 2, 1), 2);
        assert_eq!(note(&mut calls, 1, 1), 2);
    }

    #[test]
    fn a_result_that_flips_is_no_news() {
        let mut calls = Calls::default();
        let seen: Vec<u32> = (0..8).map(|step| note(&mut calls, 1, step % 2)).collect();
        assert_eq!(seen, [1, 1, 1, 2, 2, 3, 3, 4]);
    }

    #[test]
    fn results_that_always_differ_are_counted_while_nobody_waits() {
        let mut calls = Calls::default();
        let wait_ms = 2_000;
        let mut digest = 0;
        let mut note = |calls: &mut Calls, now_ms: u64, tools_ms: u64| {
            digest += 1;
            let when = When {
                now_ms: Some(now_ms),
                waiting: Waiting {
                    now_ms: tools_ms,
                    wait_ms,
                },
            };
            let noted = calls.note(Hash128(1), Hash64(digest), true, true, when);
            noted.varying
        };
        assert_eq!([1, 2, 3].map(|at| note(&mut calls, at, at)), [1, 2, 3]);
        assert_eq!(calls.varying(Hash128(1), Some(4)), 3);
        assert_eq!(calls.varying(Hash128(1), Some(2 + VARYING_WINDOW_MS)), 0);
        // Somebody waited, something was changed, time has passed.
        assert_eq!(note(&mut calls, 5, 3 + wait_ms), 1);
        calls.world_changed();
        assert_eq!(note(&mut calls, 6, 3 + wait_ms), 1);
        assert_eq!(note(&mut calls, 7, 3 + wait_ms), 2);
        assert_eq!(note(&mut calls, 7 + VARYING_WINDOW_MS, 3 + wait_ms), 1);
    }

    #[test]
    fn memory_is_bounded_and_forgets_the_oldest() {
        let mut calls = Calls::default();
        for call in 0..10_000_u128 {
            note(&mut calls, call, 1);
            assert!(calls.len() <= CALLS_KEPT_MAX);
        }
        assert!(calls.by_call.contains_key(&Hash128(9_999)));
        assert!(!calls.by_call.contains_key(&Hash128(0)));
        for digest in 0..100 {
            note(&mut calls, 1, digest);
        }
        assert_eq!(calls.by_call[&Hash128(1)].outcomes.len(), OUTCOMES_KEPT_MAX);
    }

    #[test]
    fn a_stored_state_beyond_the_limits_is_cut() {
        let mut calls = Calls::default();
        for used in 0..3 * CALLS_KEPT_MAX as u64 {
            let record = CallRecord {
                used,
                ..CallRecord::default()
            };
            calls.by_call.insert(Hash128(u128::from(used)), record);
        }
        let text = serde_json::to_string(&calls).unwrap();
        let loaded: Calls = serde_json::from_str(&text).unwrap();
        assert!(loaded.len() <= CALLS_KEPT_MAX);
    }
}
