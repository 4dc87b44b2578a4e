//! Layer D: which model made which malformed call, in JSON lines.
//!
//! Hiding what is secret and writing happen on a thread of its own behind a bounded queue: a host's event
//! loop adds calls and waits for neither. A full queue, a full disk or a missing directory costs log
//! lines, which are counted, and never a tool call.

use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use holdfast_contract::redact::Redactor;
use parking_lot::Mutex;
use rustix::fs::OFlags;
use serde_json::Value;

use super::{AttributionEntry, GuardAction, attribute_model};
use crate::call::{Call, Failure};
use holdfast_contract::time::rfc3339;

/// Lines waiting to be written at most; more are dropped and counted.
pub const ATTRIBUTION_QUEUE_MAX: usize = 1024;
/// What the waiting lines may hold of texts together; more are dropped and counted.
pub const ATTRIBUTION_QUEUE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The log is rotated when it has grown to this size.
pub const ATTRIBUTION_LOG_BYTES_MAX: u64 = 10 * 1024 * 1024;
/// Rotated logs kept beside it, as `.1` and so on.
pub const ATTRIBUTION_LOGS_KEPT: u32 = 3;

/// A line that is not written yet, and how long its texts are.
struct Waiting {
    entry: Box<dyn FnOnce() -> AttributionEntry + Send>,
    bytes: usize,
}

/// The log and its writing thread.
pub struct AttributionLog {
    path: PathBuf,
    queue: Option<SyncSender<Waiting>>,
    /// Lines that the writing thread does not know of yet.
    held: Mutex<Vec<Waiting>>,
    /// The texts of what waits.
    bytes: Arc<AtomicUsize>,
    writer: Option<JoinHandle<()>>,
    dropped: Arc<AtomicU64>,
}

impl AttributionLog {
    /// Starts a log at `path`. The file and its directory are made with the first line.
    pub fn start(path: PathBuf, redactor: Redactor) -> io::Result<Self> {
        let (queue, entries) = sync_channel(ATTRIBUTION_QUEUE_MAX);
        let dropped = Arc::new(AtomicU64::new(0));
        let lost = dropped.clone();
        let bytes = Arc::new(AtomicUsize::new(0));
        let waiting = bytes.clone();
        let file = path.clone();
        let writer = std::thread::Builder::new()
            .name("attribution-log".to_owned())
            .spawn(move || {
                for Waiting { entry, bytes } in entries {
                    waiting.fetch_sub(bytes, Ordering::Relaxed);
                    if !write_line(&file, entry(), &redactor) {
                        lost.fetch_add(1, Ordering::Relaxed);
                    }
                }
            })?;
        Ok(Self {
            path,
            queue: Some(queue),
            held: Mutex::new(Vec::new()),
            bytes,
            writer: Some(writer),
            dropped,
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds the line for a failed call.
    pub fn record(&self, call: &Call, failure: &Failure, action: GuardAction, now_ms: u64) {
        let envelope = &call.envelope;
        let target = &envelope.target;
        let tool_call_id = envelope.tool_call_id.as_deref();
        let model = attribute_model(target.model_id.as_deref(), tool_call_id.unwrap_or_default());
        let turn = target.turn_id.as_deref().or(target.run_id.as_deref());
        self.add(AttributionEntry {
            timestamp: rfc3339(now_ms),
            model_id: model.to_owned(),
            tool: envelope.tool_name.clone(),
            args: envelope.payload.params.clone(),
            error_type: failure.code.to_string(),
            error: failure.message.clone(),
            request_id: Some(envelope.request_id.clone()),
            tool_call_id: tool_call_id.map(str::to_owned),
            session_key: Some(target.session_key.clone()),
            turn_id: turn.map(str::to_owned),
            action,
        });
    }

    /// Adds a line as it is, but for what has to be hidden: for hosts whose calls have no envelope.
    pub fn add(&self, entry: AttributionEntry) {
        let bytes = entry.error.len().saturating_add(text_bytes(&entry.args));
        self.add_later(bytes, move || entry);
    }

    /// As [`Self::add`], for a line that the writing thread puts together. `bytes` is how long its texts are.
    pub fn add_later(
        &self,
        bytes: usize,
        entry: impl FnOnce() -> AttributionEntry + Send + 'static,
    ) {
        self.hold(bytes, entry);
        self.release();
    }

    /// As [`Self::add_later`], but the line waits for [`Self::release`]: waking the writing thread can cost the
    /// caller its processor, so a host does that when it has given its answer.
    pub fn hold(&self, bytes: usize, entry: impl FnOnce() -> AttributionEntry + Send + 'static) {
        let entry = Box::new(entry);
        let waiting = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let fits = waiting.saturating_add(bytes) <= ATTRIBUTION_QUEUE_BYTES_MAX;
        let mut held = self.held.lock();
        if fits && held.len() < ATTRIBUTION_QUEUE_MAX {
            held.push(Waiting { entry, bytes });
        } else {
            self.drop_line(bytes);
        }
    }

    /// Hands the lines that were held to the writing thread.
    pub fn release(&self) {
        for waiting in self.held.lock().drain(..) {
            let bytes = waiting.bytes;
            let queue = self.queue.as_ref();
            if queue.is_none_or(|queue| queue.try_send(waiting).is_err()) {
                self.drop_line(bytes);
            }
        }
    }

    fn drop_line(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// Lines that could not be written.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

impl Drop for AttributionLog {
    /// Writes what is queued: a short-lived process must not lose its last line.
    fn drop(&mut self) {
        self.release();
        self.queue = None;
        if let Some(writer) = self.writer.take() {
            // A writer that panicked has nothing left to write.
            let _ = writer.join();
        }
    }
}

/// Whether the line is in the log now.
fn write_line(path: &Path, mut entry: AttributionEntry, redactor: &Redactor) -> bool {
    hide(&mut entry, redactor);
    let line = entry.to_json_line();
    line.is_ok_and(|line| append(path, line.as_bytes()).is_ok())
}

/// The length of all texts in a value: that is what makes arguments large.
fn text_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(text_bytes).sum(),
        Value::Object(members) => {
            let members = members.iter();
            members
                .map(|(name, value)| name.len() + text_bytes(value))
                .sum()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

/// Takes out what nobody may read in a log.
fn hide(entry: &mut AttributionEntry, redactor: &Redactor) {
    let clean = |text: &mut String| {
        if let Cow::Owned(redacted) = redactor.redact_text(text) {
            *text = redacted;
        }
    };
    let given = [
        &mut entry.request_id,
        &mut entry.tool_call_id,
        &mut entry.session_key,
        &mut entry.turn_id,
    ];
    [
        &mut entry.model_id,
        &mut entry.tool,
        &mut entry.error_type,
        &mut entry.error,
    ]
    .into_iter()
    .chain(given.into_iter().flatten())
    .for_each(clean);
    redactor.redact_value_in_place(&mut entry.args);
}

/// Opens for every line: another process may have rotated the file, and failures are rare.
fn append(path: &Path, line: &[u8]) -> io::Result<()> {
    if path
        .metadata()
        .is_ok_and(|found| found.len() >= ATTRIBUTION_LOG_BYTES_MAX)
    {
        rotate(path)?;
    }
    open(path)?.write_all(line)
}

fn open(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    // Owner-only: the arguments in it are redacted, and still somebody's. Not through a link: where
    // tools can write beside it, one of them would choose whose file the lines go to.
    OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)
}

fn rotate(path: &Path) -> io::Result<()> {
    let numbered = |number: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{number}"));
        PathBuf::from(name)
    };
    for number in (1..ATTRIBUTION_LOGS_KEPT).rev() {
        // Absent in the first rounds.
        let _ = std::fs::rename(numbered(number), numbered(number + 1));
    }
    std::fs::rename(path, numbered(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(tool: usize) -> AttributionEntry {
        AttributionEntry {
            timestamp: "2026-02-13T10:00:00Z".into(),
            model_id: "anthropic".into(),
            tool: tool.to_string(),
            args: Value::Null,
            error_type: "tool_error".into(),
            error: "no such file".into(),
            request_id: None,
            tool_call_id: None,
            session_key: None,
            turn_id: None,
            action: GuardAction::Continue,
        }
    }

    fn lines(path: &Path) -> usize {
        std::fs::read_to_string(path).map_or(0, |text| text.lines().count())
    }

    #[test]
    fn what_is_held_is_written_when_it_is_released_or_the_log_ends() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("guard.log");
        let log = AttributionLog::start(path.clone(), Redactor::default()).unwrap();
        log.hold(1, || line(1));
        log.hold(1, || line(2));
        // The writing thread knows of nothing, so it can not have written it.
        assert_eq!(log.held.lock().len(), 2);
        log.release();
        assert!(log.held.lock().is_empty());
        log.hold(1, || line(3));
        drop(log);
        assert_eq!(lines(&path), 3);
    }

    #[test]
    fn what_is_held_is_bounded_and_what_is_lost_is_counted() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("guard.log");
        let log = AttributionLog::start(path, Redactor::default()).unwrap();
        for number in 0..=ATTRIBUTION_QUEUE_MAX {
            log.hold(1, move || line(number));
        }
        assert_eq!(log.held.lock().len(), ATTRIBUTION_QUEUE_MAX);
        assert_eq!(log.dropped(), 1);
        log.hold(ATTRIBUTION_QUEUE_BYTES_MAX, || line(0));
        assert_eq!(log.dropped(), 2);
        assert_eq!(
            log.bytes.load(Ordering::Relaxed),
            ATTRIBUTION_QUEUE_MAX,
            "what was lost takes no room"
        );
    }
}
