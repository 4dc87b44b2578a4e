//! What lies in the workspace by now, where a name does not tell: `src` may be a file or a directory.

use std::io::ErrorKind;
use std::path::Path;

use super::{Judge, normal};

/// Looks at the disk for one command line; of what would take more of them nothing is known.
const LOOKS_MAX: usize = 256;

/// What a path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lies {
    Nothing,
    Directory,
    /// A file, or a link, wherever that leads.
    Other,
    /// It is not looked at, or can not be.
    Unknown,
}

impl Judge<'_> {
    /// Looks at a path without `..` in it. What lies outside the workspace is nobody's business here.
    pub(super) fn lies_at(&mut self, path: &Path) -> Lies {
        if !path.starts_with(normal(self.workspace)) || self.looks >= LOOKS_MAX {
            return Lies::Unknown;
        }
        self.looks += 1;
        match std::fs::symlink_metadata(path) {
            Ok(seen) if seen.is_dir() => Lies::Directory,
            Ok(_) => Lies::Other,
            Err(error) => match error.kind() {
                ErrorKind::NotFound | ErrorKind::NotADirectory => Lies::Nothing,
                _ => Lies::Unknown,
            },
        }
    }
}
