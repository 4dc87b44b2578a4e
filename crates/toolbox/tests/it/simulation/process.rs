//! One simulated process: it can stall, lose its stores, and die.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::{Instant, Sleep};

use super::plan::Faults;

/// What the outside does to a process.
pub(crate) struct Process {
    pub(crate) number: u64,
    pub(crate) faults: Faults,
    dead: AtomicBool,
    stalled_until: Mutex<Instant>,
    outage_until: Mutex<Instant>,
    tasks: Mutex<Vec<AbortHandle>>,
}

impl Process {
    pub(crate) fn new(number: u64, faults: Faults) -> Arc<Self> {
        let now = Instant::now();
        Arc::new(Self {
            number,
            faults,
            dead: AtomicBool::new(false),
            stalled_until: Mutex::new(now),
            outage_until: Mutex::new(now),
            tasks: Mutex::default(),
        })
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Relaxed)
    }

    pub(crate) fn is_cut_off(&self) -> bool {
        *self.outage_until.lock() > Instant::now()
    }

    pub(crate) fn stall(&self, ms: u64) {
        *self.stalled_until.lock() = Instant::now() + Duration::from_millis(ms);
    }

    pub(crate) fn cut_off(&self, ms: u64) {
        *self.outage_until.lock() = Instant::now() + Duration::from_millis(ms);
    }

    /// Kills it. Nothing it does from here on reaches anybody, not even from a drop.
    pub(crate) fn crash(&self) {
        self.dead.store(true, Ordering::Relaxed);
        for task in self.tasks.lock().drain(..) {
            task.abort();
        }
    }

    /// Runs something inside the process.
    pub(crate) fn spawn<F>(self: &Arc<Self>, work: F) -> JoinHandle<()>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let task = tokio::spawn(Stallable {
            process: self.clone(),
            work: Box::pin(work),
            nap: None,
        });
        self.tasks.lock().push(task.abort_handle());
        task
    }
}

/// Work that is not even polled while its process stalls, however many of its timers fire.
struct Stallable<F> {
    process: Arc<Process>,
    work: Pin<Box<F>>,
    nap: Option<Pin<Box<Sleep>>>,
}

impl<F: Future<Output = ()>> Future for Stallable<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let until = *self.process.stalled_until.lock();
        if until > Instant::now() {
            let mut nap = Box::pin(tokio::time::sleep_until(until));
            if nap.as_mut().poll(cx).is_pending() {
                self.nap = Some(nap);
                return Poll::Pending;
            }
        }
        self.nap = None;
        self.work.as_mut().poll(cx)
    }
}
