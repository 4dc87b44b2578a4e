//! Last words that could not be said at once: of dropped calls, and while the server is away.
//!
//! What a process has finished it does not forget: the word is said again until the server has
//! taken or refused it. The owner's token makes that safe, also after the record was turned to
//! unknown in the meantime. Words that only say that nothing ran are the first to be given up:
//! the lease settles them as well.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tokio::sync::Notify;

use super::Shared;
use super::link::{Trouble, jitter};
use super::options::{WRITE_BACK_BYTES_MAX, WRITE_BACK_MAX, WRITE_BACK_REFUSALS_MAX};
use crate::idempotency::record::output_bytes;
use crate::idempotency::transition::{Ending, Finalisation};
use crate::store::StoreError;

/// Said at the same time.
const AT_ONCE: usize = 64;
/// Of these, as many may be words that nothing ran.
const CANCELLED_AT_ONCE: usize = AT_ONCE / 4;
/// A pause before a word that was not taken is said again.
pub(super) const AGAIN_MS: u64 = 200;

/// One word, and how often the server would not hear of it.
struct Waiting {
    word: Finalisation,
    bytes: usize,
    refusals: u32,
}

impl Waiting {
    fn new(word: Finalisation) -> Self {
        let bytes = match &word.ending {
            Ending::Done(output) => output_bytes(output),
            Ending::Failed(error) | Ending::Unknown(error) => error.message.len(),
            Ending::DoneWithoutOutput | Ending::Cancelled => 0,
        };
        Self {
            word,
            bytes,
            refusals: 0,
        }
    }

    /// That it was done matters more than what it said.
    fn without_output(mut self) -> Self {
        match &mut self.word.ending {
            Ending::Failed(error) | Ending::Unknown(error) => {
                "the message could not be kept while Redis was away".clone_into(&mut error.message);
            }
            ending @ Ending::Done(_) => *ending = Ending::DoneWithoutOutput,
            Ending::DoneWithoutOutput | Ending::Cancelled => {}
        }
        self.bytes = 0;
        self
    }

    fn is_cancelled(&self) -> bool {
        self.word.ending == Ending::Cancelled
    }
}

#[derive(Default)]
struct Queue {
    /// How calls ended that ran.
    ended: VecDeque<Waiting>,
    /// Calls of which nothing ran.
    cancelled: VecDeque<Waiting>,
    /// Of all outputs and messages that wait.
    bytes: usize,
    /// Taken out and not answered yet.
    under_way: usize,
    lost: u64,
}

impl Queue {
    fn len(&self) -> usize {
        self.ended.len() + self.cancelled.len()
    }

    /// Puts a word at the end; answers with the one that had to be given up for it.
    fn put(&mut self, mut waiting: Waiting) -> Option<Finalisation> {
        let mut given_up = None;
        if self.len() >= WRITE_BACK_MAX {
            self.lost += 1;
            match self.cancelled.pop_front() {
                Some(oldest) if !waiting.is_cancelled() => given_up = Some(oldest.word),
                Some(oldest) => {
                    self.cancelled.push_front(oldest);
                    return Some(waiting.word);
                }
                None => return Some(waiting.word),
            }
        }
        if self.bytes.saturating_add(waiting.bytes) > WRITE_BACK_BYTES_MAX {
            waiting = waiting.without_output();
        }
        self.bytes += waiting.bytes;
        if waiting.is_cancelled() {
            self.cancelled.push_back(waiting);
        } else {
            self.ended.push_back(waiting);
        }
        given_up
    }

    fn take(&mut self) -> Vec<Waiting> {
        let cancelled = self.cancelled.len().min(CANCELLED_AT_ONCE);
        let ended = self.ended.len().min(AT_ONCE - cancelled);
        let mut taken: Vec<_> = self.ended.drain(..ended).collect();
        taken.extend(self.cancelled.drain(..cancelled));
        self.bytes -= taken.iter().map(|waiting| waiting.bytes).sum::<usize>();
        self.under_way = taken.len();
        taken
    }
}

type Listener = Box<dyn Fn(&StoreError) + Send + Sync>;

/// What waits to be written.
#[derive(Default)]
pub(super) struct WriteBack {
    queue: Mutex<Queue>,
    arrived: Notify,
    emptied: Condvar,
    listener: Mutex<Option<Listener>>,
}

impl WriteBack {
    /// Answers with the word that had to be given up for it, if one had to.
    #[must_use]
    fn push(&self, word: Finalisation) -> Option<Finalisation> {
        let given_up = self.queue.lock().put(Waiting::new(word));
        self.arrived.notify_one();
        given_up
    }

    /// Words that wait, and words that were given up.
    pub(super) fn count(&self) -> (usize, u64) {
        let queue = self.queue.lock();
        (queue.len() + queue.under_way, queue.lost)
    }

    /// Tells `listener` of every word that the server keeps refusing, when it is given up.
    pub(super) fn on_given_up(&self, listener: Listener) {
        *self.listener.lock() = Some(listener);
    }

    /// Waits until everything is said, or not for longer than `at_most`.
    pub(super) fn drain(&self, at_most: Duration) {
        let mut queue = self.queue.lock();
        let _ = self.emptied.wait_while_for(
            &mut queue,
            |queue| queue.len() + queue.under_way > 0,
            at_most,
        );
    }

    /// What was not said waits behind the others: words for a part of the server that is away must
    /// not hold up those for the rest. Answers with what had to be given up.
    #[must_use]
    fn give_back(&self, unsaid: Vec<Waiting>, refused_for_good: usize) -> Vec<Finalisation> {
        let mut queue = self.queue.lock();
        queue.under_way = 0;
        queue.lost += refused_for_good as u64;
        let given_up = unsaid
            .into_iter()
            .filter_map(|waiting| queue.put(waiting))
            .collect();
        if queue.len() == 0 {
            self.emptied.notify_all();
        }
        given_up
    }
}

/// What became of a word.
enum Said {
    /// Taken, or refused by the rules.
    Heard,
    /// To be said again.
    Unsaid(Waiting),
    /// The server will never take it.
    GivenUp(Finalisation, StoreError),
}

impl Shared {
    /// A last word that is said as soon as possible.
    pub(super) fn say_later(&self, word: Finalisation) {
        if let Some(given_up) = self.write_back.push(word) {
            self.granted.settled(&given_up.key, &given_up.owner);
        }
    }

    /// One round of words; says whether any of them was heard.
    async fn say_again(&self, words: Vec<Waiting>) -> bool {
        let said = words.into_iter().map(|waiting| self.try_to_say(waiting));
        let (mut unsaid, mut refused, mut any_heard) = (Vec::new(), Vec::new(), false);
        for said in futures_util::future::join_all(said).await {
            match said {
                Said::Heard => any_heard = true,
                Said::Unsaid(waiting) => unsaid.push(waiting),
                Said::GivenUp(word, error) => refused.push((word, error)),
            }
        }
        for given_up in self.write_back.give_back(unsaid, refused.len()) {
            self.granted.settled(&given_up.key, &given_up.owner);
        }
        for (word, error) in refused {
            self.granted.settled(&word.key, &word.owner);
            if let Some(listener) = &*self.write_back.listener.lock() {
                listener(&error);
            }
        }
        any_heard
    }

    async fn try_to_say(&self, mut waiting: Waiting) -> Said {
        match self.last_word(&waiting.word).await {
            Ok(_) => Said::Heard,
            Err(Trouble::Passing(_)) => Said::Unsaid(waiting),
            Err(Trouble::Lasting(error)) => {
                waiting.refusals += 1;
                if waiting.refusals < WRITE_BACK_REFUSALS_MAX {
                    Said::Unsaid(waiting)
                } else {
                    Said::GivenUp(waiting.word, error)
                }
            }
        }
    }
}

/// Says what waits, for as long as the store lives.
pub(super) async fn run(shared: Arc<Shared>) {
    loop {
        let words = shared.write_back.queue.lock().take();
        if words.is_empty() {
            shared.write_back.arrived.notified().await;
            continue;
        }
        shared.link.up().await;
        if !shared.say_again(words).await {
            tokio::time::sleep(Duration::from_millis(jitter(AGAIN_MS))).await;
        }
    }
}

#[cfg(test)]
#[path = "write_back_tests.rs"]
mod tests;
