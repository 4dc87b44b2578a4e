//! What is written down about runs: the events as lines, and the errors as pages.
//!
//! | module | what it does |
//! |---|---|
//! | [`lines`] | one event a line, as JSON or as text |
//! | [`pages`] | `logs/YYYY-MM-DD-errors.md`, appended by any number of processes |
//! | [`watch`] | turns what happens in a run into both |

pub mod lines;
pub mod pages;
pub mod watch;

pub use lines::{Format, Level, RunLog};
pub use pages::ErrorPages;
pub use watch::Watch;
