//! A page of errors a day, for people: `logs/YYYY-MM-DD-errors.md`.
//!
//! Any number of processes add lines to the same page. Each opens it for appending, holds the lock
//! of the file while it looks whether the heading is there, and writes all it has in one piece.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use holdfast_contract::Clock;
use holdfast_contract::redact::Redactor;
use holdfast_contract::time::rfc3339;

/// What stands for the day in a page's name.
const DAY: &str = "YYYY-MM-DD";
/// Characters of an error on a page.
pub const PAGE_ERROR_CHARS_MAX: usize = 500;
/// Size of a page; what happens then is in the log only.
pub const PAGE_BYTES_MAX: u64 = 10 * 1024 * 1024;

/// The pages of a directory.
pub struct ErrorPages {
    dir: PathBuf,
    name: String,
    clock: Arc<dyn Clock>,
    redactor: Redactor,
    lost: AtomicU64,
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
        dir: impl Into<PathBuf>,
        name: impl Into<String>,
        clock: Arc<dyn Clock>,
        redactor: Redactor,
    ) -> Self {
        let (dir, name) = (dir.into(), name.into());
        Self {
            dir,
            name,
            clock,
            redactor,
            lost: AtomicU64::new(0),
        }
    }

    /// Adds an error to the page of the day. One that can not be written is counted: a full disk
    /// must not end a run.
    pub fn add(&self, entry: &Entry<'_>) {
        if self.append(entry).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Errors that could not be written.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    fn append(&self, entry: &Entry<'_>) -> io::Result<()> {
        let now = rfc3339(self.clock.now_ms());
        // A year beyond 9999 has more digits.
        let (day, time) = now.split_once('T').unwrap_or((now.as_str(), ""));
        let mut page = self.open(day)?;
        page.lock()?;
        let length = page.metadata()?.len();
        if length >= PAGE_BYTES_MAX {
            return Err(io::Error::other("the page is full"));
        }
        let mut text = String::new();
        if length == 0 {
            text = format!("## {day}\n\n");
        }
        text.push_str(&self.line(time.get(..8).unwrap_or(time), entry));
        page.write_all(text.as_bytes())
        // Closing the file gives up its lock.
    }

    fn open(&self, day: &str) -> io::Result<File> {
        if !self.dir.is_dir() {
            std::fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&self.dir)?;
        }
        OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(self.dir.join(self.name.replace(DAY, day)))
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
