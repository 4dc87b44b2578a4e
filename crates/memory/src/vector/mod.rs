//! Nearest vectors.
//!
//! Every vector is kept twice: exactly, on disk, and as one signed byte a number, in memory and one
//! after the other. A search walks over all the bytes (a few milliseconds for 100,000 of them), takes
//! the best few dozen and compares those exactly. There is no index to build, to tune or to
//! get wrong, and a new record is found at once.

mod index;
mod quantise;
mod scan;

pub use index::{CodeIndex, Near, Row};
pub use quantise::{Code, cosine, from_bytes, to_bytes};
