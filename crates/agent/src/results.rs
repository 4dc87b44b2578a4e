//! What a model is told about its calls.

mod keep;

use holdfast_contract::{
    Artifact, ErrorCode, Escalation, ResultError, ToolResultEnvelope, TurnStand,
};
use holdfast_reliability::guard::BlockCode;

pub use keep::Keep;

use crate::settings::RunSettings;

/// Characters of a result of a tool that has no limit of its own.
pub const RESULT_CHARS_DEFAULT: usize = 3000;
/// How the message with the results of one iteration begins.
pub const BATCH_HEAD: &str = "Tool execution results:\n";

/// The words about what was left out are no longer than this, however long the text.
const CUT_MARK_CHARS_MAX: usize = 80;

/// What stands before what a tool had until it failed.
const SO_FAR: &str = "\nUntil then: ";
/// Less of it would say nothing.
const SO_FAR_CHARS_MIN: usize = 200;

/// How one call ended, as the model hears it.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct CallResult {
    /// The text.
    pub text: String,
    /// Whether the tool worked.
    pub ok: bool,
    /// What the command that it ran returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
    /// How often it was tried.
    #[serde(default)]
    pub attempts: u32,
    /// How long it took.
    pub duration_ms: u64,
    /// Whether its effect may have happened without anybody knowing.
    pub unknown: bool,
    /// What it made besides its output.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub made: Vec<Artifact>,
    /// Whether tools still run in this run.
    #[serde(default, skip_serializing_if = "Brake::is_off")]
    pub brake: Brake,
    /// Whether it did not run because there is no such tool or its arguments do not fit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wrong: bool,
    /// Present when the model is not to correct it any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalation: Option<Escalation>,
}

/// What the loop guard makes of going on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Brake {
    /// Nothing.
    #[default]
    Off,
    /// The model is told that no tool runs any more.
    Told,
    /// The call did not run because of that.
    On,
}

impl Brake {
    fn of(error: Option<&ResultError>) -> Self {
        match error {
            Some(error) if error.code == BlockCode::ToolErrorLimit.as_str() => Self::On,
            Some(error) if error.turn == TurnStand::Ended => Self::Told,
            _ => Self::Off,
        }
    }

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
    fn is_off(&self) -> bool {
        *self == Self::Off
    }
}

impl CallResult {
    /// A call's answer, cut to what the model may see of this tool.
    pub fn of(answer: &ToolResultEnvelope, settings: &RunSettings) -> Self {
        let chars_max = settings.result_chars_max(&answer.tool_name);
        let keep = Keep::of(&answer.tool_name);
        let text = match (&answer.output, &answer.error) {
            (Some(output), _) => keep.value(&output.content, chars_max),
            (None, Some(error)) => failed(error, keep, chars_max),
            (None, None) => String::new(),
        };
        Self {
            text,
            ok: answer.is_success(),
            exit_code: exit_code(answer),
            attempts: answer.attempts,
            duration_ms: answer.duration_ms,
            unknown: answer.error_code() == Some("outcome_unknown"),
            made: made(answer).unwrap_or_default(),
            brake: Brake::of(answer.error.as_ref()),
            wrong: answer.error.as_ref().is_some_and(is_wrong),
            escalation: answer.error.as_ref().and_then(|it| it.escalation.clone()),
        }
    }

    /// Why it failed, without what the tool had until then: that is for the model, and no log's.
    pub fn why(&self) -> &str {
        self.text.split(SO_FAR).next().unwrap_or_default()
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

fn exit_code(answer: &ToolResultEnvelope) -> Option<i64> {
    answer.output.as_ref()?.content.get("exit_code")?.as_i64()
}

fn made(answer: &ToolResultEnvelope) -> Option<Vec<Artifact>> {
    let listed = answer
        .output
        .as_ref()?
        .metadata
        .as_ref()?
        .get("artifacts")?;
    serde_json::from_value(listed.clone()).ok()
}

/// The message that carries the results of one iteration.
pub fn batch(lines: &[String]) -> String {
    format!(
        "{BATCH_HEAD}{}\n\nContinue with next step or provide the final answer if the \
         task is complete.",
        lines.join("\n\n")
    )
}

/// Why it failed, and as much of what it had until then as there is room for.
fn failed(error: &ResultError, keep: Keep, chars_max: usize) -> String {
    let why = keep.text(&said(error), chars_max);
    let Some(details) = &error.details else {
        return why;
    };
    let room = chars_max.saturating_sub(why.chars().count() + SO_FAR.len());
    if room < SO_FAR_CHARS_MIN {
        return why;
    }
    format!("{why}{SO_FAR}{}", keep.value(details, room))
}

fn is_wrong(error: &ResultError) -> bool {
    let wrong = [ErrorCode::InvalidArguments, ErrorCode::ToolNotFound];
    error.escalation.is_some() || wrong.iter().any(|code| code.as_str() == error.code)
}

fn said(error: &ResultError) -> String {
    match &error.hint {
        Some(hint) => format!("{}: {} ({hint})", error.code, error.message),
        None => format!("{}: {}", error.code, error.message),
    }
}

/// A text's beginning and end, and in between how much was left out.
pub fn cut(text: &str, chars_max: usize) -> String {
    Keep::Ends.text(text, chars_max)
}

/// The same in no more than so many characters, the words about what was left out included. What
/// was cut so is not cut again.
pub fn cut_within(text: &str, chars_max: usize) -> String {
    if text.chars().count() <= chars_max {
        return text.to_owned();
    }
    let kept = cut(text, chars_max.saturating_sub(CUT_MARK_CHARS_MAX));
    kept.chars().take(chars_max).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A gateway's tools have the limits that were set for their own names.
    #[test]
    fn a_gateways_tool_is_known_by_its_name_there() {
        let mut settings = RunSettings::default();
        settings.result_limits.insert("canvas".to_owned(), 7);
        settings.result_limits.insert("gateway_nodes".to_owned(), 8);
        let limit = |tool: &str| settings.result_chars_max(tool);
        assert_eq!((limit("gateway_canvas"), limit("gateway_nodes")), (7, 8));
        assert_eq!(limit("gateway_tts"), RESULT_CHARS_DEFAULT);
        assert_eq!(Keep::of("gateway_browser"), Keep::of("browser"));
    }

    #[test]
    fn a_long_result_says_what_was_left_out() {
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(
            cut("äbcdefghij", 6),
            "äbcd\n[… 4 of 10 characters left out …]\nij"
        );
        assert_eq!(cut("abc", 0), "\n[… 3 of 3 characters left out …]\n");
    }

    #[test]
    fn a_model_hears_what_a_command_had_printed_when_its_time_was_up() {
        let mut answer: ToolResultEnvelope = serde_json::from_value(serde_json::json!({
            "requestId": "r", "status": "error", "fromCache": false, "toolName": "exec",
            "durationMs": 1, "attempts": 1,
            "error": {"code": "timeout", "message": "too slow", "retriable": false,
                "terminal": true, "details": {"stdout": "step 1 done\n"}},
        }))
        .unwrap();
        let settings = RunSettings::default();
        let told = CallResult::of(&answer, &settings).text;
        assert_eq!(
            told,
            "timeout: too slow\nUntil then: {\"stdout\":\"step 1 done\\n\"}"
        );
        if let Some(details) = answer.error.as_mut().and_then(|it| it.details.as_mut()) {
            details["stdout"] = "x".repeat(100_000).into();
        }
        let told = CallResult::of(&answer, &settings).text;
        assert!(
            told.chars().count() <= 4_000 && told.contains("left out"),
            "{told}"
        );
    }

    /// A tool's own words may be those of the guard, and a reader of secrets may take them out of the guard's.
    #[test]
    fn the_end_of_a_turn_is_no_matter_of_words() {
        let brake = |message: &str, turn: Option<&str>| {
            let mut error = serde_json::json!({"code": "not_found", "message": message,
                "retriable": false, "terminal": true});
            if let Some(turn) = turn {
                error["turn"] = turn.into();
            }
            Brake::of(Some(&serde_json::from_value(error).unwrap()))
        };
        let quoted = "the log says [TOOL ERROR LIMIT] 5 tool failures";
        assert_eq!(brake(quoted, None), Brake::Off);
        assert_eq!(brake("[redacted]", Some("ended")), Brake::Told);
    }

    proptest! {
        #[test]
        fn what_is_cut_within_a_limit_stays(text in ".{0,200}", chars_max in 0..150_usize) {
            let kept = cut_within(&text, chars_max);
            prop_assert!(kept.chars().count() <= chars_max);
            prop_assert_eq!(cut_within(&kept, chars_max), kept);
        }

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
