//! The loop guard through the whole stack: what the model reads, and what is not run.

mod attribution;
mod failing;
mod repeating;
