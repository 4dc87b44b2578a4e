//! Small sessions, one rule each.

use super::*;
use crate::adapter::adapter;
use crate::read;

/// The faults of a session, as `name@entry`.
fn faults(lines: &[&str]) -> Vec<String> {
    let text = lines.join("\n");
    let (shape, index) = read::index(text.as_bytes()).unwrap();
    check(&index, adapter(shape.format).pairing())
        .into_iter()
        .map(|found| {
            let mark = if found.is_compacted { "!" } else { "" };
            format!("{}@{}{mark}", found.fault.name(), found.entry)
        })
        .collect()
}

/// An `OpenClaw` entry: `id<parent` and a message.
fn claw(id: &str, parent: &str, message: &str) -> String {
    let parent = if parent.is_empty() {
        "null".to_owned()
    } else {
        format!("\"{parent}\"")
    };
    format!(r#"{{"type":"message","id":"{id}","parentId":{parent},"message":{message}}}"#)
}

const USER: &str = r#"{"role":"user","content":"go on"}"#;

fn call(id: &str) -> String {
    format!(
        r#"{{"role":"assistant","content":[{{"type":"toolCall","id":"{id}","name":"read","arguments":{{}}}}]}}"#
    )
}

fn result(id: &str) -> String {
    format!(r#"{{"role":"toolResult","toolCallId":"{id}","toolName":"read","content":[]}}"#)
}

fn session(entries: &[(&str, &str, String)]) -> Vec<String> {
    let lines: Vec<String> =
        std::iter::once(r#"{"type":"session","version":3,"id":"s"}"#.to_owned())
            .chain(
                entries
                    .iter()
                    .map(|(id, parent, message)| claw(id, parent, message)),
            )
            .collect();
    faults(&lines.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn what_the_model_is_never_sent_stands_between_nothing() {
    // OpenClaw notes a tool inside `tool_call` between the call and its result.
    let nested = |sent: &str| {
        format!(
            r#"{{"role":"custom","customType":"openclaw.nested-tool.v1","content":"",{sent}"details":{{}}}}"#
        )
    };
    let session = |between: &str| {
        let lines = [
            claw("a", "", USER),
            claw("b", "a", &call("t1")),
            claw("c", "b", between),
            claw("d", "c", &result("t1")),
        ];
        let values: Vec<serde_json::Value> = lines
            .iter()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let in_memory = crate::validate_tool_result_pairing(&values).len();
        (faults(&lines.each_ref().map(String::as_str)), in_memory)
    };
    let unsent = nested(r#""excludeFromContext":true,"#);
    assert_eq!(session(&unsent), (Vec::new(), 0));
    let sent = nested(r#""excludeFromContext":false,"#);
    assert_eq!(
        session(&sent),
        (vec!["misplaced_tool_result@3".to_owned()], 1)
    );
}

#[test]
fn a_result_whose_host_replaced_it_by_an_unsent_copy_is_settled() {
    let unsent = |id: &str| result(id).replacen('{', r#"{"excludeFromContext":true,"#, 1);
    let found = |rest: &[(&str, &str, String)]| {
        let broken = [
            ("a", "", USER.to_owned()),
            ("b", "a", result("gone")),
            ("c", "b", call("1")),
            ("d", "c", result("1")),
            ("e", "d", result("1")),
        ];
        let entries = [&broken, rest].concat();
        let lines: Vec<String> = entries
            .iter()
            .map(|(id, parent, message)| claw(id, parent, message))
            .collect();
        let values: Vec<serde_json::Value> = lines
            .iter()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let in_memory = crate::validate_tool_result_pairing(&values).len();
        let found = session(&entries);
        assert_eq!(found.len(), in_memory);
        found
    };
    let both = ["orphaned_tool_result@2", "duplicate_tool_result@5"];
    assert_eq!(found(&[]), both);
    // The host writes the whole branch again, from the first result that is replaced.
    let again = [
        ("f", "a", unsent("gone")),
        ("g", "f", call("1")),
        ("h", "g", result("1")),
    ];
    assert_eq!(found(&again), both[1..]);
    let mended = [&again[..], &[("i", "h", unsent("1"))]].concat();
    assert_eq!(found(&mended), [""; 0]);
    // A copy on the same branch has replaced nothing, and what comes after it is news.
    assert_eq!(found(&[("f", "e", unsent("gone"))]), both);
    let back = [&mended[..], &[("j", "e", USER.to_owned())]].concat();
    assert_eq!(found(&back), both);
    let news = [&mended[..], &[("j", "i", result("gone"))]].concat();
    assert_eq!(found(&news), ["orphaned_tool_result@10"]);
}

#[test]
fn a_clean_session_and_a_pending_tail() {
    let clean = [
        ("a", "", USER.to_owned()),
        ("b", "a", call("1")),
        ("c", "b", result("1")),
        ("d", "c", call("2")),
    ];
    assert_eq!(session(&clean), Vec::<String>::new());
    assert_eq!(
        session(&[("b", "", call("1")), ("d", "b", USER.to_owned())]),
        ["missing_tool_result@1"]
    );
}

#[test]
fn each_fault_by_itself() {
    let orphan = [("a", "", USER.to_owned()), ("b", "a", result("9"))];
    assert_eq!(session(&orphan), ["orphaned_tool_result@2"]);
    let twice = [
        ("b", "", call("1")),
        ("c", "b", result("1")),
        ("d", "c", result("1")),
    ];
    assert_eq!(session(&twice), ["duplicate_tool_result@3"]);
    let late = [
        ("b", "", call("1")),
        ("c", "b", USER.to_owned()),
        ("d", "c", result("1")),
    ];
    assert_eq!(session(&late), ["misplaced_tool_result@3"]);
    let no_parent = [("a", "", USER.to_owned()), ("b", "gone", USER.to_owned())];
    assert_eq!(session(&no_parent), ["broken_parent@2"]);
}

#[test]
fn openclaw_tells_calls_with_one_id_apart_by_their_order() {
    let twice = r#"{"role":"assistant","content":[{"type":"toolCall","id":"1","name":"read","arguments":{}},{"type":"toolCall","id":"1","name":"exec","arguments":{}}]}"#;
    // A server that begins anew with every reply, and one that gives the same id out twice in a reply.
    let again = [
        ("b", "", call("1")),
        ("c", "b", result("1")),
        ("d", "c", twice.to_owned()),
        ("e", "d", result("1")),
        ("f", "e", result("1")),
        ("g", "f", USER.to_owned()),
    ];
    assert_eq!(session(&again), Vec::<String>::new());
    let mut short = again.to_vec();
    short.remove(4);
    short[4].1 = "e";
    assert_eq!(session(&short), ["missing_tool_result@3"]);
    let mut long = again.to_vec();
    long.insert(5, ("x", "f", result("1")));
    long[6].1 = "x";
    assert_eq!(session(&long), ["duplicate_tool_result@6"]);
    let late = [
        ("b", "", call("1")),
        ("c", "b", USER.to_owned()),
        ("d", "c", result("1")),
        ("e", "d", call("1")),
        ("f", "e", result("1")),
    ];
    assert_eq!(session(&late), ["misplaced_tool_result@3"]);
    // Two branches that both go on from the message with the calls.
    let branches = [
        ("b", "", twice.to_owned()),
        ("c", "b", result("1")),
        ("d", "c", result("1")),
        ("e", "b", result("1")),
        ("f", "e", result("1")),
    ];
    assert_eq!(session(&branches), Vec::<String>::new());
}

#[test]
fn branches_are_judged_by_themselves() {
    // Somebody went back to `a` while the call was running, and later back again.
    let branches = [
        ("a", "", USER.to_owned()),
        ("b", "a", call("1")),
        ("c", "a", USER.to_owned()),
        ("d", "c", call("2")),
        ("e", "d", result("2")),
        ("f", "d", result("2")),
    ];
    assert_eq!(session(&branches), Vec::<String>::new());
    let wrong_branch = [
        ("a", "", USER.to_owned()),
        ("b", "a", call("1")),
        ("c", "a", USER.to_owned()),
        ("d", "c", result("1")),
    ];
    assert_eq!(session(&wrong_branch), ["misplaced_tool_result@4"]);
}

#[test]
fn a_compaction_that_parts_a_call_from_its_result() {
    let lines = |kept: &str| {
        let lines = [
            r#"{"type":"session","version":3,"id":"s"}"#.to_owned(),
            claw("a", "", &call("1")),
            claw("b", "a", &result("1")),
            format!(
                r#"{{"type":"compaction","id":"c","parentId":"b","summary":"…","firstKeptEntryId":"{kept}"}}"#
            ),
            claw("d", "c", USER),
        ];
        faults(&lines.iter().map(String::as_str).collect::<Vec<_>>())
    };
    assert_eq!(lines("a"), Vec::<String>::new());
    assert_eq!(lines("b"), ["orphaned_tool_result@2!"]);
}

#[test]
fn broken_off_messages_need_no_results() {
    let broken_off = r#"{"role":"assistant","stopReason":"aborted","content":[{"type":"toolCall","id":"1","name":"x"}]}"#;
    let lines = [
        ("a", "", broken_off.to_owned()),
        ("b", "a", USER.to_owned()),
    ];
    assert_eq!(session(&lines), Vec::<String>::new());
}

#[test]
fn claude_code_writes_one_message_as_several_entries() {
    let entry = |id: &str, parent: &str, kind: &str, message: &str| {
        format!(r#"{{"type":"{kind}","uuid":"{id}","parentUuid":{parent},"message":{message}}}"#)
    };
    let tool = |id: &str| {
        format!(
            r#"{{"id":"m","role":"assistant","content":[{{"type":"tool_use","id":"{id}","name":"x","input":{{}}}}]}}"#
        )
    };
    let answer = |id: &str| {
        format!(
            r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{id}","content":"ok"}}]}}"#
        )
    };
    let lines = [
        entry("u", "null", "user", USER),
        entry("a", "\"u\"", "assistant", &tool("1")),
        entry("b", "\"a\"", "assistant", &tool("2")),
        entry("ra", "\"a\"", "user", &answer("1")),
        entry("rb", "\"b\"", "user", &answer("2")),
        entry("n", "\"rb\"", "user", USER),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    assert_eq!(faults(&lines), Vec::<String>::new());
    let without: Vec<&str> = [&lines[..3], &lines[4..]].concat();
    assert_eq!(faults(&without), ["missing_tool_result@1"]);
}

#[test]
fn responses_may_answer_later_but_not_earlier() {
    let call = r#"{"type":"function_call","call_id":"1","name":"x","arguments":"{}"}"#;
    let output = r#"{"type":"function_call_output","call_id":"1","output":""}"#;
    let user = r#"{"type":"message","role":"user","content":[]}"#;
    assert_eq!(faults(&[user, call, user, output]), Vec::<String>::new());
    assert_eq!(faults(&[output, call]), ["misplaced_tool_result@0"]);
    assert_eq!(faults(&[call, user]), ["missing_tool_result@0"]);
    assert_eq!(faults(&[user, call]), Vec::<String>::new());
    assert_eq!(faults(&[call, output, output]), ["duplicate_tool_result@2"]);
    assert_eq!(
        faults(&[call, output, call, output]),
        ["duplicate_tool_call_id@2"]
    );
}

#[test]
fn a_codex_compaction_cuts_everything_before_it() {
    let item =
        |item: &str| format!(r#"{{"timestamp":"t","type":"response_item","payload":{item}}}"#);
    let call = item(r#"{"type":"function_call","call_id":"1","name":"x","arguments":"{}"}"#);
    let output = item(r#"{"type":"function_call_output","call_id":"1","output":""}"#);
    let cut = r#"{"timestamp":"t","type":"compacted","payload":{"message":"so far"}}"#;
    assert_eq!(faults(&[&call, &output, cut]), Vec::<String>::new());
    assert_eq!(faults(&[&call, cut, &output]), ["orphaned_tool_result@2!"]);
    assert_eq!(faults(&[&call, cut]), Vec::<String>::new());
    assert_eq!(faults(&[cut, &call, cut, &call, cut]), Vec::<String>::new());
}

#[test]
fn anthropic_puts_neighbours_together() {
    let call =
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"x","input":{}}]}"#;
    let text = r#"{"role":"assistant","content":[{"type":"text","text":"and"}]}"#;
    let both = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":""},{"type":"text","text":"go"}]}"#;
    assert_eq!(faults(&[call, text, both]), Vec::<String>::new());
    assert_eq!(faults(&[text, both]), ["orphaned_tool_result@1"]);
}

#[test]
fn half_a_line_is_one_fault() {
    let user = r#"{"role":"user","content":"a"}"#;
    assert_eq!(faults(&[user, r#"{"role":"assis"#]), ["invalid_line@1"]);
    assert_eq!(faults(&[user, "\u{0}\u{0}", user]), ["invalid_line@1"]);
}

/// A request as Ollama takes it: calls without ids, results that name their tool.
fn ollama(messages: &[&str]) -> Vec<String> {
    let said = r#"{"role":"user","content":"w?"}"#;
    let list = [&[said], messages].concat().join(",");
    let request = format!(r#"{{"model":"llama3.2","messages":[{list}]}}"#);
    let values: Vec<serde_json::Value> = serde_json::from_str(&format!("[{list}]")).unwrap();
    let found = faults(&[&request]);
    let issues = crate::validate_tool_result_pairing(&values);
    assert_eq!(issues.len(), found.len(), "both ways agree: {request}");
    found
}

#[test]
fn calls_and_results_without_ids_go_by_order() {
    const CALLS: &str = r#"{"role":"assistant","content":"","tool_calls":[{"function":{"name":"weather","arguments":{"city":"Oslo"}}},{"function":{"name":"time","arguments":{}}}]}"#;
    const WITH_IDS: &str = r#"{"role":"assistant","content":"","tool_calls":[{"id":"c1","function":{"name":"weather","arguments":{}}},{"id":"c2","function":{"name":"time","arguments":{}}}]}"#;
    const NAMED: &str = r#"{"role":"tool","tool_name":"weather","content":"11 degrees"}"#;
    const BARE: &str = r#"{"role":"tool","content":"noon"}"#;
    const BY_ID: &str = r#"{"role":"tool","tool_call_id":"c1","content":"11 degrees"}"#;
    const SAID: &str = r#"{"role":"assistant","content":"It is 11 degrees."}"#;
    for healthy in [
        &[CALLS, NAMED, BARE, SAID][..],
        &[CALLS, NAMED, SAID],
        &[CALLS, SAID],
        &[NAMED, SAID],
        // Newer servers give ids out, and results go by name all the same.
        &[WITH_IDS, NAMED, NAMED, SAID],
        &[CALLS, NAMED, BARE, WITH_IDS, NAMED, NAMED, SAID],
    ] {
        assert_eq!(ollama(healthy), [""; 0], "{healthy:?}");
    }
    // Where ids are used, a result that lost its own is still one that nobody called.
    assert_eq!(
        ollama(&[WITH_IDS, BY_ID, BARE, SAID]),
        ["missing_tool_result@1", "orphaned_tool_result@3"]
    );
}
