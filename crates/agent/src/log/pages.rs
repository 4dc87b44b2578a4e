//! A page of errors a day, for people: `logs/YYYY-MM-DD-errors.md`.
//!
//! Any number of processes add lines to the same page. Each opens it for appending, holds the lock
//! of the file while it looks whether the heading is there, and writes all it has in one piece.
//!
//! The pages lie where the process was started, which may be where tools work. So no link is
//! followed to them: a tool would choose what is written, and where. And nothing waits for them: a
//! thread of their own writes, and gives up on a page that somebody else holds.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use holdfast_contract::Clock;
use holdfast_contract::redact::Redactor;
use holdfast_contract::time::rfc3339;
use parking_lot::Mutex;
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// What stands for the day in a page's name.
const DAY: &str = "YYYY-MM-DD";
/// Characters of an error on a page.
pub const PAGE_ERROR_CHARS_MAX: usize = 500;
/// Size of a page; what happens then is in the log only.
pub const PAGE_BYTES_MAX: u64 = 10 * 1024 * 1024;

/// Errors that wait to be written; further ones are in the log only.
pub const PAGE_QUEUE_MAX: usize = 1024;
/// How long a page that another process holds is waited for.
pub const PAGE_LOCK_WAIT_MS: u64 = 5_000;
/// How long a process that ends waits for its last errors to be written.
pub const PAGE_LAST_LINES_MS: u64 = 5_000;
const PAGE_LOCK_LOOK: Duration = Duration::from_millis(5);

/// The pages of a directory.
pub struct ErrorPages {
    lines: Option<SyncSender<Line>>,
    /// Closed when the last line is written.
    ended: Mutex<Receiver<()>>,
    lost: Arc<AtomicU64>,
    clock: Arc<dyn Clock>,
    redactor: Redactor,
}

/// A line, and the day whose page it goes to.
struct Line {
    day: String,
    text: String,
}

/// An error and what became of it.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// Where: a tool, `gpt_oss` or `executor`.
    pub component: &'a str,
    /// What went wrong.
    pub error: &'a str,
    /// What was done about it.
    pub attempted_fix: &'a str,
    /// What came of that.
    pub status: &'a str,
}

impl ErrorPages {
    /// Pages in `dir`, named `name` with the day put in. Nothing is made before the first error.
    pub fn new(
        dir: impl AsRef<Path>,
        name: impl Into<String>,
        clock: Arc<dyn Clock>,
        redactor: Redactor,
    ) -> Self {
        let folder = Folder::of(dir.as_ref(), name.into());
        let lost = Arc::new(AtomicU64::new(0));
        let (lines, queue) = sync_channel::<Line>(PAGE_QUEUE_MAX);
        let (is_writing, ended) = sync_channel::<()>(0);
        let counted = lost.clone();
        let thread = thread::Builder::new().name("pages".to_owned());
        // Without a thread every error counts as lost: that is no reason not to start.
        let started = thread.spawn(move || {
            write_lines(&folder, &queue, &counted);
            drop(is_writing);
        });
        Self {
            lines: started.is_ok().then_some(lines),
            ended: Mutex::new(ended),
            lost,
            clock,
            redactor,
        }
    }

    /// Adds an error to the page of the day. One that can not be written is counted: a full disk
    /// must not end a run.
    pub fn add(&self, entry: &Entry<'_>) {
        let now = rfc3339(self.clock.now_ms());
        // A year beyond 9999 has more digits.
        let (day, time) = now.split_once('T').unwrap_or((now.as_str(), ""));
        let line = Line {
            day: day.to_owned(),
            text: self.line(time.get(..8).unwrap_or(time), entry),
        };
        let lines = self.lines.as_ref();
        if lines.is_none_or(|lines| lines.try_send(line).is_err()) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until all errors are written, for a moment; says how many could not be.
    pub fn close(mut self) -> u64 {
        self.finish();
        self.lost.load(Ordering::Relaxed)
    }

    fn finish(&mut self) {
        self.lines = None;
        let patience = Duration::from_millis(PAGE_LAST_LINES_MS);
        // Nothing is ever sent: it ends by being closed, or by time.
        let _: Result<(), RecvTimeoutError> = self.ended.get_mut().recv_timeout(patience);
    }

    fn line(&self, time: &str, entry: &Entry<'_>) -> String {
        let clean = |text: &str| {
            let text = self.redactor.redact_text(text);
            // A line is a line, and a bar is a bar between two parts of it.
            let plain = text
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
                .replace('|', "\\|");
            match plain.char_indices().nth(PAGE_ERROR_CHARS_MAX) {
                Some((end, _)) => format!("{}…", &plain[..end]),
                None => plain,
            }
        };
        format!(
            "[{time}] {} | Error: {} | Attempted fix: {} | Status: {}\n",
            clean(entry.component),
            clean(entry.error),
            clean(entry.attempted_fix),
            clean(entry.status)
        )
    }
}

impl Drop for ErrorPages {
    fn drop(&mut self) {
        self.finish();
    }
}

fn write_lines(folder: &Folder, queue: &Receiver<Line>, lost: &AtomicU64) {
    while let Ok(first) = queue.recv() {
        let waiting: Vec<Line> = std::iter::once(first).chain(queue.try_iter()).collect();
        for of_a_day in waiting.chunk_by(|one, next| one.day == next.day) {
            if folder.append(of_a_day).is_err() {
                lost.fetch_add(of_a_day.len() as u64, Ordering::Relaxed);
            }
        }
    }
}

/// Where the pages lie.
struct Folder {
    dir: PathBuf,
    name: String,
}

impl Folder {
    /// The links that lead to the directory now are the operator's; later ones are somebody's who can
    /// write there.
    fn of(dir: &Path, name: String) -> Self {
        let dir = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
        let above = dir.ancestors().skip(1);
        let real = above
            .filter_map(|above| Some((above, above.canonicalize().ok()?)))
            .find_map(|(above, real)| Some(real.join(dir.strip_prefix(above).ok()?)));
        Self {
            dir: real.unwrap_or(dir),
            name,
        }
    }

    /// Adds lines of one day to its page.
    fn append(&self, lines: &[Line]) -> io::Result<()> {
        let Some(Line { day, .. }) = lines.first() else {
            return Ok(());
        };
        let mut page = self.open(day)?;
        lock(&page)?;
        let length = page.metadata()?.len();
        if length >= PAGE_BYTES_MAX {
            return Err(io::Error::other("the page is full"));
        }
        let mut text = String::new();
        if length == 0 {
            text = format!("## {day}\n\n");
        }
        text.extend(lines.iter().map(|line| line.text.as_str()));
        page.write_all(text.as_bytes())
        // Closing the file gives up its lock.
    }

    /// The page of a day: a file of its own, however it got there.
    fn open(&self, day: &str) -> io::Result<File> {
        let dir = match self.open_dir() {
            Err(Errno::NOENT) => {
                let mut builder = std::fs::DirBuilder::new();
                std::os::unix::fs::DirBuilderExt::mode(builder.recursive(true), 0o700);
                builder.create(&self.dir)?;
                self.open_dir()?
            }
            opened => opened?,
        };
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::CLOEXEC;
        // Not through a link, and without waiting for whoever reads a FIFO.
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let name = self.name.replace(DAY, day);
        let page = rustix::fs::openat(dir, name, flags, Mode::from_raw_mode(0o600))?;
        let seen = rustix::fs::fstat(&page)?;
        let is_file = FileType::from_raw_mode(seen.st_mode) == FileType::RegularFile;
        if !is_file || seen.st_nlink > 1 {
            return Err(io::Error::other("it is no page but something else"));
        }
        Ok(page.into())
    }

    fn open_dir(&self) -> rustix::io::Result<OwnedFd> {
        let flags = OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC;
        let resolve = ResolveFlags::NO_SYMLINKS;
        rustix::fs::openat2(CWD, &self.dir, flags, Mode::empty(), resolve)
    }
}

/// Takes the lock of a page, or gives up on it: a tool may hold it for as long as it likes.
fn lock(page: &File) -> io::Result<()> {
    let deadline = Instant::now() + Duration::from_millis(PAGE_LOCK_WAIT_MS);
    loop {
        match page.try_lock() {
            Ok(()) => return Ok(()),
            Err(std::fs::TryLockError::Error(error)) => return Err(error),
            Err(std::fs::TryLockError::WouldBlock) if Instant::now() >= deadline => {
                return Err(io::Error::other("somebody holds the page"));
            }
            Err(std::fs::TryLockError::WouldBlock) => thread::sleep(PAGE_LOCK_LOOK),
        }
    }
}
