//! What the model reads. The bracketed texts are interfaces: prompts and tests depend on them.
//!
//! The original texts end their first lines in a space before the line break, an artefact of how
//! they were typeset. Here a line ends where its sentence ends.

use super::verdict::Advice;

/// Appended to an error that can not go away by trying again.
pub const NON_RETRYABLE_TAG: &str = "[NON-RETRYABLE]";

/// How the text begins that ends a turn's tool execution.
pub const TOOL_ERROR_LIMIT_TAG: &str = "[TOOL ERROR LIMIT]";

/// A tool name comes from the model, so it could be anything; real names are shorter.
pub(super) const NAME_CHARS_MAX: usize = 128;

/// Layer B: the same call failed the same way too often.
pub(super) fn loop_detected(name: &str, count: u32) -> String {
    format!(
        "[LOOP DETECTED] Tool \"{}\" failed {count} times with identical arguments.\n\
         This is a non-retryable error. Do NOT retry this call.\n\
         Try a different approach or report the issue.",
        printable(name),
    )
}

/// The same for a command, which may be asking whether something is ready yet.
pub(super) fn command_loop_detected(name: &str, count: u32) -> String {
    format!(
        "{}\nIf you are waiting for something, let time pass first, for example with sleep.",
        loop_detected(name, count)
    )
}

/// Layer C: too many failures in this turn.
pub(super) fn tool_error_limit(count: u32) -> String {
    format!(
        "{TOOL_ERROR_LIMIT_TAG} {count} tool failures in this turn.\n\
         Stopping tool execution. Review your approach before continuing."
    )
}

/// The same for a call after that: the model has this answer to speak in, and whoever runs it ends it
/// when it calls once more.
pub(super) fn answer_now(count: u32) -> String {
    format!(
        "{}\nNo tool runs any more in this turn. Answer now, with what you have.",
        tool_error_limit(count)
    )
}

/// The same call returned the same result often enough to say so.
pub(super) fn no_progress(name: &str, count: u32) -> String {
    format!(
        "[NO PROGRESS] Tool \"{}\" returned the same result {count} times with identical \
         arguments.\n\
         Nothing has changed since. Use the result you already have or try a different approach.",
        printable(name),
    )
}

/// The same call returned the same result too often.
pub(super) fn success_loop_detected(name: &str, count: u32) -> String {
    format!(
        "[LOOP DETECTED] Tool \"{}\" returned the same result {count} times with identical \
         arguments.\n\
         Nothing has changed since. Do NOT repeat this call.\n\
         Use the result you already have, try a different approach or report the issue.",
        printable(name),
    )
}

/// The same call was made too often without anything else in between, whatever it returned.
pub(super) fn varying_loop_detected(name: &str, count: u32) -> String {
    format!(
        "[LOOP DETECTED] Tool \"{}\" was called {count} times with identical arguments, and \
         returned something else each time.\n\
         Nothing was changed in between. Do NOT repeat this call.\n\
         Use the results you already have, let time pass or try a different approach.",
        printable(name),
    )
}

/// One line, of bounded length, whatever the model invented.
fn printable(name: &str) -> String {
    name.trim()
        .chars()
        .take(NAME_CHARS_MAX)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

/// An error as the model sees it: the message, the tag, then the guard's texts.
///
/// Decorating twice changes nothing, because some hosts call a hook more than once for one result.
///
/// ```
/// use holdfast_reliability::guard::{
///     CallIdentity, FailureKind, GuardConfig, Observation, TurnState, decorate_error,
/// };
///
/// let config = GuardConfig::default();
/// let mut turn = TurnState::default();
/// let error = "Missing required parameter: path";
/// let failed = Observation::Failed { kind: FailureKind::Validation, error };
/// let advice = turn.observe(&CallIdentity::of("read", &serde_json::json!({})), &failed, &config);
/// assert_eq!(
///     decorate_error(error, &advice),
///     "Missing required parameter: path [NON-RETRYABLE]",
/// );
/// ```
pub fn decorate_error(message: &str, advice: &Advice) -> String {
    message.to_owned() + &error_suffix(message, advice)
}

/// What [`decorate_error`] writes behind a message, for hosts that have the message already.
pub fn error_suffix(message: &str, advice: &Advice) -> String {
    let texts = advice.texts.join("\n");
    let mut suffix = String::new();
    if !texts.is_empty() && message.ends_with(&texts) {
        return suffix;
    }
    if advice.non_retryable && !message.trim_end().ends_with(NON_RETRYABLE_TAG) {
        if !message.is_empty() && !message.ends_with(char::is_whitespace) {
            suffix.push(' ');
        }
        suffix.push_str(NON_RETRYABLE_TAG);
    }
    append(message, suffix, &texts)
}

/// A result as the model sees it: the text, then the guard's texts. Idempotent like
/// [`decorate_error`].
pub fn decorate_output(text: &str, advice: &Advice) -> String {
    text.to_owned() + &output_suffix(text, advice)
}

/// What [`decorate_output`] writes behind a text.
pub fn output_suffix(text: &str, advice: &Advice) -> String {
    let texts = advice.texts.join("\n");
    if text.ends_with(&texts) {
        String::new()
    } else {
        append(text, String::new(), &texts)
    }
}

/// The suffix of a message, and then the guard's texts on lines of their own.
fn append(message: &str, mut suffix: String, texts: &str) -> String {
    if !texts.is_empty() {
        let before = if suffix.is_empty() { message } else { &suffix };
        if !before.is_empty() && !before.ends_with('\n') {
            suffix.push('\n');
        }
        suffix.push_str(texts);
    }
    suffix
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layer_b_text() {
        insta::assert_snapshot!(loop_detected("read", 2), @r#"
        [LOOP DETECTED] Tool "read" failed 2 times with identical arguments.
        This is a non-retryable error. Do NOT retry this call.
        Try a different approach or report the issue.
        "#);
    }

    #[test]
    fn command_text() {
        insta::assert_snapshot!(command_loop_detected("exec", 2), @r#"
        [LOOP DETECTED] Tool "exec" failed 2 times with identical arguments.
        This is a non-retryable error. Do NOT retry this call.
        Try a different approach or report the issue.
        If you are waiting for something, let time pass first, for example with sleep.
        "#);
    }

    #[test]
    fn layer_c_text() {
        insta::assert_snapshot!(tool_error_limit(5), @r"
        [TOOL ERROR LIMIT] 5 tool failures in this turn.
        Stopping tool execution. Review your approach before continuing.
        ");
    }

    #[test]
    fn advisory_text() {
        insta::assert_snapshot!(no_progress("exec", 10), @r#"
        [NO PROGRESS] Tool "exec" returned the same result 10 times with identical arguments.
        Nothing has changed since. Use the result you already have or try a different approach.
        "#);
    }

    #[test]
    fn success_loop_text() {
        insta::assert_snapshot!(success_loop_detected("exec", 25), @r#"
        [LOOP DETECTED] Tool "exec" returned the same result 25 times with identical arguments.
        Nothing has changed since. Do NOT repeat this call.
        Use the result you already have, try a different approach or report the issue.
        "#);
    }

    #[test]
    fn text_after_layer_c() {
        insta::assert_snapshot!(answer_now(5), @r"
        [TOOL ERROR LIMIT] 5 tool failures in this turn.
        Stopping tool execution. Review your approach before continuing.
        No tool runs any more in this turn. Answer now, with what you have.
        ");
    }

    #[test]
    fn varying_loop_text() {
        insta::assert_snapshot!(varying_loop_detected("exec", 100), @r#"
        [LOOP DETECTED] Tool "exec" was called 100 times with identical arguments, and returned something else each time.
        Nothing was changed in between. Do NOT repeat this call.
        Use the results you already have, let time pass or try a different approach.
        "#);
    }

    #[test]
    fn no_line_ends_in_a_space() {
        for text in [
            loop_detected("t", 2),
            command_loop_detected("t", 2),
            tool_error_limit(5),
            no_progress("t", 10),
            success_loop_detected("t", 25),
            answer_now(5),
            varying_loop_detected("t", 100),
        ] {
            assert!(text.lines().all(|line| line == line.trim_end()), "{text}");
        }
    }

    #[test]
    fn an_invented_name_stays_on_its_line() {
        let text = loop_detected(&format!("a\nb{}", "x".repeat(5000)), 2);
        assert_eq!(text.lines().count(), 3);
        assert!(text.len() < 400);
    }

    #[test]
    fn decorated_error() {
        let advice = Advice {
            non_retryable: true,
            texts: vec![loop_detected("read", 2), tool_error_limit(5)],
            ..Advice::default()
        };
        let once = decorate_error("Missing required parameter: path", &advice);
        assert_eq!(decorate_error(&once, &advice), once);
        insta::assert_snapshot!(once, @r#"
        Missing required parameter: path [NON-RETRYABLE]
        [LOOP DETECTED] Tool "read" failed 2 times with identical arguments.
        This is a non-retryable error. Do NOT retry this call.
        Try a different approach or report the issue.
        [TOOL ERROR LIMIT] 5 tool failures in this turn.
        Stopping tool execution. Review your approach before continuing.
        "#);
    }

    #[test]
    fn decorated_output() {
        let advice = Advice {
            texts: vec![no_progress("exec", 10)],
            ..Advice::default()
        };
        let once = decorate_output("nothing to commit", &advice);
        assert_eq!(decorate_output(&once, &advice), once);
        insta::assert_snapshot!(once, @r#"
        nothing to commit
        [NO PROGRESS] Tool "exec" returned the same result 10 times with identical arguments.
        Nothing has changed since. Use the result you already have or try a different approach.
        "#);
        assert_eq!(decorate_output("x", &Advice::default()), "x");
        // A result that quotes the text, a log for example, is not taken for a decorated one.
        let quoting = format!("{}\nend of log", advice.texts[0]);
        assert!(decorate_output(&quoting, &advice).ends_with(&advice.texts[0]));
    }
}
