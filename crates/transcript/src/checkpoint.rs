//! Checkpoints of a session, the way back to one, and the last rung: archive and reset.
//!
//! Sessions are written by appending, so a checkpoint is a length and a hash of everything before
//! it. Rolling back cuts the file there, and is refused when what stands before it is not what it
//! was. A checkpoint from before a repair is found in the backup that the repair left.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::document;
use crate::limits::CHECKPOINTS_MAX;
use crate::read::{self, Layout, ReadError};
use crate::seen::Kind;
use crate::unread;
use crate::write::{RepairError, archive_path, backups, beside, replace_with};

/// What a checkpoint was made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// A call and its result.
    ToolCycle,
    /// A compaction.
    Compaction,
    /// A request to a provider.
    ApiCall,
    /// Somebody asked for it.
    Manual,
}

/// A point to come back to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Checkpoint {
    /// Its own id.
    pub id: String,
    /// The session's id; the file's name where the session does not say.
    pub session_id: String,
    /// When it was made.
    pub timestamp: String,
    /// How many entries the session had.
    pub message_index: usize,
    /// The SHA-256 of everything up to there.
    pub content_hash: String,
    /// What it was made for.
    pub operation: Operation,
}

/// Why a checkpoint can not be made or used.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The session can not be read or written.
    #[error(transparent)]
    Session(#[from] RepairError),
    /// There is no such checkpoint.
    #[error("there is no checkpoint {0}")]
    NotFound(String),
    /// The session is not what it was.
    #[error(
        "what stands before the checkpoint has changed since, in the session and in its backups; nothing was rolled back"
    )]
    Changed,
    /// It is a database, or nothing that an agent wrote.
    #[error("{0}; nothing was reset")]
    NotASession(&'static str),
    /// One JSON document can not be cut.
    #[error("is one JSON document; only sessions with an entry a line have checkpoints")]
    NotLines,
}

impl From<io::Error> for CheckpointError {
    fn from(error: io::Error) -> Self {
        Self::Session(error.into())
    }
}

impl From<ReadError> for CheckpointError {
    fn from(error: ReadError) -> Self {
        Self::Session(error.into())
    }
}

fn list_path(session: &Path) -> PathBuf {
    beside(session, ".holdfast-checkpoints")
}

/// The checkpoints of a session, oldest first.
pub fn checkpoints(session: &Path) -> Result<Vec<Checkpoint>, CheckpointError> {
    match fs::read_to_string(list_path(&session.canonicalize()?)) {
        // A line that a crash cut short is no checkpoint.
        Ok(text) => Ok(text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}

/// Where the entries of a file end, without their line ends: the last one may get its own only when
/// the next one is written. And the session's id.
fn measure(file: &File) -> Result<(usize, Vec<u64>, Option<String>), CheckpointError> {
    let mut ends = Vec::new();
    let mut session = None;
    let shape = read::entries(file, |entry| {
        ends.push(entry.offset + entry.len);
        if let Ok(seen) = entry.seen
            && session.is_none()
        {
            let id = seen.session.map(|span| span.text(entry.bytes));
            session = id.map(|id| id.to_str().into_owned());
        }
        Ok(())
    })?;
    if shape.layout != Layout::Lines {
        return Err(CheckpointError::NotLines);
    }
    Ok((ends.len(), ends, session))
}

/// The hash of the first bytes of a file.
fn hash(file: &mut File, bytes: u64) -> io::Result<String> {
    file.seek(SeekFrom::Start(0))?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; crate::limits::READ_BYTES];
    let mut rest = file.take(bytes);
    loop {
        let read = rest.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        hasher.update(&buffer[..read]);
    }
    let digest = hasher.finalize();
    Ok(crate::render::hex(&digest))
}

/// Makes a checkpoint of a session as it is.
pub fn checkpoint(
    session: &Path,
    operation: Operation,
    id: String,
    now_ms: u64,
) -> Result<Checkpoint, CheckpointError> {
    // Beside the session itself, where a roll back looks, and not beside a link to it.
    let session = &session.canonicalize()?;
    let mut file = File::open(session)?;
    let (count, ends, session_id) = measure(&file)?;
    let size = file.metadata()?.len();
    let end = ends.last().copied().unwrap_or(0).min(size);
    let name = session.file_stem().unwrap_or_default().to_string_lossy();
    let made = Checkpoint {
        id,
        session_id: session_id.unwrap_or_else(|| name.into_owned()),
        timestamp: holdfast_contract::time::rfc3339(now_ms),
        message_index: count,
        content_hash: hash(&mut file, end)?,
        operation,
    };
    let mut all = checkpoints(session)?;
    all.push(made.clone());
    let too_many = all.len().saturating_sub(CHECKPOINTS_MAX);
    let lines: Vec<String> = all[too_many..]
        .iter()
        .filter_map(|checkpoint| serde_json::to_string(checkpoint).ok())
        .collect();
    write_whole(&list_path(session), &(lines.join("\n") + "\n"))?;
    Ok(made)
}

/// Writes a small file of ours as a whole.
pub(crate) fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    // Other threads may write the same file.
    static WRITTEN: AtomicU64 = AtomicU64::new(0);
    let (mut file, new) = loop {
        let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
        let new = beside(path, &format!("-new-{}-{number}", std::process::id()));
        // Never through a link, and never into a file of somebody else's: the name can be guessed.
        let mut fresh = OpenOptions::new();
        match fresh.write(true).create_new(true).mode(0o600).open(&new) {
            Ok(file) => break (file, new),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    };
    let written = file.write_all(text.as_bytes());
    let written = written.and_then(|()| file.sync_all());
    let written = written.and_then(|()| fs::rename(&new, path));
    written.inspect_err(|_| drop(fs::remove_file(&new)))
}

/// Rolls a session back to a checkpoint. Says where the session as it was is kept.
pub fn roll_back(session: &Path, id: &str, now_ms: u64) -> Result<PathBuf, CheckpointError> {
    let session = session.canonicalize()?;
    let all = checkpoints(&session)?;
    let wanted = all
        .iter()
        .find(|checkpoint| checkpoint.id == id)
        .ok_or_else(|| CheckpointError::NotFound(id.to_owned()))?;
    let older = backups(&session).into_iter().rev();
    for source in std::iter::once(session.clone()).chain(older) {
        if let Some((mut file, end)) = holds(&source, wanted) {
            return Ok(replace_with(&session, now_ms, |out| {
                file.seek(SeekFrom::Start(0))?;
                io::copy(&mut (&mut file).take(end), out)?;
                // The line end belongs to the last line, if it has one; another entry may follow
                // without.
                let mut behind = [0; 1];
                match file.read(&mut behind)? {
                    1 if end > 0 && behind == *b"\n" => out.write_all(&behind),
                    _ => Ok(()),
                }
            })?);
        }
    }
    Err(CheckpointError::Changed)
}

/// The file, and where the checkpoint is in it, when everything before it is as it was.
fn holds(path: &Path, wanted: &Checkpoint) -> Option<(File, u64)> {
    let mut file = File::open(path).ok()?;
    let (_, ends, _) = measure(&file).ok()?;
    let size = file.metadata().ok()?.len();
    let end = match wanted.message_index.checked_sub(1) {
        Some(last) => ends.get(last).copied()?.min(size),
        None => 0,
    };
    (hash(&mut file, end).ok()? == wanted.content_hash).then_some((file, end))
}

/// Archives a session and leaves only its header, if its format has one, or its document with an
/// empty list, so that its agent begins anew. Says where the archive is. Archives are never removed by Holdfast.
pub fn archive_and_reset(session: &Path, now_ms: u64) -> Result<PathBuf, CheckpointError> {
    let session = session.canonicalize()?;
    if crate::store::is_store(&session)? {
        // Its newest rows are in a file beside it, and all its sessions are in it.
        let why = "is a database; its sessions are reset by their agent";
        return Err(CheckpointError::NotASession(why));
    }
    let beginning = beginning(&session)?;
    let archive = archive_path(&session, now_ms);
    fs::hard_link(&session, &archive).or_else(|_| fs::copy(&session, &archive).map(|_| ()))?;
    let replaced = replace_with(&session, now_ms, |out| out.write_all(&beginning));
    match replaced {
        Ok(backup) => {
            // The archive is the same file.
            let _ = fs::remove_file(backup);
            Ok(archive)
        }
        Err(error) => {
            let _ = fs::remove_file(&archive);
            Err(error.into())
        }
    }
}

/// What a session begins anew with.
fn beginning(session: &Path) -> Result<Vec<u8>, CheckpointError> {
    let mut header = Vec::new();
    let mut count = 0;
    let shape = read::entries(File::open(session)?, |entry| {
        count += 1;
        if count == 1 && entry.seen.is_ok_and(|seen| seen.kind == Kind::Header) {
            header = [entry.bytes, b"\n"].concat();
        }
        Ok(())
    });
    match shape {
        Ok(shape) if matches!(shape.layout, Layout::Document { .. }) => {
            Ok(document::emptied(&fs::read(session)?))
        }
        // Too long to be read is what a reset is for.
        Ok(_) | Err(ReadError::TooLong(_)) => Ok(header),
        Err(error @ ReadError::Io(_)) => Err(error.into()),
        Err(_) if unread::was_session(session)? => Ok(Vec::new()),
        Err(_) => Err(CheckpointError::NotASession(
            "is not a transcript, and not the rest of one",
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_file_of_ours_is_never_written_through_a_link() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("incident.json");
        let theirs = home.path().join("theirs");
        fs::write(&theirs, "theirs").unwrap();
        // Whoever knows the process can guess the names.
        for number in 0..100 {
            let guessed = beside(&path, &format!("-new-{}-{number}", std::process::id()));
            symlink(&theirs, guessed).unwrap();
        }
        write_whole(&path, "ours").unwrap();
        assert_eq!(fs::read_to_string(&theirs).unwrap(), "theirs");
        assert_eq!(fs::read_to_string(&path).unwrap(), "ours");
        assert!(!path.is_symlink());
    }
}
