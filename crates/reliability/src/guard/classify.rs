//! Classifies foreign error texts, where no typed error exists: results of another host's tools,
//! and recorded transcripts. Inside Holdfast an error knows its own kind and never comes here.

use super::verdict::FailureKind;

/// Whether trying the same call again could help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// It could: nothing says that the call itself is wrong.
    Retryable,
    /// It can not: the call itself is wrong.
    NonRetryable,
}

/// Classifies an error text by the patterns of the original plugin, to the letter.
///
/// [`classify_failure`] is what a host wants; this is the part of it that others rely on.
///
/// ```
/// use holdfast_reliability::guard::{ErrorClass, classify_error};
///
/// assert_eq!(classify_error("Missing required parameter: path"), ErrorClass::NonRetryable);
/// assert_eq!(classify_error("timeout"), ErrorClass::Retryable);
/// ```
pub fn classify_error(error: &str) -> ErrorClass {
    if names_the_call(error) || is_type_error(error) {
        ErrorClass::NonRetryable
    } else {
        ErrorClass::Retryable
    }
}

/// The failure kind of a foreign error text.
///
/// Finer than [`classify_error`]: a text that matches no pattern and names no transient cause is
/// a deterministic failure of execution ("no such file"), which is neither tagged nor exempt from
/// loop counting.
///
/// ```
/// use holdfast_reliability::guard::{FailureKind, classify_failure};
///
/// assert_eq!(classify_failure("Expected string but received null"), FailureKind::Validation);
/// assert_eq!(classify_failure("ENOENT: no such file"), FailureKind::Deterministic);
/// assert_eq!(classify_failure("429 Too Many Requests"), FailureKind::Retryable);
/// assert_eq!(classify_failure("Unknown tool: raed"), FailureKind::UnknownTool);
/// ```
pub fn classify_failure(error: &str) -> FailureKind {
    if names_no_tool(error) {
        FailureKind::UnknownTool
    } else if names_the_call(error) || is_schema_error(error) {
        FailureKind::Validation
    } else if is_transient(error) {
        // Before the loosest pattern: /type.*error/i also matches "TypeError: fetch failed
        // (ETIMEDOUT)", which is not hopeless.
        FailureKind::Retryable
    } else if is_type_error(error) {
        FailureKind::Validation
    } else {
        FailureKind::Deterministic
    }
}

/// The specific patterns: `Missing required parameter:`, `Missing parameters for`,
/// `Expected .* but received`, `Missing required`.
fn names_the_call(error: &str) -> bool {
    error.contains("Missing required")
        || error.contains("Missing parameters for")
        || lines(error).any(|line| in_order(line, "Expected ", " but received"))
}

/// What hosts write today for arguments that do not match a tool's schema.
fn is_schema_error(error: &str) -> bool {
    error.starts_with("Invalid arguments for tool")
        || error.starts_with("Validation failed for tool")
}

/// `/type.*error/i`.
fn is_type_error(error: &str) -> bool {
    lines(error).any(|line| in_order(&line.to_ascii_lowercase(), "type", "error"))
}

/// `.` in those patterns does not cross a line end.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split(['\n', '\r', '\u{2028}', '\u{2029}'])
}

fn in_order(line: &str, first: &str, then: &str) -> bool {
    line.find(first)
        .is_some_and(|at| line[at + first.len()..].contains(then))
}

fn names_no_tool(error: &str) -> bool {
    let lower = error.to_ascii_lowercase();
    lower.starts_with("unknown tool")
        || lower.starts_with("no such tool")
        || lines(&lower).next().is_some_and(|line| {
            line.starts_with("tool ") && line.trim_end_matches('.').ends_with(" not found")
        })
}

fn is_transient(error: &str) -> bool {
    const WORDS: [&str; 18] = [
        "timeout",
        "timed out",
        "etimedout",
        "econnreset",
        "econnrefused",
        "eai_again",
        "enetunreach",
        "socket hang up",
        "connection reset",
        "connection refused",
        "too many requests",
        "rate limit",
        "rate_limit",
        "overloaded",
        "service unavailable",
        "temporarily unavailable",
        "bad gateway",
        "circuit_open",
    ];
    const STATUSES: [&str; 5] = ["408", "429", "502", "503", "504"];
    let lower = error.to_ascii_lowercase();
    WORDS.iter().any(|word| lower.contains(word))
        || lower
            .split(|c: char| !c.is_ascii_alphanumeric())
            .any(|word| STATUSES.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_patterns_of_the_plugin_to_the_letter() {
        for text in [
            "Missing required parameter: path",
            "Missing parameters for edit",
            "Expected string but received undefined",
            "path: Expected a or b but received null",
            "Missing required",
            "type mismatch error",
            "TypeError: x is undefined",
            "Missing required parameter: timeout",
            "timeout: Expected number but received string",
        ] {
            assert_eq!(classify_error(text), ErrorClass::NonRetryable, "{text}");
        }
    }

    #[test]
    fn everything_else_is_retryable() {
        for text in [
            "timeout",
            "Request timed out",
            "429 Too Many Requests",
            "missing required parameter: path",
            "Expected x\nbut received y",
            "Expected but received",
            "error: wrong type",
            "",
        ] {
            assert_eq!(classify_error(text), ErrorClass::Retryable, "{text}");
        }
    }

    #[test]
    fn kinds() {
        for (text, kind) in [
            ("Tool raed not found", FailureKind::UnknownTool),
            ("Tool \"raed\" not found.", FailureKind::UnknownTool),
            ("File not found", FailureKind::Deterministic),
            ("exit status 4291", FailureKind::Deterministic),
            ("HTTP 503", FailureKind::Retryable),
            (
                "TypeError: fetch failed (ETIMEDOUT)",
                FailureKind::Retryable,
            ),
            (
                "TypeError: path.split is not a function",
                FailureKind::Validation,
            ),
            (
                "Validation failed for tool \"read\":\n  - path: is required",
                FailureKind::Validation,
            ),
            (
                "timeout: Expected number but received string",
                FailureKind::Validation,
            ),
            ("upstream: connection reset by peer", FailureKind::Retryable),
            (
                "Invalid arguments for tool \"openclaw:core:web_fetch\"",
                FailureKind::Validation,
            ),
        ] {
            assert_eq!(classify_failure(text), kind, "{text}");
        }
    }
}
