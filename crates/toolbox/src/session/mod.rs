//! The tree of sessions: Main, its Branches, their Workers.
//!
//! | module | what it does |
//! |---|---|
//! | [`model`] | a session, its limits and its result |
//! | [`step`] | the life of a session as pure functions |
//! | [`overview`] | all sessions of a state, for people who look at it |
//! | [`tree`] | keeps the tree, and hands each session its context |
//! | `ends` | ends sessions whose time is over, or that nobody works on any more |
//! | `mains` | opens Mains, replaces those that have ended, and refuses those that were cancelled |
//! | `children` | makes children, waits for them, and gives up those whose process is gone |
//! | `spending` | what sessions and those below them have used |
//!
//! A parent gives a child a summary of what it needs to know and nothing else; a child gives back
//! one result. Siblings do not know of each other. What a session may do is what its context holds:
//! a Worker's has nothing to write, run or send with, and no approval that a parent got is a
//! child's.

mod children;
mod ends;
mod mains;
pub mod model;
pub mod overview;
mod spending;
pub mod step;
pub mod tree;

pub use children::Named;
pub use model::{
    BlobError, Session, SessionArtifact, SessionLimits, SessionResult, SessionState, SessionStatus,
    Suspension,
};
pub use spending::Used;
pub use step::{Spent, StepRefused};
pub use tree::{Delivery, SessionTree, Spawn, TreeError};
