//! What a model is told about its calls.

use holdfast_contract::ToolResultEnvelope;

use crate::settings::RunSettings;

/// Characters of a result of a tool that has no limit of its own.
pub const RESULT_CHARS_DEFAULT: usize = 3000;
/// A result that has to be cut keeps this part of its limit at the end; the rest at the beginning.
const TAIL_PART: usize = 3;

/// How one call ended, as the model hears it.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct CallResult {
    /// The text.
    pub text: String,
    /// Whether the tool worked.
    pub ok: bool,
    /// How long it took.
    pub duration_ms: u64,
    /// Whether its effect may have happened without anybody knowing.
    pub unknown: bool,
}

impl CallResult {
    /// A call's answer, cut to what the model may see of this tool.
    pub fn of(answer: &ToolResultEnvelope, settings: &RunSettings) -> Self {
        let chars_max = settings
            .result_limits
            .get(&answer.tool_name)
            .copied()
            .unwrap_or(RESULT_CHARS_DEFAULT);
        let text = match (&answer.output, &answer.error) {
            (Some(output), _) => match &*output.content {
                serde_json::Value::String(text) => text.clone(),
                other => other.to_string(),
            },
            (None, Some(error)) => match &error.hint {
                Some(hint) => format!("{}: {} ({hint})", error.code, error.message),
                None => format!("{}: {}", error.code, error.message),
            },
            (None, None) => String::new(),
        };
        Self {
            text: cut(&text, chars_max),
            ok: answer.is_success(),
            duration_ms: answer.duration_ms,
            unknown: answer.error_code() == Some("outcome_unknown"),
        }
    }

    /// The line of the batch that goes back to the model.
    pub fn line(&self, tool: &str) -> String {
        if self.ok {
            format!("[TOOL_RESULT: {tool}]\n{}", self.text)
        } else {
            format!("[ERROR: {tool}] {}", self.text)
        }
    }
}

/// The message that carries the results of one iteration.
pub fn batch(lines: &[String]) -> String {
    format!(
        "Tool execution results:\n{}\n\nContinue with next step or provide the final answer if the \
         task is complete.",
        lines.join("\n\n")
    )
}

/// A text's beginning and end, and in between how much was left out.
pub fn cut(text: &str, chars_max: usize) -> String {
    let chars = text.chars().count();
    if chars <= chars_max {
        return text.to_owned();
    }
    let tail = chars_max / TAIL_PART;
    let head = chars_max - tail;
    let at = |count: usize| {
        text.char_indices()
            .nth(count)
            .map_or(text.len(), |(place, _)| place)
    };
    let left_out = chars - head - tail;
    format!(
        "{}\n[… {left_out} of {chars} characters left out …]\n{}",
        &text[..at(head)],
        &text[at(chars - tail)..]
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_long_result_says_what_was_left_out() {
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(
            cut("äbcdefghij", 6),
            "äbcd\n[… 4 of 10 characters left out …]\nij"
        );
        assert_eq!(cut("abc", 0), "\n[… 3 of 3 characters left out …]\n");
    }

    proptest! {
        #[test]
        fn what_is_kept_is_the_beginning_and_the_end(text in ".{0,200}", chars_max in 0..100_usize) {
            let kept = cut(&text, chars_max);
            if text.chars().count() <= chars_max {
                prop_assert_eq!(kept, text);
            } else {
                let (head, rest) = kept.split_once("\n[… ").unwrap();
                let tail = rest.split_once("…]\n").unwrap().1;
                prop_assert!(text.starts_with(head) && text.ends_with(tail));
                prop_assert_eq!(head.chars().count() + tail.chars().count(), chars_max);
            }
        }
    }
}
