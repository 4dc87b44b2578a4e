//! How much the runs of this process hold together.
//!
//! Each run is weighed when it begins and after each of its steps. While all of them hold more than
//! they may, none begins; and a run that has grown beyond its share ends. Some run is always beyond it
//! then, so they come down to the bound by themselves, and the small ones are left alone.

use std::sync::Arc;

use parking_lot::Mutex;

/// What all of them hold.
pub(super) struct Scale {
    bytes_max: usize,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    bytes: usize,
    runs: usize,
}

/// What one of them holds, until this is dropped.
pub(super) struct Weight {
    scale: Arc<Scale>,
    bytes: Mutex<usize>,
}

impl Scale {
    pub(super) fn new(bytes_max: usize) -> Arc<Self> {
        Arc::new(Self {
            bytes_max,
            held: Mutex::default(),
        })
    }

    /// Room for one more run of this size, if there is. One that is alone may be as large as it is: its
    /// request had a bound of its own.
    pub(super) fn add(self: &Arc<Self>, bytes: usize) -> Option<Weight> {
        let mut held = self.held.lock();
        let with_it = held.bytes.saturating_add(bytes);
        if with_it > self.bytes_max && held.runs > 0 {
            return None;
        }
        held.bytes = with_it;
        held.runs += 1;
        drop(held);
        Some(Weight {
            scale: self.clone(),
            bytes: Mutex::new(bytes),
        })
    }

    /// The bytes of all.
    pub(super) fn bytes(&self) -> usize {
        self.held.lock().bytes
    }
}

impl Weight {
    /// It holds so much now. Says whether that is more than there is room for.
    pub(super) fn is_too_much(&self, bytes: usize) -> bool {
        let mut own = self.bytes.lock();
        let has_grown = bytes > *own;
        let mut held = self.scale.held.lock();
        held.bytes = held.bytes.saturating_sub(*own).saturating_add(bytes);
        *own = bytes;
        let share = self.scale.bytes_max / held.runs.max(1);
        has_grown && held.bytes > self.scale.bytes_max && bytes > share
    }
}

impl Drop for Weight {
    fn drop(&mut self) {
        let mut held = self.scale.held.lock();
        held.bytes = held.bytes.saturating_sub(*self.bytes.lock());
        held.runs -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_hold_is_bounded_and_given_back() {
        let scale = Scale::new(100);
        let large = scale.add(150).expect("it is alone");
        assert!(scale.add(1).is_none());
        drop(large);
        let one = scale.add(60).expect("fits");
        assert!(scale.add(41).is_none());
        let two = scale.add(40).expect("fits");
        assert_eq!(scale.bytes(), 100);
        // The one within its share may grow, the other one has to end.
        assert!(!two.is_too_much(45));
        assert!(one.is_too_much(61));
        drop(one);
        assert!(!two.is_too_much(90));
        assert!(scale.add(11).is_none());
        drop(two);
        assert_eq!(scale.bytes(), 0);
    }
}
