//! The limits of this crate, for the reference page.

use holdfast_contract::Limit;

/// Rules of one ruleset.
pub const RULES_MAX: usize = 8192;

/// Entries of one shared directory that stay visible in a command's view.
pub const SHOWN_MAX: usize = 64;

/// The table.
pub const LIMITS: &[Limit] = &[
    Limit {
        name: "CONFINEMENT_RULES_MAX",
        value: RULES_MAX as u64,
        meaning: "files and directories that a command is given one by one, where the state directory lies in its workspace; with more of them it is not started",
        setting: None,
    },
    Limit {
        name: "VIEW_SHOWN_MAX",
        value: SHOWN_MAX as u64,
        meaning: "entries of the real `/tmp` that one command keeps because it was granted something in them; further ones it does not see",
        setting: None,
    },
];
