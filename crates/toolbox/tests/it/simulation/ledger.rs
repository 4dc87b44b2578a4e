//! What the simulation knows and the stack does not: who said what to the store, and when.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use holdfast_contract::Clock;
use holdfast_reliability::idempotency::key::StoredKey;
use holdfast_reliability::idempotency::record::DedupeRecord;
use holdfast_reliability::idempotency::transition::{ClaimRequest, Ending, Finalisation};
use holdfast_testkit::sim::{RunEnd, Trace, World};
use parking_lot::Mutex;
use serde_json::Value;

#[derive(Default)]
struct Facts {
    violation: Option<String>,
    /// Which delivery made a claim under this token.
    owners: BTreeMap<String, u64>,
    /// The key of a delivery.
    keys: BTreeMap<u64, StoredKey>,
    /// Deliveries that others gave up on while they held a claim, and when.
    given_up: BTreeMap<u64, u64>,
    /// Deliveries of which the store never heard the last word.
    unheard: BTreeSet<u64>,
    /// Successes that the store has acknowledged.
    acknowledged: BTreeMap<StoredKey, (u64, Value)>,
    /// Tools that must not be repeated.
    unsafe_deliveries: BTreeSet<u64>,
    /// When the store last heard of a claim, by the wall, and how long its holder may be silent.
    signs_of_life: BTreeMap<String, (u64, u64)>,
}

/// Facts of one schedule, and the first promise that was broken.
pub(crate) struct Ledger {
    pub(crate) trace: Arc<Trace>,
    pub(crate) world: Arc<World>,
    clock: Arc<dyn Clock>,
    facts: Mutex<Facts>,
}

impl Ledger {
    pub(crate) fn new(trace: Arc<Trace>, world: Arc<World>, clock: Arc<dyn Clock>) -> Self {
        Self {
            trace,
            world,
            clock,
            facts: Mutex::default(),
        }
    }

    pub(crate) fn broken(&self, message: impl FnOnce() -> String) {
        let mut facts = self.facts.lock();
        if facts.violation.is_none() {
            facts.violation = Some(message());
        }
    }

    pub(crate) fn violation(&self) -> Option<String> {
        self.facts.lock().violation.clone()
    }

    pub(crate) fn expect_once(&self, delivery: u64) {
        self.facts.lock().unsafe_deliveries.insert(delivery);
    }

    pub(crate) fn asked(&self, wish: &ClaimRequest) -> u64 {
        let delivery = delivery_of(&wish.request.request_id);
        let mut facts = self.facts.lock();
        facts.owners.insert(wish.owner.to_string(), delivery);
        facts.keys.insert(delivery, wish.key);
        delivery
    }

    pub(crate) fn delivery_behind(&self, owner: &str) -> Option<u64> {
        self.facts.lock().owners.get(owner).copied()
    }

    pub(crate) fn key_of(&self, delivery: u64) -> Option<StoredKey> {
        self.facts.lock().keys.get(&delivery).copied()
    }

    pub(crate) fn last_word_lost(&self, owner: &str) {
        let mut facts = self.facts.lock();
        if let Some(delivery) = facts.owners.get(owner).copied() {
            facts.unheard.insert(delivery);
        }
    }

    pub(crate) fn last_word_heard(&self, owner: &str) {
        let mut facts = self.facts.lock();
        if let Some(delivery) = facts.owners.get(owner).copied() {
            facts.unheard.remove(&delivery);
        }
    }

    /// Somebody was told that nobody knows what became of this holder's call.
    pub(crate) fn give_up_on(&self, owner: &str) {
        let now_ms = self.trace.now_ms();
        let mut facts = self.facts.lock();
        if let Some(delivery) = facts.owners.get(owner).copied() {
            facts.given_up.entry(delivery).or_insert(now_ms);
        }
    }

    pub(crate) fn was_given_up(&self, delivery: u64, before_ms: u64) -> bool {
        let facts = self.facts.lock();
        let at_ms = facts.given_up.get(&delivery);
        at_ms.is_some_and(|at_ms| *at_ms <= before_ms)
    }

    /// The store has heard of a holder, which may be silent for so long from now on.
    pub(crate) fn lives(&self, owner: &str, lease_ms: u64) {
        let sign = (self.clock.now_ms(), lease_ms);
        let mut facts = self.facts.lock();
        facts.signs_of_life.insert(owner.to_owned(), sign);
    }

    /// Doubt about one call keeps equal content from being sent for its window, and no longer: it
    /// does not matter when somebody asks.
    pub(crate) fn judge_doubt(&self, wish: &ClaimRequest, record: &DedupeRecord) {
        let sign = self.facts.lock().signs_of_life.get(&*record.owner).copied();
        let (Some(lookup), Some((heard_ms, lease_ms))) = (&wish.content, sign) else {
            return;
        };
        let silent_ms = self.clock.now_ms().saturating_sub(heard_ms);
        if record.key != wish.key && silent_ms >= lease_ms + lookup.unknown_window_ms {
            self.broken(|| {
                format!(
                    "stale doubt: {} is answered by the doubt about {}, of which nothing was heard \
                     for {silent_ms} ms",
                    wish.request.request_id, record.request.request_id
                )
            });
        }
    }

    pub(crate) fn is_unheard(&self, delivery: u64) -> bool {
        self.facts.lock().unheard.contains(&delivery)
    }

    pub(crate) fn acknowledge(&self, last_word: &Finalisation) {
        if let Ending::Done(output) = &last_word.ending {
            let now_ms = self.trace.now_ms();
            let output = output.content.as_ref().clone();
            let mut facts = self.facts.lock();
            facts
                .acknowledged
                .entry(last_word.key)
                .or_insert((now_ms, output));
        }
    }

    pub(crate) fn acknowledged(&self, key: &StoredKey) -> Option<(u64, Value)> {
        self.facts.lock().acknowledged.get(key).cloned()
    }

    /// Holds what a holder says about its call against what really became of it.
    pub(crate) fn judge_last_word(&self, last_word: &Finalisation) {
        let Some(delivery) = self.delivery_behind(&last_word.owner) else {
            return;
        };
        let runs = self.world.runs_of(delivery);
        let answered = runs.iter().any(|run| run.end == RunEnd::Answered);
        let doubt = runs.iter().any(|run| run.end != RunEnd::NoEffect);
        let ending = match &last_word.ending {
            Ending::Done(_) | Ending::DoneWithoutOutput => return,
            Ending::Failed(_) => "failed",
            Ending::Cancelled => "cancelled",
            Ending::Unknown(_) => "unknown",
        };
        if answered {
            self.broken(|| {
                format!("lost result: the tool finished delivery {delivery}, which was recorded as {ending}")
            });
        }
        if ending == "unknown" {
            if !doubt {
                self.broken(|| {
                    format!(
                        "needless doubt: delivery {delivery} was recorded as unknown although \
                         all of its {} attempts proved that nothing had happened",
                        runs.len()
                    )
                });
            }
            return;
        }
        self.judge_no_effect(delivery, ending);
    }

    /// Nothing may be recorded as not having happened that has.
    pub(crate) fn judge_no_effect(&self, delivery: u64, said: &str) {
        let happened = self
            .world
            .runs_of(delivery)
            .iter()
            .any(|run| run.effect.is_some());
        if happened && self.facts.lock().unsafe_deliveries.contains(&delivery) {
            self.broken(|| {
                format!("false record: the effect of delivery {delivery} happened, and its claim was {said}")
            });
        }
    }
}

/// Request ids are `d` and the delivery's number.
pub(crate) fn delivery_of(request_id: &str) -> u64 {
    let number = request_id.strip_prefix('d').and_then(|it| it.parse().ok());
    number.unwrap_or(u64::MAX)
}
