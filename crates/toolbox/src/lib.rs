//! The tools and the one way to call them.
//!
//! [`stack::ToolStack`] answers a call: it finds the tool, asks whether it is allowed, checks the
//! arguments and passes the call through the reliability layers, in the order that
//! [`stack`] lists.

#![doc = include_str!("../../../docs/library.md")]

pub mod approval;
pub mod audit;
mod coerce;
pub mod declare;
pub mod draft;
pub mod git;
pub mod limit_output;
pub mod limits;
mod malformed;
pub mod permit;
pub mod registry;
pub mod resolve;
pub mod session;
pub mod stack;
pub mod token;
pub mod tools;
pub mod trust;
pub mod undo;
pub mod validate;

pub use token::Token;
