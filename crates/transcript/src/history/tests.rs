//! One small conversation in every format: the same history comes out.

use serde_json::{Value, json};

use super::{Builder, Counted, Session, reader};
use crate::Format;

fn read(format: Format, entries: &[Value]) -> Session {
    let mut builder = Builder::default();
    for entry in entries {
        reader(format)(entry, &mut builder);
    }
    builder.finish()
}

/// A read that fails, and an answer.
fn assert_is_the_conversation(session: &Session) {
    assert_eq!(session.turns.len(), 1);
    assert_eq!(session.turns[0].requests.len(), 2);
    let (request, call) = session.calls().next().expect("a call");
    assert_eq!(call.tool, "read");
    assert_eq!(call.arguments, json!({"path": "a"}));
    let result = call.result.as_ref().expect("a result");
    assert!(result.failed, "{result:?}");
    assert!(result.text.contains("no such file"), "{result:?}");
    assert_eq!(request.calls.len(), 1);
}

#[test]
fn openclaw_says_model_tokens_money_and_time() {
    let session = read(
        Format::OpenClaw,
        &[
            json!({"type": "session", "version": 4, "id": "s"}),
            json!({"type": "message", "timestamp": "2026-11-15T07:05:25.000Z",
                   "message": {"role": "user", "content": "go"}}),
            json!({"type": "message", "timestamp": "2026-11-15T07:05:26.500Z", "message": {
                "role": "assistant", "model": "m", "content": [
                    {"type": "toolCall", "id": "c1", "name": "read", "arguments": {"path": "a"}}],
                "usage": {"input": 100, "output": 10, "cacheRead": 5, "cacheWrite": 1,
                          "cost": {"total": 0.25}}}}),
            json!({"type": "message", "timestamp": "2026-11-15T07:05:27.000Z", "message": {
                "role": "toolResult", "toolCallId": "c1", "isError": true,
                "content": [{"type": "text", "text": "no such file"}], "details": {}}}),
            json!({"type": "message", "message": {"role": "assistant", "content": "sorry"}}),
        ],
    );
    assert_is_the_conversation(&session);
    let request = &session.turns[0].requests[0];
    assert_eq!(request.model.as_deref(), Some("m"));
    assert_eq!(request.usage.tokens(), 116);
    assert_eq!(request.usage.cost_usd, Some(0.25));
    let (asked, there) = (request.asked_at_ms, request.at_ms);
    assert_eq!(
        there.zip(asked).map(|(there, asked)| there - asked),
        Some(1_500)
    );
    assert_eq!(
        session.turns[0].requests[1].usage.counted,
        Counted::Estimated
    );
}

#[test]
fn openclaw_knows_a_commands_exit_code() {
    let session = read(
        Format::OpenClaw,
        &[
            json!({"type": "message", "message": {"role": "assistant", "content": [
                {"type": "toolCall", "id": "c", "name": "exec", "arguments": {"command": "false"}}]}}),
            json!({"type": "message", "message": {"role": "toolResult", "toolCallId": "c",
                "isError": false, "content": [], "details": {"exitCode": 1}}}),
        ],
    );
    let (_, call) = session.calls().next().expect("a call");
    assert_eq!(
        call.result.as_ref().and_then(|result| result.exit_code),
        Some(1)
    );
}

#[test]
fn claude_code_joins_the_entries_of_one_answer() {
    let usage = json!({"input_tokens": 3, "output_tokens": 7, "cache_read_input_tokens": 20,
                       "cache_creation_input_tokens": 4});
    let session = read(
        Format::ClaudeCode,
        &[
            json!({"type": "summary", "summary": "s"}),
            json!({"type": "user", "timestamp": "2026-11-15T07:00:00Z",
                   "message": {"role": "user", "content": "go"}}),
            json!({"type": "assistant", "message": {"id": "msg_1", "role": "assistant",
                   "model": "claude-sonnet-4-5", "usage": usage,
                   "content": [{"type": "text", "text": "I look"}]}}),
            json!({"type": "assistant", "message": {"id": "msg_1", "role": "assistant",
                   "model": "claude-sonnet-4-5", "usage": usage, "content": [
                       {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a"}}]}}),
            json!({"type": "user", "message": {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t1", "is_error": true,
                 "content": "no such file"}]}}),
            json!({"type": "user", "isMeta": true, "message": {"role": "user", "content": "caveat"}}),
            json!({"type": "assistant", "message": {"id": "msg_2", "role": "assistant",
                   "content": [{"type": "text", "text": "sorry"}]}}),
        ],
    );
    assert_is_the_conversation(&session);
    assert_eq!(session.turns[0].requests[0].usage.tokens(), 34);
}

#[test]
fn claude_code_counts_an_answer_once_with_results_between_its_entries() {
    let call = |id: &str| {
        json!({"type": "assistant", "message": {"id": "msg_1", "role": "assistant",
               "model": "claude-sonnet-4-5", "usage": {"input_tokens": 1000, "output_tokens": 500},
               "content": [{"type": "tool_use", "id": id, "name": "read", "input": {}}]}})
    };
    let result = |id: &str| {
        json!({"type": "user", "message": {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": id, "content": "x"}]}})
    };
    let session = read(
        Format::ClaudeCode,
        &[call("a"), result("a"), call("b"), result("b")],
    );
    assert_eq!(session.turns[0].requests.len(), 1);
    assert_eq!(session.turns[0].requests[0].usage.tokens(), 1500);
    assert!(session.calls().all(|(_, call)| call.result.is_some()));
}

#[test]
fn anthropic_messages() {
    let session = read(
        Format::Anthropic,
        &[
            json!({"role": "user", "content": "go"}),
            json!({"role": "assistant", "content": [
                {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a"}}]}),
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1",
                "is_error": true, "content": [{"type": "text", "text": "no such file"}]}]}),
            json!({"role": "assistant", "content": "sorry"}),
        ],
    );
    assert_is_the_conversation(&session);
    // The second answer read the whole conversation again.
    let requests = &session.turns[0].requests;
    assert!(requests[1].usage.input > requests[0].usage.input);
}

#[test]
fn openai_chat_messages() {
    let session = read(
        Format::OpenAiChat,
        &[
            json!({"role": "system", "content": "be brief"}),
            json!({"role": "user", "content": [{"type": "text", "text": "go"}]}),
            json!({"role": "assistant", "content": null, "tool_calls": [{"id": "c1",
                "type": "function",
                "function": {"name": "read", "arguments": "{\"path\": \"a\"}"}}]}),
            json!({"role": "tool", "tool_call_id": "c1", "content": "Error: no such file"}),
            json!({"role": "assistant", "content": "sorry"}),
        ],
    );
    assert_is_the_conversation(&session);
}

#[test]
fn openai_responses_items() {
    let session = read(
        Format::OpenAiResponses,
        &[
            json!({"role": "user", "content": "go"}),
            json!({"type": "reasoning", "summary": []}),
            json!({"type": "function_call", "call_id": "c1", "name": "read",
                   "arguments": "{\"path\":\"a\"}"}),
            json!({"type": "function_call_output", "call_id": "c1", "output": "error: no such file"}),
            json!({"type": "message", "role": "assistant",
                   "content": [{"type": "output_text", "text": "sorry"}]}),
        ],
    );
    assert_is_the_conversation(&session);
}

#[test]
fn codex_rollouts_bring_tokens_and_exit_codes() {
    let line = |kind: &str, payload: Value| json!({"timestamp": "2026-11-15T07:00:00.000Z", "type": kind, "payload": payload});
    let session = read(
        Format::Codex,
        &[
            line("session_meta", json!({"id": "s"})),
            line("turn_context", json!({"model": "gpt-5"})),
            line(
                "response_item",
                json!({"type": "message", "role": "user", "content": []}),
            ),
            line(
                "response_item",
                json!({"type": "function_call", "call_id": "c1", "name": "shell",
                "arguments": "{\"command\":[\"false\"]}"}),
            ),
            line(
                "event_msg",
                json!({"type": "token_count", "info": {"last_token_usage":
                {"input_tokens": 100, "cached_input_tokens": 60, "output_tokens": 9}}}),
            ),
            line(
                "response_item",
                json!({"type": "function_call_output", "call_id": "c1",
                "output": "{\"output\":\"boom\",\"metadata\":{\"exit_code\":1}}"}),
            ),
        ],
    );
    let (request, call) = session.calls().next().expect("a call");
    assert_eq!(request.model.as_deref(), Some("gpt-5"));
    assert_eq!((request.usage.input, request.usage.cache_read), (40, 60));
    let result = call.result.as_ref().expect("a result");
    assert_eq!((result.exit_code, result.text.as_str()), (Some(1), "boom"));
}

#[test]
fn results_nobody_asked_for_and_foreign_shapes_are_passed_over() {
    for format in Format::ALL {
        let session = read(
            format,
            &[
                json!(null),
                json!([1, 2]),
                json!({"role": 5, "type": {}, "message": [], "payload": "x"}),
                json!({"role": "tool", "tool_call_id": "nobody", "content": 7}),
                json!({"type": "message", "message": {"role": "toolResult"}}),
            ],
        );
        assert_eq!(session.calls().count(), 0);
    }
}

#[test]
fn calls_without_ids_get_their_results_by_tool_and_order() {
    let call =
        |path: &str, tool: &str| json!({"function": {"name": tool, "arguments": {"path": path}}});
    let result =
        |tool: &str, text: &str| json!({"role": "tool", "tool_name": tool, "content": text});
    let session = read(
        Format::OpenAiChat,
        &[
            json!({"role": "user", "content": "go"}),
            json!({"role": "assistant", "content": "", "tool_calls": [
                call("a", "read"), call("b", "list"), call("c", "read")]}),
            result("list", "of b"),
            result("read", "of a"),
            json!({"role": "tool", "content": "of c"}),
            json!({"role": "assistant", "content": "done"}),
            result("read", "asked by nobody"),
        ],
    );
    let results: Vec<_> = session
        .calls()
        .map(|(_, call)| call.result.as_ref().map(|result| result.text.as_str()))
        .collect();
    assert_eq!(results, [Some("of a"), Some("of b"), Some("of c")]);
}
