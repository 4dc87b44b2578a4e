//! The limits of this crate, for the reference page.

use holdfast_contract::Limit;

/// Files, directories and links of one workspace.
pub const FILES_MAX: u64 = 200_000;
/// Bytes of one workspace.
pub const BYTES_MAX: u64 = 4 * 1024 * 1024 * 1024;
/// Bytes of one file.
pub const FILE_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Time that one walk over a workspace may take.
pub const WALK_MS_MAX: u64 = 10_000;
/// Bytes that the store keeps for all workspaces together.
pub const KEPT_BYTES_MAX: u64 = 8 * 1024 * 1024 * 1024;
/// Points kept of one workspace.
pub const POINTS_MAX: u64 = 200;
/// Age at which a point is removed.
pub const AGE_MS_MAX: u64 = 7 * 24 * 60 * 60 * 1000;
/// Directories within directories.
pub const DEPTH_MAX: usize = 256;
/// Threads of one walk.
pub const WALK_THREADS_MAX: usize = 4;
/// Left-out names that one point holds.
pub const LEFT_OUT_NAMED_MAX: usize = 100;
/// Time for which a workspace over its budget is not walked again, and one counts as not kept after an error.
pub const OVER_BUDGET_REMEMBERED_MS: u64 = 10 * 60 * 1000;
/// Workspaces of which a failed `before` is remembered.
pub const FAILED_REMEMBERED_MAX: usize = 1000;
/// Wait for another process that uses the same workspace.
pub const LOCK_WAIT_MS_MAX: u64 = 30_000;
/// Bytes of a file up to which a text diff is made.
pub const DIFF_FILE_BYTES_MAX: u64 = 512 * 1024;
/// Bytes of text diffs that one point shows.
pub const DIFF_BYTES_MAX: usize = 1024 * 1024;

const fn row(
    name: &'static str,
    value: u64,
    meaning: &'static str,
    setting: Option<&'static str>,
) -> Limit {
    Limit {
        name,
        value,
        meaning,
        setting,
    }
}

/// The table.
pub const LIMITS: &[Limit] = &[
    row(
        "UNDO_FILES_MAX",
        FILES_MAX,
        "files, directories and links of one workspace; a larger one is not kept, and the call says `undo: none`",
        Some("undo.filesMax"),
    ),
    row(
        "UNDO_BYTES_MAX",
        BYTES_MAX,
        "bytes of one workspace; a larger one is not kept, and the call says `undo: none`",
        Some("undo.bytesMax"),
    ),
    row(
        "UNDO_FILE_BYTES_MAX",
        FILE_BYTES_MAX,
        "bytes of one file; a larger file is left out and named",
        Some("undo.fileBytesMax"),
    ),
    row(
        "UNDO_WALK_MS_MAX",
        WALK_MS_MAX,
        "time to read a workspace before or after a call; a slower one is not kept",
        Some("undo.walkMsMax"),
    ),
    row(
        "UNDO_KEPT_BYTES_MAX",
        KEPT_BYTES_MAX,
        "bytes kept for all workspaces; above it the oldest points go first",
        Some("undo.keptBytesMax"),
    ),
    row(
        "UNDO_POINTS_MAX",
        POINTS_MAX,
        "points kept of one workspace; the oldest goes first",
        Some("undo.pointsMax"),
    ),
    row(
        "UNDO_AGE_MS_MAX",
        AGE_MS_MAX,
        "age at which a point is removed",
        Some("undo.ageMsMax"),
    ),
    row(
        "UNDO_DEPTH_MAX",
        DEPTH_MAX as u64,
        "directories within directories; deeper ones are left out and named",
        None,
    ),
    row(
        "UNDO_WALK_THREADS_MAX",
        WALK_THREADS_MAX as u64,
        "threads that read one workspace",
        None,
    ),
    row(
        "UNDO_LEFT_OUT_NAMED_MAX",
        LEFT_OUT_NAMED_MAX as u64,
        "names of left-out files in one point; further ones are counted",
        None,
    ),
    row(
        "UNDO_OVER_BUDGET_REMEMBERED_MS",
        OVER_BUDGET_REMEMBERED_MS,
        "time for which a workspace over its budget is not read again, and for which one counts as not kept after the store failed",
        None,
    ),
    row(
        "UNDO_FAILED_REMEMBERED_MAX",
        FAILED_REMEMBERED_MAX as u64,
        "workspaces that the process remembers as not kept, since the store failed; the oldest goes first",
        None,
    ),
    row(
        "UNDO_LOCK_WAIT_MS_MAX",
        LOCK_WAIT_MS_MAX,
        "wait for another process that uses the same workspace; then the call goes on without undo",
        None,
    ),
    row(
        "UNDO_DIFF_FILE_BYTES_MAX",
        DIFF_FILE_BYTES_MAX,
        "bytes of a file up to which `undo show` prints its lines",
        None,
    ),
    row(
        "UNDO_DIFF_BYTES_MAX",
        DIFF_BYTES_MAX as u64,
        "bytes of changed lines that `undo show` prints for one point",
        None,
    ),
];
