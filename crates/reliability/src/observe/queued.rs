//! Lines to somebody who may not read them.
//!
//! A pipe that nobody empties is full after 64 KB, and the next write waits for ever. A tool call
//! must not: lines go through a bounded queue to a thread of their own. What does not fit is
//! dropped, counted, and said as soon as somebody reads again.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use parking_lot::Mutex;

use super::log::LineSink;

/// Log lines waiting for a reader at most; more are dropped and counted.
pub const LOG_QUEUE_MAX: usize = 4096;
/// How long a process that ends waits for its last log lines to be read.
pub const LOG_LAST_LINES_MS: u64 = 1_000;

/// See the [module](self).
pub struct QueuedSink {
    lines: Option<SyncSender<Vec<u8>>>,
    /// Closed when the last line is written.
    ended: Mutex<Receiver<()>>,
    dropped: Arc<AtomicU64>,
}

impl QueuedSink {
    /// Writes to `writer`.
    pub fn start(writer: impl Write + Send + 'static) -> io::Result<Self> {
        let (lines, queue) = sync_channel(LOG_QUEUE_MAX);
        let (is_writing, ended) = sync_channel(0);
        let dropped = Arc::new(AtomicU64::new(0));
        let lost = dropped.clone();
        std::thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || {
                write_lines(writer, &queue, &lost);
                drop::<SyncSender<()>>(is_writing);
            })?;
        Ok(Self {
            lines: Some(lines),
            ended: Mutex::new(ended),
            dropped,
        })
    }
}

impl QueuedSink {
    /// Whether there was room for the line.
    pub fn takes(&self, line: &[u8]) -> bool {
        let lines = self.lines.as_ref();
        let is_taken = lines.is_some_and(|lines| lines.try_send(line.to_vec()).is_ok());
        if !is_taken {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        is_taken
    }
}

impl LineSink for QueuedSink {
    fn line(&self, line: &[u8]) {
        self.takes(line);
    }
}

impl Drop for QueuedSink {
    /// Lets what is queued be written, unless nobody reads it.
    fn drop(&mut self) {
        self.lines = None;
        let patience = Duration::from_millis(LOG_LAST_LINES_MS);
        // Nothing is ever sent: it ends by being closed, or by time.
        let _: Result<(), RecvTimeoutError> = self.ended.get_mut().recv_timeout(patience);
    }
}

fn write_lines(mut writer: impl Write, queue: &Receiver<Vec<u8>>, dropped: &AtomicU64) {
    while let Ok(line) = queue.recv() {
        // A writer that fails has nobody who could be told.
        let _ = writer.write_all(&line);
        say_lost(&mut writer, dropped);
    }
    say_lost(&mut writer, dropped);
}

fn say_lost(writer: &mut impl Write, dropped: &AtomicU64) {
    let lost = dropped.swap(0, Ordering::Relaxed);
    if lost > 0 {
        let _ = writeln!(
            writer,
            "{{\"level\":\"warn\",\"event\":\"log.lines_dropped\",\"lost\":{lost}}}"
        );
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};

    use super::*;

    #[test]
    fn lines_nobody_reads_hold_nothing_up_and_are_counted() {
        let (reader, writer) = io::pipe().unwrap();
        let sink = QueuedSink::start(writer).unwrap();
        let line = format!("{}\n", "x".repeat(1023));
        let sent = 3 * LOG_QUEUE_MAX;
        for _ in 0..sent {
            sink.line(line.as_bytes());
        }
        let read = std::thread::spawn(move || {
            let mut whole = 0;
            let mut lost = 0;
            for line in BufReader::new(reader).lines() {
                let line = line.unwrap();
                if line.starts_with('{') {
                    let said: serde_json::Value = serde_json::from_str(&line).unwrap();
                    lost += said["lost"].as_u64().unwrap();
                } else {
                    whole += 1;
                }
            }
            (whole, lost)
        });
        drop(sink);
        let (whole, lost) = read.join().unwrap();
        assert!(lost > 0);
        assert_eq!(whole + lost, sent as u64);
    }

    #[test]
    fn a_process_ends_although_nobody_reads() {
        let (_reader, writer) = io::pipe().unwrap();
        let sink = QueuedSink::start(writer).unwrap();
        for _ in 0..LOG_QUEUE_MAX {
            sink.line(&[b'x'; 1024]);
        }
        // Ends by time; a test that hangs is ended by the runner.
        drop(sink);
    }
}
