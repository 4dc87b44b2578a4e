//! A list that grows without moving: what millions of entries cost is what they hold, never twice
//! that.

/// Items of a chunk.
const CHUNK: usize = 4096;

/// See the [module](self).
#[derive(Debug, Clone)]
pub(crate) struct Chunks<T> {
    chunks: Vec<Vec<T>>,
    len: usize,
}

impl<T> Default for Chunks<T> {
    fn default() -> Self {
        Self {
            chunks: Vec::new(),
            len: 0,
        }
    }
}

impl<T: Copy> Chunks<T> {
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(crate) fn push(&mut self, item: T) {
        let full = self.len.is_multiple_of(CHUNK);
        if full {
            // The first chunk grows as it likes: most sessions are short.
            let capacity = if self.len == 0 { 0 } else { CHUNK };
            self.chunks.push(Vec::with_capacity(capacity));
        }
        if let Some(chunk) = self.chunks.last_mut() {
            chunk.push(item);
            self.len += 1;
        }
    }

    #[inline]
    pub(crate) fn get(&self, at: usize) -> Option<T> {
        self.chunks.get(at / CHUNK)?.get(at % CHUNK).copied()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = T> + '_ {
        self.chunks.iter().flatten().copied()
    }
}
