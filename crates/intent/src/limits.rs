//! Every bound of this crate, by name.

use holdfast_contract::Limit;

/// How deep JSON may nest. Deeper text is not read as a call.
pub const NESTING_MAX: usize = 96;
/// How far the JSON reader looks ahead to decide whether a quotation mark ends a string.
pub const LOOKAHEAD_BYTES_MAX: usize = 160;
/// Intents of one reply.
pub const INTENTS_MAX: usize = 256;
/// Arguments of one call. A call with more of them is not run.
pub const ARGUMENTS_MAX: usize = 256;
/// Length of a tool's or an argument's name.
pub const NAME_BYTES_MAX: usize = 128;
/// How often text may be read again after a reading that led nowhere, as a multiple of its length.
pub const REREAD_FACTOR_MAX: usize = 8;
/// How deep calls may nest inside a value before their closers are no longer paired up.
pub const NESTED_CALLS_MAX: usize = 8;
/// Code blocks of one reply. What stands behind the last one counts as one more.
pub const BLOCKS_MAX: usize = 4_096;
/// How much text before or after a call is looked at to see whether it is only an example.
pub const CONTEXT_BYTES_MAX: usize = 320;
/// A quotation in a sentence that is longer than this does not hide what would end the sentence.
pub const QUOTED_BYTES_MAX: usize = 400;
/// A sentence longer than this is not read as a wish.
pub const SENTENCE_BYTES_MAX: usize = 2_000;
/// Tools of a similar name that are said where a name is unknown.
pub const SIMILAR_NAMES_MAX: usize = 3;
/// Tools that a corrective message names; a model that has more knows them from its prompt.
pub const CORRECTIVE_NAMES_MAX: usize = 24;

/// The limits of this crate.
pub const LIMITS: &[Limit] = &[
    limit(
        "NESTING_MAX",
        NESTING_MAX,
        "nesting of JSON in a call; deeper text is not a call",
    ),
    limit(
        "LOOKAHEAD_BYTES_MAX",
        LOOKAHEAD_BYTES_MAX,
        "bytes looked at to decide whether a quotation mark ends a string",
    ),
    limit(
        "INTENTS_MAX",
        INTENTS_MAX,
        "intents of one reply; the rest is dropped and said so",
    ),
    limit(
        "ARGUMENTS_MAX",
        ARGUMENTS_MAX,
        "arguments of one call; a call with more of them is not run",
    ),
    limit(
        "NAME_BYTES_MAX",
        NAME_BYTES_MAX,
        "length of a tool's or an argument's name",
    ),
    limit(
        "REREAD_FACTOR_MAX",
        REREAD_FACTOR_MAX,
        "how often text is read again after a reading that led nowhere",
    ),
    limit(
        "NESTED_CALLS_MAX",
        NESTED_CALLS_MAX,
        "calls nested inside a value whose closers are paired up to find its end",
    ),
    limit(
        "BLOCKS_MAX",
        BLOCKS_MAX,
        "code blocks of one reply; what stands behind the last one is code as well",
    ),
    limit(
        "CONTEXT_BYTES_MAX",
        CONTEXT_BYTES_MAX,
        "text around a call that can say that it is only an example",
    ),
    limit(
        "QUOTED_BYTES_MAX",
        QUOTED_BYTES_MAX,
        "a longer quotation does not hide the end of its sentence",
    ),
    limit(
        "SENTENCE_BYTES_MAX",
        SENTENCE_BYTES_MAX,
        "a longer sentence is not read as a wish",
    ),
    limit(
        "SIMILAR_NAMES_MAX",
        SIMILAR_NAMES_MAX,
        "tools of a similar name said where a name is unknown",
    ),
    limit(
        "CORRECTIVE_NAMES_MAX",
        CORRECTIVE_NAMES_MAX,
        "tools named in a corrective message",
    ),
];

const fn limit(name: &'static str, value: usize, meaning: &'static str) -> Limit {
    Limit {
        name,
        value: value as u64,
        meaning,
        setting: None,
    }
}
