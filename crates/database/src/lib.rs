//! An embedded `SQLite` database in a directory: opened privately, brought up to date, and shared
//! by any number of processes.
//!
//! | module | what it does |
//! |---|---|
//! | [`connection`] | opens the file for its owner alone, with write-ahead logging and patience |
//! | [`schema`] | takes an older file to the newest version, and leaves strangers' files alone |
//! | [`errors`] | says what went wrong, where, and what to do about it |
//!
//! No file is ever deleted or rewritten to get going again.

pub mod connection;
pub mod errors;
pub mod schema;

pub use connection::{FileIdentity, Options};
pub use errors::{Advice, DatabaseError, DatabaseResult, Place, is_busy, is_full};
pub use schema::{Schema, migrate};
