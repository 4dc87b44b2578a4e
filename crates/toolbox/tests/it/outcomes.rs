//! What becomes of a call, in every case: status, code, record, and what a duplicate gets.

mod cancelled;
mod content;
mod keys;
mod modes;
mod rate;
mod reconcile;
mod reused;
mod store;
mod table;
mod unknown;
