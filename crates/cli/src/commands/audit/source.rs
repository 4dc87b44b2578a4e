//! The sessions to look at, one after the other, with a bar on a terminal.

use std::path::PathBuf;

use holdfast_transcript::history::{self, Found};

use crate::commands::scan;
use crate::fail::{Failure, Outcome};

/// How the reading went.
#[derive(Default)]
pub(super) struct Went {
    /// Whether something could not be read.
    pub(super) has_failed: bool,
    /// Sessions that were left out because all of them is older than what was asked for.
    pub(super) older: u64,
}

/// Calls back for each session.
pub(super) fn each_session(
    paths: &[PathBuf],
    since: Option<&str>,
    json: bool,
    mut take: impl FnMut(Found),
) -> Outcome<Went> {
    let since_ms = since.map(day_ms).transpose()?;
    let mut went = Went::default();
    let mut older = 0;
    let mut take = |mut found: Found| {
        if let Some(since_ms) = since_ms {
            found.retain_since(since_ms);
            if found.session.turns.is_empty() && found.orphaned_results.is_empty() {
                older += 1;
                return;
            }
        }
        take(found);
    };
    if paths.iter().any(|path| path.as_os_str() == "-") {
        take(standard_input(paths)?);
        went.older = older;
        return Ok(went);
    }
    let files = scan::files(paths, &mut |path, error| {
        went.has_failed = true;
        scan::complain(path, &error.to_string());
    });
    let bar = scan::progress(files.len(), json);
    for file in &files {
        if let Err(why) = history::each(file, &mut take) {
            went.has_failed = true;
            bar.suspend(|| scan::complain(&file.path, &why));
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    went.older = older;
    Ok(went)
}

fn standard_input(paths: &[PathBuf]) -> Outcome<Found> {
    if paths.len() > 1 {
        return Err(Failure::usage("standard input is read only by itself"));
    }
    let text = scan::read_standard_input()?;
    history::from_bytes("-", &text)
        .map_err(|error| Failure::usage(format!("standard input {error}")))
}

fn day_ms(day: &str) -> Outcome<u64> {
    history::day_begins_ms(day).ok_or_else(|| {
        Failure::usage(format!("{day:?} is not a day"))
            .hint("Write it as YYYY-MM-DD, for example --since 2026-11-01.")
    })
}
