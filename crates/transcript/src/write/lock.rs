//! Whether somebody is writing a session, and telling others that we are.
//!
//! `OpenClaw` puts a file `<session>.jsonl.lock` beside a session it writes, with its process id, when
//! that process began, and when the lock was taken. We respect such a lock and take the same one.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::limits::{LOCK_STALE_MS, QUIET_MS};

/// Why a file is left alone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Live {
    /// A lock says so.
    #[error("process {pid} holds its lock")]
    Locked {
        /// Whose lock it is.
        pid: u64,
    },
    /// A lock says so, without saying whose.
    #[error("there is a lock beside it")]
    LockedBySomebody,
    /// A process has it open to write.
    #[error("process {pid} has it open to write")]
    Open {
        /// Which process.
        pid: u64,
    },
    /// It was written a moment ago.
    #[error("it was written {ago_ms} ms ago")]
    Recent {
        /// How long ago.
        ago_ms: u64,
    },
    /// It changed while it was looked at.
    #[error("it changed while it was read")]
    Changed,
    /// It is a store that a process has open.
    #[error("a process has the store open")]
    StoreInUse,
}

/// When a file is taken for one that somebody uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InUse {
    /// When a process has it open to write, and for [`QUIET_MS`] after it was written.
    #[default]
    OpenOrRecent,
    /// Only so long after it was written, whoever has it open. A lock counts all the same.
    WrittenWithin {
        /// How long.
        quiet_ms: u64,
    },
}

impl InUse {
    const fn quiet_ms(self) -> u64 {
        match self {
            Self::OpenOrRecent => QUIET_MS,
            Self::WrittenWithin { quiet_ms } => quiet_ms,
        }
    }
}

fn lock_path(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".lock");
    PathBuf::from(name)
}

/// Says when a file must not be written.
pub(crate) fn look(file: &Path, in_use: InUse, now_ms: u64) -> io::Result<Option<Live>> {
    if let Some(live) = look_at_lock(&lock_path(file), now_ms)? {
        return Ok(Some(live));
    }
    let meta = fs::metadata(file)?;
    if in_use == InUse::OpenOrRecent
        && let Some(pid) = user_of(&meta, Use::Writing)
    {
        return Ok(Some(Live::Open { pid }));
    }
    let modified_ms = meta.mtime().cast_unsigned().saturating_mul(1000)
        + meta.mtime_nsec().cast_unsigned() / 1_000_000;
    let ago_ms = now_ms.saturating_sub(modified_ms);
    let is_recent = ago_ms < in_use.quiet_ms() && !super::is_own_write(file, &meta);
    Ok(is_recent.then_some(Live::Recent { ago_ms }))
}

fn look_at_lock(lock: &Path, now_ms: u64) -> io::Result<Option<Live>> {
    let text = match fs::read(lock) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let said: Value = serde_json::from_slice(&text).unwrap_or_default();
    if let Some(pid) = said.get("pid").and_then(Value::as_u64) {
        let began = said.get("starttime").and_then(Value::as_u64);
        let is_same = match (began, start_time(pid)) {
            // Gone, or in a container that we can not look into: then its age decides.
            (_, None) => !is_of_our_view(&said) && is_fresh(lock, now_ms),
            (Some(began), Some(now)) => began == now,
            (None, Some(_)) => true,
        };
        return Ok(is_same.then_some(Live::Locked { pid }));
    }
    // Half written, or not ours to read: its age decides, as for `OpenClaw`.
    Ok(is_fresh(lock, now_ms).then_some(Live::LockedBySomebody))
}

fn is_fresh(lock: &Path, now_ms: u64) -> bool {
    let age = fs::metadata(lock).map(|meta| {
        let taken_ms = meta.mtime().cast_unsigned().saturating_mul(1000);
        now_ms.saturating_sub(taken_ms)
    });
    age.is_ok_and(|age_ms| age_ms < LOCK_STALE_MS)
}

/// Which processes we see: those of this boot, in this namespace.
fn view() -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let space = fs::read_link("/proc/self/ns/pid").ok()?;
    Some(format!("{} {}", boot.trim(), space.display()))
}

/// Whether the writer of a lock saw the processes that we see, so that one we do not see is gone.
fn is_of_our_view(said: &Value) -> bool {
    let theirs = said.get("holdfastView").and_then(Value::as_str);
    theirs.is_some() && theirs == view().as_deref()
}

/// When a process began, in the kernel's ticks; none when it is gone.
fn start_time(pid: u64) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(") ")?;
    // A process that only waits to be reaped writes nothing any more.
    if rest.starts_with(['Z', 'X']) {
        return None;
    }
    rest.split(' ').nth(19)?.parse().ok()
}

/// How a file is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// Opened at all.
    Any,
    /// Opened to write.
    Writing,
}

/// Another process that has this file open. Processes of other users can not be looked into; the
/// checks of time and size stand for them.
pub(crate) fn user_of(file: &fs::Metadata, how: Use) -> Option<u64> {
    let own = u64::from(std::process::id());
    for process in fs::read_dir("/proc").ok()?.flatten() {
        let Some(pid) = process
            .file_name()
            .to_str()
            .and_then(|name| name.parse::<u64>().ok())
            .filter(|pid| *pid != own)
        else {
            continue;
        };
        let Ok(open) = fs::read_dir(process.path().join("fd")) else {
            continue;
        };
        for fd in open.flatten() {
            let is_it = fs::metadata(fd.path())
                .is_ok_and(|meta| meta.dev() == file.dev() && meta.ino() == file.ino());
            let counts = || how == Use::Any || is_writable(pid, &fd.file_name().to_string_lossy());
            if is_it && counts() && !is_about_to_begin(pid, own) {
                return Some(pid);
            }
        }
    }
    None
}

/// Whether a process is a copy of ours that another thread has just made to start a program. It has all our
/// files open until the program begins, and uses none of them.
fn is_about_to_begin(pid: u64, own: u64) -> bool {
    let program = |pid: u64| fs::read_link(format!("/proc/{pid}/exe")).ok();
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // Behind its name stand its state and its parent.
    let parent = stat
        .rsplit_once(") ")
        .and_then(|(_, rest)| rest.split(' ').nth(1)?.parse::<u64>().ok());
    parent == Some(own) && program(pid) == program(own)
}

fn is_writable(pid: u64, fd: &str) -> bool {
    const WRITE_BITS: u32 = 0o3;
    let info = fs::read_to_string(format!("/proc/{pid}/fdinfo/{fd}")).unwrap_or_default();
    info.lines()
        .find_map(|line| line.strip_prefix("flags:"))
        .and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok())
        .is_none_or(|flags| flags & WRITE_BITS != 0)
}

/// Our own lock on a session, in `OpenClaw`'s form. Gone when dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    path: PathBuf,
    /// Which file it is.
    own: (u64, u64),
}

impl Lock {
    /// Takes the lock, or says who has it. A lock whose holder is gone is replaced.
    pub(crate) fn take(file: &Path, now_ms: u64) -> io::Result<Result<Self, Live>> {
        let path = lock_path(file);
        if path.exists() {
            if let Some(live) = look_at_lock(&path, now_ms)? {
                return Ok(Err(live));
            }
            if let Some(live) = set_aside(&path, now_ms)? {
                return Ok(Err(live));
            }
        }
        let opened = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path);
        let mut opened: File = match opened {
            Ok(opened) => opened,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Ok(Err(Live::LockedBySomebody));
            }
            Err(error) => return Err(error),
        };
        let meta = opened.metadata()?;
        let own = (meta.dev(), meta.ino());
        let lock = Self { path, own };
        let pid = u64::from(std::process::id());
        let said = json!({
            "pid": pid,
            "createdAt": holdfast_contract::time::rfc3339(now_ms),
            "starttime": start_time(pid),
            "holdfastView": view(),
        });
        opened.write_all(said.to_string().as_bytes())?;
        Ok(Ok(lock))
    }
}

/// Takes a stale lock away under another name, and looks again: between the look and now somebody
/// else may have replaced it, and then it is put back.
fn set_aside(lock: &Path, now_ms: u64) -> io::Result<Option<Live>> {
    let aside = super::beside(lock, &format!(".holdfast-stale-{}", std::process::id()));
    match fs::rename(lock, &aside) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        renamed => renamed?,
    }
    let live = look_at_lock(&aside, now_ms)?;
    if live.is_some() {
        // A link does not replace what may stand there by now.
        let _ = fs::hard_link(&aside, lock);
    }
    fs::remove_file(&aside)?;
    Ok(live)
}

impl Drop for Lock {
    fn drop(&mut self) {
        // A lock that stays is found to be stale: its process is gone. One that is not ours any
        // more is left to whom it belongs.
        let is_own =
            fs::metadata(&self.path).is_ok_and(|meta| (meta.dev(), meta.ino()) == self.own);
        if is_own {
            let _ = fs::remove_file(&self.path);
        }
    }
}
