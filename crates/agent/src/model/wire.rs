//! Chat completions as servers really write them.

use holdfast_contract::redact::Redactor;
use holdfast_intent::FinishReason;
use serde_json::Value;

use super::{ModelError, ModelReply};
use crate::chat::content_from_wire;
use crate::run::TokensUsed;

/// Characters of a server's own words about its failure.
pub const MODEL_ERROR_CHARS_MAX: usize = 500;

/// Words in an error, in small letters, that mean that the history does not fit.
const TOO_LONG: [&str; 11] = [
    "context_length_exceeded",
    "context_window_exceeded",
    "exceed_context_size",
    "maximum context length",
    "model's context length is only",
    "exceeds the available context size",
    "exceeds the model's context",
    "longer than the maximum model length",
    "longer than the model's context length",
    "prompt is too long",
    "input is too long",
];

/// Words in a refusal, in small letters, that mean the calls, the results or the turns of the
/// history. A server that takes no tools at all names tools too, and no other history helps there.
const PAIRING: [&str; 12] = [
    "tool_call_id",
    "tool call id",
    "'tool_calls' must be followed",
    "tool_use_id",
    "`tool_use` ids",
    "tool_result",
    "tool message",
    "role 'tool'",
    "role \"tool\"",
    "roles must alternate",
    "unexpected role",
    "number of function call",
];

/// Why a server stopped a model whose words it did not want to give out.
const FILTERS: [&str; 8] = [
    "content_filter",
    "content_filtered",
    "safety",
    "recitation",
    "blocklist",
    "prohibited_content",
    "spii",
    "guardrail_intervened",
];

/// Reads the body of a successful answer.
pub fn read_reply(body: &[u8]) -> Result<ModelReply, ModelError> {
    let value: Value = serde_json::from_slice(body)
        .map_err(|error| ModelError::Unavailable(format!("the answer is no JSON ({error})")))?;
    if value.get("error").is_some_and(|error| !error.is_null()) {
        return Err(read_error(200, body));
    }
    read_completion(&value)
}

fn is_filter(reason: &str) -> bool {
    FILTERS.contains(&reason.to_ascii_lowercase().as_str())
}

/// Reads a whole completion.
pub(super) fn read_completion(value: &Value) -> Result<ModelReply, ModelError> {
    let choice = &value["choices"][0];
    let message = &choice["message"];
    if !message.is_object() {
        let why = "the answer has no choices with a message";
        return Err(ModelError::Unavailable(why.to_owned()));
    }
    let content = content_from_wire(&message["content"]).map_err(ModelError::Unavailable)?;
    let reasoning = ["reasoning_content", "reasoning"]
        .into_iter()
        .find_map(|field| message[field].as_str())
        .unwrap_or_default();
    let has_calls = message["tool_calls"]
        .as_array()
        .is_some_and(|calls| !calls.is_empty());
    let usage = |field: &str| value["usage"][field].as_u64().unwrap_or(0);
    let finish = choice["finish_reason"].as_str();
    Ok(ModelReply {
        content,
        reasoning: reasoning.to_owned(),
        calls: if has_calls {
            message.clone()
        } else {
            Value::Null
        },
        finish: finish.map_or(FinishReason::Unknown, FinishReason::from_wire),
        filtered: finish.is_some_and(is_filter),
        tokens: TokensUsed {
            prompt: usage("prompt_tokens"),
            completion: usage("completion_tokens"),
        },
        cut_in_thought: false,
        perhaps_in_thought: false,
    })
}

/// What a server says about its failure goes to clients: without secrets, and not without end.
fn shown(said: &str) -> String {
    let start: String = said.chars().take(MODEL_ERROR_CHARS_MAX).collect();
    Redactor::default().redact_text(&start).into_owned()
}

/// Reads the body of a failed answer.
pub fn read_error(status: u16, body: &[u8]) -> ModelError {
    let value: Value = serde_json::from_slice(body).unwrap_or_default();
    let error = &value["error"];
    let said = [
        &error["message"],
        &value["message"],
        &value["detail"],
        error,
    ]
    .into_iter()
    .find_map(Value::as_str)
    .unwrap_or("no reason given");
    let code = error["code"].as_str().unwrap_or_default();
    let text = format!("the model server answered {status}: {}", shown(said));
    let (said, code) = (said.to_lowercase(), code.to_lowercase());
    let is_named = |word: &&str| said.contains(*word) || code.contains(*word);
    if TOO_LONG.iter().any(is_named) {
        return ModelError::TooLong(text);
    }
    match status {
        400 | 422 if PAIRING.iter().any(|words| said.contains(words)) => ModelError::History(text),
        200 | 408 | 409 | 425 | 429 | 500.. => ModelError::Unavailable(text),
        401 | 403 | 404 => ModelError::Barred(text),
        _ => ModelError::Refused(text),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn bytes(value: &Value) -> Vec<u8> {
        value.to_string().into_bytes()
    }

    #[test]
    fn what_servers_answer_is_read() {
        for field in ["reasoning_content", "reasoning"] {
            let reply = read_reply(&bytes(&json!({
                "choices": [{"message": {"role": "assistant", "content": null, field: "thought"},
                             "finish_reason": "length"}],
                "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}})))
            .unwrap();
            assert_eq!(
                (reply.reasoning.as_str(), reply.content.as_str()),
                ("thought", "")
            );
            assert_eq!(reply.finish, FinishReason::Length);
            assert_eq!(reply.tokens.total(), 10);
            assert!(reply.calls.is_null() && !reply.filtered);
        }
        for filter in FILTERS.map(str::to_uppercase) {
            let cut = json!({"choices": [{"message": {"content": "a"}, "finish_reason": filter}]});
            let reply = read_reply(&bytes(&cut)).unwrap();
            assert_eq!((reply.finish, reply.filtered), (FinishReason::Length, true));
        }
        let native = json!({"choices": [{"message": {"content": "", "tool_calls": [
            {"id": "c", "function": {"name": "read", "arguments": "{}"}}]}}]});
        assert_eq!(
            read_reply(&bytes(&native)).unwrap().calls["tool_calls"][0]["id"],
            "c"
        );
    }

    #[test]
    fn what_is_no_answer_is_said() {
        let table: [(&[u8], &str); 6] = [
            (b"", "no JSON"),
            (b"{\"choices\": [", "no JSON"),
            (b"{\"choices\": []}", "no choices"),
            (b"[1]", "no choices"),
            (
                b"{\"choices\": [{\"message\": {\"content\": 5}}]}",
                "neither text",
            ),
            (b"{\"error\": {\"message\": \"boom\"}}", "boom"),
        ];
        for (body, says) in table {
            let error = read_reply(body).unwrap_err();
            assert!(
                matches!(&error, ModelError::Unavailable(text) if text.contains(says)),
                "{error}"
            );
        }
    }

    /// What a server says goes to clients and into logs, and some servers say too much.
    #[test]
    fn what_a_server_says_is_told_without_its_secrets() {
        let key = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789";
        for body in [
            json!({"error": {"message": format!("the key {key} is not known")}}),
            json!({"message": format!("Authorization: Bearer {key}")}),
            json!({"detail": format!("api_key={key}")}),
            json!({"error": format!("bad key {key}")}),
        ] {
            let error = read_error(401, &bytes(&body)).to_string();
            assert!(!error.contains("abcdefghijklmnop"), "{error}");
            assert!(
                error.starts_with("the model server answered 401: "),
                "{error}"
            );
        }
        let long = json!({"error": {"message": "x".repeat(10 * MODEL_ERROR_CHARS_MAX)}});
        let error = read_error(500, &bytes(&long)).to_string();
        assert!(error.len() < 2 * MODEL_ERROR_CHARS_MAX, "{}", error.len());
    }

    #[test]
    fn errors_are_told_apart() {
        let too_long = json!({"error": {"message": "This model's maximum context length is 8192"}});
        assert!(matches!(
            read_error(400, &bytes(&too_long)),
            ModelError::TooLong(_)
        ));
        for said in [
            "You passed 9000 input tokens and requested 1000 output tokens. However, the model's context length is only 8192 tokens, resulting in a maximum input length of 7192 tokens. Please reduce the length of the input prompt. (parameter=input_tokens, value=9000)",
            "prompt is too long: 9000 tokens > 8192 maximum",
            "the request exceeds the available context size, try increasing it",
            "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
        ] {
            let body = bytes(&json!({"error": {"message": said, "code": 400}}));
            let error = read_error(400, &body);
            assert!(matches!(error, ModelError::TooLong(_)), "{said}");
        }
        assert!(matches!(read_error(401, b"{}"), ModelError::Barred(_)));
        let coded = json!({"error": {"message": "x", "code": "context_length_exceeded"}});
        assert!(matches!(
            read_error(400, &bytes(&coded)),
            ModelError::TooLong(_)
        ));
        assert!(matches!(read_error(400, b"{}"), ModelError::Refused(_)));
        for said in [
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.",
            "messages.4: `tool_use` ids were found without `tool_result` blocks immediately after",
            "Conversation roles must alternate user/assistant/user/assistant/...",
            "Unexpected role 'user' after role 'tool'",
            "Not the same number of function calls and responses",
        ] {
            let body = bytes(&json!({"error": {"message": said}}));
            assert!(
                matches!(read_error(400, &body), ModelError::History(_)),
                "{said}"
            );
            assert!(matches!(read_error(500, &body), ModelError::Unavailable(_)));
        }
        // No other history would be taken either.
        for said in [
            "This model does not support tool calls",
            "--enable-auto-tool-choice and --tool-call-parser are needed for tool calls",
            "tool_use is not available for this model",
            "unknown field tool_calls",
        ] {
            let body = bytes(&json!({"error": {"message": said}}));
            let error = read_error(400, &body);
            assert!(matches!(error, ModelError::Refused(_)), "{said}");
        }
        assert!(matches!(
            read_error(503, b"<html>"),
            ModelError::Unavailable(_)
        ));
        assert!(matches!(read_error(429, b""), ModelError::Unavailable(_)));
    }
}
