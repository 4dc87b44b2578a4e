//! `holdfast trust`

use std::io::Read as _;
use std::process::ExitCode;

use holdfast_contract::{SessionContext, Trust};
use holdfast_toolbox::trust::{Speaker, TrustBook};
use holdfast_trust::signal::{Findings, SIGNAL_TEXT_BYTES_MAX, scan};
use serde_json::{Value, json};

use super::approvals::{bare_runtime, person_only};
use crate::app::{App, runtime};
use crate::args::trust::{From, SessionArgs, TrustCommand, TrustLevel};
use crate::fail::{Failure, Outcome};
use crate::output::{self, harmless};

pub(super) fn run(app: &App, command: TrustCommand, json: bool) -> Outcome<ExitCode> {
    match command {
        TrustCommand::Scan { file, trust } => scanned(app, &file, trust, json),
        TrustCommand::Manifests { tool } => manifests(app, tool.as_deref(), json),
        TrustCommand::List { session } => {
            let book = book(app)?;
            runtime()?.block_on(list(app, &book, session.as_deref(), json))
        }
        TrustCommand::Message {
            session,
            from,
            text,
        } => {
            let book = book(app)?;
            person_only(app)?;
            let text = if text == "-" { read("-")? } else { text };
            runtime()?.block_on(message(&book, &session, from, &text, json))
        }
        TrustCommand::Clear { session } => {
            let book = book(app)?;
            person_only(app)?;
            let cleared = runtime()?.block_on(book.clear(&session))?;
            if json {
                output::json(&json!({"cleared": cleared}));
            } else {
                output::line(&format!("Forgot what {cleared} sessions have read."));
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn book(app: &App) -> Outcome<TrustBook> {
    Ok(app.trust_book(app.open_documents()?.common, bare_runtime(app)))
}

async fn list(app: &App, book: &TrustBook, session: Option<&str>, json: bool) -> Outcome<ExitCode> {
    let now_ms = app.clock.now_ms();
    let found = book.sessions(session).await?;
    if json {
        let shown: Vec<Value> = found
            .iter()
            .map(|(id, known)| {
                let [agent, session, workspace] = parts(id);
                json!({"session": session, "agent": agent, "workspace": workspace,
                       "trust": known.trust(), "provenance": known.provenance,
                       "held": known.held(now_ms), "holds": known.holds})
            })
            .collect();
        output::json(&shown);
        return Ok(ExitCode::SUCCESS);
    }
    if found.is_empty() {
        output::line("No session has read anything.");
        return Ok(ExitCode::SUCCESS);
    }
    let rows = found.iter().map(|(id, known)| {
        let [agent, session, workspace] = parts(id);
        let sources = known.provenance.chain().map(|link| link.source.as_str());
        let held = known.held(now_ms).map_or(String::new(), |hold| {
            let left = output::duration(hold.until_ms.saturating_sub(now_ms));
            let findings = Findings {
                id: hold.id.clone(),
                found: hold.findings.clone(),
            };
            format!("{left}, {} from {}", findings.summary(), hold.source)
        });
        vec![
            harmless(session),
            harmless(agent),
            harmless(workspace),
            known.trust().as_str().to_owned(),
            harmless(&sources.collect::<Vec<_>>().join(", ")),
            harmless(&held),
        ]
    });
    let header = ["session", "agent", "workspace", "trust", "has read", "held"];
    output::line(&output::table(&header, rows));
    Ok(ExitCode::SUCCESS)
}

/// Agent, session and workspace.
fn parts(id: &str) -> [&str; 3] {
    let mut parts = id.splitn(3, '\u{1f}');
    std::array::from_fn(|_| parts.next().unwrap_or_default())
}

async fn message(
    book: &TrustBook,
    of: &SessionArgs,
    from: From,
    text: &str,
    json: bool,
) -> Outcome<ExitCode> {
    let workspace = of.workspace.canonicalize().map_err(|error| {
        let shown = of.workspace.display();
        Failure::usage(format!("the workspace {shown} can not be used: {error}"))
    })?;
    let session = SessionContext::main(&of.session, &of.agent, workspace);
    let speaker = match from {
        From::User => Speaker::User,
        From::Stranger => Speaker::Stranger,
    };
    let findings = book.heard(&session, speaker, text).await?;
    let known = book.session(&session).await?;
    if json {
        output::json(&json!({"trust": known.trust(), "signals": findings.found}));
    } else {
        output::line(&format!(
            "The session's content is trusted as {}.",
            known.trust().as_str()
        ));
        show(&findings);
    }
    Ok(ExitCode::SUCCESS)
}

fn read(file: &str) -> Outcome<String> {
    // Beyond this only the two ends are looked at anyway.
    let most = 4 * SIGNAL_TEXT_BYTES_MAX as u64;
    let mut bytes = Vec::new();
    let taken = match file {
        "-" => std::io::stdin().take(most).read_to_end(&mut bytes),
        path => std::fs::File::open(path).and_then(|it| it.take(most).read_to_end(&mut bytes)),
    };
    taken.map_err(|error| Failure::usage(format!("{file} can not be read: {error}")))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn scanned(app: &App, file: &str, trust: TrustLevel, json: bool) -> Outcome<ExitCode> {
    let trust = match trust {
        TrustLevel::Untrusted => Trust::Untrusted,
        TrustLevel::Tool => Trust::Tool,
        TrustLevel::User => Trust::User,
    };
    let findings = scan(&read(file)?, trust);
    let confidence = findings.confidence();
    let holds = confidence >= app.config.trust.signals.hold_at;
    if json {
        output::json(&json!({"confidence": confidence, "holds": holds, "signals": findings.found}));
    } else if findings.is_empty() {
        output::line("Nothing speaks for an attack.");
    } else {
        show(&findings);
        let what = if holds { "would" } else { "would not" };
        output::line(&format!(
            "Together {confidence:.2}: this {what} hold a session."
        ));
    }
    Ok(if holds {
        ExitCode::from(1)
    } else {
        ExitCode::SUCCESS
    })
}

fn show(findings: &Findings) {
    for finding in &findings.found {
        let kind = finding.kind.as_str();
        let line = format!("{kind:<12} {:.2}  {}", finding.confidence, finding.excerpt);
        output::line(&harmless(&line));
    }
}

fn manifests(app: &App, only: Option<&str>, json: bool) -> Outcome<ExitCode> {
    let config = &app.config.trust;
    let mut rows = Vec::new();
    let mut shown = serde_json::Map::new();
    for tool in app.config.tools() {
        let name = tool.name();
        if only.is_some_and(|only| only != name) {
            continue;
        }
        let manifest = config.manifest(name, tool.effect());
        let needs: Vec<String> = manifest
            .capabilities
            .iter()
            .map(ToString::to_string)
            .collect();
        rows.push(vec![
            name.to_owned(),
            needs.join(", "),
            manifest.lowest_trust().as_str().to_owned(),
            manifest.result_trust().as_str().to_owned(),
            if config.is_held(name, &manifest) {
                "yes"
            } else {
                ""
            }
            .to_owned(),
        ]);
        shown.insert(name.to_owned(), json!(manifest));
    }
    if rows.is_empty() {
        let name = only.unwrap_or_default();
        return Err(Failure::usage(format!("there is no tool named {name:?}"))
            .hint("`holdfast tools` lists them."));
    }
    if json {
        output::json(&shown);
    } else {
        let header = ["tool", "needs", "lowest trust", "its results", "held"];
        output::line(&output::table(&header, rows));
    }
    Ok(ExitCode::SUCCESS)
}
