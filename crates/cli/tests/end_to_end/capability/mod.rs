//! One file a capability.

mod approvals;
mod approvals_after_death;
mod approvals_terminal;
mod audit;
mod breaker;
mod cancel;
mod config_check;
mod dedupe;
mod doctor;
mod documents;
mod envelope;
mod hints;
mod kill_9;
mod loops;
mod memory;
mod once;
mod operator;
mod privacy;
mod repairs;
mod screens;
mod session_tree;
mod sessions;
mod state;
mod terminal_text;
mod trust;
mod usage;
