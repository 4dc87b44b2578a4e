//! Holdfast's whole stack, as a library user sets it up, with everything in memory.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use holdfast_contract::redact::Redactor;
use holdfast_contract::{
    Effect, SessionContext, Status, SystemClock, SystemEntropy, Tool, ToolCallEnvelope,
};
use holdfast_reliability::breaker::{BreakerKey, BreakerOp, BreakerPolicy};
use holdfast_reliability::observe::Observers;
use holdfast_reliability::observe::log::{JsonLog, WriterSink};
use holdfast_reliability::runtime::Runtime;
use holdfast_reliability::store::memory::MemoryLimits;
use holdfast_toolbox::stack::{Parts, Stores, ToolStack};

use crate::load::{BATCH, Calls, FAILING, MUTATING, Noop, READ_ONLY};
use crate::sample::{Meter, Round};

/// Whether the stack logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Log {
    Off,
    /// JSON lines, one write a line.
    On,
}

/// A stack around the no-op tools.
pub fn stack(log: Log, sink: &Path) -> std::io::Result<(Arc<ToolStack>, Stores)> {
    let clock = Arc::new(SystemClock);
    let observers = match log {
        Log::Off => Observers::new(),
        Log::On => {
            let file = OpenOptions::new().append(true).create(true).open(sink)?;
            Observers::new().with(Arc::new(JsonLog::new(
                Arc::new(WriterSink::new(file)),
                clock.clone(),
                Redactor::default(),
            )))
        }
    };
    let runtime = Arc::new(Runtime::new(clock, Arc::new(SystemEntropy), observers));
    let stores = Stores::memory(&runtime, MemoryLimits::default());
    let session = Arc::new(SessionContext::main(
        "agent:main:session-0042",
        "main",
        PathBuf::from("/nonexistent"),
    ));
    let tool = |name, effect, fails| -> Arc<dyn Tool> {
        Arc::new(Noop {
            name,
            effect,
            fails,
        })
    };
    let parts = Parts::new(runtime, stores.clone(), Arc::new(move |_| session.clone()));
    let stack = ToolStack::new(parts.with_tools([
        tool(READ_ONLY, Effect::None, false),
        tool(MUTATING, Effect::External, false),
        tool(FAILING, Effect::External, true),
    ]))
    .map_err(std::io::Error::other)?;
    Ok((Arc::new(stack), stores))
}

/// The calls of one caller, and the status each of them has to end with.
pub struct Caller {
    pub stack: Arc<ToolStack>,
    calls: Calls,
    expected: Status,
    /// Every call is this one under a new request id.
    same: Option<ToolCallEnvelope>,
}

impl Caller {
    /// Calls that all run.
    pub fn happy(stack: Arc<ToolStack>, tool: &'static str, caller: u64) -> Self {
        Self {
            stack,
            calls: Calls::new(tool, caller),
            expected: Status::Success,
            same: None,
        }
    }

    /// Calls that all meet an open breaker.
    pub async fn at_open_breaker(stack: Arc<ToolStack>, stores: &Stores) -> Self {
        let calls = Calls::new(MUTATING, 9).one_per_turn();
        let key = BreakerKey::tool("holdfast.tools", MUTATING);
        let force = BreakerOp::ForceOpen {
            reason: "measured".to_owned(),
        };
        let forced = stores
            .breakers
            .apply(&key, force, &BreakerPolicy::standard())
            .await;
        assert!(forced.is_ok(), "the breaker opens");
        Self {
            stack,
            calls,
            expected: Status::CircuitOpen,
            same: None,
        }
    }

    /// Calls that the loop guard refuses.
    pub async fn at_guard(stack: Arc<ToolStack>) -> Self {
        let mut calls = Calls::new(FAILING, 8);
        let same = calls.next_call();
        let mut caller = Self {
            stack,
            calls,
            expected: Status::Error,
            same: Some(same),
        };
        for envelope in caller.batch() {
            caller.stack.call(envelope).await;
        }
        let Some(last) = caller.batch().pop() else {
            return caller;
        };
        let answer = caller.stack.call(last).await;
        let code = answer.error.map(|error| error.code).unwrap_or_default();
        assert!(
            ["loop_detected", "tool_error_limit"].contains(&code.as_str()),
            "blocked by the guard, not {code}"
        );
        caller
    }

    pub fn batch(&mut self) -> Vec<ToolCallEnvelope> {
        match &self.same {
            None => self.calls.batch(),
            Some(same) => (0..BATCH)
                .map(|_| {
                    let mut envelope = same.clone();
                    envelope.request_id = self.calls.next_call().request_id;
                    envelope
                })
                .collect(),
        }
    }

    /// Whole batches, timed together.
    pub async fn batches(&mut self, calls: usize, meter: &mut Meter) {
        for _ in 0..calls.div_ceil(BATCH) {
            let batch = self.batch();
            let begun = Instant::now();
            for envelope in batch {
                let answer = self.stack.call(envelope).await;
                assert_eq!(answer.status, self.expected);
            }
            meter.add_batch(begun.elapsed(), BATCH);
        }
    }

    /// Calls timed one by one.
    pub async fn singles(&mut self, calls: usize, meter: &mut Meter) {
        for _ in 0..calls.div_ceil(BATCH) {
            for envelope in self.batch() {
                let begun = Instant::now();
                let answer = self.stack.call(envelope).await;
                meter.add_each(begun);
                assert_eq!(answer.status, self.expected);
            }
        }
    }

    pub async fn round(&mut self, calls: usize) -> Round {
        let mut meter = Meter::default();
        self.batches(calls, &mut meter).await;
        self.singles(calls, &mut meter).await;
        meter.round()
    }
}
