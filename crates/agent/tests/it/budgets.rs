//! A run's budget covers its subagents, across restarts.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use holdfast_agent::chat::{Message, Role};
use holdfast_agent::context::spend::CostSettings;
use holdfast_agent::model::{Model, ModelError, ModelReply, ModelRequest};
use holdfast_agent::run::{Ending, Loop, RunErrorCode, RunState, TokensUsed};
use holdfast_agent::runs::{Keeping, Listener, Outcome, Owner, RunStore, Runs, RunsLimits};
use holdfast_agent::settings::RunSettings;
use holdfast_agent::subagents::Subagents;
use holdfast_contract::SessionContext;
use holdfast_reliability::observe::Observers;
use holdfast_reliability::runtime::Runtime;
use holdfast_reliability::store::documents::DocumentStore;
use holdfast_reliability::store::memory::{MemoryDocumentStore, MemoryLimits};
use holdfast_testkit::wait::until;
use holdfast_testkit::{SeededEntropy, TokioClock};
use holdfast_toolbox::session::{SessionLimits, SessionTree};
use holdfast_toolbox::stack::{Parts, Stores, ToolStack};
use parking_lot::Mutex;
use serde_json::{Value, json};

/// What each answer takes.
const EACH: u64 = 100;

/// Says what the script says to a task, by how often it was asked; `None` is never answered.
struct Tasks {
    script: Says,
    asked: Mutex<Vec<String>>,
}

impl Tasks {
    fn asked(&self, task: &str) -> usize {
        self.asked.lock().iter().filter(|it| *it == task).count()
    }
}

fn task_of(request: &ModelRequest) -> &str {
    let messages = request.body["messages"].as_array();
    let mut messages = messages.map_or(&[][..], Vec::as_slice).iter();
    let first = messages.find(|message| message["role"] == "user");
    first
        .and_then(|message| message["content"].as_str())
        .unwrap_or_default()
}

#[async_trait]
impl Model for Tasks {
    async fn complete(&self, request: &ModelRequest) -> Result<ModelReply, ModelError> {
        let task = task_of(request);
        let before = self.asked(task);
        self.asked.lock().push(task.to_owned());
        // Long enough for those who work side by side to be side by side.
        tokio::time::sleep(Duration::from_millis(10)).await;
        match (self.script)(task, before) {
            Some(content) => Ok(ModelReply {
                content,
                tokens: TokensUsed {
                    prompt: EACH - 10,
                    completion: 10,
                },
                ..ModelReply::default()
            }),
            None => std::future::pending().await,
        }
    }
}

fn call(tool: &str, arguments: &Value) -> String {
    format!("Thought: next\nAction: {tool}\nAction Input: {arguments}\n")
}

fn spawn(task: &str) -> String {
    call("sessions_spawn", &json!({ "task": task }))
}

fn in_background(task: &str) -> String {
    call("sessions_spawn", &json!({"task": task, "background": true}))
}

fn look() -> String {
    call("sessions_list", &json!({"waitSeconds": 1}))
}

/// What the model says to a task, the so-manyth time it is asked.
type Says = fn(&str, usize) -> Option<String>;

/// One process on the documents.
struct Process {
    model: Arc<Tasks>,
    runs: Arc<Runs>,
    settings: RunSettings,
}

fn process(
    documents: &Arc<dyn DocumentStore>,
    clock: &Arc<TokioClock>,
    script: Says,
    settings: RunSettings,
) -> Process {
    let runtime = Arc::new(Runtime::new(
        clock.clone(),
        Arc::new(SeededEntropy::new(7)),
        Observers::new(),
    ));
    let tree = Arc::new(SessionTree::new(
        documents.clone(),
        runtime.clone(),
        SessionLimits::default(),
        Vec::new(),
    ));
    let subagents = Subagents::new(tree, settings.clone());
    let otherwise = Arc::new(|envelope: &holdfast_contract::ToolCallEnvelope| {
        let key = &envelope.target.session_key;
        Arc::new(SessionContext::main(key, "main", "/nonexistent".into()))
    });
    let stores = Stores::memory(&runtime, MemoryLimits::default());
    let parts = Parts::new(runtime, stores, subagents.sessions(otherwise));
    let stack = Arc::new(ToolStack::new(parts.with_tools(subagents.tools())).expect("a stack"));
    let model = Arc::new(Tasks {
        script,
        asked: Mutex::default(),
    });
    let store = RunStore::new(
        documents.clone(),
        clock.clone(),
        Owner::alone("one"),
        "/work",
    );
    let runs = Runs::new(
        Loop::new(model.clone(), stack),
        store,
        RunsLimits::default(),
    );
    runs.adopt(subagents);
    Process {
        model,
        runs,
        settings,
    }
}

fn alone(script: Says, settings: RunSettings) -> Process {
    let clock = Arc::new(TokioClock::new());
    let documents: Arc<dyn DocumentStore> = Arc::new(MemoryDocumentStore::new(clock.clone()));
    process(&documents, &clock, script, settings)
}

fn tokens(most: u64) -> RunSettings {
    RunSettings {
        tokens_max: Some(most),
        ..RunSettings::default()
    }
}

impl Process {
    async fn begin(&self) -> Listener {
        let messages = vec![Message::text(Role::User, "main")];
        let now_ms = self.runs.agent().stack().runtime().clock.now_ms();
        let state = RunState::new("a", "gpt-oss", messages, self.settings.clone(), now_ms);
        let begun = self.runs.start(state, "local", Keeping::Durable).await;
        begun.expect("begins")
    }
}

async fn code(mut listener: Listener) -> Option<RunErrorCode> {
    match &*listener.outcome().await {
        Outcome::Ended(state) => match state.ending() {
            Some(Ending::Failed(error)) => Some(error.code),
            _ => None,
        },
        _ => None,
    }
}

/// The main run asks for one child, and both look without end.
const ONE_CHILD: Says = |task, _| {
    Some(match task {
        "main" => spawn("child"),
        _ => look(),
    })
};

#[tokio::test(start_paused = true)]
async fn a_subagent_gets_what_is_left_and_spends_its_parents_tokens() {
    let process = alone(ONE_CHILD, tokens(350));
    let code = code(process.begin().await).await;
    assert_eq!(code, Some(RunErrorCode::BudgetExceeded));
    // 250 were left for it, which are reached with its third answer; then none are left for anybody.
    let asked = (process.model.asked("main"), process.model.asked("child"));
    assert_eq!(asked, (1, 3));
}

#[tokio::test(start_paused = true)]
async fn what_a_subagent_costs_its_parent_pays() {
    let settings = RunSettings {
        cost: CostSettings {
            input_per_million: 10_000.0,
            output_per_million: 10_000.0,
            run_max: Some(3.5),
        },
        ..RunSettings::default()
    };
    let process = alone(ONE_CHILD, settings);
    let code = code(process.begin().await).await;
    assert_eq!(code, Some(RunErrorCode::BudgetExceeded));
    let asked = (process.model.asked("main"), process.model.asked("child"));
    assert_eq!(asked, (1, 3), "an answer costs one");
}

#[tokio::test(start_paused = true)]
async fn subagents_side_by_side_share_what_is_left() {
    let process = alone(
        |task, before| match (task, before) {
            ("main", 0) => Some([in_background("one"), in_background("two")].concat()),
            _ => Some(look()),
        },
        tokens(450),
    );
    let code = code(process.begin().await).await;
    assert_eq!(code, Some(RunErrorCode::BudgetExceeded));
    // Each question is looked at before it is asked, so those who ask at once may be a question over.
    let all = process.model.asked.lock().len() as u64;
    assert!((5..=7).contains(&all), "{all} questions of {EACH}");
}

#[tokio::test(start_paused = true)]
async fn what_subagents_have_spent_is_known_after_a_restart() {
    let clock = Arc::new(TokioClock::new());
    let documents: Arc<dyn DocumentStore> = Arc::new(MemoryDocumentStore::new(clock.clone()));
    let first = process(
        &documents,
        &clock,
        |task, before| match (task, before) {
            ("main", 0) => Some(spawn("child")),
            ("main", _) => None,
            _ => Some("Final Answer: done".to_owned()),
        },
        tokens(250),
    );
    let _listener = first.begin().await;
    until("it is asked again", async || first.model.asked("main") >= 2).await;
    first.runs.leave().await;
    let next = process(&documents, &clock, |_, _| Some(look()), tokens(250));
    let code = code(next.runs.resume("a").await.expect("goes on")).await;
    assert_eq!(code, Some(RunErrorCode::BudgetExceeded));
    // Its own 200 would have left it another question.
    assert_eq!(next.model.asked("main"), 1);
}

/// A budget of a session covers the sessions below it, as that of a run does.
#[tokio::test(start_paused = true)]
async fn the_budget_of_a_subagent_covers_its_own_subagents() {
    let process = alone(
        |task, before| match (task, before) {
            ("main", 0) => Some(call(
                "sessions_spawn",
                &json!({"task": "child", "tokenBudget": 350}),
            )),
            ("main", _) => Some("Final Answer: done".to_owned()),
            ("child", _) => Some(spawn("grandchild")),
            _ => Some(look()),
        },
        RunSettings::default(),
    );
    let mut listener = process.begin().await;
    assert!(matches!(&*listener.outcome().await, Outcome::Ended(state)
        if matches!(state.ending(), Some(Ending::Answered { .. }))));
    let asked = process.model.asked("child") + process.model.asked("grandchild");
    assert_eq!(asked, 4, "one of the child, and three of its own");
}

/// One that is suspended waits for its parent, and must not be waited for by it.
#[tokio::test(start_paused = true)]
async fn nobody_waits_for_a_subagent_that_is_suspended() {
    let process = alone(
        |task, before| match (task, before) {
            ("main", 0) => Some(call(
                "sessions_spawn",
                &json!({"task": "child", "tokenBudget": EACH + EACH / 2, "background": true}),
            )),
            // Once until it is suspended, and once while it is.
            ("main", 1 | 2) => Some(call("sessions_list", &json!({"waitSeconds": 100}))),
            ("main", _) => Some("Final Answer: done".to_owned()),
            _ => Some(look()),
        },
        RunSettings::default(),
    );
    let mut listener = process.begin().await;
    let outcome = listener.outcome().await;
    let Outcome::Ended(state) = &*outcome else {
        panic!("{outcome:?}")
    };
    let told: Vec<&str> = state
        .messages
        .iter()
        .map(|it| it.content.as_str())
        .collect();
    let told = told.join("\n");
    assert_eq!(told.matches("suspended").count(), 2, "{told}");
    assert_eq!(process.model.asked("child"), 1);
    assert!(state.tools_ms < 1_000, "{} ms", state.tools_ms);
}
