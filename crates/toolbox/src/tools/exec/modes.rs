//! Who may look into what is reserved, before and after a command.
//!
//! Landlock keeps a command from opening these files and not from changing their modes, nor, as
//! root, their owners: every command could open the state to other users, or make its tokens count
//! as exposed. So what a command changed there is changed back when its call ends.

use std::collections::BTreeMap;
use std::fs::{Metadata, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use crate::token::{ADMIN_TOKEN_FILE, APPROVER_TOKEN_FILE, TOKEN_FILE};

/// Files in a reserved directory that nobody but their owner may ever read.
const TOKENS: &[&str] = &[APPROVER_TOKEN_FILE, ADMIN_TOKEN_FILE, TOKEN_FILE];
const OWNER_ONLY: u32 = 0o600;
const MODE_BITS: u32 = 0o7777;
/// The bits of those who do not own a file.
const OTHERS: u32 = 0o077;
/// Files in what is reserved that are kept as they were, the uppermost first. A state directory has
/// a dozen, and one for each call that runs.
pub(in crate::tools) const KEPT_FILES_MAX: usize = 4096;
/// Directories within each other that are looked into.
const KEPT_DEPTH_MAX: usize = 8;

/// Whose a file is, and who may do what with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rights {
    owner: u32,
    group: u32,
    mode: u32,
}

impl Rights {
    fn of(seen: &Metadata) -> Self {
        Self {
            owner: seen.uid(),
            group: seen.gid(),
            mode: seen.permissions().mode() & MODE_BITS,
        }
    }

    /// Those of a file that came while a command ran: it was made by us, and is nobody else's
    /// business.
    fn of_ours(self) -> Self {
        Self {
            owner: rustix::process::geteuid().as_raw(),
            group: self.group,
            mode: self.mode & !OTHERS,
        }
    }
}

/// What is kept of one reserved path, shared by all commands that run at a time: one that begins
/// while another has changed something must not take that for how it was.
#[derive(Default)]
struct Kept {
    commands: usize,
    rights: BTreeMap<PathBuf, Rights>,
}

static KEPT: Mutex<BTreeMap<PathBuf, Kept>> = Mutex::new(BTreeMap::new());

/// The rights to be kept; dropping this puts them back.
pub(super) struct Modes(Vec<PathBuf>);

impl Modes {
    /// Those of what is reserved, as they are.
    pub(super) fn of(reserved: &[PathBuf]) -> Self {
        let mut all = KEPT.lock();
        for root in reserved {
            let kept = all.entry(root.clone()).or_default();
            kept.commands += 1;
            let is_first = kept.commands == 1;
            each(root, |path, seen| {
                let now = Rights::of(seen);
                let rights = if is_first { now } else { now.of_ours() };
                let name = path.file_name().unwrap_or_default();
                let is_token = seen.is_file() && TOKENS.iter().any(|token| name == *token);
                kept.rights.entry(path.to_owned()).or_insert(Rights {
                    // Whatever an earlier one has made of them.
                    mode: if is_token { OWNER_ONLY } else { rights.mode },
                    ..rights
                });
            });
        }
        Self(reserved.to_vec())
    }
}

impl Drop for Modes {
    fn drop(&mut self) {
        let mut all = KEPT.lock();
        for root in &self.0 {
            let Some(kept) = all.get_mut(root) else {
                continue;
            };
            each(root, |path, seen| {
                let now = Rights::of(seen);
                let rights = kept.rights.get(path).copied();
                put_back(path, now, rights.unwrap_or_else(|| now.of_ours()));
            });
            kept.commands -= 1;
            if kept.commands == 0 {
                all.remove(root);
            }
        }
    }
}

fn put_back(path: &Path, now: Rights, kept: Rights) {
    let is_given_away = (now.owner, now.group) != (kept.owner, kept.group);
    if is_given_away {
        let _ = lchown(path, Some(kept.owner), Some(kept.group));
    }
    if is_given_away || now.mode != kept.mode {
        let _ = std::fs::set_permissions(path, Permissions::from_mode(kept.mode));
    }
}

/// Every file and directory in a reserved path, a directory before what is in it: it may have been closed.
/// Links are left out; they have no mode of their own.
fn each(root: &Path, mut found: impl FnMut(&Path, &Metadata)) {
    let mut open = vec![root.to_owned()];
    let mut left = KEPT_FILES_MAX;
    for _ in 0..KEPT_DEPTH_MAX {
        for path in std::mem::take(&mut open) {
            let seen = std::fs::symlink_metadata(&path);
            let Some(seen) = seen.ok().filter(|seen| !seen.is_symlink()) else {
                continue;
            };
            found(&path, &seen);
            if !seen.is_dir() {
                continue;
            }
            let entries = std::fs::read_dir(&path).into_iter().flatten().flatten();
            for entry in entries {
                if left == 0 {
                    return;
                }
                left -= 1;
                open.push(entry.path());
            }
        }
    }
}
