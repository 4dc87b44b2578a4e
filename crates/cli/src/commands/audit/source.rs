//! The sessions of a history, one after the other.

use std::path::PathBuf;

use holdfast_transcript::history::{self, Session};
use holdfast_transcript::read;

use crate::fail::Outcome;

/// One session that was read.
pub(super) struct Found {
    pub(super) name: String,
    pub(super) session: Session,
    pub(super) orphaned_results: u64,
}

pub(super) fn each_session(
    paths: &[PathBuf],
    _since: Option<&str>,
    _json: bool,
    mut take: impl FnMut(Found),
) -> Outcome<bool> {
    for path in paths {
        let open = || std::fs::File::open(path).unwrap();
        let (shape, _) = read::index(open()).unwrap();
        take(Found {
            name: path.display().to_string(),
            session: history::read(shape.format, open()).unwrap(),
            orphaned_results: 0,
        });
    }
    Ok(false)
}
