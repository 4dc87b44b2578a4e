//! Runs as they are kept, worked on and watched.
//!
//! | file | what it does |
//! |---|---|
//! | `owner` | who works on a run, and whether that process still lives |
//! | `hold` | which runs somebody of this process has in hand |
//! | `store` | keeps runs after each of their steps |
//! | `kept` | one run's place in the store |
//! | `keys` | the keys by which clients make several requests one run |
//! | `patience` | how patiently a state that does not answer is asked again |
//! | `live` | what happens in a run of this process, for any number of listeners |
//! | `turns` | who is next when all places are taken: each client in turn |
//! | `desk` | starts, resumes and cancels runs, within bounds |
//! | `weight` | how much the runs of this process hold together |
//! | `children` | the runs of subagents |
//! | `here` | works on one run, and lets it rest in peace |

mod children;
mod desk;
mod event;
mod here;
mod hold;
mod kept;
mod keys;
mod live;
mod owner;
mod patience;
mod store;
mod turns;
mod weight;

pub(crate) use desk::wholly;
pub use desk::{Cancelled, Keeping, ResumeError, Runs, RunsLimits, StartError, Started};
pub use event::Event;
pub use keys::{KeyClaim, RunKey, came_to_nothing};
pub use live::{Listener, Lost, Outcome, THINKING_BYTES_MAX};
pub use owner::Owner;
pub use store::{KeptRun, RunPage, RunStore, RunStoreError};

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
/// Bytes that the runs of one process hold together: what was said in them, and what happened.
pub const RUNS_BYTES_MAX: usize = 256 * 1024 * 1024;
/// How long a run waits for a state that does not answer, before it stops and is taken up later.
pub const RUN_STORE_WAIT_MS: u64 = 10_000;
/// Longest wait between two attempts at writing a run.
pub const RUN_STORE_DELAY_MS_MAX: u64 = 1_000;
/// Runs whose end is not kept yet because the state does not answer; while there are as many, none
/// begins.
pub const RUNS_UNBURIED_MAX: usize = 1024;
/// How long a key without a run counts as claimed. Who has claimed one begins within half of it, or
/// not at all.
pub const RUN_KEY_CLAIM_MS: u64 = 60_000;
/// How often a run is taken up by itself without coming any further.
pub const RUN_TAKE_UPS_MAX: u32 = 5;
/// How long an unfinished run waits when as many wait for a place as may, before it asks again.
pub const RESUME_AGAIN_MS: u64 = 1000;
/// How long a client that went away may stay away.
pub const CLIENT_AWAY_MS_MAX: u64 = 30_000;
/// What happened in one run, for listeners that come late; the oldest is forgotten first.
pub const RUN_EVENTS_MAX: usize = 1024;
