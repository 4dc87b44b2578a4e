//! The formats of single agents and frameworks: what is read, what is only known by its name, and what
//! a repair writes. The examples are our own, made like the real files that `docs/decisions` lists.

use std::fs;
use std::path::Path;

use holdfast_contract::redact::Redactor;
use holdfast_transcript::discover::{Candidate, Claim};
use holdfast_transcript::scan::{Action, Report, scan, scan_bytes};
use holdfast_transcript::write::repair_bytes;
use holdfast_transcript::{Fault, Format, Strategy, history, read};
use serde_json::{Value, json};

/// Some values, one a line.
fn lines(values: &[Value]) -> String {
    values
        .iter()
        .flat_map(|it| [it.to_string(), "\n".to_owned()])
        .collect()
}

fn format(text: &str) -> Format {
    read::index(text.as_bytes()).expect("a session").0.format
}

fn faults(text: &str) -> Vec<(Fault, Option<String>)> {
    let report = scan_bytes("-", text.as_bytes()).expect("a session");
    report
        .findings
        .into_iter()
        .map(|it| (it.fault, it.id))
        .collect()
}

fn reconstructed(text: &str) -> String {
    let repaired = repair_bytes(text.as_bytes(), Strategy::Reconstruct).expect("a session");
    String::from_utf8(repaired.expect("broken")).expect("UTF-8")
}

/// Why a text counts for no session.
fn not_understood(text: &str) -> String {
    match scan_bytes("-", text.as_bytes()) {
        Ok(report) => format!("{} sessions", report.sessions),
        Err(error) => error.to_string(),
    }
}

fn look(dir: &Path, name: &str, text: &[u8]) -> Report {
    let path = dir.join(name);
    fs::write(&path, text).expect("writes");
    let claim = Claim::Session;
    scan(
        &Candidate { path, claim },
        Action::Report,
        0,
        &Redactor::default(),
    )
}

/// As `messages_to_dict` of `LangChain` has it.
fn langchain(results: &[&str]) -> Vec<Value> {
    let call =
        |id: &str| json!({"name": "search", "args": {"q": id}, "id": id, "type": "tool_call"});
    let mut all = vec![
        json!({"type": "human", "data": {"content": "find it", "type": "human", "id": null}}),
        json!({"type": "ai", "data": {
            // What the provider said stands in the content as well: it is no second call.
            "content": [{"type": "text", "text": "Let me see."}, {"type": "tool_use", "id": "c1", "name": "search", "input": {}}],
            "additional_kwargs": {"tool_calls": [{"id": "c1", "function": {"name": "search", "arguments": "{}"}}]},
            "response_metadata": {"model_name": "gpt-4o"}, "type": "ai", "id": "run-1",
            "tool_calls": [call("c1"), call("c2")], "invalid_tool_calls": [],
            "usage_metadata": {"input_tokens": 30, "output_tokens": 9, "total_tokens": 39, "input_token_details": {"cache_read": 10}},
        }}),
    ];
    all.extend(results.iter().map(|id| {
        json!({"type": "tool", "data": {"content": "found", "type": "tool", "name": "search", "tool_call_id": id, "status": "success"}})
    }));
    all.push(json!({"type": "human", "data": {"content": "and now?", "type": "human"}}));
    all
}

#[test]
fn langchain_messages_are_read_in_every_way_in_which_they_are_written() {
    let whole = lines(&langchain(&["c1", "c2"]));
    assert_eq!(format(&whole), Format::LangChain);
    assert_eq!(faults(&whole), []);
    let broken = lines(&langchain(&["c1", "c9"]));
    let expected = [
        (Fault::MissingToolResult, Some("c2".to_owned())),
        (Fault::OrphanedToolResult, Some("c9".to_owned())),
    ];
    assert_eq!(faults(&broken), expected);
    // The state of a LangGraph thread: messages without an envelope, in a document.
    let bare: Vec<Value> = langchain(&["c1", "c9"])
        .into_iter()
        .map(|it| it["data"].clone())
        .collect();
    let bare: Vec<Value> = bare
        .into_iter()
        .map(|mut it| {
            if it["type"] == "human" && it["id"].is_null() {
                it["id"] = json!("h");
            }
            it
        })
        .collect();
    let state = json!({"messages": bare, "next": []}).to_string();
    assert_eq!(format(&state), Format::LangChain);
    assert_eq!(faults(&state), expected);
    // What `dumps` writes.
    let class = |kind: &str| match kind {
        "ai" => "AIMessage",
        "tool" => "ToolMessage",
        _ => "HumanMessage",
    };
    let dumped: Vec<Value> = langchain(&["c1", "c9"])
        .into_iter()
        .map(|it| {
            let path = [
                "langchain",
                "schema",
                "messages",
                class(it["type"].as_str().expect("a type")),
            ];
            json!({"lc": 1, "type": "constructor", "id": path, "kwargs": it["data"]})
        })
        .collect();
    let dumped = Value::Array(dumped).to_string();
    assert_eq!(format(&dumped), Format::LangChain);
    assert_eq!(faults(&dumped), expected);
    for text in [broken, state, dumped] {
        let mended = reconstructed(&text);
        assert_eq!(format(&mended), Format::LangChain);
        assert_eq!(faults(&mended), [], "{mended}");
        assert_eq!(mended.matches("[holdfast]").count(), 1, "{mended}");
        assert!(!mended.contains("\"c9\""), "{mended}");
    }
}

#[test]
fn langchain_counts_in_the_audit() {
    let text = lines(&langchain(&["c1", "c2"]));
    let session = history::read(Format::LangChain, text.as_bytes()).expect("a session");
    let calls: Vec<_> = session.calls().collect();
    assert_eq!(calls.len(), 2);
    let (request, call) = calls[0];
    assert_eq!(request.model.as_deref(), Some("gpt-4o"));
    assert_eq!((request.usage.input, request.usage.cache_read), (20, 10));
    assert_eq!(
        (call.tool.as_str(), &call.arguments["q"]),
        ("search", &json!("c1"))
    );
    assert_eq!(call.result.as_ref().expect("a result").text, "found");
}

/// As Goose writes its sessions.
pub(crate) fn goose(results: &[&str]) -> Vec<Value> {
    let said = |role: &str, content: Value| json!({"role": role, "created": 1_763_000_000, "content": content});
    let call = |id: &str| {
        let value = json!({"name": "developer__shell", "arguments": {"command": id}});
        json!({"type": "toolRequest", "id": id, "toolCall": {"status": "success", "value": value}})
    };
    let mut all = vec![
        json!({"working_dir": "/home/ann", "description": "Find it", "message_count": 5, "total_tokens": 900}),
        said("user", json!([{"type": "text", "text": "find it"}])),
        // One reply in two entries.
        said(
            "assistant",
            json!([{"type": "text", "text": "Let me see."}, call("c1")]),
        ),
        said("assistant", json!([call("c2")])),
    ];
    all.extend(results.iter().map(|id| {
        let value = json!([{"type": "text", "text": "found"}]);
        said("user", json!([{"type": "toolResponse", "id": id, "toolResult": {"status": "success", "value": value}}]))
    }));
    all.push(said("user", json!([{"type": "text", "text": "and now?"}])));
    all
}

#[test]
fn goose_sessions_are_read_and_repaired_as_lines_and_as_an_export() {
    let whole = lines(&goose(&["c2", "c1"]));
    assert_eq!(format(&whole), Format::Goose);
    assert_eq!(faults(&whole), []);
    let broken = goose(&["c1", "c9"]);
    let export = json!({"id": "20251113_1", "working_dir": "/home/ann", "name": "Find it", "conversation": broken[1..]});
    let expected = [
        (Fault::MissingToolResult, Some("c2".to_owned())),
        (Fault::OrphanedToolResult, Some("c9".to_owned())),
    ];
    for text in [
        lines(&broken),
        export.to_string(),
        serde_json::to_string_pretty(&export).expect("JSON"),
    ] {
        assert_eq!(format(&text), Format::Goose, "{text}");
        assert_eq!(faults(&text), expected, "{text}");
        let mended = reconstructed(&text);
        assert_eq!(faults(&mended), [], "{mended}");
        assert_eq!(mended.matches("[holdfast]").count(), 1, "{mended}");
    }
    let report = scan_bytes("-", lines(&broken).as_bytes()).expect("a session");
    let said: Vec<&str> = report
        .findings
        .iter()
        .map(|it| it.description.as_str())
        .collect();
    assert!(said[0].contains("Goose drops the call"), "{said:?}");
    assert!(said[1].contains("Goose drops it"), "{said:?}");
    let session = history::read(Format::Goose, whole.as_bytes()).expect("a session");
    let calls: Vec<_> = session.calls().map(|(_, call)| call).collect();
    assert_eq!(calls.len(), 2);
    assert_eq!(calls[1].result.as_ref().expect("a result").text, "found");
}

#[test]
fn what_goose_does_not_send_is_no_fault() {
    let mut said = goose(&["c1", "c9"]);
    for entry in &mut said[2..6] {
        entry["metadata"] = json!({"userVisible": true, "agentVisible": false});
    }
    assert_eq!(faults(&lines(&said)), []);
}

#[test]
fn a_format_that_is_not_read_is_named_and_counts_for_no_session() {
    let user = json!({"role": "user", "content": "hi"});
    let cases = [
        ("Vercel AI SDK messages", lines(&[user.clone(), json!({"role": "assistant", "content": [{"type": "tool-call", "toolCallId": "c", "toolName": "x", "input": {}}]}), json!({"role": "tool", "content": [{"type": "tool-result", "toolCallId": "c", "toolName": "x", "output": {}}]})])),
        ("Vercel AI SDK messages", json!([{"id": "1", "role": "assistant", "parts": [{"type": "tool-weather", "toolCallId": "c", "state": "output-available"}]}]).to_string()),
        ("Pydantic AI messages", json!([{"kind": "request", "parts": [{"part_kind": "tool-return", "tool_call_id": "c"}]}]).to_string()),
        ("Bedrock Converse messages", json!({"messages": [user, {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c", "name": "x", "input": {}}}]}]}).to_string()),
        ("Gemini contents", json!([{"role": "user", "parts": [{"text": "hi"}]}, {"role": "model", "parts": [{"functionCall": {"name": "x", "args": {}}}]}]).to_string()),
        ("a Gemini CLI session", json!({"sessionId": "s", "projectHash": "p", "messages": [{"id": "1", "type": "user", "content": "hi"}, {"id": "2", "type": "gemini", "content": "", "toolCalls": []}]}).to_string()),
        ("a Qwen Code session", lines(&[json!({"uuid": "a", "parentUuid": null, "sessionId": "s", "type": "user", "message": {"role": "user", "parts": [{"text": "hi"}]}})])),
        ("a Cursor transcript", lines(&[json!({"role": "user", "message": {"content": [{"type": "text", "text": "hi"}]}})])),
        ("an OpenCode session", json!({"info": {"id": "ses_1"}, "messages": [{"info": {"id": "msg_1", "role": "user"}, "parts": [{"type": "text", "text": "hi"}]}]}).to_string()),
        ("a Copilot CLI session", lines(&[json!({"type": "session.start", "data": {"sessionId": "s"}}), json!({"type": "assistant.message", "data": {"toolRequests": []}})])),
        ("a Grok CLI session", lines(&[json!({"type": "user", "content": "hi"}), json!({"type": "assistant", "content": "", "toolCalls": [{"id": "c"}]})])),
        // Goose's events look like an entry of OpenClaw until somebody looks at the calls.
        ("events of Goose", lines(&[json!({"type": "message", "message": {"role": "assistant", "content": [{"type": "toolRequest", "id": "c"}]}})])),
    ];
    for (name, text) in cases {
        let said = not_understood(&text);
        assert!(
            said.starts_with("is not understood: it holds ") && said.contains(name),
            "{name}: {said}"
        );
    }
    // The first calls come late, and nobody can read them.
    let mut late: Vec<Value> = (0..2000)
        .map(|_| json!({"role": "user", "content": "x".repeat(500)}))
        .collect();
    late.push(json!({"role": "assistant", "content": [{"type": "tool-call", "toolCallId": "c"}]}));
    assert!(not_understood(&lines(&late)).contains("Vercel"));
    // A role that nobody has in a conversation makes no session of a list.
    assert!(not_understood(r#"[{"role": "admin", "name": "ann"}]"#).contains("not a transcript"));
}

#[test]
fn json_that_is_whole_is_not_broken_line_by_line() {
    let dir = tempfile::tempdir().expect("a directory");
    let pretty = |value: &Value| {
        serde_json::to_string_pretty(value)
            .expect("JSON")
            .into_bytes()
    };
    let other = json!({"name": "x", "list": (0..170).collect::<Vec<_>>()});
    let report = look(dir.path(), "package.jsonl", &pretty(&other));
    assert_eq!((report.findings.len(), report.error), (0, None));
    assert!(report.passed_over.is_some());
    // Entries of a session, as `jq .` prints them.
    let entry = json!({"type": "user", "uuid": "a", "parentUuid": null, "sessionId": "s", "message": {"role": "user", "content": "hi"}});
    let printed = [pretty(&entry), pretty(&entry)].concat();
    let report = look(dir.path(), "printed.jsonl", &printed);
    assert_eq!((report.findings.len(), report.sessions), (0, 0));
    let error = report.error.unwrap_or_default();
    assert!(error.contains("go over several lines"), "{error}");
    // Longer than what a format is told from, and whole.
    let long: Vec<Value> = (0..9000)
        .map(|_| json!({"role": {"of": "a thing"}}))
        .collect();
    let path = dir.path().join("schema.json");
    fs::write(&path, pretty(&json!({ "all": long }))).expect("writes");
    let claim = Claim::Maybe;
    let candidate = Candidate { path, claim };
    let report = scan(&candidate, Action::Report, 0, &Redactor::default());
    assert_eq!((report.sessions, report.error), (0, None));
    // One that breaks off is broken.
    let report = look(dir.path(), "half.jsonl", &printed[..printed.len() - 20]);
    assert!(!report.findings.is_empty());
}
