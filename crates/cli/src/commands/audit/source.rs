//! The sessions to look at, one after the other, with a bar on a terminal.

use std::path::PathBuf;

use holdfast_transcript::history::{self, Found};

use crate::commands::scan;
use crate::fail::{Failure, Outcome};

/// Calls back for each session. Says whether all of them could be read.
pub(super) fn each_session(
    paths: &[PathBuf],
    since: Option<&str>,
    json: bool,
    mut take: impl FnMut(Found),
) -> Outcome<bool> {
    let since_ms = since.map(day_ms).transpose()?;
    let mut all_read = true;
    let files = scan::files(paths, &mut |path, error| {
        all_read = false;
        scan::complain(path, &error.to_string());
    });
    let bar = scan::progress(files.len(), json);
    for file in &files {
        let read = history::each(file, &mut |mut found| {
            if let Some(since_ms) = since_ms {
                found.session.retain_since(since_ms);
                if found.session.turns.is_empty() {
                    return;
                }
            }
            take(found);
        });
        if let Err(why) = read {
            all_read = false;
            bar.suspend(|| scan::complain(&file.path, &why));
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(all_read)
}

fn day_ms(day: &str) -> Outcome<u64> {
    history::day_begins_ms(day).ok_or_else(|| {
        Failure::usage(format!("{day:?} is not a day"))
            .hint("Write it as YYYY-MM-DD, for example --since 2026-11-01.")
    })
}
