//! Layer D: which model made the call that went wrong.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::verdict::GuardAction;

/// Longest error text kept in an entry.
pub const ERROR_BYTES_MAX: usize = 4 * 1024;
/// Longest arguments kept in an entry as they are; longer ones become an excerpt.
pub const ARGS_BYTES_MAX: usize = 8 * 1024;

/// The model behind a call: the explicit id where the host knows it, else a guess from the prefix of
/// the call's id.
///
/// ```
/// use holdfast_reliability::guard::attribute_model;
///
/// assert_eq!(attribute_model(Some("minimax-m2.5"), "call_1"), "minimax-m2.5");
/// assert_eq!(attribute_model(None, "toolu_01A"), "anthropic");
/// assert_eq!(attribute_model(None, "call_9"), "fireworks/openai-compat");
/// assert_eq!(attribute_model(None, "x"), "unknown");
/// ```
pub fn attribute_model<'a>(explicit: Option<&'a str>, tool_call_id: &str) -> &'a str {
    match explicit.map(str::trim) {
        Some(model) if !model.is_empty() => model,
        _ => model_from_call_id(tool_call_id),
    }
}

/// The model family that a call id's prefix gives away.
pub fn model_from_call_id(tool_call_id: &str) -> &'static str {
    let id = tool_call_id.trim();
    if id.starts_with("toolu_") || is_stripped(id, "toolu") {
        "anthropic"
    } else if id.starts_with("call_") || is_stripped(id, "call") {
        "fireworks/openai-compat"
    } else {
        "unknown"
    }
}

/// Some hosts hand ids back with everything but letters and digits removed: `call_1_2` is then
/// `call12`. A digit tells such an id from a word like `callback`.
fn is_stripped(id: &str, prefix: &str) -> bool {
    id.strip_prefix(prefix).is_some_and(|rest| {
        rest.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && rest.bytes().any(|byte| byte.is_ascii_digit())
    })
}

/// One line of the attribution log.
///
/// The guard has no clock and no redactor: the caller supplies the time (RFC 3339) and arguments
/// and error that are safe to write down.
///
/// ```
/// use holdfast_reliability::guard::{AttributionEntry, GuardAction};
/// use serde_json::json;
///
/// let entry = AttributionEntry {
///     timestamp: "2026-02-13T10:00:00Z".into(),
///     model_id: "fireworks/openai-compat".into(),
///     tool: "read".into(),
///     args: json!({}),
///     error_type: "invalid_arguments".into(),
///     error: "Missing required parameter: path".into(),
///     request_id: None,
///     tool_call_id: Some("call_1".into()),
///     session_key: None,
///     turn_id: None,
///     action: GuardAction::Continue,
/// };
/// assert!(entry.to_json_line()?.starts_with(r#"{"timestamp":"2026-02-13T10:00:00Z","modelId":"#));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AttributionEntry {
    /// When it happened, as RFC 3339.
    pub timestamp: String,
    /// The model, by [`attribute_model`].
    pub model_id: String,
    /// The tool as the model named it.
    pub tool: String,
    /// The arguments the model sent, redacted by the caller.
    pub args: Value,
    /// The error's code or class.
    pub error_type: String,
    /// The error's message, redacted by the caller.
    pub error: String,
    /// The envelope's request id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The model's id of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// The session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_key: Option<String>,
    /// The turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<String>,
    /// What the guard did about it.
    pub action: GuardAction,
}

impl AttributionEntry {
    /// The entry as one line of JSON, with its line end, and with a bounded size.
    pub fn to_json_line(&self) -> Result<String, serde_json::Error> {
        let mut bounded = Cow::Borrowed(self);
        if self.error.len() > ERROR_BYTES_MAX {
            bounded.to_mut().error = excerpt(&self.error, ERROR_BYTES_MAX);
        }
        let args = self.args.to_string();
        if args.len() > ARGS_BYTES_MAX {
            bounded.to_mut().args = Value::String(excerpt(&args, ARGS_BYTES_MAX));
        }
        let mut line = serde_json::to_string(&*bounded)?;
        line.push('\n');
        Ok(line)
    }
}

fn excerpt(text: &str, bytes_max: usize) -> String {
    let mut end = bytes_max.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}… ({} bytes)", &text[..end], text.len())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry() -> AttributionEntry {
        AttributionEntry {
            timestamp: "2026-02-13T10:00:00Z".into(),
            model_id: "anthropic".into(),
            tool: "edit".into(),
            args: json!({"path": "a"}),
            error_type: "invalid_arguments".into(),
            error: "Missing required parameter:\noldText".into(),
            request_id: Some("r1".into()),
            tool_call_id: Some("toolu_1".into()),
            session_key: Some("agent:main".into()),
            turn_id: Some("t1".into()),
            action: GuardAction::LoopDetected,
        }
    }

    #[test]
    fn the_line_has_the_agreed_names() {
        insta::assert_snapshot!(entry().to_json_line().unwrap(), @r#"{"timestamp":"2026-02-13T10:00:00Z","modelId":"anthropic","tool":"edit","args":{"path":"a"},"errorType":"invalid_arguments","error":"Missing required parameter:\noldText","requestId":"r1","toolCallId":"toolu_1","sessionKey":"agent:main","turnId":"t1","action":"loop-detected"}"#);
        let line = entry().to_json_line().unwrap();
        assert_eq!(
            serde_json::from_str::<AttributionEntry>(&line).unwrap(),
            entry()
        );
    }

    #[test]
    fn a_huge_call_still_is_one_bounded_line() {
        let mut huge = entry();
        huge.error = "é".repeat(100_000);
        huge.args = json!({"content": "x\n".repeat(100_000)});
        let line = huge.to_json_line().unwrap();
        assert!(line.len() < 40_000, "{}", line.len());
        assert_eq!(line.matches('\n').count(), 1);
    }

    #[test]
    fn ids_that_a_host_stripped_still_count() {
        assert_eq!(model_from_call_id("call1258430"), "fireworks/openai-compat");
        assert_eq!(model_from_call_id("toolu01AbC"), "anthropic");
        assert_eq!(model_from_call_id("callback"), "unknown");
        assert_eq!(model_from_call_id(""), "unknown");
        assert_eq!(attribute_model(Some("  "), "toolu_1"), "anthropic");
    }
}
