//! `holdfast demo`: a scripted model does its worst, without Holdfast and with it.
//!
//! Both runs go through the real stack with real tools: a payment service on a loopback port, a
//! shell, a process that is really killed. "Without" is the kill switch. The table at the end is
//! counted in the ledgers and on the clock, not written by hand.

mod pay;
mod report;
mod scenes;
mod service;

use std::process::ExitCode;

use crate::args::DemoArgs;
use crate::fail::{Failure, Outcome};
use crate::output;

pub(super) fn run(args: &DemoArgs, json: bool) -> Outcome<ExitCode> {
    let dir = DemoDir::new()?;
    let narrate = !args.quiet && !json;
    let results = crate::app::runtime()?.block_on(scenes::play_all(dir.path(), narrate))?;
    if json {
        output::json(&results);
    } else {
        report::print(&results);
    }
    if args.keep {
        output::line(&format!("Kept: {}", dir.path().display()));
        dir.keep();
    }
    let kept_promises = results.iter().all(scenes::SceneResult::promise_kept);
    Ok(if kept_promises {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    })
}

/// A directory of its own, removed at the end.
struct DemoDir {
    path: std::path::PathBuf,
    keep: std::cell::Cell<bool>,
}

impl DemoDir {
    fn new() -> Outcome<Self> {
        let name = format!("holdfast-demo-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).map_err(|error| {
            Failure::failed(format!(
                "the demo's directory {} can not be made: {error}",
                path.display()
            ))
        })?;
        Ok(Self {
            path,
            keep: std::cell::Cell::new(false),
        })
    }

    fn path(&self) -> &std::path::Path {
        &self.path
    }

    fn keep(&self) {
        self.keep.set(true);
    }
}

impl Drop for DemoDir {
    fn drop(&mut self) {
        if !self.keep.get() {
            // What can not be removed from a temporary directory is the system's to clean up.
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}
