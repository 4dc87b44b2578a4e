//! The lease of a call that waits, is queued and runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use holdfast_contract::Clock;
use holdfast_testkit::{SeededEntropy, TokioClock};

use super::*;
use crate::idempotency::held::HeldClaim;
use crate::idempotency::lease::Standing;
use crate::idempotency::transition::Hold;
use crate::idempotency::wished::{lifetimes, wish};
use crate::observe::Observers;
use crate::store::conformance::interposed::Interposed;
use crate::store::memory::{MemoryDedupeStore, MemoryLimits};
use crate::store::{Claim, StoreError, StoreFuture};

const HELD_MS: u64 = 15_000;
const RUNNING_MS: u64 = 120_000;

fn held_by(owner: &str) -> ClaimRequest {
    ClaimRequest {
        lifetimes: lifetimes(HELD_MS),
        hold: Hold::Held,
        ..wish(1, owner)
    }
}

/// A store that can be away for renewals.
struct Flaky {
    behind: MemoryDedupeStore,
    is_away: AtomicBool,
}

impl Interposed for Flaky {
    fn behind(&self) -> &dyn DedupeStore {
        &self.behind
    }

    fn renew<'a>(
        &'a self,
        key: &'a StoredKey,
        owner: &'a str,
        lease_ms: u64,
    ) -> StoreFuture<'a, Result<(), Refused>> {
        if self.is_away.load(Ordering::SeqCst) {
            return StoreFuture::ready(Err(StoreError::Unavailable("gone".to_owned())));
        }
        self.behind.renew(key, owner, lease_ms)
    }
}

struct House {
    clock: Arc<TokioClock>,
    runtime: Runtime,
    flaky: Arc<Flaky>,
    store: Arc<dyn DedupeStore>,
    guard: ClaimGuard,
    held: HeldClaim,
}

impl House {
    async fn new() -> Self {
        let clock = Arc::new(TokioClock::new());
        let entropy = Arc::new(SeededEntropy::new(1));
        let flaky = Arc::new(Flaky {
            behind: MemoryDedupeStore::new(clock.clone(), MemoryLimits::default()),
            is_away: AtomicBool::new(false),
        });
        let runtime = Runtime::new(clock.clone(), entropy, Observers::new());
        let (store, wish): (Arc<dyn DedupeStore>, _) = (flaky.clone(), held_by("owner"));
        store.claim(&wish).await.expect("claims");
        let guard = ClaimGuard {
            store: store.clone(),
            key: wish.key,
            owner: wish.owner.clone(),
            lifetimes: lifetimes(RUNNING_MS),
            lease: Arc::new(Lease::new(&wish, RUNNING_MS, Sign::now(&runtime))),
            when_given_up: RepeatSafety::Unsafe,
            payload_bytes_max: 1,
            started: Arc::default(),
            open: Some(LastWord::ByProgress),
        };
        let held = HeldClaim::of(&store, &wish, guard.lease()).expect("is held");
        Self {
            clock,
            runtime,
            flaky,
            store,
            guard,
            held,
        }
    }

    async fn lease_left_ms(&self) -> u64 {
        let record = self.store.get(&self.guard.key).await.expect("reads");
        let until_ms = record.expect("a record").lock_until_ms.expect("a lease");
        until_ms.saturating_sub(self.clock.now_ms())
    }

    /// The claim is taken from it, as from somebody who was silent for too long.
    async fn loses_it(&self) {
        let (key, owner) = (&self.guard.key, &self.guard.owner);
        let given = self.store.release(key, owner).await.expect("releases");
        assert!(given.is_ok());
    }

    async fn is_granted(&self, wish: &ClaimRequest) -> bool {
        let answer = self.store.claim(wish).await.expect("answers");
        matches!(answer, Claim::Granted { .. })
    }

    async fn while_kept<T>(&self, goes_on: impl Future<Output = T>) -> T {
        tokio::select! {
            never = self.guard.keep(Some(&self.held), &self.runtime) => match never {},
            done = goes_on => done,
        }
    }
}

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_has_begun_and_is_queued_keeps_the_lease_of_its_tool() {
    let house = House::new().await;
    let goes_on = async {
        pass(61).await;
        assert!(house.lease_left_ms().await <= HELD_MS);
        assert!(house.held.begin().await.expect("begins").is_ok());
        // A renewal that was on its way when it began.
        let late = house
            .store
            .renew(&house.guard.key, &house.guard.owner, HELD_MS);
        assert!(late.await.expect("renews").is_ok());
        pass(5).await;
        for _ in 0..30 {
            assert!(house.lease_left_ms().await >= RUNNING_MS / 2);
            pass(10).await;
        }
    };
    house.while_kept(goes_on).await;
    assert_eq!(house.held.lost(), None);
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_failed_is_tried_again_soon() {
    let house = House::new().await;
    let goes_on = async {
        house.flaky.is_away.store(true, Ordering::SeqCst);
        pass(6).await;
        assert!(house.lease_left_ms().await <= HELD_MS - 6_000);
        house.flaky.is_away.store(false, Ordering::SeqCst);
        pass(1).await;
        assert!(house.lease_left_ms().await >= HELD_MS - 1_000);
    };
    house.while_kept(goes_on).await;
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_nobody_has_is_had_again_while_the_call_waits() {
    let house = House::new().await;
    let goes_on = async {
        // Somebody took it for a moment and has died: it falls to whoever asks.
        house.loses_it().await;
        let other = held_by("somebody");
        assert!(house.is_granted(&other).await);
        pass(18).await;
        assert_eq!(house.held.lost(), None);
        assert!(house.held.is_held().await.expect("asks"));
        // Somebody took it and gave it back.
        house.loses_it().await;
        pass(6).await;
        assert!(house.held.is_held().await.expect("asks"));
        assert!(!house.is_granted(&other).await);
    };
    house.while_kept(goes_on).await;
    assert_eq!(house.held.lost(), None);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_another_has_is_given_up_in_the_end() {
    let house = House::new().await;
    let other = held_by("somebody");
    let goes_on = async {
        house.loses_it().await;
        assert!(house.is_granted(&other).await);
        for _ in 0..30 {
            pass(1).await;
            let renewed = house.store.renew(&other.key, &other.owner, HELD_MS).await;
            assert!(renewed.expect("renews").is_ok());
        }
    };
    house.while_kept(goes_on).await;
    assert_eq!(house.held.lost(), Some(LostTo::Another));
    assert!(house.held.begin().await.expect("asks").is_err());
    // Nobody renews it any more, so it is not had again when it is free.
    let given = house.store.release(&other.key, &other.owner).await;
    assert!(given.expect("releases").is_ok());
    assert!(house.held.begin().await.expect("asks").is_err());
}

#[tokio::test(start_paused = true)]
async fn a_claim_whose_intent_has_ended_is_lost_at_once() {
    let house = House::new().await;
    let other = held_by("somebody");
    let goes_on = async {
        house.loses_it().await;
        assert!(house.is_granted(&other).await);
        let ended = house.store.finalise(Finalisation {
            key: other.key,
            owner: other.owner.clone(),
            ending: Ending::DoneWithoutOutput,
            execution: Execution::default(),
            lifetimes: other.lifetimes,
        });
        assert!(ended.await.expect("ends").is_ok());
        pass(6).await;
    };
    house.while_kept(goes_on).await;
    assert_eq!(house.held.lost(), Some(LostTo::Nobody));
    assert!(house.held.begin().await.expect("asks").is_err());
}

#[tokio::test(start_paused = true)]
async fn a_call_begins_on_a_claim_that_was_given_back_a_moment_ago() {
    let house = House::new().await;
    house.loses_it().await;
    assert!(house.held.begin().await.expect("begins").is_ok());
    let record = house.store.get(&house.guard.key).await.expect("reads");
    assert!(!record.expect("a record").held);
    // What runs claims nothing anew.
    house.loses_it().await;
    assert!(house.held.regain().await.expect("asks").is_ok());
    assert!(!house.held.is_held().await.expect("asks"));
}

#[tokio::test(start_paused = true)]
async fn whose_a_claim_is_is_known_for_as_long_as_its_lease_and_no_longer() {
    let house = House::new().await;
    let standing = || house.held.standing(house.clock.now_ms());
    house.while_kept(pass(60)).await;
    assert_eq!(standing(), Standing::Its);
    // Nobody renews it now; it was renewed within the last five seconds.
    pass(9).await;
    assert_eq!(standing(), Standing::Its);
    pass(6).await;
    assert_eq!(standing(), Standing::Unsure);
    house.while_kept(pass(6)).await;
    assert_eq!(standing(), Standing::Its);
    // A machine that slept has a clock that tells.
    let later_ms = house.clock.now_ms() + HELD_MS;
    assert_eq!(house.held.standing(later_ms), Standing::Unsure);
}

#[tokio::test(start_paused = true)]
async fn who_goes_away_finds_whether_somebody_goes_on() {
    let house = House::new().await;
    let (key, other) = (house.guard.key, held_by("somebody"));
    let is_gone_on_with = async || house.held.is_gone_on_with().await.expect("asks");
    // Its own end is on record already, or not yet.
    assert!(!is_gone_on_with().await);
    house.loses_it().await;
    assert!(!is_gone_on_with().await);
    // To ask has claimed nothing.
    assert!(house.is_granted(&other).await);
    assert!(is_gone_on_with().await);
    // One that ran out of time has left it to whoever comes with the key.
    for (ending, is_anothers) in [
        (Ending::Cancelled, true),
        (Ending::DoneWithoutOutput, false),
    ] {
        let _ = house.store.claim(&other).await.expect("answers");
        let ended = house.store.finalise(Finalisation {
            key,
            owner: other.owner.clone(),
            ending,
            execution: Execution::default(),
            lifetimes: other.lifetimes,
        });
        assert!(ended.await.expect("ends").is_ok());
        assert_eq!(is_gone_on_with().await, is_anothers);
    }
}
