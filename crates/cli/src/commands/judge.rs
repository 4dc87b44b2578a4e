//! `holdfast judge`

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use holdfast_contract::{SessionContext, Tool};
use holdfast_judge::{Context, Verdict, judge_reading, read, read_with_input};
use holdfast_toolbox::permit::{Asked, Decision, decide};
use holdfast_toolbox::tools::ExecTool;
use serde_json::{Value, json};

use crate::app::App;
use crate::args::JudgeArgs;
use crate::fail::{Failure, Outcome};
use crate::output;

pub(super) fn run(app: &App, args: &JudgeArgs, json: bool) -> Outcome<ExitCode> {
    let workspace = workspace(&args.workspace)?;
    let undoable = app.undo_for_calls().is_some_and(|it| it.keeps(&workspace));
    let judged = judged(app, args, undoable);
    let decision = decided(app, args, &workspace, undoable);
    let refused = match &decision {
        Decision::Deny(why) => Some(why.clone()),
        Decision::Allow | Decision::Ask(_) => None,
    };
    let need = match decision {
        Decision::Ask(need) if need.gate.waits() => Some(need),
        _ => None,
    };
    if json {
        let mut reasons: Vec<Value> = judged
            .reasons
            .iter()
            .map(|it| json!({"rule": it.rule, "text": it.text, "command": it.command}))
            .collect();
        let others = need.iter().flat_map(|need| &need.reasons);
        if reasons.is_empty() {
            reasons.extend(others.map(|it| json!({"rule": it.code, "text": it.text})));
        }
        output::json(&json!({
            "asks": need.is_some(),
            "undoable": judged.undoable && need.is_none(),
            "reasons": reasons,
            "refused": refused,
            "unreadable": judged.unreadable,
        }));
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(why) = refused {
        output::line(&output::harmless(&format!("It is refused: {why}.")));
        return Ok(ExitCode::SUCCESS);
    }
    match &need {
        None => output::line("It runs without a question."),
        Some(need) => {
            output::line("A person is asked first:");
            for reason in &need.reasons {
                output::line(&output::harmless(&format!("  {}", reason.text)));
            }
        }
    }
    output::line(match (judged.undoable, undoable) {
        (true, _) => "What it changes in the workspace, `holdfast undo` brings back.",
        (false, true) => "What it does outside of the workspace can not be undone.",
        (false, false) => "This workspace is not kept, so nothing that it changes can be undone.",
    });
    for part in &judged.unreadable {
        let line = format!("Not read, so only the kernel holds it: `{part}`");
        output::line(&output::harmless(&line));
    }
    Ok(ExitCode::SUCCESS)
}

fn workspace(named: &Path) -> Outcome<PathBuf> {
    let found = named.canonicalize();
    found.map_err(|error| Failure::usage(format!("{}: {error}", named.display())))
}

/// Which rules the command meets.
fn judged(app: &App, args: &JudgeArgs, undoable: bool) -> Verdict {
    let reading = args.stdin.as_ref().map_or_else(
        || read(&args.command),
        |input| read_with_input(&args.command, input),
    );
    let context = Context {
        undoable,
        user_rules: Some(&app.config.permissions.commands.ask),
    };
    judge_reading(&reading, &context)
}

/// What would become of a call with it.
fn decided(app: &App, args: &JudgeArgs, workspace: &Path, undoable: bool) -> Decision {
    let permissions = app.config.permissions.clone();
    let exec = ExecTool::new()
        .with_confinement(app.config.confinement.clone())
        .with_permissions(Arc::new(permissions.clone().into()));
    let mut session = SessionContext::main("judge", "cli", workspace.to_owned());
    session.reserved = app.reserved();
    let mut params = json!({"command": args.command});
    if let Some(input) = &args.stdin {
        params["stdin"] = input.clone().into();
    }
    let mut verdict = exec.tier_for(&params, &session);
    if !undoable {
        for reason in std::mem::take(&mut verdict.unless_undone) {
            verdict.raise_exact(reason);
        }
    }
    decide(
        &permissions,
        &Asked {
            tool: exec.name(),
            declared: exec.permission_tier(),
            verdict: &verdict,
            arguments: &params,
            agent: &session.agent_id,
            concerns: &[],
            channel: None,
        },
    )
}
