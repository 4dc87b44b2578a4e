//! The tools of the gpt-oss executor, for replies that come without a list of tools.

use holdfast_contract::names;
use serde_json::{Value, json};

use crate::tools::ToolSpec;

pub(crate) fn tools() -> Vec<ToolSpec> {
    vec![
        tool(
            "web_search",
            false,
            names::WEB_SEARCH,
            &["query"],
            &json!({"query": {"type": "string"}, "count": {"type": "integer"}}),
        ),
        tool(
            "web_fetch",
            false,
            names::WEB_FETCH,
            &["url"],
            &json!({"url": {"type": "string"}, "extractMode": {"type": "string"},
                   "maxChars": {"type": "integer"}}),
        ),
        tool(
            "read",
            false,
            names::READ,
            &["path"],
            &json!({"path": {"type": "string"}, "offset": {"type": "integer"},
                   "limit": {"type": "integer"}}),
        ),
        tool(
            "write",
            true,
            names::WRITE,
            &["path", "content"],
            &json!({"path": {"type": "string"}, "content": {"type": "string"}}),
        ),
        tool(
            "edit",
            true,
            names::EDIT,
            &["path", "old_string", "new_string"],
            &json!({"path": {"type": "string"}, "old_string": {"type": "string"},
                   "new_string": {"type": "string"}}),
        ),
        tool(
            "exec",
            true,
            names::EXEC,
            &["command"],
            &json!({"command": {"type": "string"}, "workdir": {"type": "string"},
                   "timeout": {"type": "integer"}}),
        ),
        tool(
            "browser",
            true,
            &["browse"],
            &["action"],
            &json!({"action": {"type": "string"}, "url": {"type": "string"}}),
        ),
        tool(
            "message",
            true,
            &["send_message"],
            &["to", "text"],
            &json!({"to": {"type": "string"}, "text": {"type": "string"}}),
        ),
        tool(
            "memory_search",
            false,
            &["search_memory"],
            &["query"],
            &json!({"query": {"type": "string"}, "limit": {"type": "integer"}}),
        ),
        tool(
            "memory_store",
            true,
            &["store_memory"],
            &["content"],
            &json!({"content": {"type": "string"}}),
        ),
    ]
}

fn tool(
    name: &str,
    mutating: bool,
    aliases: &[&str],
    required: &[&str],
    properties: &Value,
) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        schema: json!({"type": "object", "properties": properties, "required": required}).into(),
        aliases: aliases.iter().map(|&alias| alias.to_owned()).collect(),
        mutating,
    }
}
