//! Who may look into what is reserved, before and after a command.
//!
//! Landlock keeps a command from opening these files and not from changing their modes: every
//! command could open the state to other users, or make its tokens count as exposed. So what a
//! command changed there is changed back when its call ends.

use std::fs::{Metadata, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::token::{ADMIN_TOKEN_FILE, APPROVER_TOKEN_FILE, TOKEN_FILE};

/// Files in a reserved directory that nobody but their owner may ever read.
const TOKENS: &[&str] = &[APPROVER_TOKEN_FILE, ADMIN_TOKEN_FILE, TOKEN_FILE];
const OWNER_ONLY: u32 = 0o600;
const MODE_BITS: u32 = 0o7777;

/// The modes to be kept; dropping this puts them back.
pub(super) struct Modes(Vec<(PathBuf, u32)>);

impl Modes {
    /// Those of what is reserved, as they are.
    pub(super) fn of(reserved: &[PathBuf]) -> Self {
        let mut kept = Vec::new();
        for path in reserved {
            let Some(seen) = seen(path) else { continue };
            kept.push((path.clone(), mode(&seen)));
            if seen.is_dir() {
                let tokens = TOKENS.iter().map(|name| path.join(name));
                // Whatever an earlier one has made of them.
                kept.extend(tokens.map(|token| (token, OWNER_ONLY)));
            }
        }
        Self(kept)
    }
}

impl Drop for Modes {
    fn drop(&mut self) {
        for (path, kept) in &self.0 {
            if seen(path).is_some_and(|seen| mode(&seen) != *kept) {
                let _ = std::fs::set_permissions(path, Permissions::from_mode(*kept));
            }
        }
    }
}

/// What is there, unless it is a link: that has no mode of its own.
fn seen(path: &Path) -> Option<Metadata> {
    let seen = std::fs::symlink_metadata(path).ok()?;
    (!seen.is_symlink()).then_some(seen)
}

fn mode(seen: &Metadata) -> u32 {
    seen.permissions().mode() & MODE_BITS
}
