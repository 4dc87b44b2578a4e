//! The sessions of a history, one after the other.

use std::path::PathBuf;

use holdfast_transcript::history::{Builder, Session, readers};

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
        let mut builder = Builder::default();
        let text = std::fs::read_to_string(path).unwrap_or_default();
        for line in text.lines() {
            if let Ok(value) = serde_json::from_str(line) {
                readers::openclaw(&value, &mut builder);
            }
        }
        take(Found {
            name: path.display().to_string(),
            session: builder.finish(),
            orphaned_results: 0,
        });
    }
    Ok(false)
}
