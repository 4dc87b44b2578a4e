//! `holdfast judge`

use std::path::Path;
use std::process::ExitCode;

use holdfast_contract::{SessionContext, Tool};
use holdfast_judge::{Context, judge_reading, read, read_with_input};
use holdfast_toolbox::tools::ExecTool;
use serde_json::json;

use crate::app::App;
use crate::args::JudgeArgs;
use crate::fail::{Failure, Outcome};
use crate::output;

pub(super) fn run(app: &App, args: &JudgeArgs, json: bool) -> Outcome<ExitCode> {
    let workspace = workspace(&args.workspace)?;
    let undoable = app.undo_for_calls().is_some_and(|it| it.keeps(&workspace));
    let reading = args.stdin.as_ref().map_or_else(
        || read(&args.command),
        |input| read_with_input(&args.command, input),
    );
    let context = Context {
        undoable,
        user_rules: Some(&app.config.permissions.commands.ask),
    };
    let verdict = judge_reading(&reading, &context);
    let refused = refused(app, args, &workspace);
    if json {
        let reasons = verdict.reasons.iter();
        let reasons: Vec<_> = reasons
            .map(|it| json!({"rule": it.rule, "text": it.text, "command": it.command}))
            .collect();
        output::json(&json!({
            "asks": verdict.asks,
            "undoable": verdict.undoable,
            "reasons": reasons,
            "refused": refused,
            "unreadable": verdict.unreadable,
        }));
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(why) = refused {
        output::line(&output::harmless(&format!("It is refused: {why}.")));
        return Ok(ExitCode::SUCCESS);
    }
    output::line(if verdict.asks {
        "A person is asked first:"
    } else {
        "It runs without a question."
    });
    for reason in &verdict.reasons {
        let line = format!(
            "  `{}` {} (rule {})",
            reason.command, reason.text, reason.rule
        );
        output::line(&output::harmless(&line));
    }
    output::line(match (verdict.undoable, undoable) {
        (true, _) => "What it changes in the workspace, `holdfast undo` brings back.",
        (false, true) => "What it does outside of the workspace can not be undone.",
        (false, false) => "This workspace is not kept, so nothing that it changes can be undone.",
    });
    for part in &verdict.unreadable {
        let line = format!("Not read, so only the kernel holds it: `{part}`");
        output::line(&output::harmless(&line));
    }
    Ok(ExitCode::SUCCESS)
}

fn workspace(named: &Path) -> Outcome<std::path::PathBuf> {
    let found = named.canonicalize();
    found.map_err(|error| Failure::usage(format!("{}: {error}", named.display())))
}

/// Why it does not run at all, as a call of it would be told.
fn refused(app: &App, args: &JudgeArgs, workspace: &Path) -> Option<String> {
    let permissions = app.config.permissions.clone();
    let exec = ExecTool::new().with_permissions(std::sync::Arc::new(permissions.into()));
    let mut session = SessionContext::main("judge", "cli", workspace.to_owned());
    session.reserved = app.reserved();
    let mut params = json!({"command": args.command});
    if let Some(input) = &args.stdin {
        params["stdin"] = input.clone().into();
    }
    let verdict = exec.tier_for(&params, &session);
    verdict.forbidden.map(|reason| reason.text)
}
