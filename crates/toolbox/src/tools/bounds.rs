//! What no tool may reach, under whatever name.
//!
//! A path leads where it leads: through a mount, on a file system that does not tell capitals
//! apart, or to a file that has a second name elsewhere (a hard link). So what is reserved is known
//! by its name and by its place on the disk.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, StatxAttributes, StatxFlags, statx};

/// Names in what is reserved that are looked at, in search of the second name of a file. What is
/// not found among so many is refused: a state directory has a dozen files, and one for each call
/// that runs.
pub(super) const RESERVED_NAMES_MAX: usize = 65_536;

/// Which file it is, whatever it is called: its device and its number there.
pub(super) type Identity = (u64, u64);

fn identity(path: &Path) -> Option<Identity> {
    let seen = fs::metadata(path).ok()?;
    Some((seen.dev(), seen.ino()))
}

/// The reserved path that this one is, or lies in: by name, or because it or a directory above it is
/// the very same file.
pub(super) fn around<'r>(reserved: &'r [PathBuf], real: &Path) -> Option<&'r Path> {
    let by_name = reserved.iter().find(|dir| real.starts_with(dir));
    if let Some(dir) = by_name {
        return Some(dir);
    }
    let known = reserved
        .iter()
        .filter_map(|dir| Some((identity(dir)?, dir)));
    let known: Vec<(Identity, &PathBuf)> = known.collect();
    let above = real.ancestors().filter_map(identity);
    let mut found = above.filter_map(|it| known.iter().find(|(is, _)| *is == it));
    found.next().map(|(_, dir)| dir.as_path())
}

/// The reserved path in which a file with several names has one of them. An error means that nobody
/// knows.
pub(super) fn names(reserved: &[PathBuf], file: Identity) -> io::Result<Option<&Path>> {
    let mut left = RESERVED_NAMES_MAX;
    for root in reserved {
        if identity(root) == Some(file) {
            return Ok(Some(root));
        }
        let mut open = vec![root.clone()];
        while let Some(dir) = open.pop() {
            let entries = match fs::read_dir(&dir) {
                Err(error) if is_no_directory(&error) => continue,
                opened => opened?,
            };
            for entry in entries {
                let entry = entry?;
                left = left.checked_sub(1).ok_or_else(too_many)?;
                // Looked at, because the directory itself may name another number: that of what is
                // covered where a file is mounted, or of one layer where there are several.
                let seen = match entry.metadata() {
                    Err(error) if is_no_directory(&error) => continue,
                    seen => seen?,
                };
                if seen.is_dir() {
                    open.push(entry.path());
                } else if (seen.dev(), seen.ino()) == file {
                    return Ok(Some(root));
                }
            }
        }
    }
    Ok(None)
}

/// Whether a file is mounted where it was opened: it has its first name elsewhere then.
pub(super) fn is_mounted(file: impl AsFd) -> bool {
    let seen = statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::empty());
    seen.is_ok_and(|seen| seen.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

/// It is a file, or gone by now.
fn is_no_directory(error: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound};
    matches!(error.kind(), NotADirectory | NotFound)
}

fn too_many() -> io::Error {
    io::Error::other(format!(
        "what is reserved has more than {RESERVED_NAMES_MAX} names"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_reserved_is_known_by_any_name() {
        let house = tempfile::tempdir().expect("a directory");
        let base = house.path().canonicalize().expect("a real name");
        let (state, alias) = (base.join("state"), base.join("alias"));
        fs::create_dir_all(state.join("locks")).expect("made");
        fs::write(state.join("locks/one"), "x").expect("written");
        fs::write(base.join("config"), "x").expect("written");
        fs::write(base.join("beside"), "x").expect("written");
        std::os::unix::fs::symlink(&state, &alias).expect("linked");
        fs::hard_link(base.join("config"), base.join("copy")).expect("linked");
        // Reserved under a name that no resolved path ever has.
        let reserved = [alias.clone(), base.join("config"), base.join("later")];
        let table = [
            ("state", Some("alias")),
            ("state/locks/one", Some("alias")),
            ("state/locks/new/deep", Some("alias")),
            ("copy", Some("config")),
            ("later/new", Some("later")),
            ("state2", None),
            ("beside", None),
            ("", None),
        ];
        for (path, expected) in table {
            let found = around(&reserved, &base.join(path));
            let expected = expected.map(|name| base.join(name));
            assert_eq!(found, expected.as_deref(), "{path}");
        }
        let of = |path: &str| identity(&base.join(path)).expect("is there");
        let in_state = names(&reserved, of("state/locks/one")).expect("known");
        assert_eq!(in_state, Some(alias.as_path()));
        assert_eq!(names(&reserved, of("beside")).expect("known"), None);
    }
}
