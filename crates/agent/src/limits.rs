//! The limits of this crate, for the reference page.

use holdfast_contract::Limit;

/// The table.
pub const LIMITS: &[Limit] = &[
    Limit {
        name: "MODEL_REPLY_BYTES_MAX",
        value: crate::model::MODEL_REPLY_BYTES_MAX as u64,
        meaning: "size of one reply of a model server; a larger one is an error",
        setting: None,
    },
    Limit {
        name: "RESULT_CHARS_DEFAULT",
        value: crate::results::RESULT_CHARS_DEFAULT as u64,
        meaning: "characters of a result that the model sees, for tools without a limit of their own",
        setting: Some("tools.result_limits"),
    },
    Limit {
        name: "CALLS_PER_REPLY_MAX",
        value: crate::run::CALLS_PER_REPLY_MAX as u64,
        meaning: "calls of one reply that run; the model is told that the others did not",
        setting: None,
    },
];
