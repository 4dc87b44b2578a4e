//! What waits for the writer thread.

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tokio::sync::Semaphore;

use super::errors::closed;
use super::writer::Op;
use crate::store::StoreResult;

/// Operations that may wait for the writer; further callers wait for room in turn.
pub(crate) const WRITE_QUEUE_MAX: usize = 4_096;
/// Operations from places that can not wait for room. One more is dropped: a record whose last
/// word is lost stays in flight until its lease ends and is unknown from then on, so nothing runs
/// twice because of it.
pub(crate) const DETACHED_QUEUE_MAX: usize = 16_384;
/// Operations that share one transaction. Bounds how long the first of them waits for the last.
pub(crate) const WRITE_BATCH_MAX: usize = 512;

struct Waiting {
    ops: VecDeque<(Box<dyn Op>, Entry)>,
    detached: usize,
    /// Arrivals wake the writer once this many wait, so that a batch costs one wake-up.
    wanted: usize,
    closed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Entry {
    WithPermit,
    Detached,
}

/// A bounded queue between async callers and one thread.
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    arrived: Condvar,
    room: Semaphore,
}

impl Queue {
    pub(super) fn new() -> Self {
        Self {
            waiting: Mutex::new(Waiting {
                ops: VecDeque::new(),
                detached: 0,
                wanted: 1,
                closed: false,
            }),
            arrived: Condvar::new(),
            room: Semaphore::new(WRITE_QUEUE_MAX),
        }
    }

    /// Adds an operation, waiting for room. Once this returns it will be carried out, whether or
    /// not the caller stays.
    pub(super) async fn push(&self, op: Box<dyn Op>) -> StoreResult<()> {
        // Given back by the writer when it takes the operation.
        self.room.acquire().await.map_err(|_| closed())?.forget();
        if self.add(op, Entry::WithPermit) {
            Ok(())
        } else {
            Err(closed())
        }
    }

    /// Adds an operation without waiting; says whether there was room.
    pub(super) fn push_detached(&self, op: Box<dyn Op>) -> bool {
        self.add(op, Entry::Detached)
    }

    fn add(&self, op: Box<dyn Op>, entry: Entry) -> bool {
        let mut waiting = self.waiting.lock();
        let refused =
            waiting.closed || (entry == Entry::Detached && waiting.detached >= DETACHED_QUEUE_MAX);
        if refused {
            // Dropping an operation may add another one, so not under the lock.
            drop(waiting);
            drop(op);
            return false;
        }
        if entry == Entry::Detached {
            waiting.detached += 1;
        }
        waiting.ops.push_back((op, entry));
        if waiting.ops.len() >= waiting.wanted {
            self.arrived.notify_one();
        }
        true
    }

    /// Waits for work and takes all of it, up to a batch. Empty means that the queue is closed and
    /// done.
    ///
    /// `expected` operations are likely to arrive within `linger`: the callers that have just been
    /// answered. Without this pause the first of them would get a transaction of its own and the
    /// rest would wait for its sync, which halves the rate.
    pub(super) fn take(&self, expected: usize, linger: Duration) -> Vec<Box<dyn Op>> {
        let mut waiting = self.waiting.lock();
        while waiting.ops.is_empty() && !waiting.closed {
            self.arrived.wait(&mut waiting);
        }
        if waiting.ops.len() < expected && !linger.is_zero() && !waiting.closed {
            waiting.wanted = expected;
            let _ = self.arrived.wait_while_for(
                &mut waiting,
                |waiting| waiting.ops.len() < expected && !waiting.closed,
                linger,
            );
            waiting.wanted = 1;
        }
        let count = waiting.ops.len().min(WRITE_BATCH_MAX);
        let taken: Vec<(Box<dyn Op>, Entry)> = waiting.ops.drain(..count).collect();
        let with_permit = taken
            .iter()
            .filter(|(_, entry)| *entry == Entry::WithPermit)
            .count();
        waiting.detached -= count - with_permit;
        drop(waiting);
        self.room.add_permits(with_permit);
        taken.into_iter().map(|(op, _)| op).collect()
    }

    /// How many wait.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.waiting.lock().ops.len()
    }

    /// Takes nothing more in; what waits is still carried out.
    pub(super) fn close(&self) {
        self.waiting.lock().closed = true;
        self.room.close();
        self.arrived.notify_all();
    }

    /// Closes and drops what waits, so that nobody waits for an answer that can not come.
    pub(super) fn abandon(&self) {
        self.close();
        let dropped = std::mem::take(&mut self.waiting.lock().ops);
        drop(dropped);
    }
}
