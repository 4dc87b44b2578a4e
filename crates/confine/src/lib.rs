//! What the kernel holds a command to.
//!
//! A command is told what it may do by nobody: the kernel refuses the rest. Four things are laid on
//! the new process between fork and exec, and on everything it ever starts:
//!
//! | module | what holds |
//! |---|---|
//! | [`plan`] | which files it may read and change, as a plain list that is easy to test |
//! | `files` | that list as a Landlock ruleset |
//! | `calls` | the system calls that no build, test or script needs, refused by seccomp |
//! | [`view`] | a `/tmp` of the workspace's own, in a mount namespace |
//! | [`mark`] | a mark that it can not take off, by which everything it started is found again |
//! | [`peer`] | whether such a process is at the other end of a connection |
//! | [`kernel`] | what of this the running kernel has |
//! | [`config`] | `confinement:` in the configuration |
//!
//! Everything that allocates is done before the fork; [`Confinement::enter`] makes bare system calls.

mod calls;
pub mod config;
mod enter;
mod files;
pub mod kernel;
pub mod limits;
pub mod mark;
pub mod peer;
pub mod plan;
pub mod view;

pub use config::{ConfinementConfig, Mode};
pub use enter::{ConfineError, Confinement};
pub use kernel::Kernel;
pub use mark::Mark;
pub use plan::{Network, Plan, Signals, UnixSockets};
pub use view::{Cover, Shown, Views};
