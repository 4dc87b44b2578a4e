//! Last words that could not be said at once: of dropped calls, and while the server is away.
//!
//! What a process has finished it does not forget: the word is said again until the server has
//! taken or refused it. The owner's token makes that safe, also after the record was turned to
//! unknown in the meantime.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tokio::sync::Notify;

use super::Shared;
use super::link::jitter;
use super::options::WRITE_BACK_MAX;
use crate::idempotency::transition::Finalisation;
use crate::store::StoreError;

/// Said at the same time.
const AT_ONCE: usize = 64;
/// A pause before a word that was not taken is said again.
const AGAIN_MS: u64 = 200;

#[derive(Default)]
struct Queue {
    words: VecDeque<Finalisation>,
    /// Taken out and not answered yet.
    under_way: usize,
    lost: u64,
}

/// What waits to be written.
#[derive(Default)]
pub(super) struct WriteBack {
    queue: Mutex<Queue>,
    arrived: Notify,
    emptied: Condvar,
}

impl WriteBack {
    pub(super) fn push(&self, word: Finalisation) {
        let mut queue = self.queue.lock();
        if queue.words.len() >= WRITE_BACK_MAX {
            queue.lost += 1;
        } else {
            queue.words.push_back(word);
        }
        drop(queue);
        self.arrived.notify_one();
    }

    /// Words that wait, and words that were given up.
    pub(super) fn count(&self) -> (usize, u64) {
        let queue = self.queue.lock();
        (queue.words.len() + queue.under_way, queue.lost)
    }

    /// Waits until everything is said, or not for longer than `at_most`.
    pub(super) fn drain(&self, at_most: Duration) {
        let mut queue = self.queue.lock();
        let _ = self.emptied.wait_while_for(
            &mut queue,
            |queue| !queue.words.is_empty() || queue.under_way > 0,
            at_most,
        );
    }

    fn take(&self) -> Vec<Finalisation> {
        let mut queue = self.queue.lock();
        let count = queue.words.len().min(AT_ONCE);
        let taken: Vec<_> = queue.words.drain(..count).collect();
        queue.under_way = taken.len();
        taken
    }

    fn give_back(&self, words: Vec<Finalisation>) {
        let mut queue = self.queue.lock();
        queue.under_way = 0;
        for word in words.into_iter().rev() {
            queue.words.push_front(word);
        }
        if queue.words.is_empty() {
            self.emptied.notify_all();
        }
    }
}

/// Says what waits, for as long as the store lives.
pub(super) async fn run(shared: Arc<Shared>) {
    loop {
        let words = shared.write_back.take();
        if words.is_empty() {
            shared.write_back.give_back(words);
            shared.write_back.arrived.notified().await;
            continue;
        }
        shared.link.up().await;
        let said = words.into_iter().map(|word| say(&shared, word));
        let unsaid: Vec<_> = futures_util::future::join_all(said)
            .await
            .into_iter()
            .flatten()
            .collect();
        let again = !unsaid.is_empty();
        shared.write_back.give_back(unsaid);
        if again {
            tokio::time::sleep(Duration::from_millis(jitter(AGAIN_MS))).await;
        }
    }
}

/// The word again, if it was neither taken nor refused.
async fn say(shared: &Shared, word: Finalisation) -> Option<Finalisation> {
    match shared.finalise(&word).await {
        Ok(_) => None,
        Err(StoreError::Unavailable(_) | StoreError::Full(_)) => Some(word),
    }
}
