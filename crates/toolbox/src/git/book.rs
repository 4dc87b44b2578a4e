//! What was set aside in a workspace, and what a person has kept: on disk, beside the state.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use holdfast_reliability::canonical::Digest;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::aside::{Aside, Taken, What};
use super::snapshot::FileKind;
use super::text::Bytes;
use super::{GIT_ASIDE_MAX, GIT_KNOWN_MAX, GIT_LOCK_WAIT_MS_MAX, GIT_SHOWN_BYTES_MAX};
use crate::tools::one_line;

/// Digits of a workspace's directory.
const NAME_DIGITS: usize = 16;
/// Pause between two tries to lock.
const PAUSE: Duration = Duration::from_millis(2);
const BOOK: &str = "book.json";
const BEFORE: &str = "before.json";
const LOCK: &str = "lock";
const RUNNING: &str = "running";
/// There while something was set aside that no answer has named.
const UNTOLD: &str = "untold";

/// A lock that is held. It is taken off, not only closed: a child that was just forked elsewhere in
/// this process has the file open too, until it runs its program.
#[derive(Debug)]
pub(super) struct Locked(File);

impl Drop for Locked {
    fn drop(&mut self) {
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

/// The directory of one workspace in the state.
#[derive(Debug, Clone)]
pub(super) struct Drawer {
    dir: PathBuf,
    workspace: PathBuf,
}

/// What the directory holds for people.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Book {
    workspace: Bytes,
    /// What a person has said yes to.
    known: Vec<String>,
    pub(super) aside: Vec<Aside>,
}

/// Something that was set aside, as a person sees it.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SetAside {
    /// What it is kept or dropped by.
    pub id: String,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// `hook`, `setting`, `link` or `configuration`.
    pub what: &'static str,
    /// The file, or the file that the setting was in.
    pub path: PathBuf,
    /// The setting's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setting: Option<String>,
    /// The setting's value, the link's target, or the file's content.
    pub content: String,
    /// Whether there is more of it.
    pub is_cut: bool,
    /// Whether the former one was put back in its place.
    pub replaced: bool,
}

impl Aside {
    /// One line for a caller.
    pub(super) fn line(&self, workspace: &Path) -> String {
        let path = self.path.path();
        let path = path.strip_prefix(workspace).unwrap_or(&path).display();
        match &self.what {
            What::Setting { name, value, .. } => {
                let value = value.as_ref().map(Bytes::lossy).unwrap_or_default();
                let value = one_line(&value, 120);
                format!("{}: setting {name} = {value} in {path}", self.id)
            }
            What::File { link, .. } => match link {
                Some(link) => format!("{}: {} {path} -> {}", self.id, self.kind(), link.lossy()),
                None => format!("{}: {} {path}", self.id, self.kind()),
            },
        }
    }

    fn kind(&self) -> &'static str {
        match &self.what {
            What::Setting { .. } => "setting",
            What::File { kind, .. } => match kind {
                FileKind::Hook => "hook",
                FileKind::Lead => "link",
                FileKind::Config => "configuration",
            },
        }
    }
}

impl Book {
    pub(super) fn is_known(&self, fingerprint: &str) -> bool {
        self.known.iter().any(|known| known == fingerprint)
    }

    pub(super) fn know(&mut self, fingerprint: String) {
        if !self.is_known(&fingerprint) {
            self.known.push(fingerprint);
        }
        let excess = self.known.len().saturating_sub(GIT_KNOWN_MAX);
        self.known.drain(..excess);
    }
}

fn parsed<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    match fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(io::Error::other),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

impl Drawer {
    pub(super) fn of(state: &Path, workspace: &Path) -> Self {
        let mut name = Digest::of(workspace.as_os_str().as_encoded_bytes()).to_string();
        name.truncate(NAME_DIGITS);
        Self {
            dir: state.join("git").join(name),
            workspace: workspace.to_owned(),
        }
    }

    pub(super) fn is_there(&self) -> bool {
        self.dir.exists()
    }

    /// A lock of the whole drawer, made with it if need be.
    pub(super) fn lock(&self) -> io::Result<Locked> {
        let until = Instant::now() + Duration::from_millis(GIT_LOCK_WAIT_MS_MAX);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.dir)?;
        loop {
            if let Some(locked) = self.attempt(LOCK, FlockOperation::NonBlockingLockExclusive)? {
                return Ok(locked);
            }
            if Instant::now() > until {
                return Err(io::Error::other("another process compares this workspace"));
            }
            thread::sleep(PAUSE);
        }
    }

    /// Says that a call runs here, until it is dropped.
    pub(super) fn running(&self) -> io::Result<Option<Locked>> {
        self.attempt(RUNNING, FlockOperation::NonBlockingLockShared)
    }

    /// Whether no process says so.
    pub(super) fn is_quiet(&self) -> io::Result<bool> {
        let alone = self.attempt(RUNNING, FlockOperation::NonBlockingLockExclusive)?;
        Ok(alone.is_some())
    }

    fn attempt(&self, name: &str, how: FlockOperation) -> io::Result<Option<Locked>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = options.mode(0o600).open(self.dir.join(name))?;
        match flock(&file, how) {
            Ok(()) => Ok(Some(Locked(file))),
            Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Replaces a file as a whole.
    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let unfinished = self.dir.join(format!("{name}.unfinished"));
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        let mut file = options.mode(0o600).open(&unfinished)?;
        file.write_all(bytes)?;
        fs::rename(unfinished, self.dir.join(name))
    }

    pub(super) fn book(&self) -> io::Result<Book> {
        let book: Option<Book> = parsed(&self.dir.join(BOOK))?;
        Ok(book.unwrap_or_else(|| Book {
            workspace: Bytes::from(&*self.workspace),
            ..Book::default()
        }))
    }

    pub(super) fn keep_book(&self, book: &Book) -> io::Result<()> {
        let untold = self.dir.join(UNTOLD);
        if book.aside.iter().all(|aside| aside.is_told) {
            let _ = fs::remove_file(untold);
        } else {
            File::create(untold)?;
        }
        self.write(BOOK, &serde_json::to_vec(book)?)
    }

    pub(super) fn has_untold(&self) -> bool {
        self.dir.join(UNTOLD).exists()
    }

    /// What was there before calls that nobody has seen the end of.
    pub(super) fn before<T: DeserializeOwned>(&self) -> io::Result<Option<T>> {
        parsed(&self.dir.join(BEFORE))
    }

    pub(super) fn has_before(&self) -> bool {
        self.dir.join(BEFORE).exists()
    }

    pub(super) fn keep_before(&self, before: &impl Serialize) -> io::Result<()> {
        self.write(BEFORE, &serde_json::to_vec(before)?)
    }

    pub(super) fn forget_before(&self) {
        let _ = fs::remove_file(self.dir.join(BEFORE));
    }

    /// Keeps something aside. The same thing is there once.
    pub(super) fn take(&self, book: &mut Book, (aside, content): Taken) -> io::Result<()> {
        if let Some(content) = content {
            self.write(&aside.id, &content)?;
        }
        book.aside.retain(|it| it.id != aside.id);
        book.aside.push(aside);
        let excess = book.aside.len().saturating_sub(GIT_ASIDE_MAX);
        for old in book.aside.drain(..excess).collect::<Vec<_>>() {
            self.forget(&old);
        }
        // Written before anything is removed, so that nothing is lost in between.
        self.keep_book(book)
    }

    pub(super) fn content(&self, aside: &Aside) -> Option<Vec<u8>> {
        fs::read(self.dir.join(&aside.id)).ok()
    }

    pub(super) fn forget(&self, aside: &Aside) {
        let _ = fs::remove_file(self.dir.join(&aside.id));
    }

    pub(super) fn shown(&self, aside: &Aside) -> SetAside {
        let (setting, content, replaced) = match &aside.what {
            What::Setting {
                name,
                value,
                instead,
                ..
            } => {
                let value = value.as_ref().map(Bytes::lossy).unwrap_or_default();
                (Some(name.to_string()), value, !instead.is_empty())
            }
            What::File { link, instead, .. } => {
                let content = if let Some(link) = link {
                    format!("-> {}", link.lossy())
                } else {
                    let too_large = || b"(too large to be kept)".to_vec();
                    let content = self.content(aside).unwrap_or_else(too_large);
                    let shown = &content[..content.len().min(GIT_SHOWN_BYTES_MAX)];
                    String::from_utf8_lossy(shown).into_owned()
                };
                (None, content, instead.is_some())
            }
        };
        SetAside {
            id: aside.id.clone(),
            at_ms: aside.at_ms,
            what: aside.kind(),
            path: aside.path.path(),
            setting,
            is_cut: content.len() >= GIT_SHOWN_BYTES_MAX,
            content,
            replaced,
        }
    }
}
