//! Limits that document themselves.
//!
//! A queue, cache, loop or buffer without a bound is a bug that waits for load. Each bound is a
//! named constant, and each crate lists its constants in a `LIMITS` table from which the reference
//! page is generated, so the page can not drift from the code.

/// One named bound and what happens when it is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// The constant's name, ending in its unit.
    pub name: &'static str,
    /// Its value in that unit.
    pub value: u64,
    /// What it bounds and what a caller sees at the bound.
    pub meaning: &'static str,
    /// The configuration key that changes it, or `None` when it is fixed.
    pub setting: Option<&'static str>,
}

/// A limit that no setting moves.
pub const fn limit(name: &'static str, value: u64, meaning: &'static str) -> Limit {
    Limit {
        name,
        value,
        meaning,
        setting: None,
    }
}

/// The limits of this crate.
pub const LIMITS: &[Limit] = &[
    Limit {
        name: "ENVELOPE_BYTES_MAX",
        value: crate::envelope::ENVELOPE_BYTES_MAX as u64,
        meaning: "size of one call envelope; a larger one is refused as `invalid_envelope`",
        setting: None,
    },
    Limit {
        name: "NAME_BYTES_MAX",
        value: crate::envelope::NAME_BYTES_MAX as u64,
        meaning: "length of a name or id in an envelope (tool, session, actor, request …)",
        setting: None,
    },
    Limit {
        name: "IDEMPOTENCY_KEY_BYTES_MAX",
        value: crate::envelope::IDEMPOTENCY_KEY_BYTES_MAX as u64,
        meaning: "length of a caller's idempotency key",
        setting: None,
    },
    Limit {
        name: "ATTEMPTS_MAX",
        value: crate::envelope::ATTEMPTS_MAX as u64,
        meaning: "attempts that one envelope may ask for; the tool's own policy can only lower it",
        setting: None,
    },
    Limit {
        name: "KNOWN_SECRET_BYTES_MIN",
        value: crate::redact::KNOWN_SECRET_BYTES_MIN as u64,
        meaning: "length from which on a secret is known by its value; a shorter one is a word that stands in many texts",
        setting: None,
    },
    Limit {
        name: "REQUEST_TAGS_MAX",
        value: crate::envelope::REQUEST_TAGS_MAX as u64,
        meaning: "tags on one call",
        setting: None,
    },
    Limit {
        name: "MEMORY_CONTENT_BYTES_MAX",
        value: crate::memory::MEMORY_CONTENT_BYTES_MAX as u64,
        meaning: "text of one memory; a longer one is refused as invalid",
        setting: None,
    },
    Limit {
        name: "MEMORY_METADATA_BYTES_MAX",
        value: crate::memory::MEMORY_METADATA_BYTES_MAX as u64,
        meaning: "metadata of one memory as JSON; more is refused as invalid",
        setting: None,
    },
    Limit {
        name: "MEMORY_QUERY_BYTES_MAX",
        value: crate::memory::MEMORY_QUERY_BYTES_MAX as u64,
        meaning: "text of one memory search; a longer one is refused as invalid",
        setting: None,
    },
    Limit {
        name: "MEMORY_HITS_DEFAULT",
        value: crate::memory::MEMORY_HITS_DEFAULT as u64,
        meaning: "hits of a memory search that does not say how many",
        setting: None,
    },
    Limit {
        name: "MEMORY_HITS_MAX",
        value: crate::memory::MEMORY_HITS_MAX as u64,
        meaning: "hits that one memory search may ask for",
        setting: None,
    },
    Limit {
        name: "MEMORY_NAME_BYTES_MAX",
        value: crate::memory::MEMORY_NAME_BYTES_MAX as u64,
        meaning: "length of a memory's id and session, and of an embedding model's name",
        setting: None,
    },
    Limit {
        name: "MEMORY_DIMENSIONS_MAX",
        value: crate::memory::MEMORY_DIMENSIONS_MAX as u64,
        meaning: "numbers in one embedding; a longer one is refused",
        setting: None,
    },
];
