//! The limits of this crate, for the reference page.

use holdfast_contract::Limit;

/// The table.
pub const LIMITS: &[Limit] = &[
    Limit {
        name: "HOST_SESSIONS_MAX",
        value: crate::host::HOST_SESSIONS_MAX as u64,
        meaning: "sessions of a host whose trust is kept apart; what more of them have read counts for all that are not known",
        setting: None,
    },
    Limit {
        name: "HOST_MERGED_KEPT_MS",
        value: crate::host::HOST_MERGED_KEPT_MS,
        meaning: "how long what more sessions than HOST_SESSIONS_MAX have read counts for all that are not known",
        setting: None,
    },
    Limit {
        name: "PROVENANCE_CHAIN_MAX",
        value: crate::provenance::PROVENANCE_CHAIN_MAX as u64,
        meaning: "sources that a provenance tag names; of more, the least trusted stay",
        setting: None,
    },
    Limit {
        name: "ACTION_BYTES_MAX",
        value: crate::capability::ACTION_BYTES_MAX as u64,
        meaning: "length of a capability's action",
        setting: None,
    },
    Limit {
        name: "ARGUMENT_DEPTH_MAX",
        value: crate::check::ARGUMENT_DEPTH_MAX as u64,
        meaning: "how deep arguments may be nested where a manifest names hosts or paths; deeper ones are refused",
        setting: None,
    },
    Limit {
        name: "SIGNAL_TEXT_BYTES_MAX",
        value: crate::signal::SIGNAL_TEXT_BYTES_MAX as u64,
        meaning: "how much of a text is looked at for signals: of a longer one both ends, and its length is a signal",
        setting: None,
    },
    Limit {
        name: "SIGNAL_WINDOW_BYTES",
        value: crate::signal::SIGNAL_WINDOW_BYTES as u64,
        meaning: "how much of a text is looked at in one go for signals",
        setting: None,
    },
    Limit {
        name: "EXCERPT_CHARS_MAX",
        value: crate::signal::EXCERPT_CHARS_MAX as u64,
        meaning: "characters of a signal's excerpt",
        setting: None,
    },
    Limit {
        name: "RULE_PLACES_MAX",
        value: crate::signal::RULE_PLACES_MAX as u64,
        meaning: "places of one window of a text at which one signal rule is tried",
        setting: None,
    },
    Limit {
        name: "ENCODED_PIECES_MAX",
        value: crate::signal::ENCODED_PIECES_MAX as u64,
        meaning: "encoded pieces of one window of a text that are decoded and looked at",
        setting: None,
    },
    Limit {
        name: "HOLD_MS",
        value: crate::session::HOLD_MS,
        meaning: "how long a high signal holds risky tools when no user message comes before",
        setting: Some("trust.signals.holdMs"),
    },
    Limit {
        name: "HOLD_MS_MAX",
        value: crate::config::HOLD_MS_MAX,
        meaning: "longest hold that can be configured",
        setting: None,
    },
    Limit {
        name: "HOLDS_MAX",
        value: crate::session::HOLDS_MAX as u64,
        meaning: "holds of one session that are kept; of more, the newest",
        setting: None,
    },
    Limit {
        name: "COUNTED_TOOLS_MAX",
        value: crate::session::COUNTED_TOOLS_MAX as u64,
        meaning: "tools of one session whose calls are counted for their manifests",
        setting: None,
    },
    Limit {
        name: "SKILL_FILES_MAX",
        value: crate::skill::SKILL_FILES_MAX as u64,
        meaning: "files of one skill; one with more can not be verified",
        setting: None,
    },
    Limit {
        name: "SKILL_BYTES_MAX",
        value: crate::skill::SKILL_BYTES_MAX,
        meaning: "bytes of one skill; a larger one can not be verified",
        setting: None,
    },
    Limit {
        name: "SIGNATURE_BYTES_MAX",
        value: crate::skill::SIGNATURE_BYTES_MAX as u64,
        meaning: "size of a skill's signature file, and of a key file",
        setting: None,
    },
    Limit {
        name: "REGISTER_BYTES_MAX",
        value: crate::skill::REGISTER_BYTES_MAX as u64,
        meaning: "size of the file with the pinned and known skills",
        setting: None,
    },
];
