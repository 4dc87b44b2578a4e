//! The layers every tool call passes on its way to the tool, and the stores they keep.

pub mod guard;
