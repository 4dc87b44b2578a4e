//! The base tools: files, commands, memory and messages.
//!
//! Each tool works through the handles of its context and through nothing else: a session without
//! a write handle has no way to make [`WriteTool`] write. File paths are resolved by the kernel
//! beneath the handle's root, so a `..` or a symbolic link that leaves it fails where it is
//! followed, not where somebody remembered to check.
//!
//! | tool | tier | effect | idempotent | module |
//! |---|---|---|---|---|
//! | `read` | `ReadOnly` | none | yes | [`read`] |
//! | `write` | `Workspace` | workspace | yes | [`mod@write`] |
//! | `edit` | `Workspace` | workspace | no | [`edit`] |
//! | `exec` | `System` | external | no | [`exec`] |
//! | `memory_search` | `ReadOnly` | none | yes | [`memory::search`] |
//! | `memory_store` | `Workspace` | workspace | yes | [`memory::store`] |
//! | `message` | `System` | external | no | [`message`] |
//!
//! A failure carries one of these codes, so that a caller never has to read the message:
//! `not_found`, `is_directory`, `not_a_directory`, `special_file`, `binary_file`, `not_utf8`,
//! `file_too_large`, `access_denied`, `read_only_file`, `symlink_loop`, `dangling_symlink`,
//! `name_too_long`, `disk_full`, `changed_meanwhile`, `cancelled`, `io_error`; from `edit` also
//! `no_match` and `ambiguous_match`; from `exec` also `not_startable` and `not_confined`; from the
//! memory tools `memory_full` and `memory_unavailable`.

use std::sync::Arc;

use holdfast_contract::{Limit, SystemClock, Tool};

pub mod alias;
mod args;
mod atomic;
mod beneath;
mod blocking;
mod bounds;
pub mod edit;
pub mod exec;
mod fault;
pub mod memory;
pub mod message;
mod nearest;
mod own;
mod place;
pub mod read;
pub mod read_on;
mod tail;
mod text;
pub mod write;

pub(crate) use alias::has_alias;
pub use alias::normalise_arguments;
pub use edit::EditTool;
pub use exec::{CommandRules, ExecTool};
pub use holdfast_confine::peer;
pub use memory::search::MemorySearchTool;
pub use memory::store::MemoryStoreTool;
pub use message::MessageTool;
pub use own::own_places;
pub use read::ReadTool;
pub(crate) use text::one_line;
pub use write::WriteTool;

/// The base tools, ready to be registered.
///
/// ```
/// use holdfast_toolbox::tools::base_tools;
/// let names: Vec<String> = base_tools().iter().map(|tool| tool.name().to_owned()).collect();
/// assert_eq!(names, ["read", "write", "edit", "exec", "memory_search", "memory_store", "message"]);
/// ```
pub fn base_tools() -> Vec<Arc<dyn Tool>> {
    base_tools_with(ExecTool::new())
}

/// The base tools with this one among them.
pub fn base_tools_with(exec: ExecTool) -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(ReadTool),
        Arc::new(WriteTool),
        Arc::new(EditTool),
        Arc::new(exec),
        Arc::new(MemorySearchTool),
        Arc::new(MemoryStoreTool),
        Arc::new(MessageTool::new(Arc::new(SystemClock))),
    ]
}

/// The limits of the base tools.
pub const LIMITS: &[Limit] = &[
    Limit {
        name: "MEMORY_ANSWER_BYTES_MAX",
        value: memory::search::MEMORY_ANSWER_BYTES_MAX as u64,
        meaning: "text of all records in one `memory_search` answer; what does not fit is cut or left out, and said so",
        setting: None,
    },
    Limit {
        name: "MESSAGE_CHARS_MAX",
        value: message::MESSAGE_CHARS_MAX as u64,
        meaning: "text of one `message`; a longer one is refused as invalid",
        setting: None,
    },
    Limit {
        name: "MESSAGE_PARTS_MAX",
        value: message::MESSAGE_PARTS_MAX as u64,
        meaning: "messages that one text may be split into for a channel",
        setting: None,
    },
    Limit {
        name: "MESSAGE_BURST",
        value: message::MESSAGE_BURST,
        meaning: "messages that may be sent to a channel at once; then the sender is told to come back later",
        setting: None,
    },
    Limit {
        name: "MESSAGE_EVERY_MS",
        value: message::MESSAGE_EVERY_MS,
        meaning: "one more message may be sent to a channel each time this passes",
        setting: None,
    },
    Limit {
        name: "PATH_BYTES_MAX",
        value: beneath::PATH_BYTES_MAX as u64,
        meaning: "length of a path argument; a longer one is refused as invalid",
        setting: None,
    },
    Limit {
        name: "READ_BYTES_MAX",
        value: read::READ_BYTES_MAX as u64,
        meaning: "file content in one `read` answer; the rest is announced with `next_offset`",
        setting: None,
    },
    Limit {
        name: "READ_UTF16_BYTES_MAX",
        value: read::READ_UTF16_BYTES_MAX,
        meaning: "a UTF-16 file that `read` turns into UTF-8; a larger one is refused",
        setting: None,
    },
    Limit {
        name: "READ_SCAN_BYTES_MAX",
        value: read::READ_SCAN_BYTES_MAX,
        meaning: "how far into a file `read` looks for its first line and counts lines; a line beyond it is refused as `file_too_large`",
        setting: None,
    },
    Limit {
        name: "WRITE_BYTES_MAX",
        value: write::WRITE_BYTES_MAX as u64,
        meaning: "content of one `write`; more is refused as invalid",
        setting: None,
    },
    Limit {
        name: "RESERVED_NAMES_MAX",
        value: bounds::RESERVED_NAMES_MAX as u64,
        meaning: "names in what no tool may reach that are searched for a file with several names; one that is not found among so many is refused",
        setting: None,
    },
    Limit {
        name: "EDIT_BYTES_MAX",
        value: edit::EDIT_BYTES_MAX as u64,
        meaning: "size of a file before and after an `edit`; beyond it `file_too_large`",
        setting: None,
    },
    Limit {
        name: "EDIT_MATCHES_COUNTED_MAX",
        value: edit::EDIT_MATCHES_COUNTED_MAX as u64,
        meaning: "matches an `ambiguous_match` counts; beyond it the message says `more than`",
        setting: None,
    },
    Limit {
        name: "EDIT_MATCH_LINES_SHOWN_MAX",
        value: edit::EDIT_MATCH_LINES_SHOWN_MAX as u64,
        meaning: "line numbers an `ambiguous_match` names",
        setting: None,
    },
    Limit {
        name: "NEAREST_LINES_SEARCHED_MAX",
        value: nearest::NEAREST_LINES_SEARCHED_MAX as u64,
        meaning: "lines that a `no_match` compares in search of near misses",
        setting: None,
    },
    Limit {
        name: "NEAREST_LINES_SHOWN_MAX",
        value: nearest::NEAREST_LINES_SHOWN_MAX as u64,
        meaning: "near misses that a `no_match` shows",
        setting: None,
    },
    Limit {
        name: "NEAREST_LINE_CHARS_MAX",
        value: nearest::NEAREST_LINE_CHARS_MAX as u64,
        meaning: "characters of a line that are compared and shown as a near miss",
        setting: None,
    },
    Limit {
        name: "COMMAND_BYTES_MAX",
        value: exec::COMMAND_BYTES_MAX as u64,
        meaning: "length of a command, set by the kernel for one argument; a longer one is refused as invalid",
        setting: None,
    },
    Limit {
        name: "EXEC_GRANTS_MAX",
        value: exec::GRANTS_MAX as u64,
        meaning: "paths outside the workspace that one command may name; further ones are refused as invalid",
        setting: None,
    },
    Limit {
        name: "KEPT_FILES_MAX",
        value: exec::KEPT_FILES_MAX as u64,
        meaning: "files in the state directory whose owners and modes are put back after a command, the uppermost first",
        setting: None,
    },
    Limit {
        name: "STDIN_BYTES_MAX",
        value: exec::STDIN_BYTES_MAX as u64,
        meaning: "text handed to a command's standard input; more is refused as invalid",
        setting: None,
    },
    Limit {
        name: "OUTPUT_BYTES_MAX",
        value: exec::OUTPUT_BYTES_MAX as u64,
        meaning: "kept of each of a command's two outputs: the first and the last half, with a mark of how much was cut between",
        setting: None,
    },
    Limit {
        name: "EXEC_TIMEOUT_MS_DEFAULT",
        value: exec::EXEC_TIMEOUT_MS_DEFAULT,
        meaning: "a command's time; `timeout_ms` and the caller's limit can only lower it, then everything it started is killed",
        setting: None,
    },
    Limit {
        name: "TERM_GRACE_MS",
        value: exec::TERM_GRACE_MS,
        meaning: "time between SIGTERM and SIGKILL for a command that ran out of time or was cancelled",
        setting: None,
    },
    Limit {
        name: "REAP_WAIT_MS",
        value: exec::REAP_WAIT_MS,
        meaning: "wait for a killed command to be gone before the caller is answered; it is reaped later if it takes longer",
        setting: None,
    },
    Limit {
        name: "DRAIN_GRACE_MS",
        value: exec::DRAIN_GRACE_MS,
        meaning: "wait for the end of the output after the command itself has ended, when a background process keeps it open",
        setting: None,
    },
    Limit {
        name: "EXEC_CONCURRENT_MAX",
        value: exec::EXEC_CONCURRENT_MAX as u64,
        meaning: "commands running at the same time in one process; one more is told to come back later",
        setting: None,
    },
    Limit {
        name: "SWEEP_TIME_MS_MAX",
        value: exec::SWEEP_TIME_MS_MAX,
        meaning: "time for searches for processes of a killed command that were not found before; they end when none is found",
        setting: None,
    },
    Limit {
        name: "LEFT_BEHIND_MAX",
        value: exec::LEFT_BEHIND_MAX as u64,
        meaning: "commands whose background processes wait for their time to be up; with more of them the first are ended early",
        setting: None,
    },
    Limit {
        name: "SWEEP_PROCESSES_MAX",
        value: exec::SWEEP_PROCESSES_MAX as u64,
        meaning: "killed processes of a command that are waited for at once",
        setting: None,
    },
    Limit {
        name: "OWN_UNUSED_HOURS_MAX",
        value: own::OWN_UNUSED_HOURS_MAX,
        meaning: "a workspace's own `/tmp` and `/dev/shm` are removed when they were not used for so long",
        setting: None,
    },
    Limit {
        name: "ENVIRON_BYTES_MAX",
        value: exec::ENVIRON_BYTES_MAX as u64,
        meaning: "of a process's environment that is searched for a command's mark",
        setting: None,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_is_closed_and_compiles() {
        for tool in base_tools() {
            let schema = tool.parameters_schema();
            assert_eq!(schema["additionalProperties"], false, "{}", tool.name());
            jsonschema::validator_for(&schema).expect("a valid schema");
        }
    }

    #[test]
    fn limits_have_their_own_names() {
        let mut names: Vec<&str> = LIMITS.iter().map(|limit| limit.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), LIMITS.len());
    }
}
