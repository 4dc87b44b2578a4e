//! Duplicates that wait for a running call.
//!
//! A change made by this process wakes them at once. Changes by other processes, and holders that
//! die, are noticed by one thread that looks every few milliseconds while anybody waits, and
//! sleeps when nobody does.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use holdfast_database::connection::open_reader;
use parking_lot::{Condvar, Mutex};
use rusqlite::Connection;
use tokio::sync::oneshot;

use super::Shared;
use super::errors::StepResult;
use super::rows;
use crate::idempotency::key::StoredKey;
use crate::idempotency::transition::Holder;
use crate::store::WaitTicket;

/// How often the database is asked whether another process has changed it: one small read.
const POLL_EVERY: Duration = Duration::from_millis(5);
/// Every so many polls the waiting look whether their holders live and their leases hold.
const POLLS_PER_HOLDER_CHECK: u32 = 4;

struct Waiter {
    id: u64,
    version: u64,
    lock_until_ms: u64,
    tell: oneshot::Sender<()>,
}

#[derive(Default)]
struct Waiting {
    by_key: HashMap<StoredKey, Vec<Waiter>>,
    /// Came since the last look: their record may have changed before they were listed.
    fresh: Vec<StoredKey>,
    next_id: u64,
    poller: Option<JoinHandle<()>>,
    closed: bool,
}

/// Who waits for which record.
#[derive(Default)]
pub(super) struct Waiters {
    waiting: Mutex<Waiting>,
    arrived: Condvar,
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
        if let Some(same_key) = waiting.by_key.get_mut(&self.key) {
            same_key.retain(|waiter| waiter.id != self.id);
            if same_key.is_empty() {
                waiting.by_key.remove(&self.key);
            }
        }
    }
}

impl Waiters {
    /// Wakes everybody who waits for a record.
    pub(super) fn wake(&self, key: &StoredKey) {
        let woken = self.waiting.lock().by_key.remove(key);
        for waiter in woken.into_iter().flatten() {
            // Its future may be gone: then there is nobody to wake.
            let _ = waiter.tell.send(());
        }
    }

    /// Wakes everybody: they claim again, and that tells them what is wrong.
    fn wake_all(&self) {
        let woken = std::mem::take(&mut self.waiting.lock().by_key);
        drop(woken);
    }

    /// Wakes everybody and ends the poller.
    pub(super) fn close(&self) {
        self.waiting.lock().closed = true;
        self.arrived.notify_all();
        self.wake_all();
    }

    /// The thread that polls, to be joined after [`Self::close`].
    pub(super) fn take_poller(&self) -> Option<JoinHandle<()>> {
        self.waiting.lock().poller.take()
    }

    fn wake_where(&self, key: &StoredKey, changed: impl Fn(&Waiter) -> bool) {
        let mut woken = Vec::new();
        {
            let mut waiting = self.waiting.lock();
            let Some(same_key) = waiting.by_key.get_mut(key) else {
                return;
            };
            woken.extend(same_key.extract_if(.., |waiter| changed(waiter)));
            if same_key.is_empty() {
                waiting.by_key.remove(key);
            }
        }
        for waiter in woken {
            let _ = waiter.tell.send(());
        }
    }
}

/// Waits until the record may have changed, or its lease may have ended.
pub(super) async fn changed(shared: &Arc<Shared>, ticket: WaitTicket) {
    let (tell, told) = oneshot::channel();
    let waiters = &shared.waiters;
    let _place = {
        let mut waiting = waiters.waiting.lock();
        if waiting.closed || !start_poller(&mut waiting, shared) {
            return;
        }
        let id = waiting.next_id;
        waiting.next_id += 1;
        waiting.by_key.entry(ticket.key).or_default().push(Waiter {
            id,
            version: ticket.version,
            lock_until_ms: ticket.lock_until_ms,
            tell,
        });
        waiting.fresh.push(ticket.key);
        waiters.arrived.notify_one();
        Place {
            waiters,
            key: ticket.key,
            id,
        }
    };
    let lease_left_ms = ticket
        .lock_until_ms
        .saturating_sub(shared.clock.now_ms())
        .max(1);
    // However it ends, the caller claims again.
    let _ = tokio::time::timeout(Duration::from_millis(lease_left_ms), told).await;
}

/// Starts the polling thread with the first waiter: most processes never have one.
fn start_poller(waiting: &mut Waiting, shared: &Arc<Shared>) -> bool {
    if waiting.poller.is_none() {
        let shared = shared.clone();
        waiting.poller = std::thread::Builder::new()
            .name("holdfast-waiters".to_owned())
            .spawn(move || poll(&shared))
            .ok();
    }
    waiting.poller.is_some()
}

/// What to look at in this round.
enum Round {
    Closed,
    Look { fresh: Vec<StoredKey> },
}

impl Waiters {
    /// Sleeps while nobody waits, else until the next round.
    fn next_round(&self) -> Round {
        let mut waiting = self.waiting.lock();
        while waiting.by_key.is_empty() && !waiting.closed {
            waiting.fresh.clear();
            self.arrived.wait(&mut waiting);
        }
        let _ = self.arrived.wait_while_for(
            &mut waiting,
            |waiting| waiting.fresh.is_empty() && !waiting.closed,
            POLL_EVERY,
        );
        if waiting.closed {
            return Round::Closed;
        }
        Round::Look {
            fresh: std::mem::take(&mut waiting.fresh),
        }
    }

    fn keys(&self) -> Vec<StoredKey> {
        self.waiting.lock().by_key.keys().copied().collect()
    }
}

fn poll(shared: &Shared) {
    let mut conn = None;
    let mut seen = None;
    let mut polls = 0_u32;
    while let Round::Look { fresh } = shared.waiters.next_round() {
        if conn.is_none() {
            conn = open_reader(&shared.place, &shared.options.opening()).ok();
        }
        let looked = conn.as_ref().map(|conn| -> StepResult<()> {
            polls = polls.wrapping_add(1);
            let version = data_version(conn)?;
            let all = seen != Some(version) || polls.is_multiple_of(POLLS_PER_HOLDER_CHECK);
            seen = Some(version);
            let keys = if all { shared.waiters.keys() } else { fresh };
            keys.iter().try_for_each(|key| look(shared, conn, key))
        });
        if !matches!(looked, Some(Ok(()))) {
            // What can not be read can not be waited for.
            conn = None;
            seen = None;
            shared.waiters.wake_all();
        }
    }
}

fn data_version(conn: &Connection) -> StepResult<i64> {
    Ok(conn
        .prepare_cached("PRAGMA data_version")?
        .query_row([], |row| row.get(0))?)
}

fn look(shared: &Shared, conn: &Connection, key: &StoredKey) -> StepResult<()> {
    let glance = rows::glance(conn, key)?;
    let running = glance.filter(|glance| {
        let holder = shared
            .locks
            .holder(key, &glance.owner, glance.lock_file.as_deref());
        glance.in_flight && holder == Holder::MayLive
    });
    let now_ms = shared.clock.now_ms();
    shared.waiters.wake_where(key, |waiter| {
        running.as_ref().is_none_or(|glance| {
            rows::sql_int(glance.version) != rows::sql_int(waiter.version)
                || waiter.lock_until_ms <= now_ms
        })
    });
    Ok(())
}
