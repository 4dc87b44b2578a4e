//! What happens in a run of this process, for any number of listeners.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;

use super::RUN_EVENTS_MAX;
use super::desk::Keeping;
use super::event::Event;
use crate::run::{Ending, Happened, RunState};
use crate::settings::RunSettings;

/// Bytes of what a model writes now that are kept for who watches it think.
pub const THINKING_BYTES_MAX: usize = 2048;

/// How the work of this process on a run came to its end.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The run has ended.
    Ended(Box<RunState>),
    /// The process ends; the run is kept and can be gone on with.
    Left,
    /// It could not be kept, so it did not go on.
    Lost(Lost),
}

impl Outcome {
    /// In a word: how the run ended, or that it did not.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Ended(state) => match state.ending() {
                Some(Ending::Answered { .. }) => "answered",
                Some(Ending::Calls { .. }) => "calls",
                Some(Ending::Failed(error)) => error.code.as_str(),
                Some(Ending::Cancelled) => "cancelled",
                None => "lost",
            },
            Self::Left => "left",
            Self::Lost(Lost::Cancelled(_)) => "cancelled",
            Self::Lost(_) => "lost",
        }
    }
}

/// Why this process does not go on with a run that has not ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    /// The state does not answer. The run goes on as it was last kept when it does.
    #[error("the state can not be used, and the run goes on when it is back: {0}")]
    Away(String),
    /// It is cancelled, and the state does not answer. It is told as soon as it does.
    #[error("it is cancelled, and the state can not be told yet: {0}")]
    Cancelled(String),
    /// It is somebody else's now, or was removed.
    #[error("the run can not be kept: {0}")]
    Taken(String),
    /// It did not begin.
    #[error("it did not begin")]
    NotBegun,
    /// A fault of ours.
    #[error("internal error")]
    Fault,
}

/// Why work on a run stops before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// Somebody said so, or nobody waits any more.
    Cancel,
    /// The process ends.
    Leave,
}

/// What becomes of a run that nobody listens to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unheard {
    /// It is cancelled after a while.
    Cancel,
    /// It goes on.
    GoOn,
}

/// A run that this process works on.
pub(super) struct Live {
    pub(super) id: String,
    pub(super) session: String,
    model: String,
    /// Who asked for it.
    client: String,
    keeping: Keeping,
    begun_at_ms: u64,
    unheard: Unheard,
    /// How long nobody may listen before it is cancelled.
    away_ms: u64,
    listeners: AtomicUsize,
    /// How often somebody began to listen.
    heard: AtomicUsize,
    log: Mutex<Log>,
    changed: watch::Sender<u64>,
    pub(super) stop: watch::Sender<Option<Stop>>,
}

#[derive(Default)]
struct Log {
    /// The number of the first event that is still known.
    first: u64,
    events: VecDeque<Event>,
    /// The bytes of the events.
    bytes: usize,
    /// What was said of the answer so far. Apart from the events, of which there may be many
    /// otherwise: a listener gets all at once that was said since it last looked.
    answer: String,
    /// The end of what the model writes now and what is not shown as its answer.
    thinking: String,
    /// The number of the event before which the answer began.
    answer_at: u64,
    outcome: Option<Arc<Outcome>>,
}

impl Log {
    fn think(&mut self, text: &str) {
        self.thinking.push_str(text);
        let mut from = self.thinking.len().saturating_sub(THINKING_BYTES_MAX);
        while !self.thinking.is_char_boundary(from) {
            from += 1;
        }
        self.thinking.drain(..from);
    }
}

impl Live {
    pub(super) fn new(
        state: &RunState,
        client: &str,
        keeping: Keeping,
        unheard: Unheard,
    ) -> Arc<Self> {
        Arc::new(Self {
            id: state.id.clone(),
            session: state.session.clone(),
            model: state.model.clone(),
            client: client.to_owned(),
            keeping,
            begun_at_ms: state.begun_at_ms,
            unheard,
            away_ms: state.settings.client_away_ms,
            listeners: AtomicUsize::new(0),
            heard: AtomicUsize::new(0),
            log: Mutex::default(),
            changed: watch::Sender::new(0),
            stop: watch::Sender::new(None),
        })
    }

    pub(super) fn tell(&self, state: &RunState, what: Happened<'_>) {
        if let Happened::Thinks { text } = what {
            self.log.lock().think(text);
        }
        if let Some(event) = Event::of(state, what) {
            self.add(event);
        }
    }

    fn add(&self, event: Event) {
        {
            let mut log = self.log.lock();
            log.thinking.clear();
            if let Event::Says { text } = &event {
                if log.answer.is_empty() {
                    log.answer_at = log.first + log.events.len() as u64;
                }
                log.answer.push_str(text);
                drop(log);
                self.changed.send_modify(|count| *count += 1);
                return;
            }
            if log.events.len() >= RUN_EVENTS_MAX
                && let Some(oldest) = log.events.pop_front()
            {
                log.bytes -= oldest.bytes();
                log.first += 1;
            }
            log.bytes += event.bytes();
            log.events.push_back(event);
        }
        self.changed.send_modify(|count| *count += 1);
    }

    pub(super) fn end(&self, outcome: Outcome) -> Arc<Outcome> {
        let outcome = Arc::new(outcome);
        self.log.lock().outcome = Some(outcome.clone());
        self.changed.send_modify(|count| *count += 1);
        outcome
    }

    /// As [`Self::end`], unless somebody has cancelled it: that has to be kept first.
    pub(super) fn end_unless_cancelled(&self, outcome: Outcome) -> Option<Arc<Outcome>> {
        let outcome = Arc::new(outcome);
        {
            let mut log = self.log.lock();
            if *self.stop.borrow() == Some(Stop::Cancel) {
                return None;
            }
            log.outcome = Some(outcome.clone());
        }
        self.changed.send_modify(|count| *count += 1);
        Some(outcome)
    }

    /// Stops it; says whether it is being stopped for this reason.
    pub(super) fn stop(&self, why: Stop) -> bool {
        let log = self.log.lock();
        if log.outcome.is_some() {
            return false;
        }
        self.stop.send_modify(|stop| {
            stop.get_or_insert(why);
        });
        *self.stop.borrow() == Some(why)
    }

    pub(super) fn listen(self: &Arc<Self>) -> Listener {
        self.listeners.fetch_add(1, Ordering::SeqCst);
        self.heard.fetch_add(1, Ordering::SeqCst);
        Listener {
            changed: self.changed.subscribe(),
            live: self.clone(),
            next: 0,
            said: 0,
        }
    }

    /// The bytes of what was told.
    pub(super) fn bytes(&self) -> usize {
        let log = self.log.lock();
        log.bytes.saturating_add(log.answer.len())
    }

    /// Who asked for it and how far it is, of one that is kept nowhere: as it was told, without what
    /// was said.
    pub(super) fn passing(&self) -> Option<(String, RunState)> {
        if self.keeping == Keeping::Durable {
            return None;
        }
        let mut state = RunState::new(
            self.id.as_str(),
            self.model.as_str(),
            Vec::new(),
            RunSettings::default(),
            self.begun_at_ms,
        );
        let log = self.log.lock();
        for event in &log.events {
            if let Event::Heard {
                iteration,
                tokens,
                reasoning,
                ..
            } = event
            {
                state.iteration = *iteration;
                state.tokens.push(*tokens);
                state.reasoning.clone_from(reasoning);
            }
        }
        drop(log);
        Some((self.client.clone(), state))
    }

    /// How it came to its end, in a word.
    pub(super) fn outcome_word(&self) -> &'static str {
        let outcome = self.log.lock().outcome.clone();
        outcome.map_or("lost", |outcome| outcome.word())
    }

    pub(super) fn is_over(&self) -> bool {
        self.log.lock().outcome.is_some()
    }
}

/// Listens to a run. When the last listener of a client's run is gone and none comes back for a
/// while, the run is cancelled.
pub struct Listener {
    live: Arc<Live>,
    changed: watch::Receiver<u64>,
    /// The number of the event that is heard next.
    next: u64,
    /// How much of the answer was heard.
    said: usize,
}

impl Listener {
    /// The run's name.
    pub fn run(&self) -> &str {
        &self.live.id
    }

    /// The model as the client named it.
    pub fn model(&self) -> &str {
        &self.live.model
    }

    /// When the run began.
    pub fn begun_at_ms(&self) -> u64 {
        self.live.begun_at_ms
    }

    /// What happened next; nothing when the work is over.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            self.changed.mark_unchanged();
            {
                let log = self.live.log.lock();
                self.next = self.next.max(log.first);
                if self.next >= log.answer_at
                    && let Some(text) = log.answer.get(self.said..).filter(|it| !it.is_empty())
                {
                    self.said = log.answer.len();
                    let text = text.to_owned();
                    return Some(Event::Says { text });
                }
                let place = usize::try_from(self.next - log.first).unwrap_or(usize::MAX);
                if let Some(event) = log.events.get(place) {
                    self.next += 1;
                    return Some(event.clone());
                }
                if log.outcome.is_some() {
                    return None;
                }
            }
            // The sender lives as long as the run, which this listener holds.
            let _ = self.changed.changed().await;
        }
    }

    /// The end of what the model writes now and what is not shown as its answer.
    pub fn thinking(&self) -> String {
        self.live.log.lock().thinking.clone()
    }

    /// How it ended.
    pub async fn outcome(&mut self) -> Arc<Outcome> {
        loop {
            self.changed.mark_unchanged();
            let found = self.live.log.lock().outcome.clone();
            if let Some(outcome) = found {
                return outcome;
            }
            let _ = self.changed.changed().await;
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let was_last = self.live.listeners.fetch_sub(1, Ordering::SeqCst) == 1;
        if !was_last || self.live.unheard == Unheard::GoOn || self.live.is_over() {
            return;
        }
        let heard = self.live.heard.load(Ordering::SeqCst);
        let away = Duration::from_millis(self.live.away_ms);
        // Who waits for somebody to come back keeps nothing of a run that has ended meanwhile.
        let live = Arc::downgrade(&self.live);
        // Without a runtime nobody works on it either.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                tokio::time::sleep(away).await;
                let Some(live) = live.upgrade() else { return };
                // Whoever came back and went again is waited for anew.
                let came_back = live.heard.load(Ordering::SeqCst) != heard;
                if live.listeners.load(Ordering::SeqCst) == 0 && !came_back {
                    live.stop(Stop::Cancel);
                }
            });
        }
    }
}
