//! Counts by somebody, within a window of time.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::limits::PEERS_MAX;

#[derive(Debug, Clone, Copy)]
struct Window {
    began: Instant,
    count: u32,
}

/// How often each has done something within its window. Only so many are remembered; the one seen
/// longest ago goes first.
#[derive(Debug)]
pub(crate) struct Windows<K> {
    length: Duration,
    count_max: AtomicU32,
    known: Mutex<HashMap<K, Window>>,
}

impl<K: Eq + Hash + Clone> Windows<K> {
    /// Lets each do it `count_max` times in a window of this length.
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
        let known = self.known.lock();
        let window = known.get(who)?;
        let left = self.length.checked_sub(window.began.elapsed())?;
        (window.count >= self.count_max.load(Ordering::Relaxed) && !left.is_zero()).then_some(left)
    }

    /// Counts once more.
    pub(crate) fn count(&self, who: K) {
        let now = Instant::now();
        let mut known = self.known.lock();
        if known.len() >= PEERS_MAX && !known.contains_key(&who) {
            make_room(&mut known, now, self.length);
        }
        let fresh = Window {
            began: now,
            count: 0,
        };
        let window = known.entry(who).or_insert(fresh);
        if now.duration_since(window.began) >= self.length {
            *window = fresh;
        }
        window.count = window.count.saturating_add(1);
    }
}

fn make_room<K: Eq + Hash + Clone>(known: &mut HashMap<K, Window>, now: Instant, length: Duration) {
    known.retain(|_, window| now.duration_since(window.began) < length);
    if known.len() >= PEERS_MAX
        && let Some(oldest) = known
            .iter()
            .min_by_key(|(_, window)| window.began)
            .map(|(who, _)| who.clone())
    {
        known.remove(&oldest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_table_is_bounded() {
        let windows = Windows::new(Duration::from_mins(1), 1);
        for number in 0..PEERS_MAX + 100 {
            windows.count(number);
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        assert_eq!(windows.known.lock().len(), PEERS_MAX);
        assert!(windows.wait(&0).is_none(), "the oldest went");
    }
}
