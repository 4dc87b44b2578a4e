//! One schedule: everything that happens under one seed, and whether every promise was kept.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use holdfast_contract::{Clock, SessionContext, Tool, ToolCallEnvelope, ToolStep};
use holdfast_reliability::breaker::BreakerOverrides;
use holdfast_reliability::config::{ReliabilityConfig, ToolSettings};
use holdfast_reliability::guard::GuardConfig;
use holdfast_reliability::hooks::Hooks;
use holdfast_reliability::idempotency::DedupeStores;
use holdfast_reliability::observe::Observers;
use holdfast_reliability::rate::LocalLimits;
use holdfast_reliability::runtime::Runtime;
use holdfast_reliability::store::DedupeStore;
use holdfast_reliability::store::memory::{
    MemoryBreakerStore, MemoryDedupeStore, MemoryDocumentStore, MemoryGuardStore, MemoryLimits,
};
use holdfast_testkit::sim::trace::Detail;
use holdfast_testkit::sim::{Nature, Schedule, SimTool, Trace, Violation, Weather, World};
use holdfast_testkit::{SeededEntropy, TokioClock};
use holdfast_toolbox::permit::Permissions;
use holdfast_toolbox::stack::{Parts, Stores, ToolStack};
use parking_lot::Mutex;
use serde_json::json;
use tokio::task::JoinHandle;

use super::answers::{self, Course};
use super::end;
use super::handle::{Handle, Line};
use super::ledger::Ledger;
use super::people::{self, Person};
use super::plan::{Delivery, Faults, Happening, Plan, Protection};
use super::planted::{Bug, Planted};
use super::process::Process;
use super::rates::{Counted, LimitsHandle};
use super::shared::{BreakerHandle, TurnHandle};

/// No call takes longer than this without hanging: a duplicate's wait, and slow stores around it.
const HUNG_AFTER_MS: u64 = 2 * 60 * 60 * 1_000;

/// A process with its stack.
struct Running {
    process: Arc<Process>,
    stack: Arc<ToolStack>,
}

/// The schedule while it happens.
pub(crate) struct Stage {
    pub(crate) plan: Plan,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) clock: Arc<TokioClock>,
    pub(crate) records: Arc<MemoryDedupeStore>,
    pub(crate) courses: Arc<Mutex<Vec<Course>>>,
    pub(crate) crashed: Vec<u64>,
    durable: Arc<dyn DedupeStore>,
    breakers: Arc<MemoryBreakerStore>,
    turns: Arc<MemoryGuardStore>,
    documents: Arc<MemoryDocumentStore>,
    limits: Arc<LocalLimits>,
    bug: Option<Bug>,
    dice: Arc<SeededEntropy>,
    running: Vec<Option<Running>>,
    processes: u64,
    tasks: Vec<JoinHandle<()>>,
}

/// Runs one schedule in a runtime of its own, under virtual time.
pub(crate) fn run(seed: u64, detail: Detail, bug: Option<Bug>) -> Schedule {
    run_plan(Plan::draw(&SeededEntropy::new(seed)), seed, detail, bug)
}

/// The same with a plan made by hand; the seed still decides every roll on the way.
pub(crate) fn run_plan(plan: Plan, seed: u64, detail: Detail, bug: Option<Bug>) -> Schedule {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    let (violation, trace) = runtime.block_on(async {
        let mut stage = Stage::new(plan, seed, detail, bug);
        stage.play().await;
        let violation = stage.ledger.violation();
        stage.fall_silent();
        (violation, stage.ledger.trace.clone())
    });
    match violation {
        None => Ok(trace.hash()),
        Some(message) => Err(Box::new(Violation {
            seed,
            message,
            trace_hash: trace.hash(),
            lines: trace.take_lines(),
        })),
    }
}

impl Stage {
    fn new(plan: Plan, seed: u64, detail: Detail, bug: Option<Bug>) -> Self {
        let clock = Arc::new(TokioClock::new());
        let trace = Arc::new(Trace::new(detail));
        let world = Arc::new(World::new(trace.clone(), clock.clone()));
        let records = Arc::new(MemoryDedupeStore::new(
            clock.clone(),
            MemoryLimits::default(),
        ));
        trace.note("plan", seed, 0, || format!("{plan:#?}"));
        let durable: Arc<dyn DedupeStore> = match bug {
            None => records.clone(),
            Some(bug) => Arc::new(Planted::new(bug, records.clone(), clock.clone())),
        };
        let mut stage = Self {
            ledger: Arc::new(Ledger::new(trace, world, clock.clone())),
            courses: Arc::default(),
            crashed: Vec::new(),
            durable,
            breakers: Arc::new(MemoryBreakerStore::new(clock.clone())),
            turns: Arc::new(MemoryGuardStore::new(clock.clone())),
            documents: Arc::new(MemoryDocumentStore::new(clock.clone())),
            limits: Arc::default(),
            bug,
            // Apart from the plan's dice, so that a changed plan does not change every roll.
            dice: Arc::new(SeededEntropy::new(seed ^ 0x5eed_0f1a_7e57_ab1e)),
            running: Vec::new(),
            processes: 0,
            tasks: Vec::new(),
            records,
            clock,
            plan,
        };
        for _ in 0..stage.plan.processes {
            let (faults, weather) = (stage.plan.faults, stage.plan.weather);
            let running = stage.boot(faults, weather);
            stage.running.push(Some(running));
        }
        stage
    }

    async fn play(&mut self) {
        let mut ahead: BTreeMap<(u64, usize), Happening> = BTreeMap::new();
        for (order, (at_ms, happening)) in self.plan.happenings.iter().enumerate() {
            ahead.insert((*at_ms, order), happening.clone());
        }
        let begun = tokio::time::Instant::now();
        let mut restarts: Vec<(u64, usize)> = Vec::new();
        while let Some(((at_ms, _), happening)) = ahead.pop_first() {
            restarts.sort_unstable();
            while restarts.first().is_some_and(|(due_ms, _)| *due_ms <= at_ms) {
                let (due_ms, process) = restarts.remove(0);
                tokio::time::sleep_until(begun + Duration::from_millis(due_ms)).await;
                self.restart(process);
            }
            tokio::time::sleep_until(begun + Duration::from_millis(at_ms)).await;
            match happening {
                Happening::Deliver(delivery) => self.deliver(&delivery),
                Happening::Crash {
                    process,
                    restart_after_ms,
                } => {
                    self.crash(process);
                    restarts.extend(restart_after_ms.map(|after_ms| (at_ms + after_ms, process)));
                }
                Happening::Stall { process, ms } => self.with(process, "stall", ms, Process::stall),
                Happening::Outage { process, ms } => {
                    self.with(process, "outage", ms, Process::cut_off);
                }
                Happening::Jump { ms } => {
                    self.note("jump", ms.unsigned_abs(), 0, || format!("{ms} ms"));
                    self.clock.jump_ms(ms);
                }
            }
        }
        self.wait_for_all().await;
        end::check(self);
        if self.ledger.violation().is_none() {
            self.epilogue().await;
        }
    }

    /// Everybody comes to an end; who does not, hangs.
    async fn wait_for_all(&mut self) {
        let hung_at = tokio::time::Instant::now() + Duration::from_millis(HUNG_AFTER_MS);
        for task in std::mem::take(&mut self.tasks) {
            if tokio::time::timeout_at(hung_at, task).await.is_err() {
                let courses = self.courses.lock();
                let open = courses.iter().find(|course| course.ended_ms.is_none());
                let number = open.map(|course| course.number);
                self.ledger
                    .broken(|| format!("hung call: delivery {number:?} never ended"));
                return;
            }
        }
    }

    /// When all is calm again, every intent can be asked for once more and gets a clear answer.
    async fn epilogue(&mut self) {
        let back_ms: u64 = self
            .plan
            .happenings
            .iter()
            .fold(0, |sum, (_, it)| match it {
                Happening::Jump { ms } if *ms < 0 => sum + ms.unsigned_abs(),
                _ => sum,
            });
        let calm_ms = self.plan.lease_ms + back_ms + 10 * 60 * 1_000;
        tokio::time::sleep(Duration::from_millis(calm_ms)).await;
        self.note("epilogue", 0, 0, String::new);
        let weather = Weather {
            refused: 0,
            lost: 0,
            hangs: 0,
            panics: 0,
            wrong: 0,
            latency_ms_max: 10,
            ..self.plan.weather
        };
        let survivor = self.boot(Faults::default(), weather);
        self.running = vec![Some(survivor)];
        for intent in 0..self.plan.intents.len() {
            if self.plan.intents[intent].protection == Protection::Disabled {
                continue;
            }
            let last = Delivery {
                intent,
                process: 0,
                mode: holdfast_contract::DedupeMode::Enforced,
                other_arguments: false,
                deadline_ms: None,
                cancel_ms: None,
                turn: 1_000 + intent as u64,
            };
            let window_ms = self.plan.rate.map_or(0, |rate| rate.window_ms);
            tokio::time::sleep(Duration::from_millis(window_ms)).await;
            self.deliver(&last);
            self.wait_for_all().await;
            end::check_last(self, intent);
        }
        end::check_effects(self);
    }

    fn boot(&mut self, faults: Faults, weather: Weather) -> Running {
        self.processes += 1;
        let process = Process::new(self.processes, faults);
        let line = || Line {
            process: process.clone(),
            ledger: self.ledger.clone(),
            dice: self.dice.clone(),
        };
        let handle = |store: Arc<dyn DedupeStore>| {
            Arc::new(Handle {
                line: line(),
                store,
            })
        };
        let own = MemoryDedupeStore::new(self.clock.clone(), MemoryLimits::default());
        let stores = Stores {
            dedupe: DedupeStores {
                durable: handle(self.durable.clone()),
                memory: handle(Arc::new(own)),
            },
            breakers: Arc::new(BreakerHandle {
                line: line(),
                store: self.breakers.clone(),
                clock: self.clock.clone(),
            }),
            turns: Arc::new(TurnHandle {
                line: line(),
                store: self.turns.clone(),
            }),
        };
        let mut natures: Vec<Nature> = self.plan.intents.iter().map(|it| it.nature).collect();
        natures.sort_unstable();
        natures.dedup();
        let tool = |nature| -> Arc<dyn Tool> {
            let (world, dice) = (self.ledger.world.clone(), self.dice.clone());
            Arc::new(SimTool::new(nature, weather, world, dice))
        };
        let person = Arc::new(Person {
            dice: self.dice.clone(),
        });
        let session = SessionContext::main("session", "agent", PathBuf::from("/"));
        let session = Arc::new(session.with_channel(person));
        let runtime = Arc::new(Runtime::new(
            self.clock.clone(),
            self.dice.clone(),
            Observers::new(),
        ));
        if self
            .plan
            .rate
            .is_some_and(|it| it.counted == Counted::ByAll)
        {
            runtime.share_limits(Arc::new(LimitsHandle {
                line: line(),
                limits: self.limits.clone(),
                clock: self.clock.clone(),
                bug: self.bug,
            }));
        }
        let permissions: Arc<Permissions> = Arc::new(self.plan.people.permissions().into());
        let documents = self.documents.clone();
        let approvals = people::approvals(line(), documents, runtime.clone(), permissions.clone());
        let parts = Parts {
            runtime,
            stores,
            tools: natures.into_iter().map(tool).collect(),
            reliability: self.settings(),
            guard: GuardConfig::default(),
            permissions,
            hooks: Hooks::default(),
            attribution: None,
            sessions: Arc::new(move |_| session.clone()),
            output: holdfast_toolbox::limit_output::OutputConfig::default(),
            approvals: Some(approvals),
            trust: None,
            tree: None,
            undo: None,
            git: None,
        };
        let stack = Arc::new(ToolStack::new(parts).expect("the settings are valid"));
        Running { process, stack }
    }

    fn settings(&self) -> ReliabilityConfig {
        let mut settings = ReliabilityConfig::default();
        settings.ttl.lease_ms = Some(self.plan.lease_ms);
        let message = ToolSettings {
            unknown_window_ms: Some(self.plan.unknown_window_ms),
            ..ToolSettings::default()
        };
        settings.tools.insert("message".to_owned(), message);
        if let Some(rate) = self.plan.rate {
            for nature in self.plan.intents.iter().map(|it| it.nature) {
                let tool = settings.tools.entry(nature.name().to_owned());
                tool.or_default().rate_limit = rate.written();
            }
        }
        if self.plan.touchy_breaker {
            settings.breaker = BreakerOverrides {
                consecutive_failures: Some(2),
                open_cooldown_ms: Some(1_000),
                ..BreakerOverrides::default()
            };
        }
        settings
    }

    fn crash(&mut self, number: usize) {
        if let Some(running) = self.running[number].take() {
            let process = running.process.number;
            self.note("CRASH", process, 0, || format!("of process {process}"));
            running.process.crash();
            self.crashed.push(process);
        }
    }

    fn restart(&mut self, number: usize) {
        if self.running[number].is_none() {
            let (faults, weather) = (self.plan.faults, self.plan.weather);
            let running = self.boot(faults, weather);
            let process = running.process.number;
            self.note("restart", process, 0, || format!("as process {process}"));
            self.running[number] = Some(running);
        }
    }

    fn with(&self, number: usize, what: &str, ms: u64, act: impl Fn(&Process, u64)) {
        if let Some(running) = &self.running[number] {
            let process = running.process.number;
            self.note(what, process, ms, || {
                format!("of process {process} for {ms} ms")
            });
            act(&running.process, ms);
        }
    }

    fn note(&self, what: &str, a: u64, b: u64, words: impl FnOnce() -> String) {
        self.ledger.trace.note(what, a, b, words);
    }

    /// Hands a call to its process, or to the next one that lives.
    fn deliver(&mut self, plan: &Delivery) {
        let count = self.running.len();
        let mut alive = (0..count).map(|step| (plan.process + step) % count);
        let Some(running) = alive.find_map(|number| self.running[number].as_ref()) else {
            return;
        };
        let mut courses = self.courses.lock();
        let number = courses.len() as u64;
        let intent = self.plan.intents[plan.intent].clone();
        courses.push(Course {
            number,
            process: running.process.number,
            plan: plan.clone(),
            begun_ms: self.ledger.trace.now_ms(),
            ended_ms: None,
            answer: None,
        });
        drop(courses);
        self.ledger.world.register(number, plan.intent as u64);
        if intent.nature.is_unsafe() && intent.protection == Protection::Protected {
            self.ledger.expect_once(number);
        }
        let envelope = self.envelope(number, plan);
        let ending = Ending {
            number,
            ledger: self.ledger.clone(),
            courses: self.courses.clone(),
        };
        let (stack, clock, plan) = (running.stack.clone(), self.clock.clone(), plan.clone());
        let process = running.process.number;
        self.note("deliver", number, process, || {
            format!("{number} (intent {}) to process {process}", plan.intent)
        });
        self.tasks.push(running.process.spawn(async move {
            let mut envelope = envelope;
            envelope.control.deadline_at_ms = plan.deadline_ms.map(|ms| clock.now_ms() + ms);
            ending.begin();
            let patience_ms = plan.cancel_ms.unwrap_or(HUNG_AFTER_MS * 2);
            let patience = Duration::from_millis(patience_ms);
            let answer = tokio::time::timeout(patience, stack.call(envelope)).await;
            ending.courses.lock()[usize::try_from(number).unwrap_or(0)].answer = answer.ok();
            drop(ending);
        }));
    }

    fn envelope(&self, number: u64, delivery: &Delivery) -> ToolCallEnvelope {
        let intent = &self.plan.intents[delivery.intent];
        let content = intent.content + if delivery.other_arguments { 1_000 } else { 0 };
        let params = json!({ "content": content, "clientTs": number });
        let params = params.as_object().cloned().unwrap_or_default();
        let name = intent.nature.name();
        let mut envelope =
            ToolCallEnvelope::new(format!("d{number}"), name, params, "session", "actor");
        envelope.tool_call_id = Some(format!("call_{}", delivery.intent));
        envelope.target.run_id = Some("run".to_owned());
        envelope.target.turn_id = Some(format!("turn-{}", delivery.turn));
        envelope.payload.tool_step = Some(ToolStep {
            iteration: delivery.intent as u64,
            index: 0,
        });
        envelope.payload.idempotency_key.clone_from(&intent.key);
        envelope.transport.dedupe_mode = delivery.mode;
        envelope
    }

    /// Before the runtime goes, so that no drop acts on a world that is no more.
    fn fall_silent(&self) {
        for running in self.running.iter().flatten() {
            running.process.crash();
        }
    }
}

/// Notes the end of a delivery, however it comes: by answer, by cancellation or by a crash.
struct Ending {
    number: u64,
    ledger: Arc<Ledger>,
    courses: Arc<Mutex<Vec<Course>>>,
}

impl Ending {
    fn begin(&self) {
        let now_ms = self.ledger.trace.now_ms();
        self.courses.lock()[usize::try_from(self.number).unwrap_or(0)].begun_ms = now_ms;
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        let (number, now_ms) = (self.number, self.ledger.trace.now_ms());
        self.ledger.world.let_go(number);
        let mut courses = self.courses.lock();
        let course = &mut courses[usize::try_from(number).unwrap_or(0)];
        course.ended_ms = Some(now_ms);
        let answer = course.answer.as_ref();
        let kind = answer.map_or("gone", |it| it.error_code().unwrap_or("success"));
        let hash = kind.bytes().fold(0_u64, |sum, byte| {
            sum.wrapping_mul(31).wrapping_add(u64::from(byte))
        });
        self.ledger.trace.note("end", number, hash, || {
            format!("of delivery {number}: {kind}")
        });
    }
}

/// Checks every answer that was given, as soon as all of them are there.
pub(crate) fn check_answers(stage: &Stage, from: usize) {
    for course in stage.courses.lock().iter().skip(from) {
        answers::check(
            &stage.ledger,
            stage.plan.people,
            &stage.plan.intents[course.plan.intent],
            course,
        );
    }
}
