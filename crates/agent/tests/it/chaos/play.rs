//! One run by its seed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use async_trait::async_trait;
use holdfast_agent::chat::{Message, Role};
use holdfast_agent::model::{Model, Upstreams};
use holdfast_agent::run::{
    Checkpoint, CheckpointError, Ending, Happened, Loop, Phase, RunState, Telling,
};
use holdfast_agent::settings::{RunSettings, WhenUsedUp};
use holdfast_contract::{Clock, Effect, SessionContext, Tool};
use holdfast_reliability::idempotency::layer::DedupeStores;
use holdfast_reliability::observe::Observers;
use holdfast_reliability::runtime::Runtime;
use holdfast_reliability::store::memory::MemoryLimits;
use holdfast_testkit::sim::Violation;
use holdfast_testkit::{MadeTool, SeededEntropy, TokioClock};
use holdfast_toolbox::stack::{Parts, Stores, ToolStack};
use parking_lot::Mutex;

use crate::chaos::model::{Chaotic, Said};
use crate::chaos::stores::Vanishing;
use crate::chaos::tools::{Flaky, Ledger};

/// What a run may take beyond its deadline: nothing but the step that notices it.
const SLACK_MS: u64 = 100;

/// How a run ended, or what it broke.
pub(crate) fn run(seed: u64) -> Result<&'static str, Box<Violation>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build();
    let broken = |message: String| {
        Box::new(Violation {
            seed,
            message,
            trace_hash: 0,
            lines: Vec::new(),
        })
    };
    let runtime = runtime.map_err(|error| broken(error.to_string()))?;
    runtime.block_on(play(seed)).map_err(broken)
}

/// Keeps the run, hears what is told of its answer, and dies once.
struct Mortal {
    kept: Mutex<Option<RunState>>,
    lives: Mutex<u64>,
    told: Mutex<String>,
}

#[async_trait]
impl Checkpoint for Mortal {
    async fn keep(&self, state: &RunState) -> Result<(), CheckpointError> {
        let mut lives = self.lives.lock();
        *lives = lives.saturating_sub(1);
        if *lives == 0 {
            *lives = u64::MAX;
            return Err(CheckpointError("killed".to_owned()));
        }
        *self.kept.lock() = Some(state.clone());
        Ok(())
    }

    fn told(&self, _: &RunState, what: Happened<'_>) {
        if let Happened::Says { text } = what {
            self.told.lock().push_str(text);
        }
    }
}

async fn play(seed: u64) -> Result<&'static str, String> {
    let chance = SeededEntropy::new(seed);
    let ledger: Ledger = Arc::default();
    let clock = Arc::new(TokioClock::new());
    let records = Arc::new(Vanishing::new(seed, clock.clone()));
    let stack = stack(seed, &chance, &ledger, &records, clock.clone());
    let faults_percent = [0, 10, 30, 60, 95][usize::try_from(chance.below(5)).unwrap_or(0)];
    let said: Arc<Mutex<Said>> = Arc::default();
    let models: Vec<Arc<Chaotic>> = (0..=chance.below(3))
        .map(|at| seed.wrapping_mul(31).wrapping_add(at))
        .map(|seed| Arc::new(Chaotic::new(seed, faults_percent, said.clone())))
        .collect();
    let servers = models
        .iter()
        .map(|it| it.clone() as Arc<dyn Model>)
        .collect();
    let agent = Loop::new(Arc::new(Upstreams::new(servers, clock.clone())), stack);
    let state = task(&chance, clock.now_ms());
    let deadline_ms = state.deadline_at_ms();
    let mortal = Mortal {
        kept: Mutex::default(),
        lives: Mutex::new(chance.below(24) + 1),
        told: Mutex::default(),
    };
    let ended = if let Ok(ended) = agent.go_on(state.clone(), &mortal).await {
        ended
    } else {
        // Killed: another process goes on with what was kept.
        let kept = mortal.kept.lock().clone().unwrap_or(state);
        mortal.told.lock().clear();
        agent
            .go_on(kept, &mortal)
            .await
            .map_err(|error| error.to_string())?
    };
    let now_ms = clock.now_ms();
    if now_ms > deadline_ms + SLACK_MS {
        return Err(format!(
            "ended {} ms after its deadline",
            now_ms - deadline_ms
        ));
    }
    drop(agent);
    left_behind(&records).await?;
    twice(&ledger.lock())?;
    told(&ended, &mortal.told.lock(), &said.lock())?;
    ending(&ended, &said.lock())
}

/// What still works or is held when all is over and every time has passed.
async fn left_behind(records: &Vanishing) -> Result<(), String> {
    tokio::time::sleep(Duration::from_hours(1)).await;
    let tasks = tokio::runtime::Handle::current()
        .metrics()
        .num_alive_tasks();
    if tasks > 0 {
        return Err(format!("{tasks} tasks stay behind"));
    }
    match records.held().await {
        0 => Ok(()),
        // Of what a store was not told it knows nothing.
        _ if !records.stays() => Ok(()),
        held => Err(format!("{held} calls are held by nobody")),
    }
}

/// Whether what a client was told while the answer came is what the run ended with.
fn told(ended: &RunState, told: &str, said: &Said) -> Result<(), String> {
    match &ended.phase {
        _ if told.is_empty() => Ok(()),
        Phase::Ended(Ending::Answered { content, .. }) if content.starts_with(told) => Ok(()),
        // Two halves are no whole: a stream that breaks off ends the run.
        Phase::Ended(Ending::Failed(_)) if said.broken_off > 0 => Ok(()),
        other => Err(format!(
            "{told:.100?} was told, and it ended as {other:.300?}"
        )),
    }
}

/// The effects that happened more than once.
fn twice(ledger: &BTreeMap<String, u64>) -> Result<(), String> {
    // The model asks for each of them once.
    match ledger.iter().find(|(_, times)| **times > 1) {
        Some((text, times)) => Err(format!("{text} happened {times} times")),
        None => Ok(()),
    }
}

/// The codes of the table of errors in the documentation.
pub(crate) fn documented() -> &'static BTreeSet<&'static str> {
    static CODES: LazyLock<BTreeSet<&str>> = LazyLock::new(|| {
        let page = include_str!("../../../../../docs/executor.md");
        let table = page.split("\n## ").find(|it| it.starts_with("Errors\n"));
        let rows = table.unwrap_or_default().lines();
        let rows = rows.filter(|line| line.starts_with("| `"));
        let cells = rows.filter_map(|line| line.split('|').nth(1));
        cells
            .flat_map(|cell| cell.split('`').skip(1).step_by(2))
            .collect()
    });
    &CODES
}

fn ending(ended: &RunState, said: &Said) -> Result<&'static str, String> {
    match &ended.phase {
        Phase::Ended(Ending::Answered { content, .. }) => {
            let is_an_answer = said.answers.contains(content);
            // A model that only thought, or was asked too often, has no more to give than what it
            // said, or a part of it. That is held against the script, not against what we made of it.
            let is_a_part = |text: &String| text.contains(content.as_str());
            // Of a model that ends without words the run says so itself. A reply of wrong types has none.
            let is_silence = |text: &String| text == "x";
            let is_told = content.starts_with("(The model said nothing more.")
                && said.texts.iter().any(is_silence);
            // One whose questions are used up says that there is none.
            let is_none = content.starts_with("(No answer after ");
            if is_an_answer || is_told || is_none || said.texts.iter().any(is_a_part) {
                Ok("answered")
            } else {
                Err(format!("nobody gave the answer {content:.200?}"))
            }
        }
        Phase::Ended(Ending::Failed(error)) => {
            let code = error.code.as_str();
            if documented().contains(code) {
                Ok(code)
            } else {
                Err(format!("{code} is in no table"))
            }
        }
        other => Err(format!("ended as {other:?}")),
    }
}

fn task(chance: &SeededEntropy, now_ms: u64) -> RunState {
    let mut settings = RunSettings {
        max_iterations: u32::try_from(chance.below(12) + 1).unwrap_or(1),
        run_timeout_ms: 20_000 + chance.below(280_000),
        call_timeout_ms: 5_000 + chance.below(55_000),
        tokens_max: chance.chance(10).then_some(2_000),
        ..RunSettings::default()
    };
    if chance.chance(20) {
        settings.when_used_up = WhenUsedUp::Answer;
    }
    settings.window.tokens = 4_000 + chance.below(30_000);
    let telling = if chance.chance(50) {
        Telling::AsItComes
    } else {
        Telling::Whole
    };
    let earlier = usize::try_from(chance.below(40)).unwrap_or(0);
    let mut messages: Vec<Message> = (0..earlier)
        .map(|at| {
            let role = if at % 2 == 0 {
                Role::User
            } else {
                Role::Assistant
            };
            Message::text(
                role,
                "word ".repeat(usize::try_from(chance.below(400)).unwrap_or(0)),
            )
        })
        .collect();
    messages.push(Message::text(Role::User, "Do it."));
    let state = RunState::new("r", "gpt-oss", messages, settings, now_ms);
    RunState { telling, ..state }
}

fn stack(
    seed: u64,
    chance: &SeededEntropy,
    ledger: &Ledger,
    records: &Arc<Vanishing>,
    clock: Arc<TokioClock>,
) -> Arc<ToolStack> {
    let runtime = Runtime::new(clock, Arc::new(SeededEntropy::new(seed)), Observers::new());
    let runtime = Arc::new(runtime);
    let stores = Stores {
        dedupe: DedupeStores::single(records.clone()),
        ..Stores::memory(&runtime, MemoryLimits::default())
    };
    let session = Arc::new(SessionContext::main("run:r", "main", "/nonexistent".into()));
    let parts = Parts::new(runtime, stores, Arc::new(move |_| session.clone()));
    let faults_percent = chance.below(60);
    let tool = |name, effect, salt| -> Arc<dyn Tool> {
        let chance = SeededEntropy::new(seed.wrapping_mul(17).wrapping_add(salt));
        let flaky = Flaky {
            effect,
            chance,
            faults_percent,
            ledger: ledger.clone(),
        };
        Arc::new(MadeTool::of_text(name, effect, flaky))
    };
    let tools = vec![
        tool("note", Effect::External, 1),
        tool("look", Effect::None, 2),
    ];
    Arc::new(ToolStack::new(parts.with_tools(tools)).expect("a stack"))
}
