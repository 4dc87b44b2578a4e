//! `holdfast undo`

use std::process::ExitCode;

use holdfast_undo::{
    Content, Coverage, Options, Origin, Point, UndoError, UndoStore, Undone, What,
};
use serde_json::json;

use super::approvals::by_a_person;
use crate::app::App;
use crate::args::undo::{UndoArgs, UndoCommand};
use crate::fail::{Failure, Outcome};
use crate::output;

/// Paths that are shown of each kind; `--json` has all of them.
const SHOWN_PATHS_MAX: usize = 20;

pub(super) fn run(app: &App, args: &UndoArgs, json: bool) -> Outcome<ExitCode> {
    by_a_person("what calls have changed is taken back by people")?;
    let store = app.undo_store().map_err(|error| failed(&error))?;
    match &args.command {
        Some(UndoCommand::List) => list(app, &store, args, json),
        Some(UndoCommand::Show { point }) => show(&store, args, point.as_deref(), json),
        Some(UndoCommand::Clear) => {
            store.clear().map_err(|error| failed(&error))?;
            if json {
                output::json(&json!({"cleared": true}));
            } else {
                output::line("All undo points are removed.");
            }
            Ok(ExitCode::SUCCESS)
        }
        None => undo(&store, args, json),
    }
}

fn failed(error: &UndoError) -> Failure {
    let failure = Failure::failed(error.to_string());
    match error {
        UndoError::Unknown(_) => {
            failure.hint("`holdfast undo list` shows the points of this workspace; a call that changed nothing has none.")
        }
        UndoError::AlsoTakesBack(later) => {
            let later: Vec<&str> = later.iter().map(|point| point.id.as_str()).collect();
            failure.hint(format!(
                "Later points are {}. Add --also to take them back too; `--dry-run --also` says what changes.",
                later.join(", ")
            ))
        }
        UndoError::Running(_) | UndoError::Busy(_) => failure.hint("Try again when it has ended."),
        _ => failure,
    }
}

/// The point that was named, else the last one that nobody has taken back.
fn wanted(store: &UndoStore, args: &UndoArgs, named: Option<&str>) -> Outcome<String> {
    if let Some(named) = named {
        return Ok(named.to_owned());
    }
    let points = store
        .list(&args.workspace)
        .map_err(|error| failed(&error))?;
    let last = points
        .into_iter()
        .rev()
        .find(|it| it.taken_back_by.is_none());
    last.map(|point| point.id).ok_or_else(|| {
        Failure::failed("there is nothing to undo in this directory")
            .hint("Another directory is named with --workspace DIR.")
    })
}

fn list(app: &App, store: &UndoStore, args: &UndoArgs, json: bool) -> Outcome<ExitCode> {
    let mut points = store
        .list(&args.workspace)
        .map_err(|error| failed(&error))?;
    points.reverse();
    if json {
        output::json(&points);
        return Ok(ExitCode::SUCCESS);
    }
    if points.is_empty() {
        output::line("No undo points: no call has changed anything here yet.");
        return Ok(ExitCode::SUCCESS);
    }
    let now_ms = app.clock.now_ms();
    let rows = points.iter().map(|point| {
        vec![
            point.id.clone(),
            output::ago(point.begun_ms, now_ms),
            made_for(point),
            match point.coverage {
                Coverage::Full => "all of it".to_owned(),
                Coverage::Partial => {
                    format!("all but {}", output::counted(point.left_out_count, "path"))
                }
                Coverage::None => "nothing".to_owned(),
            },
            point
                .taken_back_by
                .as_ref()
                .map_or_else(String::new, |by| format!("undone by {by}")),
        ]
    });
    output::line(&output::table(
        &["point", "when", "made for", "holds", ""],
        rows,
    ));
    Ok(ExitCode::SUCCESS)
}

fn made_for(point: &Point) -> String {
    match &point.origin {
        Origin::Calls => point.calls.join(", "),
        Origin::Undo { of } => format!("undo of {of}"),
    }
}

fn show(store: &UndoStore, args: &UndoArgs, named: Option<&str>, json: bool) -> Outcome<ExitCode> {
    let id = wanted(store, args, named)?;
    let diff = store
        .show_in(&args.workspace, &id)
        .map_err(|error| failed(&error))?;
    if json {
        output::json(&diff);
        return Ok(ExitCode::SUCCESS);
    }
    output::line(&output::bold(&format!(
        "Point {}: {}",
        diff.point.id,
        made_for(&diff.point)
    )));
    if !diff.after_known {
        output::line("What its calls changed is not known: nobody saw their end.");
    }
    for change in diff.changes.iter().filter(|it| it.what != What::Touched) {
        let path = output::harmless_line(&change.path.display().to_string());
        output::line(&format!("{} {path}", sign(change.what)));
        match &change.content {
            Content::Text(text) => output::line(&output::harmless(text)),
            Content::Binary => output::line("  (no text)"),
            Content::TooLong => output::line("  (too long to show)"),
            Content::None => {}
        }
    }
    left_out(
        &diff
            .point
            .left_out
            .iter()
            .map(|it| it.path.display().to_string())
            .collect::<Vec<_>>(),
    );
    Ok(ExitCode::SUCCESS)
}

fn sign(what: What) -> String {
    match what {
        What::Added => output::green("+"),
        What::Removed => output::red("-"),
        What::Changed => output::yellow("~"),
        What::Attributes | What::Touched => output::dim("m"),
    }
}

fn undo(store: &UndoStore, args: &UndoArgs, json: bool) -> Outcome<ExitCode> {
    let id = wanted(store, args, args.point.as_deref())?;
    let options = Options {
        also: args.also,
        force: args.force,
        dry_run: args.dry_run,
    };
    let undone = store
        .undo_in(&args.workspace, &id, &options)
        .map_err(|error| failed(&error))?;
    let is_whole = undone.failed.is_empty() && undone.conflicts.iter().all(|it| it.overwritten);
    if json {
        output::json(&undone);
    } else {
        tell(&id, args.dry_run, &undone);
    }
    Ok(if is_whole {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    })
}

fn tell(id: &str, dry_run: bool, undone: &Undone) {
    let changed: Vec<_> = undone
        .restored
        .iter()
        .filter(|it| it.what != What::Touched)
        .collect();
    let paths = output::counted(changed.len() as u64, "path");
    let head = match (dry_run, undone.failed.is_empty()) {
        (true, _) => format!("Would undo {id}: {paths} would change."),
        (false, true) => format!("{} Undone: {id}, {paths} brought back.", output::green("✓")),
        (false, false) => format!(
            "{} Undone in part: {id}, {paths} brought back.",
            output::red("✗")
        ),
    };
    output::line(&head);
    for restored in changed.iter().take(SHOWN_PATHS_MAX) {
        let path = output::harmless_line(&restored.path.display().to_string());
        output::line(&format!("  {} {path}", sign(restored.what)));
    }
    if changed.len() > SHOWN_PATHS_MAX {
        output::line(&format!("  … {} more", changed.len() - SHOWN_PATHS_MAX));
    }
    for later in &undone.also_takes_back {
        output::line(&format!(
            "Also takes back {}: {}",
            later.id,
            made_for(later)
        ));
    }
    for conflict in &undone.conflicts {
        let path = output::harmless_line(&conflict.path.display().to_string());
        let what = if conflict.overwritten {
            "overwritten"
        } else {
            "kept; --force overwrites it"
        };
        output::line(&format!(
            "{} {path} was changed since by somebody else: {what}",
            output::yellow("!")
        ));
    }
    for failed in &undone.failed {
        let path = output::harmless_line(&failed.path.display().to_string());
        output::line(&format!(
            "{} {path}: {}",
            output::red("✗"),
            output::harmless_line(&failed.why)
        ));
    }
    left_out(
        &undone
            .left_out
            .iter()
            .map(|it| it.path.display().to_string())
            .collect::<Vec<_>>(),
    );
    if let Some(point) = &undone.new_point {
        output::line(&format!(
            "`holdfast undo {}` brings the undone state again.",
            point.id
        ));
    }
}

fn left_out(paths: &[String]) {
    for path in paths.iter().take(SHOWN_PATHS_MAX) {
        output::line(&format!("  not kept: {}", output::harmless_line(path)));
    }
}
