//! Runs as they are kept, worked on and watched.
//!
//! | file | what it does |
//! |---|---|
//! | `owner` | who works on a run, and whether that process still lives |
//! | `store` | keeps runs after each of their steps |
//! | `live` | what happens in a run of this process, for any number of listeners |
//! | `turns` | who is next when all places are taken: each client in turn |
//! | `desk` | starts, resumes and cancels runs, within bounds |

mod desk;
mod live;
mod owner;
mod store;
mod turns;

pub(crate) use desk::wholly;
pub use desk::{Cancelled, Keeping, ResumeError, Runs, RunsLimits, StartError};
pub use live::{Event, Listener, Outcome};
pub use owner::Owner;
pub use store::{KeptRun, KeyClaim, RunPage, RunStore, RunStoreError};

/// How long an ended run can be looked at.
pub const RUN_KEPT_MS: u64 = 24 * 60 * 60 * 1000;
/// How long an unfinished run can be gone on with. Shorter than the life of a call's record: a call
/// that was under way must still be known then.
pub const RUN_OPEN_KEPT_MS: u64 = 23 * 60 * 60 * 1000;
/// How long a process that is not heard of counts as alive on other machines.
pub const RUN_OWNER_LEASE_MS: u64 = 30_000;
/// Runs at once in one process.
pub const RUNS_MAX: usize = 1024;
/// Requests that wait for one of them to end.
pub const RUNS_WAITING_MAX: usize = 256;
/// How long an unfinished run waits when as many wait for a place as may, before it asks again.
pub const RESUME_AGAIN_MS: u64 = 1000;
/// How long a client that went away may stay away.
pub const CLIENT_AWAY_MS_MAX: u64 = 30_000;
/// What happened in one run, for listeners that come late; the oldest is forgotten first.
pub const RUN_EVENTS_MAX: usize = 1024;
