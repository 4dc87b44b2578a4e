//! Any sequence of moves, by any holders: what must hold after each of them.

use std::collections::{HashMap, HashSet};

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Move {
    Claim {
        safe: bool,
        run_again: bool,
        dead: bool,
        hold: Hold,
    },
    Begin {
        owner: usize,
    },
    Finalise {
        owner: usize,
        ending: u8,
    },
    Renew {
        owner: usize,
    },
    Release {
        owner: usize,
    },
    Wait {
        ms: u64,
    },
    Clear,
}

fn any_move() -> impl Strategy<Value = Move> {
    prop_oneof![
        4 => (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>())
            .prop_map(|(safe, run_again, dead, held)| {
                { let hold = if held { Hold::Held } else { Hold::None };
                Move::Claim { safe, run_again, dead, hold } }
            }),
        3 => (0..6_usize).prop_map(|owner| Move::Begin { owner }),
        4 => (0..6_usize, 0..5_u8).prop_map(|(owner, ending)| Move::Finalise { owner, ending }),
        1 => (0..6_usize).prop_map(|owner| Move::Renew { owner }),
        1 => (0..6_usize).prop_map(|owner| Move::Release { owner }),
        2 => (0..2 * LEASE_MS).prop_map(|ms| Move::Wait { ms }),
        1 => Just(Move::Clear),
    ]
}

/// One key and its history. Owners are numbered by their claims.
#[derive(Default)]
struct World {
    record: Option<DedupeRecord>,
    now_ms: u64,
    claims: usize,
    /// Successes since the key was last cleared, by owner.
    succeeded: HashMap<String, u64>,
    /// Who waits, and has never been let go.
    waiting: HashSet<Arc<str>>,
    /// Whether every claim since then was made as unsafe to repeat.
    all_unsafe: bool,
}

impl World {
    /// Stores the next record, checking that its version moves on.
    fn put(&mut self, next: DedupeRecord, renewed: bool) {
        if let Some(before) = &self.record {
            assert!(next.version > before.version || renewed && next.version == before.version);
            // A new claim that overrides the doubt is judged where it is granted.
            if before.state == RecordState::Unknown
                && !matches!(next.state, RecordState::Unknown | RecordState::Inflight)
            {
                assert_eq!(
                    next.owner, before.owner,
                    "an unknown outcome was overruled by another"
                );
            }
        }
        self.record = Some(next);
    }

    fn go(&mut self, chosen: &Move) {
        match *chosen {
            Move::Wait { ms } => self.now_ms += ms,
            Move::Clear => {
                self.record = None;
                self.succeeded.clear();
                self.all_unsafe = true;
            }
            Move::Claim {
                safe,
                run_again,
                dead,
                hold,
            } => self.claim(safe, run_again, dead, hold),
            Move::Begin { owner } => self.begin(&owner.to_string()),
            Move::Finalise { owner, ending } => self.finalise(&owner.to_string(), ending),
            Move::Renew { owner } => {
                if let Ok(next) = renew(
                    self.record.as_ref(),
                    &owner.to_string(),
                    LEASE_MS,
                    self.now_ms,
                ) {
                    self.put(next, true);
                }
            }
            Move::Release { owner } => {
                if release(self.record.as_ref(), &owner.to_string()).is_ok() {
                    self.record = None;
                }
            }
        }
    }

    fn begin(&mut self, owner: &str) {
        if let Ok(next) = begin(self.record.as_ref(), owner, LEASE_MS, self.now_ms) {
            self.waiting.remove(owner);
            self.put(next, true);
        }
    }

    fn claim(&mut self, safe: bool, run_again: bool, dead: bool, hold: Hold) {
        let wish = ClaimRequest {
            hold,
            repeat: if safe {
                RepeatSafety::Safe
            } else {
                RepeatSafety::Unsafe
            },
            on_retriable_failure: if run_again {
                OnRetriableFailure::RunAgain
            } else {
                OnRetriableFailure::Replay
            },
            ..wish(1, &self.claims.to_string())
        };
        let holder = if dead { Holder::Dead } else { Holder::MayLive };
        let existing = self.record.clone();
        match claim(
            existing.as_ref().map(|record| (record, holder)),
            None,
            &wish,
            self.now_ms,
        ) {
            ClaimDecision::Grant { record, .. } => {
                self.claims += 1;
                self.all_unsafe &= !safe;
                // An unknown outcome is only run again by a caller that vouches and asks for it.
                let doubted = existing.is_some_and(|before| before.state == RecordState::Unknown);
                assert!(!doubted || (safe && run_again));
                if hold == Hold::Held {
                    self.waiting.insert(wish.owner.clone());
                }
                self.put(Arc::unwrap_or_clone(record), false);
            }
            ClaimDecision::Ended {
                record,
                store: true,
            } => self.put(Arc::unwrap_or_clone(record), false),
            ClaimDecision::InFlight { .. } | ClaimDecision::Ended { .. } => {}
            ClaimDecision::Conflict { .. } => panic!("all arguments are equal here"),
        }
    }

    fn finalise(&mut self, owner: &str, ending: u8) {
        // A call that was never let go has nothing to tell but that it did not run.
        let ending = if self.waiting.contains(owner) {
            3
        } else {
            ending
        };
        let ending = match ending {
            0 => done(),
            1 => Ending::Failed(failure(true)),
            2 => Ending::Failed(failure(false)),
            3 => Ending::Cancelled,
            _ => Ending::Unknown(failure(false)),
        };
        let word = Finalisation {
            key: StoredKey::from_bytes([1; 32]),
            owner: owner.into(),
            ending,
            execution: Execution::default(),
            lifetimes: lifetimes(),
        };
        if let Ok(next) = finalise(self.record.as_ref(), &word, self.now_ms) {
            if next.state == RecordState::Done {
                *self.succeeded.entry(owner.to_owned()).or_default() += 1;
            }
            self.put(next, false);
        }
        if self.all_unsafe {
            assert!(
                self.succeeded.values().sum::<u64>() <= 1,
                "a call that must not be repeated succeeded twice: {:?}",
                self.succeeded
            );
        }
    }
}

proptest! {
    #[test]
    fn no_sequence_runs_an_unsafe_call_to_success_twice(
        moves in proptest::collection::vec(any_move(), 1..60),
    ) {
        // Short of a record's lifetime: after it a key is a new one.
        let mut world = World { now_ms: NOW_MS, all_unsafe: true, ..World::default() };
        for chosen in &moves {
            world.go(chosen);
            if let Some(record) = &world.record {
                let running = record.state == RecordState::Inflight;
                prop_assert_eq!(running, record.lock_until_ms.is_some());
                prop_assert!(record.expires_at_ms >= record.updated_at_ms);
                prop_assert_eq!(record.payload.is_some(), record.state == RecordState::Done);
            }
        }
    }

    #[test]
    fn a_lost_call_stands_in_the_way_of_its_content_for_its_window_and_no_longer(
        renewed_ms in 0..LEASE_MS,
        asked in proptest::collection::vec((0..2 * WINDOW_MS, any::<bool>()), 1..12),
    ) {
        let mut asked = asked;
        asked.sort_unstable();
        let lost = granted(&echo(1, "first"));
        let mut lost = renew(Some(&lost), "first", LEASE_MS, NOW_MS + renewed_ms).unwrap();
        // It may have acted until its lease was over, if it was not dead before.
        let acted_by_ms = NOW_MS + renewed_ms + LEASE_MS;
        let mut doubted_ms = acted_by_ms;
        for (later_ms, dead) in asked {
            let now_ms = NOW_MS + renewed_ms + later_ms;
            let holder = if dead { Holder::Dead } else { Holder::MayLive };
            if dead && lost.state == RecordState::Inflight {
                doubted_ms = doubted_ms.min(now_ms);
            }
            let decision = claim(None, Some((&lost, holder)), &echo(2, "second"), now_ms);
            match decision {
                ClaimDecision::InFlight { .. } => prop_assert!(!dead && now_ms < acted_by_ms),
                ClaimDecision::Ended { record, .. } => {
                    prop_assert!(now_ms < doubted_ms + WINDOW_MS);
                    prop_assert_eq!(record.updated_at_ms, doubted_ms);
                    lost = Arc::unwrap_or_clone(record);
                }
                ClaimDecision::Grant { passed_over, .. } => {
                    prop_assert!(now_ms >= doubted_ms + WINDOW_MS);
                    let still_open = lost.state == RecordState::Inflight;
                    prop_assert_eq!(passed_over.is_some(), still_open);
                    break;
                }
                ClaimDecision::Conflict { .. } => panic!("the keys differ"),
            }
        }
    }

    #[test]
    fn an_ending_is_taken_once(first in 0..4_u8, second in 0..5_u8) {
        let mut world = World { now_ms: NOW_MS, all_unsafe: true, ..World::default() };
        world.claim(false, false, false, Hold::None);
        world.finalise("0", first);
        let after_first = world.record.clone();
        world.finalise("0", second);
        prop_assert_eq!(after_first, world.record);
    }
}
