//! Counts by somebody, within the last so much time.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::limits::PEERS_MAX;

/// Parts of a window whose counts are kept apart. What happened in one of them is forgotten together,
/// a window after the last of it: so never more than the limit within a window, wherever it begins, and
/// nobody is held up for more than a part longer than that.
const PARTS: u32 = 120;

#[derive(Debug, Clone, Copy)]
struct Part {
    began: Instant,
    last: Instant,
    count: u32,
}

/// What one of them did lately, oldest first.
#[derive(Debug, Default)]
struct Lately(VecDeque<Part>);

impl Lately {
    fn forget(&mut self, now: Instant, length: Duration) {
        let is_over = |part: &Part| now.duration_since(part.last) >= length;
        while self.0.front().is_some_and(is_over) {
            self.0.pop_front();
        }
    }

    /// How long until there are fewer than so many.
    fn wait(&self, now: Instant, length: Duration, count_max: u32) -> Option<Duration> {
        let mut left: u32 = self.0.iter().map(|part| part.count).sum();
        let mut wait = None;
        for part in &self.0 {
            if left < count_max {
                break;
            }
            left -= part.count;
            wait = length.checked_sub(now.duration_since(part.last));
        }
        wait.filter(|it| !it.is_zero())
    }

    fn count(&mut self, now: Instant, length: Duration) {
        match self.0.back_mut() {
            Some(part) if now.duration_since(part.began) < length / PARTS => {
                part.last = now;
                part.count = part.count.saturating_add(1);
            }
            _ => self.0.push_back(Part {
                began: now,
                last: now,
                count: 1,
            }),
        }
    }
}

/// How often each has done something lately. Only so many are remembered; the one seen longest ago
/// goes first.
#[derive(Debug)]
pub(crate) struct Windows<K> {
    length: Duration,
    count_max: AtomicU32,
    known: Mutex<HashMap<K, Lately>>,
}

impl<K: Eq + Hash + Clone> Windows<K> {
    /// Lets each do it `count_max` times within any time of this length.
    pub(crate) fn new(length: Duration, count_max: u32) -> Self {
        Self {
            length,
            count_max: AtomicU32::new(count_max),
            known: Mutex::default(),
        }
    }

    /// From now on this often.
    pub(crate) fn exchange(&self, count_max: u32) {
        self.count_max.store(count_max, Ordering::Relaxed);
    }

    /// How long somebody still has to wait; none for one that is welcome.
    pub(crate) fn wait(&self, who: &K) -> Option<Duration> {
        let now = Instant::now();
        let mut known = self.known.lock();
        let lately = known.get_mut(who)?;
        lately.forget(now, self.length);
        lately.wait(now, self.length, self.count_max.load(Ordering::Relaxed))
    }

    /// Counts once more, whoever it is.
    pub(crate) fn count(&self, who: K) {
        let now = Instant::now();
        self.count_at(&mut self.known.lock(), who, now);
    }

    /// Counts once more for one that is welcome; says how long another has to wait.
    pub(crate) fn take(&self, who: K) -> Result<(), Duration> {
        let now = Instant::now();
        let count_max = self.count_max.load(Ordering::Relaxed);
        let mut known = self.known.lock();
        if let Some(lately) = known.get_mut(&who) {
            lately.forget(now, self.length);
            if let Some(wait) = lately.wait(now, self.length, count_max) {
                return Err(wait);
            }
        }
        self.count_at(&mut known, who, now);
        Ok(())
    }

    fn count_at(&self, known: &mut HashMap<K, Lately>, who: K, now: Instant) {
        if known.len() >= PEERS_MAX && !known.contains_key(&who) {
            make_room(known, now, self.length);
        }
        let lately = known.entry(who).or_default();
        lately.forget(now, self.length);
        lately.count(now, self.length);
    }
}

fn make_room<K: Eq + Hash + Clone>(known: &mut HashMap<K, Lately>, now: Instant, length: Duration) {
    known.retain(|_, lately| {
        lately.forget(now, length);
        !lately.0.is_empty()
    });
    if known.len() >= PEERS_MAX
        && let Some(oldest) = known
            .iter()
            .min_by_key(|(_, lately)| lately.0.back().map(|part| part.last))
            .map(|(who, _)| who.clone())
    {
        known.remove(&oldest);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    #[tokio::test(start_paused = true)]
    async fn the_table_is_bounded() {
        let windows = Windows::new(MINUTE, 1);
        for number in 0..PEERS_MAX + 100 {
            windows.count(number);
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        assert_eq!(windows.known.lock().len(), PEERS_MAX);
        assert!(windows.wait(&0).is_none(), "the oldest went");
    }

    #[tokio::test(start_paused = true)]
    async fn a_minute_may_begin_anywhere() {
        let windows = Windows::new(MINUTE, 3);
        assert_eq!(windows.take("a"), Ok(()));
        tokio::time::advance(Duration::from_secs(59)).await;
        assert_eq!((windows.take("a"), windows.take("a")), (Ok(()), Ok(())));
        tokio::time::advance(Duration::from_secs(2)).await;
        assert_eq!(windows.take("a"), Ok(()), "the first is forgotten");
        // The next ones were 2 seconds ago.
        assert_eq!(windows.take("a"), Err(Duration::from_secs(58)));
        assert_eq!(windows.take("b"), Ok(()));
        windows.exchange(4);
        assert_eq!(windows.take("a"), Ok(()));
    }

    proptest! {
        /// Whatever the pace: never more than the limit within any minute, nobody waits longer than a
        /// minute, nobody who kept to the limit waits at all, who waited as long as it was told is let
        /// in, and what is kept is bounded.
        #[test]
        fn never_more_than_the_limit_in_any_minute(
            pauses in proptest::collection::vec(0_u64..20_000, 1..200),
            count_max in 1_u32..20,
        ) {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_time()
                .start_paused(true)
                .build()
                .expect("a runtime");
            runtime.block_on(async {
                let windows = Windows::new(MINUTE, count_max);
                let mut taken: Vec<Instant> = Vec::new();
                for pause in pauses {
                    tokio::time::advance(Duration::from_millis(pause)).await;
                    let now = Instant::now();
                    let is_recent = |it: &&Instant| now.duration_since(**it) < MINUTE + MINUTE / PARTS;
                    let keeps_to_it = taken.iter().filter(is_recent).count() < count_max as usize;
                    if let Err(wait) = windows.take(0) {
                        assert!(wait <= MINUTE && !keeps_to_it);
                        tokio::time::advance(wait).await;
                        assert_eq!(windows.take(0), Ok(()));
                    }
                    let now = Instant::now();
                    taken.push(now);
                    let within = taken.iter().filter(|it| now.duration_since(**it) < MINUTE);
                    assert!(within.count() <= count_max as usize);
                    assert!(windows.known.lock()[&0].0.len() <= PARTS as usize + 2);
                }
            });
        }
    }
}
