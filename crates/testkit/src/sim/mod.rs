//! Parts of a seeded simulation: one number decides everything that happens in a schedule.
//!
//! | module | what it holds |
//! |---|---|
//! | [`seeds`] | which schedules are run, on how many threads, and what a failure prints |
//! | [`trace`] | what happened, as a hash to compare and as text to read |
//! | [`world`] | the world outside, where effects happen and can be counted |
//! | [`tool`] | tools that act on that world and fail in every way there is |
//!
//! The stack under test and its stores come from whoever runs the simulation; nothing here knows
//! them.

pub mod seeds;
pub mod tool;
pub mod trace;
pub mod world;

pub use seeds::{Schedule, Seeds, Violation};
pub use tool::{Nature, SimTool, Weather};
pub use trace::Trace;
pub use world::{RunEnd, World};
