//! Which paths among a gateway's arguments lead out of the workspace.
//!
//! The gateway's files are judged by the names they have here: it commonly runs on the same machine,
//! and where it does not, a path that is spelled out in full is nobody's workspace here and worth a
//! question. What the gateway itself allows is its own affair.

use std::path::{Component, Path, PathBuf};

use holdfast_contract::{Reason, TierVerdict};
use reqwest::Url;
use serde_json::Value;

use crate::known::KNOWN;

/// Tools that touch the files that their arguments name.
const FILE_TOOLS: &[&str] = &[
    "read",
    "write",
    "edit",
    "apply_patch",
    "ls",
    "grep",
    "find",
    "memory_get",
];
/// Tools that change files, or run what may.
const CHANGE_FILES: &[&str] = &["write", "edit", "apply_patch", "exec", "process"];
/// Arguments of them that are paths, whatever their case.
const PATHS: &[&str] = &[
    "path",
    "paths",
    "file",
    "files",
    "file_path",
    "filePath",
    "dir",
    "directory",
    "cwd",
    "workdir",
    "working_dir",
    "workingDir",
    "target",
    "destination",
];
/// How the lines of a patch begin that name a file.
const PATCH_LINES: &[&str] = &[
    "*** Add File:",
    "*** Update File:",
    "*** Delete File:",
    "*** Move to:",
];
/// Characters of a path in a reason.
const PATH_CHARS_SHOWN_MAX: usize = 200;

/// Whether this tool may change files of the workspace, where the gateway works in it. One that nothing is
/// known of may.
pub(crate) fn may_change(remote: &str) -> bool {
    let is_known = KNOWN.iter().any(|(name, ..)| *name == remote);
    CHANGE_FILES.contains(&remote) || !is_known
}

/// Asks about every file outside the workspace. A yes is for these very arguments: the path alone
/// does not say what becomes of the file.
pub(crate) fn outside(remote: &str, params: &Value, root: &Path, verdict: &mut TierVerdict) {
    if !FILE_TOOLS.contains(&remote) {
        return;
    }
    for path in paths(remote, params) {
        if leads_out(&path, root) {
            let shown: String = path.chars().take(PATH_CHARS_SHOWN_MAX).collect();
            let text = format!("{shown:?} is outside the workspace, for `{remote}` of the gateway");
            verdict.raise_exact(Reason::new("outside_workspace", path, text));
        }
    }
}

/// All paths that the arguments name, however deep.
fn paths(remote: &str, params: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![(None, &params["args"])];
    while let Some((name, value)) = open.pop() {
        match value {
            Value::String(text) => {
                let name: &str = name.unwrap_or_default();
                if PATHS.iter().any(|it| name.eq_ignore_ascii_case(it)) {
                    found.push(text.clone());
                }
                if remote == "apply_patch" {
                    found.extend(in_patch(text));
                }
            }
            Value::Array(items) => open.extend(items.iter().map(|item| (name, item))),
            Value::Object(members) => {
                let members = members.iter();
                open.extend(members.map(|(name, member)| (Some(name.as_str()), member)));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    found
}

fn in_patch(text: &str) -> impl Iterator<Item = String> {
    text.lines().filter_map(|line| {
        let line = line.trim_start();
        let path = PATCH_LINES.iter().find_map(|it| line.strip_prefix(it))?;
        Some(path.trim().to_owned())
    })
}

/// The path of a file's address, as the gateway reads it; `None` of one on another machine.
fn of_address(address: &str) -> Option<String> {
    let path = Url::parse(address).ok()?.to_file_path().ok()?;
    path.into_os_string().into_string().ok()
}

/// Whether a path leaves the workspace: by its name, or where it leads as far as it is there.
pub(crate) fn leads_out(text: &str, root: &Path) -> bool {
    let Read::Named(path) = read(text) else {
        return true;
    };
    let Some(named) = normal(&root.join(&path)) else {
        return true;
    };
    if !named.starts_with(root) {
        return true;
    }
    // A link may lead elsewhere, also one that `..` follows; what is not there leads where what is above
    // it does.
    let Ok(real_root) = root.canonicalize() else {
        return false;
    };
    let above = named.ancestors().find_map(|it| it.canonicalize().ok());
    let as_written = root.join(&path).canonicalize().ok();
    let mut real = [above, as_written].into_iter().flatten();
    real.any(|real| !real.starts_with(&real_root))
}

/// Whether there is such a file on this machine, as far as the gateway's text is a path here.
pub(crate) fn is_here(text: &str, root: &Path) -> bool {
    match read(text) {
        Read::Named(path) => {
            let path = root.join(path);
            // `..` behind a file or a link leads elsewhere for the kernel than by its name.
            path.exists() || normal(&path).is_some_and(|path| path.exists())
        }
        Read::InHome(path) => std::env::home_dir().is_some_and(|home| home.join(path).exists()),
        Read::Elsewhere => false,
    }
}

/// A path as the gateway reads it.
enum Read {
    /// By its name from the workspace, or from the root.
    Named(String),
    /// In the home of whoever runs this.
    InHome(String),
    /// Another user's home, a drive, a machine: nothing that this workspace could be.
    Elsewhere,
}

fn read(text: &str) -> Read {
    let path = text.trim();
    // The gateway leaves one of these out, and reads the rest.
    let path = path.strip_prefix('@').unwrap_or(path);
    let is_address = path
        .get(..5)
        .is_some_and(|scheme| scheme.eq_ignore_ascii_case("file:"));
    let path = if is_address {
        match of_address(path) {
            Some(path) => path,
            None => return Read::Elsewhere,
        }
    } else {
        path.to_owned()
    };
    if let Some(rest) = path.strip_prefix("~/") {
        return Read::InHome(rest.to_owned());
    }
    if path.starts_with(['~', '\\']) || path.chars().nth(1) == Some(':') {
        return Read::Elsewhere;
    }
    Read::Named(path)
}

/// The path without `.` and `..`, unless it leaves the root of all files.
fn normal(path: &Path) -> Option<PathBuf> {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                if !clean.pop() {
                    return None;
                }
            }
            Component::CurDir => {}
            part => clean.push(part),
        }
    }
    Some(clean)
}

#[cfg(test)]
mod tests {
    use holdfast_contract::PermissionTier;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_may_change_files_is_kept_for_an_undo() {
        for remote in ["exec", "write", "edit", "apply_patch", "something_new"] {
            assert!(may_change(remote), "{remote}");
        }
        for remote in ["message", "sessions_send", "browser", "cron", "read"] {
            assert!(!may_change(remote), "{remote}");
        }
    }

    fn subjects(remote: &str, args: &Value, root: &Path) -> Vec<String> {
        let mut verdict = TierVerdict::declared(PermissionTier::ReadOnly);
        outside(remote, &json!({ "args": args }), root, &mut verdict);
        let raised = verdict.tier == PermissionTier::Elevated;
        assert_eq!(raised, !verdict.exact.is_empty(), "{remote} {args}");
        // An answer for one file is none for another, nor for another content of it.
        assert_eq!(verdict.reasons, [], "{remote} {args}");
        let reasons = verdict.exact.iter();
        reasons
            .map(|reason| {
                assert_eq!(reason.code, "outside_workspace");
                reason.subject.clone()
            })
            .collect()
    }

    #[test]
    fn a_file_outside_the_workspace_is_for_a_person() {
        let house = tempfile::tempdir().unwrap();
        let base = house.path().canonicalize().unwrap();
        let root = base.join("space");
        std::fs::create_dir(&root).unwrap();
        std::fs::write(base.join("beside"), "x").unwrap();
        std::os::unix::fs::symlink(&base, root.join("up")).unwrap();
        let own = root.join("a.txt").display().to_string();
        let beside = base.join("beside").display().to_string();
        let neighbour = format!("{}ship/a", root.display());
        let climbing = format!("file://{}/%2e%2e/beside", root.display());
        for inside in [
            "a.txt",
            "./a/../b.txt",
            "new/deep/file",
            "..a",
            "@a.txt",
            own.as_str(),
            "",
        ] {
            for remote in ["read", "write", "edit", "ls"] {
                let found = subjects(remote, &json!({ "path": inside }), &root);
                assert_eq!(found, Vec::<String>::new(), "{remote} {inside}");
            }
        }
        for path in [
            "/etc/passwd",
            "../beside",
            "a/../../beside",
            "/",
            "..",
            "~/.ssh/id_rsa",
            "~root/x",
            "file:///etc/passwd",
            "FILE:/etc/passwd",
            "file://localhost/etc/passwd",
            "file://elsewhere/a.txt",
            climbing.as_str(),
            "@/etc/passwd",
            "@~/.ssh/id_rsa",
            "@../beside",
            "@file:///etc/passwd",
            "up/beside",
            "up/new/file",
            "C:\\Users",
            "\\\\host\\share",
            " /etc/passwd",
            beside.as_str(),
            neighbour.as_str(),
        ] {
            for remote in ["read", "write", "edit", "ls", "grep", "find", "memory_get"] {
                let found = subjects(remote, &json!({ "path": path }), &root);
                assert_eq!(found, [path], "{remote}");
            }
            // Whatever the argument is called, and however deep it is.
            for args in [
                json!({"file_path": path, "content": "x"}),
                json!({"filePath": path}),
                json!({"FILE": path}),
                json!({"paths": ["a", path]}),
                json!({"edits": [{"path": "a"}, {"path": path}]}),
            ] {
                assert_eq!(subjects("write", &args, &root), [path], "{args}");
            }
        }
        let patch = "*** Begin Patch\n*** Update File: a\n*** Move to: ../b\n@@\n-x\n+y\n\
                     *** Add File: /etc/c\n+z\n*** End Patch";
        let found = subjects("apply_patch", &json!({ "input": patch }), &root);
        assert_eq!(found, ["../b", "/etc/c"]);
        // What is no file tool names no files.
        let found = subjects("browser", &json!({"path": "/etc/passwd"}), &root);
        assert_eq!(found, Vec::<String>::new());
        // Text is no path.
        let found = subjects("write", &json!({"path": "a", "content": "/etc/c"}), &root);
        assert_eq!(found, Vec::<String>::new());
    }
}
