//! Replacing a file as a whole or not at all.
//!
//! The new content goes to a [`Draft`] in the same directory, is flushed to the disk, and takes the
//! file's place in one rename: a reader, a crash or a full disk sees the old content or the new
//! one. What belongs to the old inode and not to its content is not carried over:
//! further hard links keep the old content, and access control lists are those of a new file.

use std::fs::File;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cap_std::fs::{Dir, Metadata, MetadataExt};
use rustix::fs::{Gid, Mode, OFlags, Uid};

use super::beneath::Slot;
use crate::draft::Draft;

/// Locks for files that are being replaced. Two edits of one file at the same time would both
/// start from the same content and one would be lost; models do ask for two edits at once. Which
/// lock a file gets depends on its place, so unrelated files may share one: harmless, since it is
/// held for one replacement only.
static LOCKS: [Mutex<()>; LOCK_COUNT] = [const { Mutex::new(()) }; LOCK_COUNT];
const LOCK_COUNT: usize = 64;

/// Bits that let a file act as its owner; they are kept only while the owner stays the same.
const PERMISSION_BITS: u32 = 0o777;
const MODE_BITS: u32 = 0o7777;
/// Mode of a new file before the umask.
const NEW_FILE_MODE: u32 = 0o666;
/// Mode of the temporary file that replaces an existing one, whose own mode may be as strict.
const TEMPORARY_MODE: u32 = 0o600;

/// Keeps every other replacement of this file in this process waiting.
pub(super) fn lock(slot: &Slot) -> io::Result<MutexGuard<'static, ()>> {
    let parent = slot.parent.dir_metadata()?;
    let place = (parent.dev(), parent.ino(), &slot.name);
    let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(place);
    let index = usize::try_from(hash % LOCK_COUNT as u64).unwrap_or(0);
    // The lock guards no data, so a holder that panicked left nothing broken behind.
    Ok(LOCKS[index].lock().unwrap_or_else(PoisonError::into_inner))
}

/// Puts the parts of `content` in the slot, one after the other. `old` is the file that is
/// replaced, if any. `commit` is asked last, when turning back still leaves no trace.
pub(super) fn replace<E: From<io::Error>>(
    slot: &Slot,
    old: Option<&Metadata>,
    content: &[&[u8]],
    commit: impl FnOnce() -> Result<(), E>,
) -> Result<(), E> {
    let mode = match old {
        Some(_) => TEMPORARY_MODE,
        None => NEW_FILE_MODE,
    };
    let draft = Draft::begin(&slot.parent, mode)?;
    for part in content {
        draft.file().write_all(part)?;
    }
    if let Some(old) = old {
        adopt_mode(draft.file(), old)?;
    }
    draft.sync()?;
    commit()?;
    draft.finish(&slot.name)?;
    // The rename itself lives in the directory; a failure to flush that must not be reported as
    // if the file had not been replaced.
    let _ = sync_directory(&slot.parent);
    Ok(())
}

/// Whether the slot still holds the very file that `opened` described, unchanged.
pub(super) fn is_unchanged(slot: &Slot, opened: &Metadata) -> bool {
    let mark = |file: &Metadata| {
        (
            (file.dev(), file.ino(), file.len()),
            (file.mtime(), file.mtime_nsec()),
            (file.ctime(), file.ctime_nsec()),
        )
    };
    slot.parent
        .symlink_metadata(&slot.name)
        .is_ok_and(|now| mark(&now) == mark(opened))
}

/// Whether nobody is allowed to write the file. A rename would get around that, and whoever made
/// a file read-only did not mean it to be replaced.
pub(super) fn is_write_protected(file: &Metadata) -> bool {
    file.mode() & 0o222 == 0
}

fn adopt_mode(file: &File, old: &Metadata) -> io::Result<()> {
    let new = file.metadata()?;
    let same_owner = new.uid() == old.uid() && new.gid() == old.gid();
    let owner_kept = same_owner || {
        let (user, group) = (Uid::from_raw(old.uid()), Gid::from_raw(old.gid()));
        rustix::fs::fchown(file, Some(user), Some(group)).is_ok()
    };
    let kept = if owner_kept {
        MODE_BITS
    } else {
        PERMISSION_BITS
    };
    rustix::fs::fchmod(file, Mode::from_raw_mode(old.mode() & kept))?;
    Ok(())
}

fn sync_directory(directory: &Dir) -> io::Result<()> {
    // The handle may be open for look-ups only, which can not be flushed.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let open = rustix::fs::openat(directory, ".", flags, Mode::empty())?;
    Ok(rustix::fs::fsync(open)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cap_std::ambient_authority;

    fn slot(directory: &tempfile::TempDir) -> Slot {
        Slot {
            parent: Dir::open_ambient_dir(directory.path(), ambient_authority()).expect("opens"),
            name: "file".into(),
        }
    }

    #[test]
    fn a_refused_commit_leaves_no_trace() {
        let directory = tempfile::tempdir().expect("a directory");
        let slot = slot(&directory);
        std::fs::write(directory.path().join("file"), "old").expect("writes");
        let old = slot.parent.metadata("file").expect("is there");
        let refused: Result<(), io::Error> =
            replace(&slot, Some(&old), &[b"new"], || Err(io::Error::other("no")));
        assert!(refused.is_err());
        let names: Vec<_> = std::fs::read_dir(directory.path())
            .expect("lists")
            .map(|entry| entry.expect("an entry").file_name())
            .collect();
        assert_eq!(names, ["file"]);
        let content = std::fs::read_to_string(directory.path().join("file"));
        assert_eq!(content.expect("reads"), "old");
    }

    #[test]
    fn a_change_by_someone_else_is_noticed() {
        let directory = tempfile::tempdir().expect("a directory");
        let slot = slot(&directory);
        std::fs::write(directory.path().join("file"), "one").expect("writes");
        let opened = slot.parent.metadata("file").expect("is there");
        assert!(is_unchanged(&slot, &opened));
        std::fs::write(directory.path().join("other"), "two").expect("writes");
        std::fs::rename(
            directory.path().join("other"),
            directory.path().join("file"),
        )
        .expect("renames");
        assert!(!is_unchanged(&slot, &opened));
    }
}
