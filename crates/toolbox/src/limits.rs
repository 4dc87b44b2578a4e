//! The limits of this crate besides those of the tools, for the reference page.

use holdfast_contract::Limit;

/// The table.
pub const LIMITS: &[Limit] = &[
    Limit {
        name: "TOOLS_MAX",
        value: crate::registry::TOOLS_MAX as u64,
        meaning: "tools that can be registered",
        setting: None,
    },
    Limit {
        name: "PROBLEMS_MAX",
        value: crate::validate::PROBLEMS_MAX as u64,
        meaning: "argument problems told at once",
        setting: None,
    },
    Limit {
        name: "SCHEMA_BYTES_MAX",
        value: crate::validate::SCHEMA_BYTES_MAX as u64,
        meaning: "a field's schema in a validation error; a longer one is left out",
        setting: None,
    },
];
