//! What people were asked and answered, and what operators did, in a log that shows when it was
//! tampered with.
//!
//! Each line holds the hash of the line before it. The newest hash is kept in the state's database
//! as well, so that a line that was changed, removed, moved or cut off at the end is noticed. It
//! shows tampering; it can not stop somebody who can write both the file and the database.

mod line;
mod log;
mod verify;

pub use line::{AUDIT_LINE_BYTES_MAX, AuditLine};
pub use log::{
    AUDIT_FILE, AUDIT_FILE_BYTES_MAX, AUDIT_TAIL_BYTES_MAX, AuditError, AuditLog, Head, files,
};
pub use verify::{Problem, Report, verify};
