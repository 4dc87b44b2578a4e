//! A file replaced as a whole: whenever the power fails, the old one or the new one is there.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use super::lock::Live;
use crate::limits::BACKUPS_MAX;

/// What is done next, told before it is done. Tests kill the process there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The new file is created under another name.
    Create,
    /// A part of it is written.
    Write,
    /// It gets the old one's owner and mode.
    Own,
    /// It is made durable.
    Sync,
    /// The old file gets a second name.
    Backup,
    /// The new file takes the old one's name.
    Rename,
    /// The directory is made durable.
    SyncDirectory,
    /// Old backups go.
    Forget,
}

/// What a file was when it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    dev: u64,
    ino: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    pub(crate) fn of(meta: &fs::Metadata) -> Self {
        Self {
            dev: meta.dev(),
            ino: meta.ino(),
            size: meta.size(),
            modified: (meta.mtime(), meta.mtime_nsec()),
            changed: (meta.ctime(), meta.ctime_nsec()),
        }
    }

    /// The same file with the same content. A link to it, as a backup makes one, is no change.
    fn is_same_content(self, other: Self) -> bool {
        Self {
            changed: other.changed,
            ..self
        } == other
    }
}

/// Backups and temporary files have this in their names.
const MARK: &str = ".holdfast-";

/// Whether a file is one of ours.
pub(crate) fn is_ours(name: &str) -> bool {
    name.contains(MARK)
}

/// Why a file was not replaced.
#[derive(Debug, thiserror::Error)]
pub enum ReplaceError {
    /// Somebody is writing it.
    #[error("left alone: {0}")]
    Live(#[from] Live),
    /// The operating system says no.
    #[error("{what}: {error}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// What it said.
        error: io::Error,
    },
}

fn failed(what: &'static str) -> impl Fn(io::Error) -> ReplaceError {
    move |error| ReplaceError::Io { what, error }
}

/// Replaces a file that was `stamp` when it was read. Says where the backup is.
pub(crate) fn replace(
    path: &Path,
    stamp: Stamp,
    now_ms: u64,
    tell: &dyn Fn(Step),
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    verify: impl FnOnce(&Path) -> io::Result<()>,
) -> Result<PathBuf, ReplaceError> {
    let fresh = Fresh::create(path, tell).map_err(failed("can not write beside it"))?;
    fresh
        .fill(tell, write)
        .map_err(failed("can not write the new file"))?;
    let old = fs::metadata(path).map_err(failed("can not look at it"))?;
    tell(Step::Own);
    fresh
        .own(&old, now_ms)
        .map_err(failed("can not keep its owner and mode"))?;
    tell(Step::Sync);
    fresh
        .file
        .sync_all()
        .map_err(failed("can not make the new file durable"))?;
    verify(&fresh.path).map_err(failed("the new file is not what it should be"))?;
    tell(Step::Backup);
    let backup = back_up(path, now_ms).map_err(failed("can not make a backup"))?;
    tell(Step::Rename);
    let now = fs::metadata(path).map_err(failed("can not look at it"))?;
    if !stamp.is_same_content(Stamp::of(&now)) {
        let _ = fs::remove_file(&backup);
        return Err(Live::Changed.into());
    }
    fresh
        .publish(path)
        .map_err(failed("can not put the new file in its place"))?;
    tell(Step::SyncDirectory);
    sync_directory(path).map_err(failed("can not make the change durable"))?;
    tell(Step::Forget);
    forget_old_backups(path);
    Ok(backup)
}

/// A new file under a temporary name; gone when dropped before it is published.
struct Fresh {
    path: PathBuf,
    file: File,
    is_published: bool,
}

impl Fresh {
    fn create(target: &Path, tell: &dyn Fn(Step)) -> io::Result<Self> {
        tell(Step::Create);
        let path = beside(target, &format!("{MARK}new-{}", std::process::id()));
        // One that a killed process left would be in the way.
        let _ = fs::remove_file(&path);
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        Ok(Self {
            path,
            file,
            is_published: false,
        })
    }

    fn fill(
        &self,
        tell: &dyn Fn(Step),
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut out = BufWriter::with_capacity(
            crate::limits::READ_BYTES,
            Telling {
                file: &self.file,
                tell,
            },
        );
        write(&mut out)?;
        out.flush()
    }

    fn own(&self, old: &fs::Metadata, now_ms: u64) -> io::Result<()> {
        // The time that is in the backup's name: so it can be told later whose write was the last.
        self.file
            .set_modified(UNIX_EPOCH + Duration::from_millis(now_ms))?;
        let new = self.file.metadata()?;
        if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
            std::os::unix::fs::fchown(&self.file, Some(old.uid()), Some(old.gid()))?;
        }
        self.file
            .set_permissions(fs::Permissions::from_mode(old.mode() & 0o7777))
    }

    fn publish(mut self, target: &Path) -> io::Result<()> {
        fs::rename(&self.path, target)?;
        self.is_published = true;
        Ok(())
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        if !self.is_published {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Tells of every write.
struct Telling<'t> {
    file: &'t File,
    tell: &'t dyn Fn(Step),
}

impl Write for Telling<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (self.tell)(Step::Write);
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

pub(crate) fn beside(path: &Path, more: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(more);
    path.with_file_name(name)
}

/// A name for a backup that is not taken.
pub(crate) fn backup_path(path: &Path, now_ms: u64) -> PathBuf {
    free_name(path, "backup", now_ms)
}

/// A name for an archived session that is not taken. Archives are kept for good.
pub(crate) fn archive_path(path: &Path, now_ms: u64) -> PathBuf {
    free_name(path, "archive", now_ms)
}

fn free_name(path: &Path, what: &str, now_ms: u64) -> PathBuf {
    let stamp = crate::time::stamp(now_ms);
    let mut free = beside(path, &format!("{MARK}{what}-{stamp}"));
    let mut number = 1;
    while free.symlink_metadata().is_ok() {
        number += 1;
        free = beside(path, &format!("{MARK}{what}-{stamp}-{number}"));
    }
    free
}

/// Whether we were the last who wrote a file: its time is that of a backup or an archive of ours, to
/// the nanosecond. Nobody else has to be waited for then.
pub(crate) fn is_own_write(path: &Path, meta: &fs::Metadata) -> bool {
    let (seconds, nanos) = (
        meta.mtime().cast_unsigned(),
        meta.mtime_nsec().cast_unsigned(),
    );
    let stamp = crate::time::stamp(seconds.saturating_mul(1000) + nanos / 1_000_000);
    let is_there = |what: &str| beside(path, &format!("{MARK}{what}-{stamp}")).exists();
    nanos.is_multiple_of(1_000_000) && (is_there("backup") || is_there("archive"))
}

/// Gives the old file a second name, which costs nothing and can not fail half way; copies it where
/// the file system has no such names.
fn back_up(path: &Path, now_ms: u64) -> io::Result<PathBuf> {
    let backup = backup_path(path, now_ms);
    if fs::hard_link(path, &backup).is_ok() {
        return Ok(backup);
    }
    let mut source = File::open(path)?;
    let mut copy = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&backup)?;
    io::copy(&mut source, &mut copy)?;
    copy.set_permissions(source.metadata()?.permissions())?;
    copy.sync_all()?;
    Ok(backup)
}

fn sync_directory(path: &Path) -> io::Result<()> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
    File::open(dir.unwrap_or(Path::new(".")))?.sync_all()
}

/// The backups of a file, oldest first.
pub(crate) fn backups(path: &Path) -> Vec<PathBuf> {
    let prefix = beside(path, &format!("{MARK}backup-"));
    let Some(prefix) = prefix.file_name().and_then(|name| name.to_str()) else {
        return Vec::new();
    };
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
    let Ok(entries) = fs::read_dir(dir.unwrap_or(Path::new("."))) else {
        return Vec::new();
    };
    let mut found: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.starts_with(prefix))
        })
        .collect();
    found.sort();
    found
}

pub(crate) fn forget_old_backups(path: &Path) {
    let backups = backups(path);
    let too_many = backups.len().saturating_sub(BACKUPS_MAX);
    for old in &backups[..too_many] {
        let _ = fs::remove_file(old);
    }
}
