//! What happened in a schedule.

use parking_lot::Mutex;
use tokio::time::Instant;

/// Whether a trace keeps its text besides its hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// The hash only: formatting every event would cost more than the events.
    Hash,
    /// Every event as a line, to read a failure by.
    Lines,
}

/// The events of one schedule.
///
/// Two runs of one seed have to give the same hash; if they do not, something in the code under
/// test depends on real time, real randomness or the order of a hash map.
pub struct Trace {
    begun: Instant,
    detail: Detail,
    told: Mutex<Told>,
}

struct Told {
    hash: u64,
    lines: Vec<String>,
}

impl Trace {
    /// An empty trace that begins now. Has to be called inside a runtime.
    pub fn new(detail: Detail) -> Self {
        Self {
            begun: Instant::now(),
            detail,
            told: Mutex::new(Told {
                hash: 0xcbf2_9ce4_8422_2325,
                lines: Vec::new(),
            }),
        }
    }

    /// Virtual time since the schedule began.
    pub fn now_ms(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Notes an event: what happened, to which two things, and how, in words.
    pub fn note(&self, what: &str, a: u64, b: u64, words: impl FnOnce() -> String) {
        let now_ms = self.now_ms();
        let mut told = self.told.lock();
        let mut hash = told.hash;
        for byte in what.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        for word in [now_ms, a, b] {
            hash = (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3);
            hash ^= hash >> 29;
        }
        told.hash = hash;
        if self.detail == Detail::Lines {
            told.lines
                .push(format!("{now_ms:>8} ms  {what} {}", words()));
        }
    }

    /// The hash over all events.
    pub fn hash(&self) -> u64 {
        self.told.lock().hash
    }

    /// The lines, when they are kept.
    pub fn take_lines(&self) -> Vec<String> {
        std::mem::take(&mut self.told.lock().lines)
    }
}
