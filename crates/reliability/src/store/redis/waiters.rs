//! Duplicates that wait for a running call.
//!
//! A duplicate's claim leaves a mark on the record, and whoever changes a marked record says so on
//! one channel that each process listens to once. Messages can be lost with a connection, so
//! the records that are waited for are looked at now and then, ever more seldom.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use super::Shared;
use super::link::jitter;
use super::options::WAITER_POLL_MS_MAX;
use crate::idempotency::key::StoredKey;
use crate::store::WaitTicket;

/// The first look at a record that is waited for.
const POLL_MS_MIN: u64 = 250;
/// Looks under way at one time.
const POLLS_AT_ONCE: usize = 16;

struct Waiter {
    id: u64,
    version: u64,
    tell: oneshot::Sender<()>,
}

struct Watched {
    waiters: Vec<Waiter>,
    pause_ms: u64,
    look_at: Instant,
}

#[derive(Default)]
struct Waiting {
    by_key: HashMap<StoredKey, Watched>,
    next_id: u64,
}

/// Who waits for which record.
#[derive(Default)]
pub(super) struct Waiters {
    waiting: Mutex<Waiting>,
    arrived: Notify,
}

/// Strikes a waiter off when its future is dropped.
struct Place<'a> {
    waiters: &'a Waiters,
    key: StoredKey,
    id: u64,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut waiting = self.waiters.waiting.lock();
        if let Some(watched) = waiting.by_key.get_mut(&self.key) {
            watched.waiters.retain(|waiter| waiter.id != self.id);
            if watched.waiters.is_empty() {
                waiting.by_key.remove(&self.key);
            }
        }
    }
}

impl Waiters {
    fn register(&self, ticket: &WaitTicket) -> (Place<'_>, oneshot::Receiver<()>) {
        let (tell, told) = oneshot::channel();
        let mut waiting = self.waiting.lock();
        let id = waiting.next_id;
        waiting.next_id += 1;
        let watched = waiting.by_key.entry(ticket.key).or_insert_with(|| Watched {
            waiters: Vec::new(),
            pause_ms: POLL_MS_MIN,
            look_at: Instant::now() + Duration::from_millis(jitter(POLL_MS_MIN)),
        });
        watched.waiters.push(Waiter {
            id,
            version: ticket.version,
            tell,
        });
        drop(waiting);
        self.arrived.notify_one();
        let place = Place {
            waiters: self,
            key: ticket.key,
            id,
        };
        (place, told)
    }

    /// Wakes those who have seen another version of the record; `None` is a record that is gone
    /// or has ended.
    pub(super) fn wake(&self, key: &StoredKey, running_version: Option<u64>) {
        let mut woken = Vec::new();
        {
            let mut waiting = self.waiting.lock();
            let Some(watched) = waiting.by_key.get_mut(key) else {
                return;
            };
            woken.extend(
                watched
                    .waiters
                    .extract_if(.., |waiter| running_version != Some(waiter.version)),
            );
            if watched.waiters.is_empty() {
                waiting.by_key.remove(key);
            }
        }
        for waiter in woken {
            // Its future may be gone: then there is nobody to wake.
            let _ = waiter.tell.send(());
        }
    }

    /// The channel was deaf for a while: everything that is waited for is looked at soon.
    pub(super) fn look_soon(&self) {
        let now = Instant::now();
        for watched in self.waiting.lock().by_key.values_mut() {
            watched.look_at = now;
            watched.pause_ms = POLL_MS_MIN;
        }
        self.arrived.notify_one();
    }

    /// Whose turn it is to be looked at, and when the next one's is.
    fn due(&self) -> (Vec<StoredKey>, Option<Instant>) {
        let now = Instant::now();
        let mut waiting = self.waiting.lock();
        let mut due = Vec::new();
        for (key, watched) in &mut waiting.by_key {
            if watched.look_at <= now {
                due.push(*key);
                watched.pause_ms = (watched.pause_ms * 2).min(WAITER_POLL_MS_MAX);
                watched.look_at = now + Duration::from_millis(jitter(watched.pause_ms));
            }
        }
        let next = waiting.by_key.values().map(|watched| watched.look_at).min();
        (due, next)
    }
}

/// Waits until the record may have changed, or its lease may have ended.
pub(super) async fn changed(shared: &Shared, ticket: WaitTicket) {
    let (_place, mut told) = shared.waiters.register(&ticket);
    // It may have changed before anybody listened on behalf of this waiter.
    let looked = tokio::select! {
        looked = shared.running_version(&ticket.key) => looked,
        _ = &mut told => return,
    };
    if looked.is_ok_and(|running| running != Some(ticket.version)) {
        return;
    }
    let lease_left_ms = ticket
        .lock_until_ms
        .saturating_sub(shared.clock.now_ms())
        .max(1);
    // However it ends, the caller claims again.
    let _ = tokio::time::timeout(Duration::from_millis(lease_left_ms), told).await;
}

/// Looks at what is waited for, as often as its turn comes.
pub(super) async fn poll(shared: Arc<Shared>) {
    loop {
        let (due, next) = shared.waiters.due();
        for some in due.chunks(POLLS_AT_ONCE) {
            let looks = some.iter().map(|key| look(&shared, *key));
            futures_util::future::join_all(looks).await;
        }
        let arrived = shared.waiters.arrived.notified();
        match next {
            None => arrived.await,
            Some(next) => {
                let _ = tokio::time::timeout_at(next, arrived).await;
            }
        }
    }
}

async fn look(shared: &Shared, key: StoredKey) {
    // Without an answer they go on waiting: the server may be back before their lease is over.
    if let Ok(running) = shared.running_version(&key).await {
        shared.waiters.wake(&key, running);
    }
}
