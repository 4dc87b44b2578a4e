//! A buffer that keeps its room from one call to the next.
//!
//! Arguments are written out on every call, and a fresh buffer of that size is the one kind of
//! allocation that is slow in most allocators.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};

/// A buffer that had to grow beyond this is given back. The arguments of a call that writes a whole file fit.
const KEPT_BYTES_MAX: usize = 256 * 1024;

thread_local! {
    static KEPT: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// The thread's buffer, empty, until it is dropped. A second loan within the first gets a new one.
#[derive(Debug)]
pub(crate) struct Buffer(Vec<u8>);

impl Buffer {
    pub(crate) fn borrow() -> Self {
        let mut bytes = KEPT.take();
        bytes.clear();
        Self(bytes)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.0.capacity() <= KEPT_BYTES_MAX {
            // A thread that is ending has no place for it any more, and needs none.
            let _ = KEPT.try_with(|kept| kept.set(std::mem::take(&mut self.0)));
        }
    }
}

impl Deref for Buffer {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        &self.0
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loan_starts_empty_and_a_huge_buffer_is_not_kept() {
        let mut outer = Buffer::borrow();
        outer.extend_from_slice(b"outer");
        assert!(Buffer::borrow().is_empty());
        assert_eq!(*outer, b"outer");
        drop(outer);
        let mut huge = Buffer::borrow();
        assert!(huge.is_empty());
        huge.reserve(2 * KEPT_BYTES_MAX);
        drop(huge);
        assert!(Buffer::borrow().capacity() <= KEPT_BYTES_MAX);
    }
}
