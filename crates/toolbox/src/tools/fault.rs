//! From what the operating system says to what a model can act on.

use std::io;

use holdfast_contract::{PermissionTier, ToolError};
use rustix::io::Errno;

/// The rule that a path which leaves the workspace breaks.
pub(super) fn outside(asked: &str) -> ToolError {
    ToolError::PermissionDenied {
        tier: PermissionTier::Elevated,
        reason: format!(
            "{asked:?} leads outside the workspace, and paths are resolved beneath the workspace only"
        ),
    }
}

/// A failed file operation as a tool's error. `doing` completes "could not …".
pub(super) fn from_io(asked: &str, doing: &str, error: &io::Error) -> ToolError {
    // The path layer reports an escape as a refusal that no system call made.
    if error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none() {
        return outside(asked);
    }
    let (code, reason) = describe(error);
    ToolError::coded(code, format!("could not {doing} {asked:?}: {reason}"))
}

fn describe(error: &io::Error) -> (&'static str, String) {
    let said = |code, reason: &str| (code, reason.to_owned());
    match Errno::from_io_error(error) {
        Some(Errno::NOENT) => said("not_found", "there is no such file or directory"),
        Some(Errno::ISDIR) => said("is_directory", "it is a directory"),
        Some(Errno::NOTDIR) => said("not_a_directory", "a part of the path is not a directory"),
        Some(Errno::ACCESS | Errno::PERM) => {
            said("access_denied", "the file system does not permit it")
        }
        Some(Errno::ROFS) => said("access_denied", "the file system is read-only"),
        Some(Errno::LOOP) => said("symlink_loop", "too many symbolic links"),
        Some(Errno::NAMETOOLONG) => said("name_too_long", "the name is too long"),
        Some(Errno::NOSPC | Errno::DQUOT) => said("disk_full", "there is no space left"),
        Some(Errno::NXIO) => said("special_file", "it is not a regular file"),
        _ => ("io_error", error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_contract::Cause;

    #[test]
    fn a_refused_system_call_is_not_an_escape() {
        let denied = io::Error::from(Errno::ACCESS);
        assert!(matches!(
            from_io("a", "open", &denied),
            ToolError::ExecutionError { cause: Cause::Coded { code }, .. } if code == "access_denied"
        ));
        let escape = io::Error::new(io::ErrorKind::PermissionDenied, "led outside");
        assert!(matches!(
            from_io("a", "open", &escape),
            ToolError::PermissionDenied {
                tier: PermissionTier::Elevated,
                ..
            }
        ));
    }
}
