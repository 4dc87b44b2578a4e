//! Runs that other runs begin: subagents, over the tree of sessions.
//!
//! A subagent is a session of the tree and a run that works for it. Its parent gives it a task and
//! nothing else, and gets one `SessionResult` back. Depth, children, time and tokens are the tree's
//! to bound; what it may do is what its session holds. It ends with its parent, and with the
//! process it runs in, unless it was suspended there.
//!
//! | file | what it does |
//! |---|---|
//! | `desk` | begins, watches and ends them |
//! | `account` | what a run and its subagents may use up together |
//! | `again` | what becomes of them when their process is gone |
//! | `tools` | `sessions_spawn`, `sessions_list`, `sessions_resume` and `sessions_kill` |

mod account;
mod again;
mod desk;
mod result;
mod tools;

pub(crate) use again::Orphan;
pub use desk::Subagents;
pub use tools::{KILL, LIST, RESUME, SPAWN};

/// Their tools, by name: a stack has them only where runs can begin.
pub const SUBAGENT_TOOLS: [&str; 4] = [SPAWN, LIST, RESUME, KILL];

/// Subagents at once in one process.
pub const SUBAGENTS_MAX: usize = 256;
/// How long `sessions_list` waits for a subagent to end, in seconds.
pub const SUBAGENT_WAIT_S_MAX: u64 = 300;
/// How often it is looked whether another process has told a subagent or its parent to end.
pub const SUBAGENT_LOOK_MS: u64 = 1_000;
/// How the keys of their sessions begin. A session with such a key that does not live here has no
/// rights at all.
pub const SUBAGENT_PREFIX: &str = "subagent:";
