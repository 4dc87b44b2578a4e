//! Every bound of this crate, by name.

use holdfast_contract::Limit;

/// How much of a file is read at a time. Small enough to stay in a processor's cache.
pub const READ_BYTES: usize = 256 * 1024;
/// Length of one entry. A longer line is reported as invalid.
pub const ENTRY_BYTES_MAX: usize = 1024 * 1024 * 1024;
/// Entries of one session.
pub const ENTRIES_MAX: usize = u32::MAX as usize - 16;
/// Size of a transcript that is one JSON document, or that comes over standard input.
pub const TRANSCRIPT_BYTES_MAX: u64 = 4 * 1024 * 1024 * 1024 - 1;
/// Entries that are looked at to find out the format.
pub const SNIFF_ENTRIES_MAX: usize = 256;
/// A file written more recently than this is taken for one that is being written.
pub const QUIET_MS: u64 = 2_000;
/// A lock that does not say whose it is counts for this long, as `OpenClaw` has it.
pub const LOCK_STALE_MS: u64 = 1_800_000;
/// Backups that are kept beside a file.
pub const BACKUPS_MAX: usize = 5;
/// How much of an entry a dry run shows.
pub const DIFF_LINE_BYTES_MAX: usize = 240;
/// A compressed row of a store, unpacked.
pub const ROW_BYTES_MAX: usize = 256 * 1024 * 1024;
/// How many times the length of a broken JSON document is looked at to find where it goes on.
pub const RESYNC_FACTOR_MAX: usize = 32;
/// How many times the length of a broken line is looked at to find whole entries in it.
pub const GLUED_FACTOR_MAX: usize = 16;
/// How many times the length of a session is looked at to find results that compactions part from
/// their calls: a hostile one has as many compactions as results.
pub const PARTED_FACTOR_MAX: usize = 64;
/// How often a session is judged again when what a repair removes lets two messages meet.
pub const REMOVAL_ROUNDS_MAX: usize = 16;
/// Checkpoints that are kept of a session.
pub const CHECKPOINTS_MAX: usize = 100;
/// Incident files that are kept.
pub const INCIDENTS_MAX: usize = 200;
/// What one request is taken to have read at most, where nobody says how much it was: the window of
/// the larger models.
pub const ESTIMATED_TOKENS_MAX: u64 = 200_000;

/// The limits of this crate.
pub const LIMITS: &[Limit] = &[
    limit(
        "READ_BYTES",
        READ_BYTES as u64,
        "bytes of a transcript read at a time",
    ),
    limit(
        "ENTRY_BYTES_MAX",
        ENTRY_BYTES_MAX as u64,
        "length of one entry of a transcript; a longer line is an `invalid_line`",
    ),
    limit(
        "ENTRIES_MAX",
        ENTRIES_MAX as u64,
        "entries of one session; a longer one is not checked, and said so",
    ),
    limit(
        "TRANSCRIPT_BYTES_MAX",
        TRANSCRIPT_BYTES_MAX,
        "size of a transcript that is one JSON document or comes over standard input",
    ),
    limit(
        "SNIFF_ENTRIES_MAX",
        SNIFF_ENTRIES_MAX as u64,
        "entries of a transcript looked at to find out its format",
    ),
    limit(
        "QUIET_MS",
        QUIET_MS,
        "a transcript written more recently than this is in use, and not repaired",
    ),
    limit(
        "LOCK_STALE_MS",
        LOCK_STALE_MS,
        "how long a lock beside a session counts whose process is not named or can not be seen",
    ),
    limit(
        "BACKUPS_MAX",
        BACKUPS_MAX as u64,
        "backups kept beside a repaired transcript; the oldest goes first",
    ),
    limit(
        "DIFF_LINE_BYTES_MAX",
        DIFF_LINE_BYTES_MAX as u64,
        "bytes of an entry that `scan --dry-run` shows",
    ),
    limit(
        "ROW_BYTES_MAX",
        ROW_BYTES_MAX as u64,
        "size of an unpacked row of OpenClaw's store; a larger one is an `invalid_line`",
    ),
    limit(
        "RESYNC_FACTOR_MAX",
        RESYNC_FACTOR_MAX as u64,
        "times the length of a broken JSON document that are looked at to find where it goes on; then it is not repaired",
    ),
    limit(
        "GLUED_FACTOR_MAX",
        GLUED_FACTOR_MAX as u64,
        "times the length of a broken line that are looked at to find whole entries in it; then all of it is set aside",
    ),
    limit(
        "PARTED_FACTOR_MAX",
        PARTED_FACTOR_MAX as u64,
        "times the length of a session that are looked at to find results that compactions part from their calls",
    ),
    limit(
        "REMOVAL_ROUNDS_MAX",
        REMOVAL_ROUNDS_MAX as u64,
        "times a session is judged again when what a repair removes lets two messages meet",
    ),
    limit(
        "CHECKPOINTS_MAX",
        CHECKPOINTS_MAX as u64,
        "checkpoints kept of a session; the oldest goes first",
    ),
    limit(
        "INCIDENTS_MAX",
        INCIDENTS_MAX as u64,
        "incident files kept in OpenClaw's `logs`; the oldest goes first",
    ),
    limit(
        "ESTIMATED_TOKENS_MAX",
        ESTIMATED_TOKENS_MAX,
        "tokens that `audit` takes one request to have read at most, where the transcript does not say",
    ),
];

const fn limit(name: &'static str, value: u64, meaning: &'static str) -> Limit {
    Limit {
        name,
        value,
        meaning,
        setting: None,
    }
}
