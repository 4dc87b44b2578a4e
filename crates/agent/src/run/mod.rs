//! A run: its state, the pure steps through it, and the driver.

mod drive;
mod state;
mod step;

pub use drive::{Checkpoint, CheckpointError, Loop, NoCheckpoint};
pub use state::{
    Ending, Phase, PlannedCall, RUN_FORMAT, RunError, RunErrorCode, RunState, TokensUsed,
};
pub use step::{CALLS_PER_REPLY_MAX, acted, heard, timed_out};
