//! A buffer that keeps its room from one call to the next.
//!
//! Arguments are written out twice on every call, and a fresh buffer of that size is the one kind
//! of allocation that is slow in most allocators.

use std::cell::Cell;

/// A buffer that had to grow beyond this is given back.
const KEPT_BYTES_MAX: usize = 64 * 1024;

/// Lends the thread's buffer, empty. A second loan within the first gets a new one.
pub(crate) fn with_buffer<T>(work: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    thread_local! {
        static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    }
    let mut buffer = BUFFER.take();
    buffer.clear();
    let result = work(&mut buffer);
    if buffer.capacity() <= KEPT_BYTES_MAX {
        BUFFER.set(buffer);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loan_starts_empty_and_a_huge_buffer_is_not_kept() {
        with_buffer(|outer| {
            outer.extend_from_slice(b"outer");
            with_buffer(|inner| assert!(inner.is_empty()));
            assert_eq!(outer, b"outer");
        });
        with_buffer(|buffer| {
            assert!(buffer.is_empty());
            buffer.reserve(2 * KEPT_BYTES_MAX);
        });
        with_buffer(|buffer| assert!(buffer.capacity() <= KEPT_BYTES_MAX));
    }
}
