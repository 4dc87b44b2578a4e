//! Undo: what a workspace was before a call, kept so that it can be brought back.
//!
//! [`UndoStore`] takes the state of a workspace before and after each call. An undo compares the two with
//! what is there now, and brings back what the call changed.
//!
//! | module | what it knows |
//! |---|---|
//! | `store`, `take` | a call's point: its states before and after |
//! | `walk`, `scope` | how a workspace, or a part of it, is read |
//! | `index` | what need not be read again |
//! | `rebuildable`, `git` | what is left out; what belongs to a workspace and lies outside of it |
//! | `objects`, `entry`, `wire` | contents and directories under their hashes |
//! | `record`, `workspace`, `lock` | points on disk, and who uses them |
//! | `failed` | for which workspaces the store failed a short while ago |
//! | `diff`, `plan` | what differs between states, and what an undo therefore does; pure decisions |
//! | `undo`, `restore` | an undo from its question to its new point; the files it writes |
//! | `find`, `show`, `expire` | which point is meant; what a person sees of it; when points go |

mod diff;
mod disk;
mod entry;
mod error;
mod expire;
mod failed;
mod find;
mod git;
mod hash;
mod index;
pub mod limits;
mod lock;
mod objects;
mod plan;
mod point;
mod rebuildable;
mod record;
mod restore;
mod scope;
mod settings;
mod show;
mod store;
mod take;
mod undo;
mod walk;
mod wire;
mod workspace;

pub use error::{UndoError, UndoResult};
pub use expire::Expired;
pub use point::{Coverage, LeftOut, NotKept, Origin, Point, Where, Why};
pub use settings::UndoSettings;
pub use show::{Content, Diff, Shown, Thing, What};
pub use store::{OpenPoint, UndoStore};
pub use undo::{Conflict, Failed, Options, Restored, Undone};
