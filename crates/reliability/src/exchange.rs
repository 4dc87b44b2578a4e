//! Settings that can be exchanged while they are used.

use std::sync::Arc;

use parking_lot::RwLock;

/// A value that can be exchanged as a whole. Whoever began with one keeps it to its end.
///
/// ```
/// use holdfast_reliability::exchange::Exchanged;
///
/// let limit = Exchanged::new(3);
/// let begun_with = limit.now();
/// limit.exchange(5);
/// assert_eq!((*begun_with, *limit.now()), (3, 5));
/// ```
#[derive(Debug, Default)]
pub struct Exchanged<T>(RwLock<Arc<T>>);

impl<T> Exchanged<T> {
    /// This value.
    pub fn new(value: T) -> Self {
        Self(RwLock::new(Arc::new(value)))
    }

    /// The value of this moment.
    pub fn now(&self) -> Arc<T> {
        self.0.read().clone()
    }

    /// From now on this one.
    pub fn exchange(&self, value: T) {
        *self.0.write() = Arc::new(value);
    }
}

impl<T> From<T> for Exchanged<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}
