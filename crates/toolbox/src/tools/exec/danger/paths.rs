//! Where a path leads, as far as its name tells.

use std::path::{Component, Path, PathBuf};

/// A device, but none of those that every command writes to.
pub(super) fn is_device(path: &str) -> bool {
    let harmless = ["null", "zero", "full", "stdout", "stderr", "stdin", "tty"];
    path.strip_prefix("/dev/").is_some_and(|name| {
        !harmless.contains(&name) && !name.starts_with("fd/") && !name.starts_with("pts/")
    })
}

pub(super) fn is_within(path: &Path, workspace: &Path) -> bool {
    let temporary = [Path::new("/tmp"), Path::new("/var/tmp")];
    let is_temporary = |dir: &&Path| path.starts_with(dir) && *path != **dir;
    let is_sink = path.starts_with("/dev") && !is_device(&path.to_string_lossy());
    path.starts_with(normal(workspace))
        || is_sink
        // A workspace in there is no reason to leave it.
        || (temporary.iter().any(is_temporary)
            && !temporary.iter().any(|dir| workspace.starts_with(dir)))
}

/// The path with its `.` and `..` worked out by name.
pub(in crate::tools::exec) fn normal(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                clean.pop();
            }
            other => clean.push(other),
        }
    }
    clean
}
