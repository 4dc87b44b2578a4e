//! Reading JSON without building it: a line in, the few members that matter out.
//!
//! Two steps. `stage` looks at all bytes of a text in blocks of 64 and finds its strings, so that
//! the second step jumps over them in one go however long they are and however many escapes they
//! hold. [`Cursor`] then walks what is left, hands out the members an adapter asks for and checks
//! everything it steps over: a text that gets through is valid JSON, as if it had been parsed whole.

mod cursor;
mod number;
mod stage;
mod text;

pub use cursor::Cursor;
pub use stage::Strings;
pub use text::Text;

/// Why a text is not JSON, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Invalid {
    /// The byte in the text.
    pub at: usize,
    /// What is wrong there.
    pub what: &'static str,
}

impl Invalid {
    pub(crate) const fn new(at: usize, what: &'static str) -> Self {
        Self { at, what }
    }
}

impl std::fmt::Display for Invalid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} at byte {}", self.what, self.at)
    }
}

#[cfg(test)]
mod tests;
