//! What commands left in the background, until their time is up.
//!
//! A command may end and leave a process behind. That process has the time its call had, and no
//! more: one thread for all of them sleeps until the next one's time is up, and ends by its mark
//! what is still there, and again later where that was not seen to be gone. With nothing left behind
//! there is no thread.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::LEFT_BEHIND_MAX;
use super::at_work::AtWork;
use super::family::{self, Gone, Tag};

/// Wait before what was not seen to be gone is looked for once more, each time twice as long.
const RETRY_WAIT: Duration = Duration::from_secs(1);
const RETRY_WAIT_MAX: Duration = Duration::from_mins(1);

/// Those that are ended at the same time.
const ENDED_AT_ONCE_MAX: usize = 16;

struct Left {
    _at_work: AtWork,
    tag: Tag,
    until: Instant,
    retry_wait: Duration,
}

impl Left {
    /// What is to be looked for once more, later.
    fn later(self) -> Self {
        Self {
            until: Instant::now() + self.retry_wait,
            retry_wait: (self.retry_wait * 2).min(RETRY_WAIT_MAX),
            ..self
        }
    }
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

fn locked<T>(kept: &Mutex<T>) -> MutexGuard<'_, T> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

fn waiting() -> MutexGuard<'static, Waiting> {
    locked(&WAITING)
}

/// Ends what carries the tag at that time. With more of them than are kept, the one whose time is up
/// first is ended now, and nobody waits for that unless there are far more.
pub(super) fn end_at(tag: Tag, until: Instant) {
    let mut waiting = waiting();
    waiting.left.push(Left {
        _at_work: AtWork::in_workspace(&tag.workspace),
        tag,
        until,
        retry_wait: RETRY_WAIT,
    });
    let mut excess = Vec::new();
    hurry(&mut waiting.left, Instant::now());
    if waiting.left.len() > 2 * LEFT_BEHIND_MAX {
        // The watcher does not keep up.
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
    end(excess);
}

/// Of more than are kept, the time of the first is up now.
fn hurry(left: &mut [Left], now: Instant) {
    left.sort_by_key(|left| left.until);
    let kept = left.iter_mut().rev().take_while(|left| left.until > now);
    for first in kept.skip(LEFT_BEHIND_MAX) {
        first.until = now;
    }
}

/// Ends all of it now.
pub(super) fn end_all() {
    let all = std::mem::take(&mut waiting().left);
    CHANGED.notify_all();
    end(all);
}

/// Ends all of them, several at a time: one that can not be ended takes seconds, which the others do
/// not have. Those that were not seen to be gone.
fn end(all: Vec<Left>) -> Vec<Left> {
    end_each(all, &|left| family::end_left(&left.tag))
}

fn end_each(mut all: Vec<Left>, end_one: &(dyn Fn(&Left) -> Gone + Sync)) -> Vec<Left> {
    let at_once = all.len().min(ENDED_AT_ONCE_MAX);
    // They are taken from the end.
    all.sort_by_key(|left| std::cmp::Reverse(left.until));
    let rest = Mutex::new(all);
    let not_gone = Mutex::new(Vec::new());
    let next = || locked(&rest).pop();
    let work = || {
        while let Some(left) = next() {
            if end_one(&left) == Gone::NotAll {
                locked(&not_gone).push(left);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..at_once {
            let helper = thread::Builder::new().name("holdfast-end".into());
            if helper.spawn_scoped(scope, work).is_err() {
                // Those that are there do its part.
                break;
            }
        }
        work();
    });
    not_gone
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner)
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
        let not_gone = end(due);
        waiting = self::waiting();
        // Those whose time is not up yet come first.
        let room = LEFT_BEHIND_MAX.saturating_sub(waiting.left.len());
        let again = not_gone.into_iter().take(room).map(Left::later);
        waiting.left.extend(again);
    }
    waiting.watcher = Watcher::Absent;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(until: Instant) -> Left {
        Left {
            _at_work: AtWork::in_workspace("/w".as_ref()),
            tag: Tag::new("/w".into()),
            until,
            retry_wait: RETRY_WAIT,
        }
    }

    /// Each is only over when as many as are ended at once have begun.
    #[test]
    fn one_that_takes_its_time_does_not_hold_up_the_others() {
        let (begun, more) = (Mutex::new(0), Condvar::new());
        let all = || (0..ENDED_AT_ONCE_MAX).map(|_| left(Instant::now()));
        let end_one = |_: &Left| {
            let mut count = locked(&begun);
            *count += 1;
            more.notify_all();
            let (count, _) = more
                .wait_timeout_while(count, Duration::from_secs(20), |it| *it < ENDED_AT_ONCE_MAX)
                .unwrap();
            if *count < ENDED_AT_ONCE_MAX {
                Gone::NotAll
            } else {
                Gone::All
            }
        };
        assert_eq!(end_each(all().collect(), &end_one).len(), 0);
        let none_gone = end_each(all().chain(all()).collect(), &|_| Gone::NotAll);
        assert_eq!(none_gone.len(), 2 * ENDED_AT_ONCE_MAX);
    }

    #[test]
    fn of_too_many_the_first_is_ended_without_waiting_for_it() {
        let now = Instant::now();
        let at = |second: usize| now + Duration::from_secs(second as u64);
        let mut all: Vec<Left> = (1..=LEFT_BEHIND_MAX + 2).map(|it| left(at(it))).collect();
        hurry(&mut all, now);
        let due = all.iter().filter(|it| it.until <= now).count();
        assert_eq!(due, 2);
        hurry(&mut all, now);
        assert_eq!(all.iter().filter(|it| it.until <= now).count(), 2);
    }
}
