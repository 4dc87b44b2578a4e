//! The scenes: each is played once without Holdfast's layers and once with them.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use holdfast_contract::clock::new_request_id;
use holdfast_contract::{
    Gate, SystemClock, SystemEntropy, Tool, ToolCallEnvelope, ToolResultEnvelope,
};
use holdfast_toolbox::stack::ToolStack;
use holdfast_undo::Options;
use serde::Serialize;
use serde_json::{Value, json};

use super::pay::PayTool;
use super::report::{self, Narrator};
use super::service::{Service, Temper};
use crate::app::App;
use crate::config::Config;
use crate::environment;
use crate::fail::{Failure, Outcome};
use crate::output;
use crate::running::Running;

/// How often the looping model would call before its own budget ends it.
const LOOP_CALLS_MAX: u32 = 40;
/// Payments asked for while the service flaps.
const FLAP_ORDERS: u32 = 12;
/// Payments asked for while the service is down.
const OUTAGE_CALLS: u32 = 20;
/// How long the service takes to turn somebody away.
const OUTAGE_DELAY: Duration = Duration::from_millis(120);
/// How long the demo waits for the command it is about to kill.
const CRASH_WAIT_MAX: Duration = Duration::from_secs(20);

/// Whether Holdfast's layers are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Run {
    Without,
    With,
}

/// What was counted in one run of a scene.
#[derive(Debug, Clone, Copy, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Counts {
    /// Calls the model (or its host) made.
    pub(super) calls: u32,
    /// Lines in the ledger.
    pub(super) effects: u32,
    /// Effects beyond the one that was meant per order.
    pub(super) duplicates: u32,
    /// Executions and requests that brought nothing.
    pub(super) wasted: u32,
    /// Files that were there before and are gone at the end.
    pub(super) lost: u32,
    /// Wall time.
    pub(super) elapsed_ms: u64,
}

/// A scene and what was counted in its two runs.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SceneResult {
    pub(super) scene: &'static str,
    pub(super) without: Counts,
    pub(super) with: Counts,
}

impl SceneResult {
    /// With Holdfast nothing happened twice, and nothing was lost.
    pub(super) fn promise_kept(&self) -> bool {
        self.with.duplicates == 0 && self.with.lost == 0
    }
}

/// Plays every scene twice.
pub(super) async fn play_all(dir: &Path, narrate: bool) -> Outcome<Vec<SceneResult>> {
    let mut results = Vec::new();
    for scene in Scene::ALL {
        report::announce(narrate, scene.title(), scene.story());
        let mut counted = [Counts::default(); 2];
        for (slot, run) in counted.iter_mut().zip([Run::Without, Run::With]) {
            let stage = Stage::new(dir, scene, run, narrate)?;
            let begun = Instant::now();
            *slot = scene.play(&stage).await?;
            stage.narrator.flush();
            slot.elapsed_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
            report::outcome(narrate, run, slot);
        }
        let [without, with] = counted;
        results.push(SceneResult {
            scene: scene.title(),
            without,
            with,
        });
    }
    Ok(results)
}

#[derive(Debug, Clone, Copy)]
enum Scene {
    EmptyArguments,
    PaymentTimeout,
    Flapping,
    Outage,
    Crash,
    Removal,
}

impl Scene {
    const ALL: [Self; 6] = [
        Self::EmptyArguments,
        Self::PaymentTimeout,
        Self::Flapping,
        Self::Outage,
        Self::Crash,
        Self::Removal,
    ];

    fn title(self) -> &'static str {
        match self {
            Self::EmptyArguments => "empty arguments in a loop",
            Self::PaymentTimeout => "a payment that times out",
            Self::Flapping => "a flapping service",
            Self::Outage => "an outage",
            Self::Crash => "a crash in mid-call",
            Self::Removal => "a project removed",
        }
    }

    fn story(self) -> &'static str {
        match self {
            Self::EmptyArguments => {
                "The model calls read({}) and, told that `path` is missing, calls read({}) again."
            }
            Self::PaymentTimeout => {
                "The service books the payment and answers too late. The host delivers the call \
                 again, then the model asks again under a new id."
            }
            Self::Flapping => {
                "The service turns every fourth payment away. Twelve orders are to be paid."
            }
            Self::Outage => "The service is down. The model keeps trying.",
            Self::Crash => {
                "The process that runs `echo paid >> ledger` is killed with -9 before it can say \
                 so. The host restarts and delivers the call again."
            }
            Self::Removal => {
                "The model runs `rm -rf .git src`. Then a person runs `holdfast undo`."
            }
        }
    }

    async fn play(self, stage: &Stage) -> Outcome<Counts> {
        match self {
            Self::EmptyArguments => empty_arguments(stage).await,
            Self::PaymentTimeout => payment_timeout(stage).await,
            Self::Flapping => flapping(stage).await,
            Self::Outage => outage(stage).await,
            Self::Crash => crash(stage).await,
            Self::Removal => removal(stage).await,
        }
    }
}

/// Where one run of a scene plays: its own workspace, state and ledger.
struct Stage {
    run: Run,
    dir: PathBuf,
    narrator: Narrator,
}

impl Stage {
    fn new(base: &Path, scene: Scene, run: Run, narrate: bool) -> Outcome<Self> {
        let dir = base.join(format!("{scene:?}-{run:?}").to_lowercase());
        std::fs::create_dir_all(dir.join("workspace"))
            .map_err(|error| Failure::failed(format!("{}: {error}", dir.display())))?;
        Ok(Self {
            run,
            dir,
            narrator: Narrator::new(narrate),
        })
    }

    fn workspace(&self) -> PathBuf {
        self.dir.join("workspace")
    }

    fn state(&self) -> PathBuf {
        self.dir.join("state")
    }

    fn ledger(&self) -> PathBuf {
        self.workspace().join("ledger")
    }

    fn effects(&self) -> u32 {
        let text = std::fs::read_to_string(self.ledger()).unwrap_or_default();
        u32::try_from(text.lines().count()).unwrap_or(u32::MAX)
    }

    fn service(&self, temper: Temper) -> Outcome<Service> {
        Service::start(temper, self.ledger()).map_err(|error| {
            Failure::failed(format!("the demo's service can not be started: {error}"))
        })
    }

    /// The real stack, with the base tools and perhaps the payment tool.
    fn stack(&self, pay: Option<PayTool>) -> Outcome<Running> {
        let mut config = Config::default();
        config.reliability.enabled = self.run == Run::With;
        // Short waits, so that the demo is over soon; the shape is the same.
        config.reliability.retry.base_ms = Some(20);
        config.reliability.retry.max_retry_delay_ms = Some(100);
        config.guard.log_path = self.dir.join("tool-guard.log").display().to_string();
        let temporary = self.dir.join("tmp").display().to_string();
        config.confinement.temporary = Some(temporary);
        if self.run == Run::Without {
            // Nothing is kept, and nobody is asked about it.
            config.undo.points_max = 0;
            config.permissions.gate = Gate::None;
        }
        let mut tools = config.tools();
        let app = App::for_demo(config, self.state());
        if let Some(pay) = pay {
            tools.push(Arc::new(pay) as Arc<dyn Tool>);
        }
        app.stack_with(&self.workspace(), tools)
    }

    fn tell(&self, result: &ToolResultEnvelope, what: &str) {
        self.narrator.step(what, result);
    }
}

fn envelope(tool: &str, params: &Value, turn: &str) -> ToolCallEnvelope {
    let params = params.as_object().cloned().unwrap_or_default();
    let request = new_request_id(&SystemClock, &SystemEntropy);
    let mut envelope = ToolCallEnvelope::new(request, tool, params, "demo", "demo");
    envelope.target.turn_id = Some(turn.to_owned());
    envelope.target.model_id = Some("scripted-model".to_owned());
    envelope
}

async fn call(stack: &ToolStack, envelope: ToolCallEnvelope) -> ToolResultEnvelope {
    stack.call(envelope).await
}

async fn empty_arguments(stage: &Stage) -> Outcome<Counts> {
    let running = stage.stack(None)?;
    let mut counts = Counts::default();
    for _ in 0..LOOP_CALLS_MAX {
        let result = call(&running.stack, envelope("read", &json!({}), "turn-1")).await;
        counts.calls += 1;
        counts.wasted += 1;
        stage.tell(&result, "read({})");
        // The host ends the turn when it is told that no tool runs any more.
        if result.error_code() == Some("tool_error_limit")
            || result
                .error
                .as_ref()
                .is_some_and(|error| error.message.contains("[TOOL ERROR LIMIT]"))
        {
            break;
        }
    }
    Ok(counts)
}

async fn payment_timeout(stage: &Stage) -> Outcome<Counts> {
    let service = stage.service(Temper::BooksThenStalls(Duration::from_millis(700)))?;
    let running = stage.stack(Some(PayTool::new(service.address(), 250)))?;
    let mut counts = Counts::default();
    let mut first = envelope("pay", &json!({"order": "order-17"}), "turn-1");
    first.payload.idempotency_key = Some("order-17".to_owned());
    // The host delivers the same call again after a failure, as transports do.
    for _ in 0..3 {
        let result = call(&running.stack, first.clone()).await;
        counts.calls += 1;
        stage.tell(&result, "pay(order-17), delivered");
        if result.is_success() || result.error.as_ref().is_some_and(|error| error.terminal) {
            break;
        }
    }
    // Two payments of one model, each under a fresh id: an echo of itself.
    for _ in 0..2 {
        let result = call(
            &running.stack,
            envelope("pay", &json!({"order": "order-18"}), "turn-2"),
        )
        .await;
        counts.calls += 1;
        stage.tell(&result, "pay(order-18), asked under a new id");
    }
    counts.effects = stage.effects();
    counts.duplicates = counts.effects.saturating_sub(2);
    counts.wasted = service.requests().saturating_sub(2);
    Ok(counts)
}

async fn flapping(stage: &Stage) -> Outcome<Counts> {
    let service = stage.service(Temper::Flaps)?;
    let running = stage.stack(Some(PayTool::new(service.address(), 1_000)))?;
    let mut counts = Counts::default();
    for number in 0..FLAP_ORDERS {
        // A model that gets an error thinks again and repeats the call, at the price of a turn.
        for turn in 0..4 {
            let order = format!("order-{number}");
            let turn = format!("turn-{number}-{turn}");
            let result = call(
                &running.stack,
                envelope("pay", &json!({"order": order}), &turn),
            )
            .await;
            counts.calls += 1;
            stage.tell(&result, "pay(…)");
            if result.is_success() {
                break;
            }
            counts.wasted += 1;
        }
    }
    counts.effects = stage.effects();
    counts.duplicates = counts.effects.saturating_sub(FLAP_ORDERS);
    Ok(counts)
}

async fn outage(stage: &Stage) -> Outcome<Counts> {
    let service = stage.service(Temper::Down(OUTAGE_DELAY))?;
    let running = stage.stack(Some(PayTool::new(service.address(), 1_000)))?;
    let mut counts = Counts::default();
    for number in 0..OUTAGE_CALLS {
        let order = format!("order-{number}");
        let mut asked = envelope("pay", &json!({"order": order}), &format!("turn-{number}"));
        asked.transport.retry_budget.max_attempts = 2;
        let result = call(&running.stack, asked).await;
        counts.calls += 1;
        stage.tell(&result, "pay(…)");
    }
    counts.wasted = service.requests();
    counts.effects = stage.effects();
    Ok(counts)
}

async fn crash(stage: &Stage) -> Outcome<Counts> {
    // Slow the first time only: there the process dies while it waits. That it was slow is noted
    // before the effect, at which it is killed.
    const COMMAND: &str =
        "test -e slow; again=$?; touch slow; echo paid >> ledger; test $again = 0 || exec sleep 30";
    let mut counts = Counts::default();
    let program = std::env::current_exe().map_err(|error| {
        Failure::failed(format!("the demo can not find its own program: {error}"))
    })?;
    // The host delivers the call until it gets an answer; its first process dies on the way.
    let mut child = spawn_call(stage, &program, COMMAND)?;
    counts.calls += 1;
    let begun = Instant::now();
    while stage.effects() == 0 && begun.elapsed() < CRASH_WAIT_MAX {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // SIGKILL: no drop, no handler, nothing written.
    let _ = child.kill();
    let _ = child.wait();
    stage
        .narrator
        .line("exec(echo paid >> ledger): killed with -9 in the middle");
    let answered = spawn_call(stage, &program, COMMAND)?
        .wait_with_output()
        .map_err(|error| Failure::failed(error.to_string()))?;
    counts.calls += 1;
    if let Ok(result) = serde_json::from_slice::<ToolResultEnvelope>(&answered.stdout) {
        stage.tell(&result, "exec(echo paid >> ledger), delivered again");
    }
    counts.effects = stage.effects();
    counts.duplicates = counts.effects.saturating_sub(1);
    counts.wasted = counts.duplicates;
    Ok(counts)
}

async fn removal(stage: &Stage) -> Outcome<Counts> {
    const COMMAND: &str = "rm -rf .git src";
    let workspace = stage.workspace();
    let files = [
        ".git/HEAD",
        ".git/refs/heads/main",
        "src/main.rs",
        "src/lib.rs",
        "README.md",
    ]
    .map(|name| workspace.join(name));
    for file in &files {
        let made = std::fs::create_dir_all(file.parent().unwrap_or(&workspace))
            .and_then(|()| std::fs::write(file, file.display().to_string()));
        made.map_err(|error| Failure::failed(format!("{}: {error}", file.display())))?;
    }
    let running = stage.stack(None)?;
    let asked = envelope("exec", &json!({ "command": COMMAND }), "turn-1");
    let result = call(&running.stack, asked).await;
    stage.tell(&result, "exec(rm -rf .git src)");
    if stage.run == Run::With {
        let undone = undo(stage, &result)?;
        stage.narrator.line(&format!(
            "holdfast undo: {} brought back",
            output::counted(undone, "path")
        ));
    }
    let lost = files.iter().filter(|file| !file.exists()).count();
    Ok(Counts {
        calls: 1,
        effects: 1,
        lost: u32::try_from(lost).unwrap_or(u32::MAX),
        ..Counts::default()
    })
}

/// What `holdfast undo` does; how many paths came back.
fn undo(stage: &Stage, result: &ToolResultEnvelope) -> Outcome<u64> {
    let store = App::for_demo(Config::default(), stage.state()).undo_store();
    let undone = store.and_then(|store| {
        store.undo_in(&stage.workspace(), &result.request_id, &Options::default())
    });
    let undone = undone.map_err(|error| Failure::failed(error.to_string()))?;
    Ok(undone.restored.len() as u64)
}

/// `holdfast call` in a process of its own.
fn spawn_call(stage: &Stage, program: &Path, command: &str) -> Outcome<std::process::Child> {
    std::process::Command::new(program)
        .args(["call", "exec", "--json", "--key", "order-17", "--args"])
        .arg(json!({"command": command}).to_string())
        .arg("--workspace")
        .arg(stage.workspace())
        .arg("--state")
        .arg(stage.state())
        .env(
            environment::ENABLED,
            if stage.run == Run::With {
                "true"
            } else {
                "false"
            },
        )
        .env("HOME", &stage.dir)
        .env("TMPDIR", &stage.dir)
        .env_remove("HOLDFAST_CONFIG")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| {
            Failure::failed(format!("{} can not be started: {error}", program.display()))
        })
}
