//! The git directory that a linked worktree shares with others, outside of the worktree.

use std::fs;
use std::path::{Path, PathBuf};

use crate::record::path_of;

/// Bytes of git's pointer files that are read.
const POINTER_BYTES_MAX: u64 = 8 * 1024;

/// Where the git directory of a workspace is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Git {
    /// In the workspace, or there is none.
    Inside,
    /// In this directory, which names the workspace as one of its worktrees.
    Shared(PathBuf),
    /// Somewhere that does not know this workspace. Anybody can write any path into a `.git` file, so
    /// nothing of it is kept or restored.
    Foreign,
}

/// Finds the git directory of a workspace.
pub(crate) fn find(workspace: &Path) -> Git {
    let dot_git = workspace.join(".git");
    let Ok(found) = fs::symlink_metadata(&dot_git) else {
        return Git::Inside;
    };
    if found.is_dir() {
        return Git::Inside;
    }
    match shared(workspace, &dot_git) {
        Some(common) if common.starts_with(workspace) => Git::Inside,
        Some(common) => Git::Shared(common),
        None => Git::Foreign,
    }
}

fn shared(workspace: &Path, dot_git: &Path) -> Option<PathBuf> {
    let pointer = pointer(dot_git)?;
    let own = path_of(pointer.strip_prefix(b"gitdir: ")?);
    let own = workspace.join(own).canonicalize().ok()?;
    let common = own.join(path_of(&self::pointer(&own.join("commondir"))?));
    let common = common.canonicalize().ok()?;
    let back = own.join(path_of(&self::pointer(&own.join("gitdir"))?));
    let knows_us = own.parent() == Some(&common.join("worktrees"))
        && back.canonicalize().ok()? == dot_git.canonicalize().ok()?;
    let is_git = common.join("HEAD").is_file()
        && common.join("objects").is_dir()
        && common.join("refs").is_dir();
    (knows_us && is_git && !workspace.starts_with(&common)).then_some(common)
}

/// The one line of a pointer file.
fn pointer(path: &Path) -> Option<Vec<u8>> {
    let found = fs::symlink_metadata(path).ok()?;
    if !found.is_file() || found.len() > POINTER_BYTES_MAX {
        return None;
    }
    let mut line = fs::read(path).ok()?;
    while line
        .last()
        .is_some_and(|byte| matches!(byte, b'\n' | b'\r'))
    {
        line.pop();
    }
    Some(line).filter(|line| !line.is_empty() && !line.contains(&0))
}
