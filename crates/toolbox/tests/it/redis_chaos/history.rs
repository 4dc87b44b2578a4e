//! What was asked of a store and what it answered, with the times, in files that outlive a kill.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::FutureExt;
use holdfast_reliability::idempotency::key::StoredKey;
use holdfast_reliability::idempotency::record::RecordState;
use holdfast_reliability::idempotency::transition::{ClaimRequest, Ending, Finalisation, Refused};
use holdfast_reliability::store::conformance::interposed::Interposed;
use holdfast_reliability::store::{Claim, DedupeStore, StoreFuture, StoreResult};
use serde::{Deserialize, Serialize};

/// What was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Asked {
    /// A claim under this owner.
    Claim { owner: String },
    /// A last word: the state it wants.
    Finalise { owner: String, state: RecordState },
    /// A claim taken back.
    Release { owner: String },
}

/// What was answered. No answer at all means that it may or may not have happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Answer {
    Granted,
    InFlight {
        version: u64,
    },
    Ended {
        state: RecordState,
        version: u64,
        owner: String,
    },
    Taken,
    NotTheHolder,
    Gone,
    Unclear,
}

/// One line of a history.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Line {
    pub(crate) id: u64,
    pub(crate) key: StoredKey,
    /// On the machine's own clock, which all processes share.
    pub(crate) at_ns: u64,
    pub(crate) asked: Option<Asked>,
    pub(crate) answer: Option<Answer>,
}

/// The machine's own clock.
pub(crate) fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap() * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap()
}

/// A store whose history is written down.
pub(crate) struct Recorded<S> {
    pub(crate) inner: Arc<S>,
    file: File,
    next: AtomicU64,
}

impl<S: DedupeStore> Recorded<S> {
    /// With the process's own numbers.
    pub(crate) fn new(inner: Arc<S>, path: &Path) -> Self {
        Self::starting_at(inner, path, u64::from(std::process::id()))
    }

    /// With numbers of its own among several in one process.
    pub(crate) fn starting_at(inner: Arc<S>, path: &Path, number: u64) -> Self {
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .unwrap();
        Self {
            inner,
            file,
            next: AtomicU64::new(number << 32),
        }
    }

    fn write(&self, line: &Line) {
        let mut text = serde_json::to_vec(line).unwrap();
        text.push(b'\n');
        // One write a line: a killed process leaves whole lines.
        (&self.file).write_all(&text).unwrap();
    }

    fn ask(&self, key: StoredKey, asked: Asked) -> u64 {
        let id = self.next.fetch_add(1, Ordering::SeqCst);
        let at_ns = monotonic_ns();
        self.write(&Line {
            id,
            key,
            at_ns,
            asked: Some(asked),
            answer: None,
        });
        id
    }

    fn answer(&self, id: u64, key: StoredKey, answer: Answer) {
        let at_ns = monotonic_ns();
        self.write(&Line {
            id,
            key,
            at_ns,
            asked: None,
            answer: Some(answer),
        });
    }
}

fn of_holder(result: &StoreResult<Result<(), Refused>>) -> Answer {
    match result {
        Ok(Ok(())) => Answer::Taken,
        Ok(Err(Refused::Gone)) => Answer::Gone,
        Ok(Err(Refused::NotTheHolder)) => Answer::NotTheHolder,
        Err(_) => Answer::Unclear,
    }
}

fn state_of(ending: &Ending) -> RecordState {
    match ending {
        Ending::Done(_) | Ending::DoneWithoutOutput => RecordState::Done,
        Ending::Failed(_) => RecordState::Failed,
        Ending::Cancelled => RecordState::Cancelled,
        Ending::Unknown(_) => RecordState::Unknown,
    }
}

impl<S: DedupeStore> Interposed for Recorded<S> {
    fn behind(&self) -> &dyn DedupeStore {
        &*self.inner
    }

    fn claim<'a>(&'a self, wish: &'a ClaimRequest) -> StoreFuture<'a, Claim> {
        async move {
            let owner = wish.owner.to_string();
            let id = self.ask(wish.key, Asked::Claim { owner });
            let claim = self.inner.claim(wish).await;
            // Content is looked up under another key; here every key has its own.
            let answer = match &claim {
                Ok(Claim::Granted { .. }) => Answer::Granted,
                Ok(Claim::InFlight { ticket }) => Answer::InFlight {
                    version: ticket.version,
                },
                Ok(Claim::Ended(record)) => Answer::Ended {
                    state: record.state,
                    version: record.version,
                    owner: record.owner.to_string(),
                },
                Ok(Claim::Conflict { .. }) => panic!("all arguments of a key are equal here"),
                Err(_) => Answer::Unclear,
            };
            self.answer(id, wish.key, answer);
            claim
        }
        .boxed()
        .into()
    }

    fn finalise(&self, word: Finalisation) -> StoreFuture<'_, Result<(), Refused>> {
        async move {
            let (key, owner, state) = (word.key, word.owner.to_string(), state_of(&word.ending));
            let id = self.ask(key, Asked::Finalise { owner, state });
            let result = self.inner.finalise(word).await;
            self.answer(id, key, of_holder(&result));
            result
        }
        .boxed()
        .into()
    }

    fn finalise_detached(&self, word: Finalisation) {
        let (owner, state) = (word.owner.to_string(), state_of(&word.ending));
        self.ask(word.key, Asked::Finalise { owner, state });
        self.inner.finalise_detached(word);
    }

    fn release<'a>(
        &'a self,
        key: &'a StoredKey,
        owner: &'a str,
    ) -> StoreFuture<'a, Result<(), Refused>> {
        async move {
            let asked = Asked::Release {
                owner: owner.to_owned(),
            };
            let id = self.ask(*key, asked);
            let result = self.inner.release(key, owner).await;
            self.answer(id, *key, of_holder(&result));
            result
        }
        .boxed()
        .into()
    }
}
