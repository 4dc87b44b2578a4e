//! The loop between a model and its tools.
//!
//! A model is asked, its reply is read for what it wants done, the calls go the one way of every
//! call ([`holdfast_toolbox::stack::ToolStack`]), their results go back, until the model has its
//! answer or a limit is reached.
//!
//! | module | what it does |
//! |---|---|
//! | [`chat`] | messages as model servers and clients write them |
//! | [`settings`] | the bounds and ways of one run |
//! | [`prompt`] | what a model is told about its tools |
//! | [`results`] | what a model is told about its calls |
//! | [`model`] | asks a model server, and reads whatever comes back |
//! | [`config`] | `executor.yaml` and its variables |
//! | [`context`] | questions that fit into the window, runs that fit into their budget |
//! | [`log`] | events and errors, written down |
//! | [`tokens`] | how many tokens something is |
//! | [`run`] | a run's state, the pure steps through it, and the driver |
//! | [`runs`] | runs as they are kept, worked on and watched |
//! | [`subagents`] | runs that other runs begin, over the tree of sessions |

pub mod chat;
pub mod config;
pub mod context;
pub mod limits;
pub mod log;
pub mod model;
pub mod prompt;
pub mod results;
pub mod run;
pub mod runs;
pub mod settings;
pub mod subagents;
pub mod tokens;
