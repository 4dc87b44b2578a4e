//! What a call asks of the gateway, read from its arguments: who is written to, what is changed,
//! which commands and paths are handed on.
//!
//! The gateway tells nobody its schemas, so names decide. What is known to look only is left alone;
//! everything else that a tool with actions does is for a person to see first.

use std::path::Path;

use holdfast_contract::{HandedCommand, HandsOn, Reason, TierVerdict};
use serde_json::{Map, Value};

use crate::files;

/// Arguments with which a tool looks and no more. With any other it may change something: the status
/// of a session takes a `model`, and from then on the session uses it.
const READS: &[(&str, &[&str])] = &[
    (
        "web_search",
        &[
            "query",
            "count",
            "country",
            "language",
            "search_lang",
            "ui_lang",
            "freshness",
            "date_after",
            "date_before",
            "domain_filter",
            "max_tokens",
            "max_tokens_per_page",
        ],
    ),
    ("web_fetch", &["url", "extractMode", "maxChars"]),
    (
        "memory_search",
        &["query", "maxResults", "minScore", "corpus"],
    ),
    ("memory_get", &["path", "from", "lines", "corpus"]),
    (
        "sessions_list",
        &[
            "kinds",
            "limit",
            "activeMinutes",
            "messageLimit",
            "label",
            "agentId",
            "search",
            "includeDerivedTitles",
            "includeLastMessage",
        ],
    ),
    ("sessions_history", &["sessionKey", "limit", "includeTools"]),
    ("session_status", &["sessionKey"]),
    ("agents_list", &[]),
    ("read", &["path", "file_path", "offset", "limit"]),
];

/// The first argument with which a tool that is offered for looking might do more.
pub(crate) fn beyond_reading<'p>(remote: &str, params: &'p Value) -> Option<&'p str> {
    let reads = READS.iter().find(|(name, _)| *name == remote);
    let reads = reads.map_or(&[][..], |(_, reads)| *reads);
    // An action becomes one of the arguments there.
    if params.get("action").is_some_and(|action| !action.is_null()) {
        return Some("action");
    }
    let args = params.get("args")?.as_object()?;
    let mut names = args.keys().map(String::as_str);
    names.find(|name| !reads.contains(name))
}

/// Characters of a recipient in a reason.
const RECIPIENT_CHARS_MAX: usize = 200;

/// Which actions of a tool run unasked.
enum Unasked {
    /// These only look.
    These(&'static [&'static str]),
    /// All but these.
    AllBut(&'static [&'static str]),
}

/// Tools whose arguments say how far a call reaches. A tool without actions has the empty one.
const ACTS: &[(&str, Unasked)] = &[
    (
        "nodes",
        Unasked::These(&[
            "status",
            "describe",
            "pending",
            "camera_list",
            "device_status",
            "device_info",
            "device_health",
            "device_permissions",
        ]),
    ),
    (
        "cron",
        Unasked::These(&["status", "list", "get", "runs", "next_check"]),
    ),
    ("subagents", Unasked::These(&["list", "info", "log"])),
    ("sessions_send", Unasked::These(&[])),
    ("sessions_spawn", Unasked::These(&[])),
    ("process", Unasked::These(&["list", "poll", "log"])),
    ("canvas", Unasked::AllBut(&["eval"])),
    ("browser", Unasked::AllBut(&["upload", "evaluate"])),
];

/// Actions of `message` that only look.
const MESSAGE_LOOKS: &[&str] = &[
    "reactions",
    "read",
    "list-pins",
    "thread-list",
    "search",
    "sticker-search",
    "member-info",
    "role-info",
    "emoji-list",
    "channel-info",
    "channel-list",
    "voice-status",
    "event-list",
];
/// Actions of `message` that say something to somebody.
const MESSAGE_SAYS: &[&str] = &[
    "",
    "send",
    "broadcast",
    "reply",
    "thread-reply",
    "poll",
    "poll-vote",
    "react",
    "sticker",
    "sendWithEffect",
    "sendAttachment",
    "upload-file",
];
/// Arguments that say to whom.
const RECIPIENTS: &[&str] = &[
    "target",
    "targets",
    "to",
    "recipient",
    "recipients",
    "channelId",
    "chatId",
    "guildId",
    "userId",
    "participant",
    "threadId",
];
/// Arguments that are commands.
const COMMANDS: &[&str] = &["command", "cmd", "script", "argv", "rawCommand"];
/// Arguments that say where a command runs, and what it reads.
const PLACES: &[&str] = &["cwd", "workdir", "workingDir", "working_dir"];
const INPUTS: &[&str] = &["stdin", "input"];
/// Raises what a person has to see first.
pub(crate) fn raise(remote: &str, params: &Value, known: &[String], verdict: &mut TierVerdict) {
    let mut actions = actions(params);
    if remote == "browser" {
        // An act in the browser has a kind of its own.
        let args = &params["args"];
        let kinds = [&args["kind"], &args["request"]["kind"]];
        actions.extend(kinds.into_iter().filter_map(Value::as_str));
    }
    if remote == "message" {
        return raise_message(params, &actions, known, verdict);
    }
    let Some((_, unasked)) = ACTS.iter().find(|(name, _)| *name == remote) else {
        return;
    };
    for action in actions {
        let runs = match unasked {
            Unasked::These(these) => these.contains(&action),
            Unasked::AllBut(these) => !these.contains(&action),
        };
        if !runs {
            verdict.raise_exact(acts(remote, action));
        }
    }
}

fn acts(remote: &str, action: &str) -> Reason {
    let subject = format!("{remote} {action}");
    let subject = subject.trim().to_owned();
    let text = format!("`{subject}` of the gateway acts beyond this machine");
    Reason::new("gateway_action", subject, text)
}

/// Every action that the call names: beside its arguments, or among them. Which of two the gateway
/// takes is its own affair.
fn actions(params: &Value) -> Vec<&str> {
    let named = [&params["action"], &params["args"]["action"]];
    let mut found: Vec<&str> = named.into_iter().filter_map(Value::as_str).collect();
    if found.is_empty() {
        found.push("");
    }
    found
}

fn raise_message(params: &Value, actions: &[&str], known: &[String], verdict: &mut TierVerdict) {
    for action in actions {
        if MESSAGE_SAYS.contains(action) {
            for recipient in recipients(&params["args"]) {
                let is_known = |name: &String| {
                    *name == recipient
                        || recipient.split_once(':').is_some_and(|(_, to)| to == name)
                };
                if !known.iter().any(is_known) {
                    let shown: String = recipient.chars().take(RECIPIENT_CHARS_MAX).collect();
                    let text = format!("{shown:?} is not among those who may be written to");
                    verdict.raise(Reason::new("new_recipient", recipient, text));
                }
            }
        } else if !MESSAGE_LOOKS.contains(action) {
            verdict.raise_exact(acts("message", action));
        }
    }
}

/// Asks about every file outside the workspace that a message would take along. As far as it is
/// there: the gateway may run on another machine, whose files nobody here knows.
pub(crate) fn sends_files(remote: &str, params: &Value, root: &Path, verdict: &mut TierVerdict) {
    let says = |action: &&str| MESSAGE_SAYS.contains(action);
    if remote != "message" || !actions(params).iter().any(says) {
        return;
    }
    for text in handed(params).paths {
        if files::is_here(&text, root) && files::leads_out(&text, root) {
            let what = format!("{text:?} is outside the workspace, and goes out with the message");
            verdict.raise(Reason::new("sends_file", text, what));
        }
    }
}

/// To whom it goes, each with the surface it goes over. Whom the gateway picks by itself is
/// somebody too.
fn recipients(args: &Value) -> Vec<String> {
    let over = [&args["channel"], &args["provider"]];
    let over = over.into_iter().find_map(Value::as_str);
    let mut found = Vec::new();
    for name in RECIPIENTS {
        let mut open = vec![&args[*name]];
        while let Some(value) = open.pop() {
            match value {
                Value::Null => {}
                Value::Array(items) => open.extend(items),
                Value::String(text) => found.push(text.clone()),
                other => found.push(other.to_string()),
            }
        }
    }
    if found.is_empty() {
        found.push("whom the gateway picks".to_owned());
    }
    match over {
        Some(over) => found.iter().map(|to| format!("{over}:{to}")).collect(),
        None => found,
    }
}

/// The commands among the arguments, however deep, and every text as what may be a path.
pub(crate) fn handed(params: &Value) -> HandsOn {
    let mut handed = HandsOn::default();
    // What stands in JSON within a text is read once; JSON in JSON in JSON is nobody's argument.
    let within: Vec<Value> = walk(&params["args"], &mut handed);
    for value in &within {
        walk(value, &mut handed);
    }
    handed
}

fn walk(value: &Value, handed: &mut HandsOn) -> Vec<Value> {
    let mut within = Vec::new();
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(members) => {
                take(members, handed);
                for (name, member) in members {
                    handed.paths.push(name.clone());
                    if let Value::String(text) = member
                        && name.to_ascii_lowercase().ends_with("json")
                        && let Ok(read) = serde_json::from_str(text)
                    {
                        within.push(read);
                    }
                    open.push(member);
                }
            }
            // Which arguments are paths only the gateway knows, so every text may be one.
            Value::String(text) => handed.paths.push(text.clone()),
            _ => {}
        }
    }
    within
}

fn take(members: &Map<String, Value>, handed: &mut HandsOn) {
    let text = |names: &[&str]| {
        let mut found = names.iter().filter_map(|name| members.get(*name)?.as_str());
        found.next().map(str::to_owned)
    };
    for command in COMMANDS.iter().filter_map(|name| members.get(*name)) {
        let command = match command {
            Value::String(text) => text.clone(),
            Value::Array(words) => words.iter().map(quoted).collect::<Vec<_>>().join(" "),
            _ => continue,
        };
        handed.commands.push(HandedCommand {
            command,
            working_dir: text(PLACES),
            stdin: text(INPUTS),
        });
    }
}

/// A word as a shell reads it back.
fn quoted(word: &Value) -> String {
    let word = word
        .as_str()
        .map_or_else(|| word.to_string(), str::to_owned);
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_contract::PermissionTier;
    use serde_json::json;

    /// A tool, why a person is asked, and the arguments.
    const CASES: &str = r#"
message new_recipient {"action": "send", "args": {"target": "stranger@x.example"}}
message new_recipient {"args": {"action": "send", "to": "eve"}}
message new_recipient {"action": "read", "args": {"action": "send", "to": "eve"}}
message new_recipient {"action": "broadcast", "args": {"targets": ["ann", "eve"]}}
message new_recipient {"action": "send", "args": {"channel": "signal", "target": "bob"}}
message new_recipient {"action": "send", "args": {"target": "ann", "channelId": 7}}
message new_recipient {"action": "send", "args": {}}
message new_recipient {}
message gateway_action {"action": "delete", "args": {"target": "ann"}}
message gateway_action {"action": "ban", "args": {}}
message - {"action": "send", "args": {"target": "ann"}}
message - {"action": "send", "args": {"channel": "signal", "target": "ann"}}
message - {"action": "send", "args": {"channel": "telegram", "target": "bob"}}
message - {"action": "search", "args": {"query": "x"}}
nodes gateway_action {"action": "run", "args": {"command": ["ls"]}}
nodes gateway_action {"args": {"action": "location_get"}}
nodes gateway_action {}
nodes - {"action": "status"}
cron gateway_action {"action": "add", "args": {}}
cron - {"action": "list"}
subagents gateway_action {"action": "steer", "args": {}}
subagents - {"action": "list"}
sessions_send gateway_action {"args": {"sessionKey": "main", "message": "x"}}
sessions_spawn gateway_action {"args": {"task": "x"}}
canvas gateway_action {"action": "eval", "args": {}}
browser gateway_action {"action": "act", "args": {"request": {"kind": "evaluate"}}}
browser - {"action": "snapshot"}
tts - {"args": {"text": "hello"}}
"#;

    #[test]
    fn what_acts_beyond_this_machine_is_for_a_person() {
        let known = vec!["ann".to_owned(), "telegram:bob".to_owned()];
        for case in CASES.trim().lines() {
            let parts: Vec<&str> = case.splitn(3, ' ').collect();
            let params: Value = serde_json::from_str(parts[2]).unwrap();
            let mut verdict = TierVerdict::declared(PermissionTier::System);
            raise(parts[0], &params, &known, &mut verdict);
            let codes: Vec<&str> = verdict.all_reasons().map(|reason| &*reason.code).collect();
            let expected = parts.get(1).filter(|code| **code != "-");
            assert_eq!(codes, Vec::from_iter(expected.copied()), "{case}");
            let is_raised = verdict.tier == PermissionTier::Elevated;
            assert_eq!(is_raised, !codes.is_empty(), "{case}");
        }
    }

    #[test]
    fn files_from_elsewhere_do_not_go_out_unasked() {
        let house = tempfile::tempdir().unwrap();
        let root = house.path().canonicalize().unwrap().join("space");
        std::fs::create_dir(&root).unwrap();
        let (own, link) = (root.join("own"), root.join("link"));
        std::fs::write(&own, "x").unwrap();
        std::fs::write(root.join("../beside.txt"), "x").unwrap();
        std::os::unix::fs::symlink("/etc/hosts", &link).unwrap();
        std::os::unix::fs::symlink("/etc/ssl", root.join("linked")).unwrap();
        let asked = |remote: &str, action: &str, text: &str| {
            let params = json!({"action": action, "args": {"target": "ann", "any": [text]}});
            let mut verdict = TierVerdict::declared(PermissionTier::System);
            sends_files(remote, &params, &root, &mut verdict);
            verdict.all_reasons().any(|it| it.code == "sends_file")
        };
        let (own, link) = (own.to_string_lossy(), link.to_string_lossy());
        let outside = "/etc/hosts|file:///etc/hosts|FILE:/etc/hosts|file://localhost/etc/hosts|\
                       file:///etc/%68osts|@/etc/hosts|@file:///etc/hosts| /etc/hosts |\
                       ../beside.txt|own/../../beside.txt|@../beside.txt|link|linked/../hosts";
        for path in outside.split('|').chain([&*link]) {
            assert!(asked("message", "send", path), "{path}");
            assert!(asked("message", "", path), "{path}");
            assert!(!asked("message", "search", path), "{path}");
            assert!(!asked("read", "", path), "{path}");
        }
        let harmless =
            "own|./own|@own||/help|hello|etc/hosts|../nobody.txt|~nobody/x|C:\\Users|so: x";
        for text in harmless.split('|').chain([&*own]) {
            assert!(!asked("message", "send", text), "{text}");
        }
    }

    #[test]
    fn what_is_offered_for_looking_takes_arguments_for_looking() {
        let table = [
            (
                "session_status",
                json!({"args": {"sessionKey": "main"}}),
                None,
            ),
            (
                "session_status",
                json!({"args": {"sessionKey": "main", "model": "x"}}),
                Some("model"),
            ),
            (
                "session_status",
                json!({"args": {}, "action": "set"}),
                Some("action"),
            ),
            ("session_status", json!({}), None),
            ("agents_list", json!({"args": {"x": 1}}), Some("x")),
            (
                "web_search",
                json!({"args": {"query": "x", "count": 3}}),
                None,
            ),
            ("a_new_one", json!({"args": {"query": "x"}}), Some("query")),
        ];
        for (remote, params, expected) in table {
            assert_eq!(
                beyond_reading(remote, &params),
                expected,
                "{remote} {params}"
            );
        }
    }

    #[test]
    fn commands_and_paths_are_found_however_deep() {
        let params = json!({"action": "invoke", "args": {
            "command": "rm -rf /",
            "workdir": "/srv",
            "nested": [{"command": ["echo", "it's", 7], "stdin": "x"}],
            "invokeParamsJson": "{\"command\": [\"id\"], \"path\": \"/a\"}",
            "file_path": "../b",
            "image": "/c",
            "any": {"deep": ["file:///d"], "/e": 1},
        }});
        let mut handed = handed(&params);
        handed
            .commands
            .sort_by(|one, other| one.command.cmp(&other.command));
        let shown: Vec<_> = handed
            .commands
            .iter()
            .map(|it| (&*it.command, it.working_dir.as_deref(), it.stdin.as_deref()))
            .collect();
        assert_eq!(
            shown,
            [
                ("'echo' 'it'\\''s' '7'", None, Some("x")),
                ("'id'", None, None),
                ("rm -rf /", Some("/srv"), None),
            ]
        );
        handed.paths.sort();
        for path in ["../b", "/a", "/srv", "/c", "file:///d", "/e"] {
            let has = handed.paths.iter().any(|it| it == path);
            assert!(has, "{path}: {:?}", handed.paths);
        }
    }
}
