//! The names that other hosts give to the same arguments.
//!
//! Models were trained on many hosts and mix their words up. Renaming what can only mean one
//! thing costs nothing; answering `file_path` with a validation error costs a turn.

use holdfast_contract::MemoryType;
use serde_json::Value;

/// Other names of one tool's arguments, each with the name that the tool's schema uses. When two
/// aliases of the same argument are there, the one that comes first in this table is taken.
type Aliases = &'static [(&'static str, &'static str)];

fn aliases_of(tool_name: &str) -> Aliases {
    match tool_name {
        "read" => &[("file_path", "path")],
        "write" => &[
            ("file_path", "path"),
            ("file_text", "content"),
            ("text", "content"),
        ],
        "edit" => &[
            ("file_path", "path"),
            ("oldText", "old_string"),
            ("newText", "new_string"),
        ],
        "exec" => &[("cmd", "command")],
        "memory_search" => &[
            ("text", "query"),
            ("type", "memory_type"),
            ("max_results", "limit"),
            ("top_k", "limit"),
        ],
        "memory_store" => &[("text", "content"), ("type", "memory_type")],
        _ => &[],
    }
}

/// Whether an argument came under another host's name.
pub(crate) fn has_alias(tool_name: &str, arguments: &Value) -> bool {
    aliases_of(tool_name)
        .iter()
        .any(|(alias, _)| arguments.get(alias).is_some())
}

/// Renames the arguments of a base tool that came under another host's name.
///
/// To be called before validation. An alias is renamed only when the argument itself is absent:
/// of two contradicting values neither is dropped silently, the schema refuses the second.
///
/// ```
/// use holdfast_toolbox::tools::normalise_arguments;
/// use serde_json::json;
/// let mut arguments = json!({"file_path": "a.txt", "file_text": "hello"});
/// normalise_arguments("write", &mut arguments);
/// assert_eq!(arguments, json!({"path": "a.txt", "content": "hello"}));
/// ```
pub fn normalise_arguments(tool_name: &str, arguments: &mut Value) {
    let Some(arguments) = arguments.as_object_mut() else {
        return;
    };
    for (alias, primary) in aliases_of(tool_name) {
        if arguments.contains_key(*primary) {
            continue;
        }
        if let Some(value) = arguments.remove(*alias) {
            arguments.insert((*primary).to_owned(), value);
        }
    }
    if matches!(tool_name, "memory_search" | "memory_store") {
        // The types are proper names in half of what models were trained on.
        if let Some(Value::String(name)) = arguments.get_mut("memory_type")
            && let Some(known) = MemoryType::from_name(name)
        {
            known.as_str().clone_into(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(tool: &str, mut given: Value, expected: &Value) {
        normalise_arguments(tool, &mut given);
        assert_eq!(&given, expected, "{tool}");
        let once = given.clone();
        normalise_arguments(tool, &mut given);
        assert_eq!(given, once, "a second time changes nothing");
    }

    #[test]
    fn aliases_become_the_schema_s_names() {
        check("read", json!({"file_path": "a"}), &json!({"path": "a"}));
        check(
            "write",
            json!({"path": "a", "text": "x"}),
            &json!({"path": "a", "content": "x"}),
        );
        check(
            "edit",
            json!({"file_path": "a", "oldText": "x", "newText": "y"}),
            &json!({"path": "a", "old_string": "x", "new_string": "y"}),
        );
        check("exec", json!({"cmd": "ls"}), &json!({"command": "ls"}));
        check(
            "memory_store",
            json!({"text": "a", "type": "Fact"}),
            &json!({"content": "a", "memory_type": "fact"}),
        );
        check(
            "memory_search",
            json!({"query": "a", "top_k": 3, "memory_type": "rumour"}),
            &json!({"query": "a", "limit": 3, "memory_type": "rumour"}),
        );
    }

    #[test]
    fn a_present_argument_is_never_replaced() {
        let both = json!({"path": "a", "file_path": "b"});
        check("read", both.clone(), &both);
        check(
            "write",
            json!({"path": "a", "text": "second", "file_text": "first"}),
            &json!({"path": "a", "content": "first", "text": "second"}),
        );
    }

    #[test]
    fn other_tools_and_other_shapes_are_left_alone() {
        check("message", json!({"text": "hi"}), &json!({"text": "hi"}));
        check("exec", json!(["cmd"]), &json!(["cmd"]));
        check("read", json!(null), &json!(null));
    }
}
