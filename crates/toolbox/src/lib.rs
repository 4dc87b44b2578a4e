//! The tools an agent calls and everything between a call and its tool.

pub mod tools;
