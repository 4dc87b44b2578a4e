//! `holdfast call`

mod words;

use std::io::{IsTerminal, Read, Write as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use holdfast_contract::clock::new_request_id;
use holdfast_contract::twice::repeated_member;
use holdfast_contract::{
    CallHints, ErrorCode, SystemEntropy, ToolCallEnvelope, ToolResultEnvelope,
};
use holdfast_toolbox::stack::Answered;
use holdfast_toolbox::tools::exec;
use serde_json::{Map, Value};
use tokio::signal::unix::{SignalKind, signal};

use crate::app::{App, runtime, workspace_id};
use crate::args::CallArgs;
use crate::fail::{Failure, Outcome};
use crate::output::{self, harmless};
use crate::running::Running;

/// The session of calls that name none.
const DEFAULT_SESSION: &str = "cli";
/// The actor of calls that name none. Not the user's name: a key has to mean the same from a login
/// shell and from cron, and the state directory is one user's anyway.
const DEFAULT_ACTOR: &str = "local";
/// Arguments and envelopes are read up to this size.
const INPUT_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// How long a command that was cut off may take to end before we go without it.
const EXEC_END_WAIT: Duration = Duration::from_secs(3);

const LEFT_BEHIND: &str = "What it left in the background ended with this call. In a run, and under `holdfast serve`, \
                           it lives until the call's time is up.";

pub(super) fn run(app: &App, args: &CallArgs, json: bool) -> Outcome<ExitCode> {
    let source = args.args.as_deref().map(arguments).transpose()?;
    let runtime = runtime()?;
    let running = app.stack(&args.workspace)?;
    let input = input(app, args, source.unwrap_or_default(), &running)?;
    let Answered {
        mut result,
        receipt,
    } = runtime.block_on(answer(&running, input))?;
    if runtime.block_on(running.written_back()) > 0 {
        say_unrecorded(&mut result);
    }
    // A command that was cut off is being ended, gently first; our own end would be abrupt.
    exec::wait_until_idle(EXEC_END_WAIT);
    say_ended(&mut result);
    if json {
        output::json(&result);
    } else {
        print(&result);
    }
    if let Some(receipt) = receipt
        && std::io::stdout().flush().is_ok()
    {
        runtime.block_on(receipt.delivered());
    }
    // The answer is out before anything else: a slow collector must not hold it back.
    running.finish();
    runtime.block_on(running.tidy());
    write_metrics(&running, args)?;
    Ok(exit_code(&result))
}

/// What a command left in the background has ended by now: nothing outlives this process.
fn say_ended(result: &mut ToolResultEnvelope) {
    let ran_here = !result.from_cache && result.tool_name == "exec";
    let output = result.output.as_mut().filter(|_| ran_here);
    let Some(content) = output.map(|it| &mut it.content) else {
        return;
    };
    if content["still_running"] == true {
        let content = Arc::make_mut(content);
        content["still_running"] = false.into();
        // It may be told already why something was forbidden.
        let hints = [content["hint"].as_str(), Some(LEFT_BEHIND)];
        content["hint"] = hints
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(" ")
            .into();
    }
}

/// A call that could not be understood is bad usage, however it was written.
fn exit_code(result: &ToolResultEnvelope) -> ExitCode {
    let code = result.error.as_ref().map(|error| error.code.as_str());
    if result.is_success() {
        ExitCode::SUCCESS
    } else if code == Some(ErrorCode::InvalidEnvelope.as_str()) {
        ExitCode::from(2)
    } else {
        ExitCode::from(1)
    }
}

/// Says, in the answer and on standard error, that nobody else will know of it.
fn say_unrecorded(result: &mut ToolResultEnvelope) {
    let what = if result.attempts > 0 {
        "Redis is away and did not take the record of this call: when its lease ends, the same key \
         is answered with outcome_unknown, although the outcome is the one told here."
    } else {
        "Redis is away and did not take the claim of this call back: the same key waits until its \
         lease ends."
    };
    output::note(what);
    if let Some(found) = &mut result.output {
        let metadata = found.metadata.get_or_insert_default();
        let told = metadata
            .entry("advisory")
            .or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(told) = told {
            told.push(what.into());
        }
    }
    if let Some(error) = &mut result.error {
        let hint = error.hint.get_or_insert_default();
        if !hint.is_empty() {
            hint.push(' ');
        }
        hint.push_str(what);
    }
}

/// What to call.
enum Input {
    Built(Box<ToolCallEnvelope>),
    Foreign(Vec<u8>),
}

/// Answers, or stops when the person presses Ctrl-C or the system asks us to end: the call is
/// then dropped like one whose caller went away, so that its record says what is known.
async fn answer(running: &Running, input: Input) -> Outcome<Answered> {
    let unheard =
        |error: std::io::Error| Failure::failed(format!("signals can not be listened to: {error}"));
    let mut interrupt = signal(SignalKind::interrupt()).map_err(unheard)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(unheard)?;
    let cancelled = async {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    };
    let answered = async {
        match input {
            Input::Built(envelope) => running.stack.answer_until(*envelope, cancelled).await,
            // It can not be read, so nothing of it is kept.
            Input::Foreign(bytes) => Answered {
                result: running.stack.call_bytes_until(&bytes, cancelled).await,
                receipt: None,
            },
        }
    };
    tokio::pin!(answered);
    tokio::select! {
        biased;
        result = &mut answered => return Ok(result),
        () = running.say_what_is_waited_for() => {}
    }
    Ok(answered.await)
}

fn input(
    app: &App,
    args: &CallArgs,
    given: Map<String, Value>,
    running: &Running,
) -> Outcome<Input> {
    if let Some(source) = &args.envelope {
        let bytes = if source == "-" {
            read_stdin()?
        } else {
            read_file(source)?
        };
        return Ok(match ToolCallEnvelope::parse(&bytes) {
            Ok(mut envelope) => {
                let target = &mut envelope.target;
                target.workspace_id = target
                    .workspace_id
                    .take()
                    .or_else(|| workspace_id(&args.workspace));
                Input::Built(Box::new(envelope))
            }
            // Answered by the stack, which says what is wrong.
            Err(_) => Input::Foreign(bytes),
        });
    }
    let tool = args.tool.clone().unwrap_or_default();
    // A tool that does not exist is answered by the stack, which names the closest ones.
    let given = match running.stack.registry().resolve(&tool) {
        Some(found) if !args.words.is_empty() => {
            words::arguments(&tool, &found.tool.parameters_schema(), &args.words)?
        }
        _ => given,
    };
    let mut envelope = ToolCallEnvelope::new(
        args.request
            .clone()
            .unwrap_or_else(|| new_request_id(&*app.clock, &SystemEntropy)),
        tool,
        given,
        args.session
            .clone()
            .unwrap_or_else(|| DEFAULT_SESSION.to_owned()),
        args.actor
            .clone()
            .unwrap_or_else(|| DEFAULT_ACTOR.to_owned()),
    );
    envelope.target.workspace_id = workspace_id(&args.workspace);
    envelope.tool_call_id.clone_from(&args.call_id);
    envelope.target.agent_id.clone_from(&args.agent);
    envelope.target.turn_id.clone_from(&args.turn);
    envelope.target.run_id.clone_from(&args.run);
    if is_by_hand(args) {
        // Five typos of a person are no loop.
        envelope.target.turn_id = Some(envelope.request_id.clone());
    }
    envelope.target.model_id.clone_from(&args.model);
    envelope.payload.idempotency_key.clone_from(&args.key);
    envelope.payload.call_hints = args.timeout_ms.map(|timeout_ms| CallHints {
        timeout_ms: Some(timeout_ms),
        ..CallHints::default()
    });
    if let Some(mode) = args.dedupe {
        envelope.transport.dedupe_mode = mode.into();
    }
    envelope.control.deadline_at_ms = args
        .deadline_ms
        .map(|limit_ms| app.clock.now_ms().saturating_add(limit_ms));
    Ok(Input::Built(Box::new(envelope)))
}

/// Whether a person types this call at a terminal, and it belongs to nothing that somebody named.
fn is_by_hand(args: &CallArgs) -> bool {
    let named = [
        &args.turn,
        &args.run,
        &args.session,
        &args.call_id,
        &args.agent,
    ];
    named.iter().all(|name| name.is_none())
        && std::io::stdin().is_terminal()
        && std::io::stderr().is_terminal()
}

fn arguments(source: &str) -> Outcome<Map<String, Value>> {
    let text = match source.strip_prefix('@') {
        Some(path) => read_file(path)?,
        None if source == "-" => read_stdin()?,
        None => source.as_bytes().to_vec(),
    };
    let value: Value = serde_json::from_slice(&text).map_err(|error| {
        Failure::usage(format!("--args is not valid JSON: {error}"))
            .hint("Quote it for the shell: --args '{\"path\": \"README.md\"}', or use @FILE.")
    })?;
    if let Some(name) = repeated_member(&text, &value) {
        return Err(Failure::usage(format!(
            "--args has {name:?} twice in one object"
        )));
    }
    match value {
        Value::Object(arguments) => Ok(arguments),
        // No arguments, in the words of some models; the tool's schema says whether that is wrong.
        Value::Null => Ok(Map::new()),
        _ => Err(Failure::usage(
            "--args has to be a JSON object, such as {\"path\": \"README.md\"}",
        )),
    }
}

fn read_file(path: &str) -> Outcome<Vec<u8>> {
    let file = std::fs::File::open(path)
        .map_err(|error| Failure::usage(format!("{path} can not be read: {error}")))?;
    read_all(file, path)
}

fn read_stdin() -> Outcome<Vec<u8>> {
    read_all(std::io::stdin().lock(), "standard input")
}

fn read_all(source: impl Read, name: &str) -> Outcome<Vec<u8>> {
    let mut bytes = Vec::new();
    source
        .take(INPUT_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::usage(format!("{name} can not be read: {error}")))?;
    if bytes.len() as u64 > INPUT_BYTES_MAX {
        return Err(Failure::usage(format!(
            "{name} is larger than {INPUT_BYTES_MAX} bytes"
        )));
    }
    Ok(bytes)
}

fn write_metrics(running: &Running, args: &CallArgs) -> Outcome<()> {
    let Some(target) = &args.metrics else {
        return Ok(());
    };
    let text = running.metrics.encode();
    let written = if target == "-" {
        std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes())
    } else {
        std::fs::write(target, text)
    };
    written.map_err(|error| {
        Failure::failed(format!(
            "the metrics can not be written to {target}: {error}"
        ))
    })
}

/// A readable summary.
pub(super) fn print(result: &ToolResultEnvelope) {
    let exit_code = result
        .output
        .as_ref()
        .and_then(|it| it.content["exit_code"].as_i64());
    let (mark, outcome) = match exit_code.filter(|code| *code != 0) {
        // The call worked, and what it ran did not.
        Some(code) if result.is_success() => {
            (output::yellow("!"), format!("ran, and ended with {code}"))
        }
        _ if result.is_success() => (output::green("✓"), result.status.as_str().to_owned()),
        _ => (output::red("✗"), result.status.as_str().to_owned()),
    };
    let attempts = match result.attempts {
        0 => "no attempt".to_owned(),
        1 => "1 attempt".to_owned(),
        several => format!("{several} attempts"),
    };
    let cached = match &result.cache {
        Some(hit) => format!(
            ", from the record of {}",
            output::duration(hit.age_ms) + " ago"
        ),
        None => String::new(),
    };
    // A malformed envelope may have neither a tool nor a request.
    let request = match result.request_id.as_str() {
        "" => String::new(),
        id => format!(", request {id}"),
    };
    let tool = match result.tool_name.as_str() {
        "" => "call",
        name => name,
    };
    output::line(&format!(
        "{mark} {} {} {}",
        output::bold(tool),
        outcome,
        output::dim(&format!(
            "({attempts}, {}{cached}{request})",
            output::duration(result.duration_ms),
        ))
    ));
    for retry in &result.retried_by {
        output::line(&output::dim(&format!(
            "  attempt {} failed with {}, waited {}",
            retry.attempt,
            retry.reason_code,
            output::duration(retry.delay_ms)
        )));
    }
    if let Some(found) = &result.output {
        let metadata = found.metadata.as_ref();
        if let Some(display) = metadata
            .and_then(|map| map.get("display"))
            .and_then(Value::as_str)
        {
            output::line(&harmless(display));
        }
        print_content(&found.content);
        for text in metadata
            .and_then(|map| map.get("advisory"))
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            output::line(&output::yellow(&harmless(
                text.as_str().unwrap_or_default(),
            )));
        }
    }
    if let Some(error) = &result.error {
        output::line(&format!(
            "{}: {}",
            output::bold(&harmless(&error.code)),
            harmless(&error.message)
        ));
        if let Some(hint) = &error.hint {
            output::line(&format!("{} {hint}", output::dim("hint:")));
        }
        if let Some(details) = &error.details {
            print_content(details);
        }
    }
}

/// Texts as texts, the rest as JSON: a person wants to see what a command printed.
fn print_content(content: &Value) {
    let Value::Object(fields) = content else {
        match content.as_str() {
            Some(text) => output::line(&harmless(text)),
            None => output::pretty_json(content),
        }
        return;
    };
    for (name, value) in fields {
        match value {
            Value::String(text) if text.contains('\n') => {
                output::line(&format!(
                    "{}:\n{}",
                    output::dim(name),
                    harmless(text.trim_end_matches('\n'))
                ));
            }
            Value::String(text) => {
                output::line(&format!("{}: {}", output::dim(name), harmless(text)));
            }
            other => output::line(&format!("{}: {other}", output::dim(name))),
        }
    }
}
