//! `holdfast run` and `holdfast resume`: the loop at the terminal.

mod screen;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use holdfast_agent::chat::{Message, Role};
use holdfast_agent::run::{Ending, RunState, Telling};
use holdfast_agent::runs::{
    Keeping, KeptRun, Listener, Lost, Outcome as Ended, ResumeError, RunStoreError, Runs,
};
use holdfast_contract::clock::new_request_id;
use holdfast_toolbox::tools::exec;
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};

use self::screen::{Screen, short};
use crate::app::{App, runtime};
use crate::args::executor::{ModelArgs, ResumeArgs, RunArgs};
use crate::executor;
use crate::executor_file::{self, Stdout};
use crate::fail::{Failure, Outcome};
use crate::output;
use crate::running::Running;

/// Who asks for runs at the terminal.
const CLIENT: &str = "local";
/// The model's name in runs at the terminal, as clients of the server would say it.
const MODEL: &str = "gpt-oss";
/// How long a command that was cut off may take to end before we go without it.
const EXEC_END_WAIT: Duration = Duration::from_secs(3);

pub(super) fn run(app: &App, args: &RunArgs, json: bool) -> Outcome<ExitCode> {
    let mut messages = Vec::new();
    if let Some(rules) = &args.system {
        messages.push(Message::text(Role::System, rules.clone()));
    }
    messages.push(Message::text(Role::User, args.task.clone()));
    let mut settings = executor_file::settings(&app.config);
    if let Some(seconds) = args.timeout {
        settings.run_timeout_ms = seconds.saturating_mul(1000);
    }
    if let Some(most) = args.max_iterations {
        settings.max_iterations = most;
    }
    with_runs(app, &args.workspace, &args.model, json, async |runs| {
        let state = {
            let runtime = runs.agent().stack().runtime();
            let id = new_request_id(&*runtime.clock, &*runtime.entropy);
            let now_ms = runtime.clock.now_ms();
            let id = format!("run-{id}");
            let mut state = RunState::new(id, MODEL, messages, settings, now_ms);
            if !json && screen::is_watched() {
                state.telling = Telling::AsItComes;
            }
            state
        };
        let begun = runs.start(state, CLIENT, Keeping::Durable).await;
        begun.map_err(|error| Failure::failed(error.to_string()))
    })
}

pub(super) fn resume(app: &App, args: &ResumeArgs, json: bool) -> Outcome<ExitCode> {
    let Some(id) = &args.run else {
        return list(app, &args.workspace, json);
    };
    if executor::model(app, &args.model)?.is_none() {
        find(app, &args.workspace, id)?;
    }
    with_runs(app, &args.workspace, &args.model, json, async |runs| {
        runs.resume(id).await.map_err(|error| match &error {
            ResumeError::Store(RunStoreError::Elsewhere(_, workspace)) => {
                Failure::usage(error.to_string()).hint(format!("Add --workspace {workspace}"))
            }
            _ => Failure::failed(error.to_string()),
        })
    })
}

/// Whoever mistypes a run, or has none to go on with, need not look for a model first.
fn find(app: &App, workspace: &Path, id: &str) -> Outcome<()> {
    let running: Running = app.stack(workspace)?;
    let failed = |error: RunStoreError| Failure::failed(error.to_string());
    runtime()?.block_on(async {
        let store = executor::store(app, &running, workspace)?;
        let found = store.get(id).await.map_err(failed)?;
        match found.state.ending() {
            Some(_) => Err(failed(RunStoreError::Ended(id.to_owned()))),
            None => Ok(()),
        }
    })
}

/// Puts the loop together, lets `begin` begin a run, and follows it to its end.
fn with_runs(
    app: &App,
    workspace: &Path,
    args: &ModelArgs,
    json: bool,
    begin: impl AsyncFnOnce(&Arc<Runs>) -> Outcome<Listener>,
) -> Outcome<ExitCode> {
    let model = executor::model(app, args)?.ok_or_else(|| {
        Failure::usage("there is no model to ask").hint(
            "Say where its server is with --model-url URL, HOLDFAST_MODEL_URL or executor.modelUrl.",
        )
    })?;
    let runtime = runtime()?;
    let running = app.stack_for_runs(workspace)?;
    let code = runtime.block_on(async {
        let runs = executor::runs(app, &running, workspace, model, Stdout::Taken)?;
        let mut listener = begin(&runs).await?;
        let has_log = app.logs_to_stderr() || executor_file::logs_between(&app.config);
        let screen = Screen::new(json, has_log);
        follow(&runs, &mut listener, screen, json).await
    })?;
    exec::wait_until_idle(EXEC_END_WAIT);
    running.finish();
    runtime.block_on(running.tidy());
    Ok(code)
}

/// The unfinished runs of a directory.
fn list(app: &App, workspace: &Path, json: bool) -> Outcome<ExitCode> {
    let running: Running = app.stack(workspace)?;
    let now_ms = app.clock.now_ms();
    let shown = runtime()?.block_on(async {
        let store = executor::store(app, &running, workspace)?;
        let mut shown = Vec::new();
        let mut after = None;
        loop {
            let page = store.abandoned(after.as_deref()).await?;
            // A line of each: whole they could be larger than memory.
            shown.extend(page.runs.iter().map(|run| row(run, now_ms)));
            after = page.next;
            if after.is_none() {
                return Ok::<_, Failure>(shown);
            }
        }
    })?;
    if json {
        let rows: Vec<Value> = shown.into_iter().map(|(row, _)| row).collect();
        output::json(&rows);
        return Ok(ExitCode::SUCCESS);
    }
    if shown.is_empty() {
        output::line("Nothing was left unfinished here.");
    }
    for (_, line) in shown {
        output::line(&output::harmless_line(&line));
    }
    Ok(ExitCode::SUCCESS)
}

/// An unfinished run for programs, and for people.
fn row(run: &KeptRun, now_ms: u64) -> (Value, String) {
    let id = &run.state.id;
    let asked = run.state.messages.iter().find(|it| it.role == Role::User);
    let asked = asked.map_or("", |message| message.content.as_str());
    let ago = output::ago(run.kept_at_ms, now_ms);
    (
        json!({"id": id, "iterations": run.state.iteration, "keptAtMs": run.kept_at_ms}),
        format!("{id}  {ago}  {}", short(asked)),
    )
}

/// Tells what happens until it is over. Ctrl-C leaves the run as it was last kept.
async fn follow(
    runs: &Runs,
    listener: &mut Listener,
    mut screen: Screen,
    json: bool,
) -> Outcome<ExitCode> {
    let unheard =
        |error: std::io::Error| Failure::failed(format!("signals can not be listened to: {error}"));
    let mut interrupt = signal(SignalKind::interrupt()).map_err(unheard)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(unheard)?;
    if json {
        output::json(&json!({"event": "begins", "run": listener.run()}));
    } else {
        output::note(&format!("· {}", listener.run()));
    }
    let mut left = Left::ForAServer;
    loop {
        let happened = tokio::select! {
            happened = listener.next() => happened,
            () = screen.is_due() => {
                screen.redraw(&listener.thinking());
                continue;
            }
            _ = interrupt.recv() => {
                runs.leave().await;
                // What is not noted is gone on with by the next server, as after a crash.
                if runs.store().set_aside(listener.run()).await.is_ok() {
                    left = Left::ForSomebody;
                }
                break;
            }
            _ = terminate.recv() => break runs.leave().await,
        };
        match happened {
            Some(event) if json => output::json(&event),
            Some(event) => screen.tell(&event),
            None => break,
        }
    }
    screen.wipe();
    let outcome = listener.outcome().await;
    Ok(match &*outcome {
        Ended::Ended(state) => over(state, json, &mut screen),
        Ended::Left => {
            left.tell(listener.run(), json);
            ExitCode::from(1)
        }
        Ended::Lost(why) => {
            let failure = Failure::failed(why.to_string());
            return Err(match why {
                Lost::Away(_) => {
                    failure.hint(format!("`holdfast resume {}` goes on.", listener.run()))
                }
                _ => failure,
            });
        }
    })
}

/// Who goes on with a run that was left unfinished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    /// Somebody who says so: a person has stopped it.
    ForSomebody,
    /// The next server that starts here, by itself.
    ForAServer,
}

impl Left {
    fn tell(self, run: &str, json: bool) {
        if json {
            let by_itself = self == Self::ForAServer;
            output::json(&json!({"event": "left", "run": run, "goesOnByItself": by_itself}));
            return;
        }
        let goes_on = format!("`holdfast resume {run}`, with the same options, goes on");
        output::note(&match self {
            Self::ForSomebody => format!("Left unfinished; {goes_on}."),
            Self::ForAServer => format!(
                "Left unfinished; the next `holdfast serve` in this directory goes on with it by \
                 itself, or {goes_on} now."
            ),
        });
    }
}

/// What the model wanted at the end and nothing came of.
fn tell_not_done(state: &RunState) {
    for wish in &state.not_done {
        let arguments = Value::Object(wish.arguments.clone()).to_string();
        output::note(&format!(
            "✗ not done: {} {}: {}",
            wish.tool,
            short(&arguments),
            wish.why
        ));
    }
}

/// The answer to standard output, the rest beside it.
fn over(state: &RunState, json: bool, screen: &mut Screen) -> ExitCode {
    let (said, error) = match state.ending() {
        Some(Ending::Answered { content, .. } | Ending::Calls { content, .. }) => {
            (Some(content.as_str()), None)
        }
        Some(Ending::Failed(error)) => (None, Some(error.to_string())),
        Some(Ending::Cancelled) | None => (None, Some("the run was cancelled".to_owned())),
    };
    if json {
        let code = match state.ending() {
            Some(Ending::Failed(error)) => Some(error.code.as_str()),
            _ => None,
        };
        output::json(&json!({
            "event": "ended",
            "run": state.id,
            "content": said,
            "error": error.as_ref().map(|message| json!({"code": code, "message": message})),
            "iterations": state.iteration,
            "notDone": state.not_done,
            "toolsCalled": state.tools_called,
            "toolsMs": state.tools_ms,
            "totalTokens": state.tokens_total(),
        }));
    } else if let Some(content) = said {
        screen.answer(content);
        tell_not_done(state);
    } else if let Some(why) = &error {
        output::note(&format!("✗ {why}"));
        if !state.content.trim().is_empty() {
            output::note(&format!("The last thing the model said: {}", state.content));
        }
        tell_not_done(state);
    }
    let is_given_up = matches!(state.ending(), Some(Ending::Answered { cut_off: true, .. }))
        && state.is_used_up()
        && state.context.finish != "length";
    if error.is_none() && !is_given_up {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    }
}
