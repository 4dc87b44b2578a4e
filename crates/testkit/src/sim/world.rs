//! The world outside: where effects happen, and where they can be counted.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_contract::{Clock, Reconciled, ToolResult};
use parking_lot::Mutex;
use serde_json::json;

use super::trace::Trace;

/// How one execution of a tool ended, as the tool itself knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunEnd {
    /// It has not.
    Running,
    /// It answered with its output.
    Answered,
    /// It failed and proved that nothing had happened.
    NoEffect,
    /// It failed without such proof.
    InDoubt,
    /// It was dropped on the way.
    CutOff,
}

/// One execution of a tool.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    /// The delivery on whose behalf it ran.
    pub delivery: u64,
    /// When it began, in virtual time.
    pub at_ms: u64,
    /// How it ended.
    pub end: RunEnd,
    /// The effect's number, when there was one.
    pub effect: Option<u64>,
}

/// One effect.
#[derive(Debug, Clone)]
pub struct EffectNote {
    /// The intent it belongs to.
    pub intent: u64,
    /// The delivery that brought it about.
    pub delivery: u64,
    /// What it was about; equal for intents that echo each other.
    pub content: u64,
    /// The key that the tool was handed.
    pub key: String,
    /// Virtual time.
    pub at_ms: u64,
    /// Wall time, which may have jumped.
    pub wall_ms: u64,
}

#[derive(Default)]
struct Held {
    intents: BTreeMap<u64, u64>,
    runs: Vec<Run>,
    effects: Vec<EffectNote>,
    /// Deliveries that hold a claim, with its key.
    holders: BTreeMap<u64, String>,
}

/// The world outside. It outlives every process.
pub struct World {
    trace: Arc<Trace>,
    clock: Arc<dyn Clock>,
    held: Mutex<Held>,
}

/// An execution under way. Dropped before its end, it was cut off.
pub(super) struct RunGuard<'a> {
    world: &'a World,
    index: usize,
}

impl World {
    /// A world in which nothing has happened.
    pub fn new(trace: Arc<Trace>, clock: Arc<dyn Clock>) -> Self {
        Self {
            trace,
            clock,
            held: Mutex::default(),
        }
    }

    /// Says which intent a delivery belongs to.
    pub fn register(&self, delivery: u64, intent: u64) {
        self.held.lock().intents.insert(delivery, intent);
    }

    /// A delivery holds the claim on a key from now on.
    pub fn hold(&self, delivery: u64, key: String) {
        self.held.lock().holders.insert(delivery, key);
    }

    /// A delivery is over, whatever became of it: it will not act any more.
    pub fn let_go(&self, delivery: u64) {
        self.held.lock().holders.remove(&delivery);
    }

    pub(super) fn begin(&self, delivery: u64) -> RunGuard<'_> {
        self.trace
            .note("run", delivery, 0, || format!("of delivery {delivery}"));
        let mut held = self.held.lock();
        held.runs.push(Run {
            delivery,
            at_ms: self.trace.now_ms(),
            end: RunEnd::Running,
            effect: None,
        });
        RunGuard {
            world: self,
            index: held.runs.len() - 1,
        }
    }

    /// Whether the call with this key took effect, told truthfully: "no" only when nobody is left
    /// who could still bring it about.
    pub(super) fn reconcile(&self, key: &str) -> Reconciled {
        let held = self.held.lock();
        if let Some(number) = held.effects.iter().position(|effect| effect.key == key) {
            return Reconciled::Done(output(number as u64));
        }
        if held.holders.values().any(|holder| holder == key) {
            Reconciled::CanNotTell
        } else {
            Reconciled::NotDone
        }
    }

    /// Every effect so far.
    pub fn effects(&self) -> Vec<EffectNote> {
        self.held.lock().effects.clone()
    }

    /// The executions on behalf of a delivery.
    pub fn runs_of(&self, delivery: u64) -> Vec<Run> {
        let held = self.held.lock();
        let mine = held.runs.iter().filter(|run| run.delivery == delivery);
        mine.copied().collect()
    }
}

impl RunGuard<'_> {
    pub(super) fn take_effect(&self, content: u64, key: &str) -> u64 {
        let (at_ms, wall_ms) = (self.world.trace.now_ms(), self.world.clock.now_ms());
        let mut held = self.world.held.lock();
        let number = held.effects.len() as u64;
        let delivery = held.runs[self.index].delivery;
        let intent = held.intents.get(&delivery).copied().unwrap_or(u64::MAX);
        held.runs[self.index].effect = Some(number);
        held.effects.push(EffectNote {
            intent,
            delivery,
            content,
            key: key.to_owned(),
            at_ms,
            wall_ms,
        });
        drop(held);
        self.world.trace.note("EFFECT", intent, delivery, || {
            format!("{number} of intent {intent} by delivery {delivery}")
        });
        number
    }

    pub(super) fn end(&self, end: RunEnd) {
        let mut held = self.world.held.lock();
        let run = &mut held.runs[self.index];
        if run.end != RunEnd::Running {
            return;
        }
        run.end = end;
        let delivery = run.delivery;
        drop(held);
        self.world.trace.note("ran", delivery, end as u64, || {
            format!("delivery {delivery}: {end:?}")
        });
    }
}

impl Drop for RunGuard<'_> {
    fn drop(&mut self) {
        self.end(RunEnd::CutOff);
    }
}

/// What a call answers whose effect has this number; no two effects have the same answer.
pub(super) fn output(number: u64) -> ToolResult {
    ToolResult::new(json!({ "effect": number }), "")
}
