//! `holdfast git`

use std::process::ExitCode;

use holdfast_toolbox::git::{GitError, SetAside};

use super::approvals::by_a_person;
use crate::app::App;
use crate::args::git::{GitArgs, GitCommand};
use crate::fail::{Failure, Outcome};
use crate::output;

/// Lines of a hook that are shown; `--json` has more.
const SHOWN_LINES_MAX: usize = 200;

pub(super) fn run(app: &App, args: &GitArgs, json: bool) -> Outcome<ExitCode> {
    by_a_person("what git would run later is kept or dropped by people")?;
    let keeper = app.git_keeper();
    let (done, say) = match &args.command {
        GitCommand::List => (keeper.list(&args.workspace), "set aside"),
        GitCommand::Keep { id } => (keeper.keep(&args.workspace, id.as_deref()), "put in place"),
        GitCommand::Drop { id } => (
            keeper.drop_aside(&args.workspace, id.as_deref()),
            "thrown away",
        ),
    };
    let done = done.map_err(|error| failed(&error))?;
    if json {
        output::json(&done);
        return Ok(ExitCode::SUCCESS);
    }
    if done.is_empty() {
        output::line("Nothing is set aside in this directory.");
        return Ok(ExitCode::SUCCESS);
    }
    let now_ms = app.clock.now_ms();
    for aside in &done {
        tell(aside, say, now_ms);
        if matches!(args.command, GitCommand::List) {
            show(aside);
        }
    }
    if matches!(args.command, GitCommand::List) {
        output::line(
            "`holdfast git keep ID` puts one of them in place, and git runs it from then on. \
             `holdfast git drop ID` throws it away.",
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn failed(error: &GitError) -> Failure {
    let failure = Failure::failed(error.to_string());
    match error {
        GitError::Unknown(_) => failure.hint("`holdfast git list` shows what is set aside."),
        GitError::NotPlaced { .. } | GitError::State(_) => failure,
    }
}

fn tell(aside: &SetAside, say: &str, now_ms: u64) {
    let path = output::harmless_line(&aside.path.display().to_string());
    let what = match &aside.setting {
        Some(setting) => format!("{} in {path}", output::harmless_line(setting)),
        None => path,
    };
    let id = output::bold(&aside.id);
    let ago = output::dim(&output::ago(aside.at_ms, now_ms));
    output::line(&format!("{id}  {} {what}  {say}, {ago}", aside.what));
}

fn show(aside: &SetAside) {
    for line in aside.content.lines().take(SHOWN_LINES_MAX) {
        output::line(&format!("    {}", output::harmless_line(line)));
    }
    if aside.is_cut || aside.content.lines().count() > SHOWN_LINES_MAX {
        output::line("    …");
    }
    if aside.replaced {
        output::line(&output::dim("    The former one is in its place."));
    }
}
