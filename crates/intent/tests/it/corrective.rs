//! What is said to a model whose call could not be read.

use holdfast_intent::{FinishReason, Parser, Strategy, ToolSet};
use serde_json::json;

/// The message for a reply, read by one strategy.
fn said(strategy: Strategy, text: &str) -> String {
    let parser = Parser::default().with_strategies(strategy, None);
    let parsed = parser.parse_any(text, FinishReason::Stop);
    parser.corrective_message(&parsed).unwrap_or_default()
}

#[test]
fn each_strategy_shows_its_own_format() {
    let missing = "<tool_call>{\"name\": \"write\", \"arguments\": {\"path\": \"a\"}}</tool_call>";
    insta::assert_snapshot!(said(Strategy::Auto, missing), @r##"
    `write`: The required argument `content` is missing.
    To call a tool, reply with exactly this format and nothing else:
    <tool_call>
    {"name": "write", "arguments": {"path": "…", "content": "…"}}
    </tool_call>
    Tools: web_search, web_fetch, read, write, edit, exec, browser, message, memory_search, memory_store.
    "##);
    let native =
        r#"[{"id": "a", "function": {"name": "write", "arguments": "{\"path\": \"a\"}"}}]"#;
    insta::assert_snapshot!(said(Strategy::Native, native), @r##"
    `write`: The required argument `content` is missing.
    Call the tool again, with its arguments as one JSON object and nothing around it:
    write {"path": "…", "content": "…"}
    Tools: web_search, web_fetch, read, write, edit, exec, browser, message, memory_search, memory_store.
    "##);
    let harmony = "<|channel|>commentary to=functions.write <|message|>{\"path\": \"a\"}<|call|>";
    insta::assert_snapshot!(said(Strategy::Harmony, harmony), @r##"
    `write`: The required argument `content` is missing.
    To call a tool, reply with exactly this format and nothing else:
    <|channel|>commentary to=functions.write <|constrain|>json<|message|>{"path": "…", "content": "…"}<|call|>
    Tools: web_search, web_fetch, read, write, edit, exec, browser, message, memory_search, memory_store.
    "##);
    let guided = r#"{"reasoning": "x", "tool_calls": [{"name": "write", "arguments": {"path": "a"}}], "done": false}"#;
    insta::assert_snapshot!(said(Strategy::GuidedJson, guided), @r##"
    `write`: The required argument `content` is missing.
    To call a tool, reply with exactly this format and nothing else:
    {"reasoning": "why", "tool_calls": [{"name": "write", "arguments": {"path": "…", "content": "…"}}], "done": false}
    Tools: web_search, web_fetch, read, write, edit, exec, browser, message, memory_search, memory_store.
    "##);
    let react = "Action: write\nAction Input: {\"path\": \"a\"}";
    insta::assert_snapshot!(said(Strategy::React, react), @r##"
    `write`: The required argument `content` is missing.
    To call a tool, reply with exactly this format and nothing else:
    Thought: why
    Action: write
    Action Input: {"path": "…", "content": "…"}
    Tools: web_search, web_fetch, read, write, edit, exec, browser, message, memory_search, memory_store.
    "##);
    insta::assert_snapshot!(said(Strategy::Markers, "[TOOL:write|path=a]"), @r##"
    `write`: The required argument `content` is missing.
    To call a tool, reply with exactly this format and nothing else:
    [TOOL:write|path=…|content=…]
    Tools: web_search, web_fetch, read, write, edit, exec, browser, message, memory_search, memory_store.
    "##);
    insta::assert_snapshot!(said(Strategy::Fuzzy, "I'll save it as a.txt."), @r##"
    `write`: This is a guess and would change things; say it as a tool call with the tool's own name.
    To call a tool, reply with exactly this format and nothing else:
    Thought: why
    Action: write
    Action Input: {"path": "…", "content": "…"}
    Tools: web_search, web_fetch, read, write, edit, exec, browser, message, memory_search, memory_store.
    "##);
}

#[test]
fn each_problem_is_said_once() {
    insta::assert_snapshot!(said(Strategy::Auto, "<tool_call></tool_call>"), @r##"
    The reply looks like a tool call but could not be read as one.
    To call a tool, reply with exactly this format and nothing else:
    <tool_call>
    {"name": "web_search", "arguments": {"query": "…"}}
    </tool_call>
    Tools: web_search, web_fetch, read, write, edit, exec, browser, message, memory_search, memory_store.
    "##);
    let unknown = "<tool_call>{\"name\": \"teleport\", \"arguments\": {}}</tool_call>";
    insta::assert_snapshot!(said(Strategy::Auto, unknown), @r##"
    `teleport`: There is no tool named `teleport`.
    To call a tool, reply with exactly this format and nothing else:
    <tool_call>
    {"name": "web_search", "arguments": {"query": "…"}}
    </tool_call>
    Tools: web_search, web_fetch, read, write, edit, exec, browser, message, memory_search, memory_store.
    "##);
    let cut =
        "<tool_call>{\"name\": \"write\", \"arguments\": {\"path\": \"a\", \"content\": \"half";
    insta::assert_snapshot!(said(Strategy::Auto, cut), @r##"
    `write`: The call was cut off before its end.
    To call a tool, reply with exactly this format and nothing else:
    <tool_call>
    {"name": "write", "arguments": {"path": "…", "content": "…"}}
    </tool_call>
    Tools: web_search, web_fetch, read, write, edit, exec, browser, message, memory_search, memory_store.
    "##);
    let elided =
        "<tool_call>{\"name\": \"read\", \"arguments\": {\"path\": \"a\", ...}}</tool_call>";
    insta::assert_snapshot!(said(Strategy::Auto, elided), @r##"
    `read`: Parts of the arguments were left out with `...`; write them out.
    To call a tool, reply with exactly this format and nothing else:
    <tool_call>
    {"name": "read", "arguments": {"path": "…"}}
    </tool_call>
    Tools: web_search, web_fetch, read, write, edit, exec, browser, message, memory_search, memory_store.
    "##);
}

#[test]
fn what_can_run_or_waits_is_not_complained_about() {
    for text in [
        "<tool_call>{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}</tool_call>",
        "<tool_call>{\"name\": \"web_fetch\", \"arguments\": {\"url\": \"<url from results>\"}}</tool_call>",
        "The answer is 42.",
        "I'll read the file a.txt.",
        // A server that returned nothing is asked again, the model is not corrected.
        r#"{"choices": []}"#,
    ] {
        assert_eq!(said(Strategy::Auto, text), "", "{text}");
    }
}

#[test]
fn a_tool_without_arguments_is_shown_without() {
    let tools = ToolSet::from_json(&json!([{"name": "now", "parameters": {"type": "object"}}]));
    let parser = Parser::new(tools.unwrap()).with_strategies(Strategy::Markers, None);
    let parsed = parser.parse("[TOOL:then|a=b]", FinishReason::Stop);
    insta::assert_snapshot!(parser.corrective_message(&parsed).unwrap_or_default(), @r##"
    `then`: There is no tool named `then`.
    To call a tool, reply with exactly this format and nothing else:
    [TOOL:now]
    Tools: now.
    "##);
}
