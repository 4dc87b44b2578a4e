//! `holdfast sessions`

use std::process::ExitCode;
use std::sync::Arc;

use holdfast_contract::SessionKind;
use holdfast_contract::time::rfc3339;
use holdfast_reliability::store::documents::DocumentStore;
use holdfast_toolbox::session::model::{
    BRANCH_DEPTH_MAX, Session, SessionArtifact, SessionState, SessionStatus, Suspension,
    WORKER_DEPTH_MAX,
};
use holdfast_toolbox::session::overview::overview;
use holdfast_toolbox::session::{SessionTree, TreeError, step};
use serde_json::{Value, json};

use super::approvals::{bare_runtime, by_a_person};
use crate::app::{App, runtime};
use crate::args::sessions::SessionsCommand;
use crate::fail::{Failure, Outcome};
use crate::output::{self, harmless};

pub(super) fn run(app: &App, command: &SessionsCommand, json: bool) -> Outcome<ExitCode> {
    let store = app.open_documents()?.common;
    runtime()?.block_on(async {
        let now_ms = app.clock.now_ms();
        let sessions = overview(&*store).await?.into_iter();
        let sessions = sessions.map(|it| as_of(it, now_ms)).collect::<Vec<_>>();
        match command {
            SessionsCommand::List { all } => list(app, sessions, *all, json),
            SessionsCommand::Show { id } => show(app, found(&sessions, id)?, json),
            SessionsCommand::Cancel { id, main: true } => {
                let tree = tree(app, store)?;
                let told = tree.cancel_main(id).await?;
                cancelled(app, &tree, &told, json).await?;
            }
            SessionsCommand::Cancel { id, main: false } => {
                let id = &found(&sessions, id)?.id;
                let tree = tree(app, store)?;
                let told = tree.cancel(id).await?;
                cancelled(app, &tree, &told, json).await?;
            }
            SessionsCommand::Reopen { id } => {
                let id = found(&sessions, id)?.id.clone();
                reopen(app, store, &id, json).await?;
            }
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// A session as it stands now: one that was told to end has ended when its time to wrap up is over,
/// whether or not anybody has written that down.
fn as_of(session: Session, now_ms: u64) -> Session {
    let ended = session.end_by_ms.and_then(|_| step::tick(&session, now_ms));
    ended.unwrap_or(session)
}

/// The session with this name, or the only one whose name begins like it.
fn found<'a>(sessions: &'a [Session], typed: &str) -> Outcome<&'a Session> {
    if let Some(exact) = sessions.iter().find(|session| session.id == typed) {
        return Ok(exact);
    }
    let mut alike = sessions
        .iter()
        .filter(|session| !typed.is_empty() && session.id.starts_with(typed));
    match (alike.next(), alike.next()) {
        (Some(only), None) => Ok(only),
        (None, _) => Err(Failure::failed(format!("there is no session {typed:?}")).hint(
            "`holdfast sessions list --all` shows them. The session of calls that has made none below \
             it is in no list: `holdfast sessions cancel NAME --main`.",
        )),
        (Some(_), Some(_)) => Err(Failure::failed(format!(
            "several sessions begin with {typed:?}"
        ))
        .hint("Type more of its name.")),
    }
}

/// The tree, for a person.
fn tree(app: &App, store: Arc<dyn DocumentStore>) -> Outcome<SessionTree> {
    by_a_person("sessions are ended and opened again by people")?;
    let limits = app.config.sessions.clone();
    Ok(SessionTree::new(
        store,
        bare_runtime(app),
        limits,
        Vec::new(),
    ))
}

async fn reopen(app: &App, store: Arc<dyn DocumentStore>, id: &str, json: bool) -> Outcome<()> {
    let fresh = tree(app, store)?.reopen(id).await?;
    if json {
        output::json(&view(app, &fresh));
    } else {
        output::line(&format!("{} can be used again.", harmless(id)));
    }
    Ok(())
}

async fn cancelled(app: &App, tree: &SessionTree, told: &Session, json: bool) -> Outcome<()> {
    // Those whose time was over, and whose process is gone, are ended on the way.
    tree.tick().await?;
    if json {
        output::json(&view(app, told));
        return Ok(());
    }
    let left_ms = told.end_by_ms.unwrap_or_default();
    let left_ms = left_ms.saturating_sub(app.clock.now_ms());
    let time = output::duration(left_ms);
    output::line(&format!(
        "{} is told to end, and is ended in {time} if it has not by then.",
        harmless(&told.id)
    ));
    if told.is_cancelled_main() {
        output::line("No tool runs in it any more. `holdfast sessions reopen` lets it go on.");
    }
    Ok(())
}

impl From<TreeError> for Failure {
    fn from(error: TreeError) -> Self {
        Self::failed(error.to_string())
    }
}

fn list(app: &App, mut sessions: Vec<Session>, all: bool, json: bool) {
    if !all {
        sessions.retain(|session| !session.state.has_ended());
    }
    if json {
        let shown: Vec<Value> = sessions.iter().map(|it| view(app, it)).collect();
        output::json(&shown);
        return;
    }
    if sessions.is_empty() {
        output::line(if all {
            "There are no sessions."
        } else {
            "No session is at work. `holdfast sessions list --all` also shows those that ended."
        });
        return;
    }
    let now_ms = app.clock.now_ms();
    let rows = sessions.iter().map(|session| {
        let indent = "  ".repeat(usize::try_from(session.depth).unwrap_or_default());
        vec![
            format!("{indent}{}", harmless(&session.id)),
            session.kind.name().to_owned(),
            state(session).to_owned(),
            harmless(&session.agent_id),
            output::ago(session.created_at_ms, now_ms),
            time_left(session, now_ms),
            tokens(session),
            children(app, session),
        ]
    });
    let header = [
        "session",
        "kind",
        "state",
        "agent",
        "made",
        "time left",
        "tokens",
        "children",
    ];
    output::line(&output::table(&header, rows));
}

fn show(app: &App, session: &Session, json: bool) {
    if json {
        output::json(&view(app, session));
        return;
    }
    let now_ms = app.clock.now_ms();
    let redactor = app.config.redactor();
    let text = |text: &str| harmless(&redactor.redact_text(text));
    let mut rows = vec![
        ("session", harmless(&session.id)),
        ("kind", session.kind.name().to_owned()),
        ("state", state(session).to_owned()),
        ("agent", harmless(&session.agent_id)),
        (
            "workspace",
            harmless(&session.workspace_root.display().to_string()),
        ),
        (
            "depth",
            format!("{} of {}", session.depth, depth_max(session.kind)),
        ),
        ("made", rfc3339(session.created_at_ms)),
        ("time left", time_left(session, now_ms)),
        ("tokens", tokens(session)),
        ("children", children(app, session)),
    ];
    if let Some(parent) = &session.parent {
        rows.insert(2, ("parent", harmless(parent)));
    }
    if let Some(told) = &session.context_summary {
        rows.push(("was told", text(told)));
    }
    if let Some(result) = &session.result {
        rows.push(("ended", status(result.status).to_owned()));
        rows.push(("result", text(&result.summary)));
        let artifacts = result
            .artifacts
            .iter()
            .map(|it| ("made", text(artifact(it))));
        rows.extend(artifacts);
        let memories = result.memory_ids.iter().map(|it| ("memory", harmless(it)));
        rows.extend(memories);
    }
    let rows = rows
        .into_iter()
        .map(|(name, value)| vec![name.to_owned(), value]);
    output::line(&output::table(&["", ""], rows));
}

/// A session for programs. What it was told and what it gave back are foreign text.
fn view(app: &App, session: &Session) -> Value {
    let now_ms = app.clock.now_ms();
    let mut text = json!({"contextSummary": session.context_summary, "result": session.result});
    app.config.redactor().redact_value_in_place(&mut text);
    json!({
        "id": session.id,
        "kind": session.kind.name(),
        "parent": session.parent,
        "depth": session.depth,
        "agent": session.agent_id,
        "workspace": session.workspace_root,
        "state": state(session),
        "createdAt": rfc3339(session.created_at_ms),
        "endBy": session.end_by_ms.map(rfc3339),
        "limits": {
            "depthMax": depth_max(session.kind),
            "childrenMax": app.config.sessions.children_max,
            "expiresAt": session.expires_at_ms.map(rfc3339),
            "timeLeftMs": end_ms(session).map(|end_ms| end_ms.saturating_sub(now_ms)),
            "tokenBudget": session.tokens.budget,
        },
        "tokensSpent": session.tokens.spent,
        "children": session.children,
        "contextSummary": text["contextSummary"],
        "result": text["result"],
    })
}

fn depth_max(kind: SessionKind) -> u32 {
    match kind {
        SessionKind::Main => 0,
        SessionKind::Branch => BRANCH_DEPTH_MAX,
        SessionKind::Worker => WORKER_DEPTH_MAX,
    }
}

fn state(session: &Session) -> &'static str {
    match session.state {
        SessionState::Active if session.end_by_ms.is_some() => "ending",
        SessionState::Active => "active",
        SessionState::Suspended {
            why: Suspension::Spending,
        } => "suspended: spends too fast",
        SessionState::Suspended {
            why: Suspension::Asked,
        } => "suspended",
        SessionState::Completed => "completed",
        SessionState::Failed => "failed",
        SessionState::Expired => "expired",
    }
}

fn status(status: SessionStatus) -> &'static str {
    match status {
        SessionStatus::Completed => "well",
        SessionStatus::Failed => "badly",
        SessionStatus::Cancelled => "because it was told to",
        SessionStatus::Expired => "because its time was over",
    }
}

fn artifact(artifact: &SessionArtifact) -> &str {
    match artifact {
        SessionArtifact::File { path } => path,
        SessionArtifact::Blob { name, .. } => name,
        SessionArtifact::Reference { uri } => uri,
    }
}

/// When its time is over, by what comes first.
fn end_ms(session: &Session) -> Option<u64> {
    let ends = [session.expires_at_ms, session.end_by_ms];
    ends.into_iter().flatten().min()
}

fn time_left(session: &Session, now_ms: u64) -> String {
    match end_ms(session) {
        _ if session.state.has_ended() => String::new(),
        None => "no limit".to_owned(),
        Some(end_ms) if end_ms <= now_ms => "over".to_owned(),
        Some(end_ms) => output::duration(end_ms - now_ms),
    }
}

fn tokens(session: &Session) -> String {
    let spent = session.tokens.spent;
    match session.tokens.budget {
        Some(budget) => format!("{spent} of {budget}"),
        None => spent.to_string(),
    }
}

fn children(app: &App, session: &Session) -> String {
    match session.kind {
        SessionKind::Worker => String::new(),
        SessionKind::Main | SessionKind::Branch => {
            let max = app.config.sessions.children_max;
            format!("{} of {max}", session.children.len())
        }
    }
}
