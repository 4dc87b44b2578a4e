//! What commands left in the background, until their time is up.
//!
//! A command may end and leave a process behind. That process has the time its call had, and no
//! more: one thread for all of them sleeps until the next one's time is up, and ends by its mark
//! what is still there. With nothing left behind there is no thread.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use super::LEFT_BEHIND_MAX;
use super::family::{self, Tag};

struct Left {
    tag: Tag,
    until: Instant,
}

#[derive(Default)]
struct Waiting {
    left: Vec<Left>,
    watcher: Watcher,
}

#[derive(Default, PartialEq, Eq)]
enum Watcher {
    #[default]
    Absent,
    There,
}

static WAITING: Mutex<Waiting> = Mutex::new(Waiting {
    left: Vec::new(),
    watcher: Watcher::Absent,
});
static CHANGED: Condvar = Condvar::new();

fn waiting() -> MutexGuard<'static, Waiting> {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends what carries the tag at that time. With more of them than are kept, the one whose time is up
/// first is ended now.
pub(super) fn end_at(tag: Tag, until: Instant) {
    let mut waiting = waiting();
    waiting.left.push(Left { tag, until });
    let mut excess = Vec::new();
    if waiting.left.len() > LEFT_BEHIND_MAX {
        waiting.left.sort_by_key(|left| left.until);
        excess.push(waiting.left.remove(0));
    }
    if waiting.watcher == Watcher::Absent {
        let started = thread::Builder::new()
            .name("holdfast-left".into())
            .spawn(watch);
        match started {
            Ok(_) => waiting.watcher = Watcher::There,
            // Nobody would end them later.
            Err(_) => excess.append(&mut waiting.left),
        }
    }
    drop(waiting);
    CHANGED.notify_all();
    end(&excess);
}

/// Ends all of it now.
pub(super) fn end_all() {
    let all = std::mem::take(&mut waiting().left);
    CHANGED.notify_all();
    end(&all);
}

fn end(all: &[Left]) {
    for left in all {
        family::end_left(&left.tag);
    }
}

fn watch() {
    let mut waiting = waiting();
    while let Some(next) = waiting.left.iter().map(|left| left.until).min() {
        let now = Instant::now();
        if next > now {
            let (woken, _) = CHANGED
                .wait_timeout(waiting, next - now)
                .unwrap_or_else(PoisonError::into_inner);
            waiting = woken;
            continue;
        }
        let due: Vec<Left> = waiting
            .left
            .extract_if(.., |left| left.until <= now)
            .collect();
        drop(waiting);
        end(&due);
        waiting = self::waiting();
    }
    waiting.watcher = Watcher::Absent;
}
