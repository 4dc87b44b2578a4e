//! Every bound of this crate, by name.

use holdfast_contract::Limit;

/// Longest text that the grammar reads. A longer one is read word by word.
pub const TEXT_BYTES_MAX: usize = 64 * 1024;
/// Steps of the parser, each of a hundred operations. A text that needs more is read word by word.
pub const PARSE_STEPS_MAX: usize = 4_000;
/// How long the parser may work on one text. Its steps can be long where it looks for a way out of a
/// mistake, so they alone do not bound it.
pub const PARSE_MS_MAX: usize = 250;
/// How many brackets may be open at once, quoted or not.
pub const BRACKETS_MAX: usize = 100;
/// Words of one piece of a text that is read word by word.
pub const LOOSE_WORDS_MAX: usize = 64;
/// Nodes of one syntax tree that are looked at.
pub const NODES_MAX: usize = 20_000;
/// How deep a syntax tree may nest.
pub const DEPTH_MAX: usize = 150;
/// How often a command may stand in another one's words: `sh -c "sh -c '…'"`.
pub const WRAPPED_MAX: usize = 6;
/// Simple commands of one reading, with those behind wrappers.
pub const COMMANDS_MAX: usize = 4_000;
/// Words that the values of variables may make of one command.
pub const WORDS_MAX: usize = 20_000;
/// Bytes of the texts and commands of one reading, with those behind wrappers and variables.
pub const READING_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Values of one variable that are tried in a command's words.
pub const VALUES_MAX: usize = 8;
/// Bytes that are kept of one word, or of the text that a command is fed.
pub const KEPT_BYTES_MAX: usize = 16 * 1024;
/// Rules that a user may add.
pub const USER_RULES_MAX: usize = 1_000;
/// Bytes of one compiled regular expression of a rule.
pub const REGEX_BYTES_MAX: usize = 256 * 1024;
/// Reasons of one verdict.
pub const REASONS_MAX: usize = 32;
/// Characters of a command in a reason.
pub const SHOWN_CHARS_MAX: usize = 200;

/// The limits of this crate.
pub const LIMITS: &[Limit] = &[
    limit(
        "TEXT_BYTES_MAX",
        TEXT_BYTES_MAX,
        "length of a command text that the grammar reads; a longer one is unreadable",
    ),
    limit(
        "PARSE_STEPS_MAX",
        PARSE_STEPS_MAX,
        "steps of the shell parser on one text; a text that needs more is unreadable",
    ),
    limit(
        "PARSE_MS_MAX",
        PARSE_MS_MAX,
        "milliseconds of the shell parser on one text; a text that needs more is unreadable",
    ),
    limit(
        "BRACKETS_MAX",
        BRACKETS_MAX,
        "open brackets in a command text; a text with more is unreadable",
    ),
    limit(
        "LOOSE_WORDS_MAX",
        LOOSE_WORDS_MAX,
        "words of a command in an unreadable text; a longer one may be any command",
    ),
    limit(
        "NODES_MAX",
        NODES_MAX,
        "nodes of a command's syntax tree; a text with more is unreadable",
    ),
    limit(
        "DEPTH_MAX",
        DEPTH_MAX,
        "nesting of a command's syntax tree; a deeper text is unreadable",
    ),
    limit(
        "WRAPPED_MAX",
        WRAPPED_MAX,
        "nesting of commands in words (`sh -c`, `env`, `eval`); a deeper one is unreadable",
    ),
    limit(
        "COMMANDS_MAX",
        COMMANDS_MAX,
        "simple commands of one text; a text with more is unreadable",
    ),
    limit(
        "WORDS_MAX",
        WORDS_MAX,
        "words that variables may make of one command; a command with more may be anything",
    ),
    limit(
        "READING_BYTES_MAX",
        READING_BYTES_MAX,
        "bytes of all texts and commands of one reading; what is beyond them is unreadable",
    ),
    limit(
        "VALUES_MAX",
        VALUES_MAX,
        "values of a shell variable that are tried; a variable with more may be anything",
    ),
    limit(
        "KEPT_BYTES_MAX",
        KEPT_BYTES_MAX,
        "bytes of one word, or of the text fed to a command, that rules see",
    ),
    limit(
        "USER_RULES_MAX",
        USER_RULES_MAX,
        "rules for commands that a configuration may add",
    ),
    limit(
        "REGEX_BYTES_MAX",
        REGEX_BYTES_MAX,
        "compiled size of a rule's regular expression; a larger one is a configuration error",
    ),
    limit(
        "REASONS_MAX",
        REASONS_MAX,
        "reasons that one verdict names; further ones are left out",
    ),
    limit(
        "SHOWN_CHARS_MAX",
        SHOWN_CHARS_MAX,
        "characters of a command in a reason; a longer one is cut",
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
