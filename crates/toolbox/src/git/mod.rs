//! What git itself would run later, outside of the confinement, when a person uses it in a workspace.
//!
//! A command works with git whole. But a hook, or a setting that names a program, would be run by the
//! person's next `git status`. So these few places are looked at before and after each call that may
//! change a workspace. What is new or changed is set aside, told, and waits for one yes.
//!
//! | module | what it does |
//! |---|---|
//! | `layer` | [`KeepGit`], around every call that may change its workspace |
//! | `keeper` | one comparison from its beginning to its end, also across processes |
//! | `book` | what was set aside in a workspace, and what a person has kept, on disk |
//! | `places` | where git looks for what it runs |
//! | `snapshot` | what is there at one moment, and what differs between two; pure |
//! | `names` | which settings name a program; pure |
//! | `index` | which submodules an index names |
//! | `config` | reads and edits git's configuration files; pure |
//! | `aside` | takes a change back, and puts it in place |
//! | `disk`, `text` | files by their directories; bytes in JSON |

mod aside;
mod book;
mod config;
mod disk;
mod index;
mod keeper;
mod layer;
mod names;
mod places;
mod snapshot;
#[cfg(test)]
mod tests;
mod text;

pub use book::SetAside;
pub use keeper::{GitError, GitKeeper};
pub use layer::KeepGit;

/// Bytes of a configuration file of git that are read; a larger one counts as changed when its time stamps are.
pub const GIT_CONFIG_BYTES_MAX: u64 = 1024 * 1024;
/// The same for a hook.
pub const GIT_HOOK_BYTES_MAX: u64 = 1024 * 1024;
/// Files beside hooks that are looked at in a workspace.
pub const GIT_HOOKS_MAX: usize = 256;
/// Configuration files of git that are looked at in a workspace.
pub const GIT_CONFIGS_MAX: usize = 4096;
/// Git directories, and directories around them, that are looked at in a workspace.
pub const GIT_DIRECTORIES_MAX: usize = 4096;
/// Directories within each other in which submodules are looked for.
pub const GIT_MODULE_DEPTH_MAX: usize = 8;
/// Bytes of an index that is searched for submodules.
pub const GIT_INDEX_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Indexes whose submodules are remembered.
pub const GIT_INDEXES_MAX: usize = 256;
/// Configuration files that include each other.
pub const GIT_INCLUDE_DEPTH_MAX: usize = 10;
/// Bytes of a file that is kept when it is set aside; a larger one is thrown away.
pub const GIT_ASIDE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Things that are kept aside for a workspace; the oldest goes first.
pub const GIT_ASIDE_MAX: usize = 256;
/// Contents and settings of a workspace to which a person has said yes; the oldest goes first.
pub const GIT_KNOWN_MAX: usize = 4096;
/// Wait for another process that compares the same workspace.
pub const GIT_LOCK_WAIT_MS_MAX: u64 = 5_000;
/// Comparisons in one call: links first, then settings, then hooks, and again.
pub const GIT_ROUNDS_MAX: usize = 256;
/// How often a workspace is compared while something that a command left runs in it.
pub const GIT_WATCH_MS: u64 = 1_000;
/// Bytes of a file that `holdfast git list` shows.
pub const GIT_SHOWN_BYTES_MAX: usize = 64 * 1024;
