//! The routes, asked without a socket.

mod admin;
mod calls;
mod harness;
mod invoke;
mod limits;
