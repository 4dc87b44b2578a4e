//! `holdfast approvals`

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use holdfast_agent::runs::RunStore;
use holdfast_contract::redact::Redactor;
use holdfast_contract::time::rfc3339;
use holdfast_contract::{Answer, Audience, SystemEntropy, visible};
use holdfast_reliability::observe::Observers;
use holdfast_reliability::runtime::Runtime;
use holdfast_toolbox::approval::{
    AnswerError, Approval, ApprovalState, Approvals, Heard, ResumeWhich, Resumed, ResumedBy,
    resume_open,
};
use holdfast_toolbox::token::{APPROVER_TOKEN_FILE, Token};
use holdfast_toolbox::tools::exec;
use serde_json::{Value, json};

use super::call;
use crate::app::{App, runtime};
use crate::args::approvals::ApprovalsCommand;
use crate::executor;
use crate::fail::{Failure, Outcome};
use crate::output::{self, harmless};
use crate::secrets;

/// A longer message is no answer.
const REPLY_BYTES_MAX: u64 = 64 * 1024;
/// Characters of an id that are enough to name a request.
const ID_PREFIX_MIN: usize = 3;

pub(super) fn run(app: &App, command: ApprovalsCommand, json: bool) -> Outcome<ExitCode> {
    if let ApprovalsCommand::Resume = command {
        return resume(app, json);
    }
    let approvals = approvals(app)?;
    runtime()?.block_on(async {
        match command {
            ApprovalsCommand::List { all } => list(app, &approvals, all, json).await,
            ApprovalsCommand::Show { id } => show(app, &approvals, &id, json).await,
            ApprovalsCommand::Approve { id, covers, by } => {
                let scope = covers.into();
                answer(
                    app,
                    &approvals,
                    &id,
                    &Answer::Approve { scope },
                    &by.by,
                    json,
                )
                .await
            }
            ApprovalsCommand::Deny { id, reason, by } => {
                answer(app, &approvals, &id, &Answer::Deny { reason }, &by.by, json).await
            }
            ApprovalsCommand::Reply { message, from } => {
                person_only(app)?;
                reply(app, &approvals, &message, &from, json).await
            }
            ApprovalsCommand::Rules => rules(app, &approvals, json).await,
            ApprovalsCommand::Revoke { rule, by } => {
                person_only(app)?;
                revoke(&approvals, &rule, &by.by, json).await
            }
            ApprovalsCommand::Resume => Ok(ExitCode::SUCCESS),
        }
    })
}

fn approvals(app: &App) -> Outcome<Approvals> {
    Ok(app.approvals(&app.open_documents()?, bare_runtime(app)))
}

/// Time and randomness for what makes no calls.
pub(super) fn bare_runtime(app: &App) -> Arc<Runtime> {
    let mut runtime = Runtime::new(app.clock.clone(), Arc::new(SystemEntropy), Observers::new());
    runtime.redactor = secrets::redactor(app);
    Arc::new(runtime)
}

/// Refuses what a tool has started, and says what people do themselves.
pub(super) fn by_a_person(rule: &str) -> Outcome<()> {
    if exec::is_inside_a_tool() {
        let why = format!("{rule}, and this was started by a tool");
        return Err(Failure::failed(why));
    }
    Ok(())
}

/// Answers are for people: the token is in reach of the state's owner alone, and what a tool has
/// started is not its owner even if it runs under the same name.
pub(super) fn person_only(app: &App) -> Outcome<()> {
    by_a_person("approvals are answered by people")?;
    Token::read_or_make(&app.state_dir.join(APPROVER_TOKEN_FILE))
        .map(|_| ())
        .map_err(|error| Failure::failed(error.to_string()))
}

async fn list(app: &App, approvals: &Approvals, all: bool, json: bool) -> Outcome<ExitCode> {
    let now_ms = app.clock.now_ms();
    let mut found = approvals.list().await?;
    for why in approvals.unread().values() {
        output::note(why);
    }
    if !all {
        found.retain(|approval| approval.is_open(now_ms));
    }
    if json {
        let shown: Vec<Value> = found.iter().map(|it| view(app, it)).collect();
        output::json(&shown);
        return Ok(ExitCode::SUCCESS);
    }
    if found.is_empty() {
        output::line("Nothing waits for an answer.");
        return Ok(ExitCode::SUCCESS);
    }
    let redactor = app.config.redactor();
    let rows = found.iter().map(|approval| {
        let prompt = approval.prompt(Audience::Approver, &redactor);
        let reason = prompt.reasons.first().map(|reason| reason.text.clone());
        let state = approval.state_at(now_ms);
        let left = match state {
            ApprovalState::Pending => output::duration(prompt.expires_at_ms.saturating_sub(now_ms)),
            _ => String::new(),
        };
        let state = match (&state, &approval.undelivered) {
            (ApprovalState::Pending, Some(_)) => "pending, not delivered".to_owned(),
            (state, _) => state.as_str().to_owned(),
        };
        vec![
            approval.id.clone(),
            state,
            left,
            prompt.tool,
            reason.unwrap_or_default(),
            prompt.origin_session,
        ]
    });
    let header = [
        "approval",
        "state",
        "time left",
        "tool",
        "because",
        "session",
    ];
    output::line(&output::table(&header, rows));
    for approval in &found {
        if let Some(why) = &approval.undelivered {
            let channel = &approval.request.channel;
            let text = format!("{} was not shown on {channel}: {why}", approval.id);
            output::line(&output::yellow(&harmless(&text)));
        }
    }
    output::line("`holdfast approvals show ID` shows all that one of them would run.");
    Ok(ExitCode::SUCCESS)
}

/// A request as programs see it that show it to whoever answers: exactly what runs.
fn view(app: &App, approval: &Approval) -> Value {
    view_for(app, approval, Audience::Approver)
}

fn view_for(app: &App, approval: &Approval, audience: Audience) -> Value {
    approval.view(audience, &secrets::redactor(app), app.clock.now_ms())
}

async fn show(app: &App, approvals: &Approvals, id: &str, json: bool) -> Outcome<ExitCode> {
    let found = find(approvals, id).await?;
    let value = view(app, &found);
    if json {
        output::json(&value);
        return Ok(ExitCode::SUCCESS);
    }
    let prompt = found.prompt(Audience::Approver, &app.config.redactor());
    let state = found.state_at(app.clock.now_ms());
    let mut lines = vec![
        format!("approval   {} ({})", prompt.id, state.as_str()),
        format!(
            "tool       {} ({:?}, gate {:?})",
            prompt.tool, prompt.tier, prompt.gate
        ),
        format!("arguments  {}", prompt.arguments),
        format!("digest     {}", found.request.digest),
    ];
    for reason in &prompt.reasons {
        lines.push(format!("because    {}", reason.text));
    }
    lines.push(format!("workspace  {}", prompt.workspace));
    lines.push(format!(
        "asked by   {} in session {}, on {}",
        prompt.actor, prompt.origin_session, found.request.channel
    ));
    if let Some(why) = &found.undelivered {
        lines.push(format!("not shown  {why}"));
    }
    lines.push(format!(
        "asked at   {}",
        rfc3339(found.request.requested_at_ms)
    ));
    lines.push(format!("expires    {}", rfc3339(prompt.expires_at_ms)));
    output::line(&harmless(&lines.join("\n")));
    Ok(ExitCode::SUCCESS)
}

/// The request with this id, or the only one that begins like it.
async fn find(approvals: &Approvals, id: &str) -> Outcome<Approval> {
    let id = id.to_ascii_lowercase();
    if let Some(found) = approvals.get(&id).await? {
        return Ok(found);
    }
    let mut alike = approvals.list().await?;
    alike.retain(|approval| id.len() >= ID_PREFIX_MIN && approval.id.starts_with(&id));
    match alike.len() {
        1 => Ok(alike.remove(0)),
        0 => Err(
            Failure::failed(format!("there is no approval request {id:?}"))
                .hint("`holdfast approvals list --all` shows them."),
        ),
        count => Err(Failure::usage(format!(
            "{count} approval requests begin with {id:?}"
        ))),
    }
}

async fn answer(
    app: &App,
    approvals: &Approvals,
    id: &str,
    answer: &Answer,
    by: &str,
    json: bool,
) -> Outcome<ExitCode> {
    person_only(app)?;
    let found = find(approvals, id).await?;
    let answered = approvals
        .answer(&found.id, answer, by)
        .await
        .map_err(|error| {
            let failure = Failure::failed(error.to_string());
            match error {
                AnswerError::Refused { .. } => {
                    failure.hint("`holdfast approvals show ID` says how it stands.")
                }
                _ => failure,
            }
        })?;
    if json {
        output::json(&view(app, &answered));
    } else {
        output::line(&format!("{} is {}.", answered.id, answered.state.as_str()));
        if matches!(answer, Answer::Approve { .. }) {
            output::line(
                "The call goes on where it waits. If its process is gone, `holdfast approvals \
                 resume` runs it.",
            );
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn rules(app: &App, approvals: &Approvals, json: bool) -> Outcome<ExitCode> {
    let rules = approvals.rules().await?;
    if json {
        output::json(&rules);
        return Ok(ExitCode::SUCCESS);
    }
    if rules.is_empty() {
        output::line("No answer has made a rule yet.");
        return Ok(ExitCode::SUCCESS);
    }
    let now_ms = app.clock.now_ms();
    let rows = rules.iter().map(|rule| {
        let reasons: Vec<&str> = rule.reasons.iter().map(|it| it.subject.as_str()).collect();
        vec![
            rule.id.clone(),
            rule.tool.clone(),
            visible::line(&reasons.join("; ")).into_owned(),
            match &rule.session {
                Some(session) => format!("session {}", harmless(session)),
                None => format!("agent {}", harmless(&rule.agent)),
            },
            harmless(&rule.by),
            output::ago(rule.at_ms, now_ms),
        ]
    });
    let header = ["rule", "tool", "covers", "for", "by", "since"];
    output::line(&output::table(&header, rows));
    Ok(ExitCode::SUCCESS)
}

/// A message of a channel, handed on by whatever listens there.
async fn reply(
    app: &App,
    approvals: &Approvals,
    message: &str,
    from: &str,
    json: bool,
) -> Outcome<ExitCode> {
    let mut text = message.to_owned();
    if message == "-" {
        text.clear();
        let read = std::io::stdin()
            .take(REPLY_BYTES_MAX)
            .read_to_string(&mut text);
        read.map_err(|error| Failure::usage(format!("the message can not be read: {error}")))?;
    }
    match approvals.heard(&text, from).await {
        Ok(Heard::NoAnswer) => {
            if json {
                output::json(&json!({"answered": false}));
            } else {
                output::line("The message is no answer.");
            }
            Ok(ExitCode::SUCCESS)
        }
        Ok(Heard::Answered(answered)) => {
            let state = answered.state_at(app.clock.now_ms());
            if json {
                let shown = view_for(app, &answered, Audience::Readers);
                output::json(&json!({"answered": true, "approval": shown}));
            } else {
                output::line(&format!("{} is {}.", answered.id, state.as_str()));
            }
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => Err(Failure::failed(error.to_string())),
    }
}

async fn revoke(approvals: &Approvals, rule: &str, by: &str, json: bool) -> Outcome<ExitCode> {
    let revoked = approvals
        .revoke(rule, by)
        .await
        .map_err(|error| Failure::failed(error.to_string()))?;
    if !revoked {
        return Err(Failure::failed(format!("there is no rule {rule:?}"))
            .hint("`holdfast approvals rules` lists them."));
    }
    if json {
        output::json(&json!({"revoked": rule}));
    } else {
        output::line(&format!("{rule} is revoked."));
    }
    Ok(ExitCode::SUCCESS)
}

/// Enters what was approved again, each where it was to work.
fn resume(app: &App, json: bool) -> Outcome<ExitCode> {
    person_only(app)?;
    let runtime = runtime()?;
    let now_ms = app.clock.now_ms();
    let approvals = approvals(app)?;
    let open = runtime.block_on(approvals.open_requests())?;
    let mut by_workspace: BTreeMap<PathBuf, Vec<Approval>> = BTreeMap::new();
    for approval in open {
        if matches!(approval.state_at(now_ms), ApprovalState::Approved { .. }) {
            let root = approval.request.workspace_root.clone();
            by_workspace.entry(root).or_default().push(approval);
        }
    }
    let mut ended = Ended {
        unread: approvals.unread(),
        ..Ended::default()
    };
    for (workspace, approved) in by_workspace {
        // What came of the others is told, whatever is wrong with this one.
        match resume_in(app, &runtime, &workspace, approved) {
            Ok(resumed) => ended.resumed.extend(resumed),
            Err(failure) => ended.failed.push((workspace, failure)),
        }
    }
    tell_resumed(&ended, &app.config.redactor(), json);
    Ok(if ended.is_well() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    })
}

/// What came of all that was entered again.
#[derive(Default)]
struct Ended {
    resumed: Vec<Resumed>,
    /// Where nothing could be entered, and why.
    failed: Vec<(PathBuf, Failure)>,
    /// Which could not be read, and why.
    unread: BTreeMap<String, String>,
}

impl Ended {
    fn is_well(&self) -> bool {
        self.failed.is_empty()
            && self.unread.is_empty()
            && self.resumed.iter().all(Resumed::is_well)
    }
}

fn resume_in(
    app: &App,
    runtime: &tokio::runtime::Runtime,
    workspace: &Path,
    approved: Vec<Approval>,
) -> Outcome<Vec<Resumed>> {
    let running = app.stack(workspace)?;
    let runs = executor::store(app, &running, workspace)?;
    let which = ResumeWhich::These(runtime.block_on(of_no_run(&runs, approved)));
    let resumed = runtime.block_on(resume_open(&running.stack, &running.approvals, &which));
    running.finish();
    runtime.block_on(running.tidy());
    Ok(resumed?)
}

/// The calls that are no run's: a run makes its own again when it is gone on with, and a run that has
/// ended wants none.
async fn of_no_run(runs: &RunStore, approved: Vec<Approval>) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    for approval in approved {
        let run = approval.request.envelope.target.run_id.as_deref();
        let is_a_runs = match run {
            Some(run) => runs.is_known(run).await,
            None => false,
        };
        if !is_a_runs {
            ids.insert(approval.id);
        }
    }
    ids
}

/// What came of each: whoever asked for it is gone, so nobody else is told.
fn tell_resumed(ended: &Ended, redactor: &Redactor, json: bool) {
    if json {
        let resumed = ended.resumed.iter().map(resumed_json);
        let failed = ended.failed.iter().map(|(workspace, failure)| {
            json!({"workspace": workspace.display().to_string(), "trouble": failure.message})
        });
        let unread = ended.unread.iter();
        let unread = unread.map(|(id, why)| json!({"approval": id, "trouble": why}));
        output::json(&resumed.chain(failed).chain(unread).collect::<Vec<Value>>());
        return;
    }
    if ended.resumed.is_empty() && ended.failed.is_empty() {
        output::line("Nothing approved waits to be run.");
    }
    for it in &ended.resumed {
        let prompt = it.approval.prompt(Audience::Approver, redactor);
        let text = format!("{} {}", prompt.id, prompt.arguments);
        output::line(&output::dim(&harmless(&text)));
        match it.by {
            ResumedBy::Us => call::print(&it.result),
            ResumedBy::Another => output::line("gone on with by another call"),
        }
        if let Some(trouble) = &it.trouble {
            output::note(&format!("what became of {}: {trouble}", prompt.id));
        }
    }
    for why in ended.unread.values() {
        output::note(why);
    }
    for (workspace, failure) in &ended.failed {
        let (place, why) = (workspace.display(), &failure.message);
        output::note(&format!("nothing was run in {place}: {why}"));
    }
}

fn resumed_json(it: &Resumed) -> Value {
    let mut shown = json!({"approval": it.approval.id, "result": it.result});
    if it.by == ResumedBy::Another {
        shown["goneOnWith"] = json!("by another call");
    }
    if let Some(trouble) = &it.trouble {
        shown["trouble"] = json!(trouble.to_string());
    }
    shown
}
