//! A run: its state, the pure steps through it, and the driver.

mod asking;
mod cut_off;
mod doubt;
mod drive;
mod held;
mod looks;
mod offer;
mod opened;
mod progress;
mod reading;
mod returning;
mod saying;
pub(crate) mod size;
mod state;
mod step;
mod waiting;
mod wishes;

pub use doubt::Doubt;
pub use drive::{Checkpoint, CheckpointError, Loop, NoCheckpoint};
pub(crate) use drive::{MODEL_RETRY_AFTER_MS, MODEL_RETRY_BASE_MS};
pub use held::HeldCalls;
pub use offer::ClientToolError;
pub(crate) use opened::OPENED_UNHEARD_MAX;
pub use progress::Happened;
pub use returning::{CallsAtOnce, ClientTools, Mode, ToolChoice, heard_for_client};
pub use state::{
    CallLeftOut, Effects, Ending, NotDone, Phase, PlannedCall, RUN_FORMAT, RunError, RunErrorCode,
    RunState, Telling, TokensUsed,
};
pub use step::{CALLS_PER_REPLY_MAX, acted, heard, timed_out};
pub use wishes::Chain;
