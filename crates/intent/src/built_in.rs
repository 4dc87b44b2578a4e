//! The tools of the gpt-oss executor, for replies that come without a list of tools.

use serde_json::{Value, json};

use crate::tools::ToolSpec;

pub(crate) fn tools() -> Vec<ToolSpec> {
    vec![
        tool(
            "web_search",
            false,
            &[
                "websearch",
                "search",
                "search_web",
                "google",
                "google_search",
                "brave_search",
            ],
            &["query"],
            &json!({"query": {"type": "string"}, "count": {"type": "integer"}}),
        ),
        tool(
            "web_fetch",
            false,
            &[
                "webfetch",
                "fetch",
                "fetch_url",
                "http_get",
                "get_url",
                "open_url",
            ],
            &["url"],
            &json!({"url": {"type": "string"}, "extractMode": {"type": "string"},
                   "maxChars": {"type": "integer"}}),
        ),
        tool(
            "read",
            false,
            &[
                "read_file",
                "readfile",
                "open",
                "open_file",
                "view",
                "view_file",
                "cat",
            ],
            &["path"],
            &json!({"path": {"type": "string"}, "offset": {"type": "integer"},
                   "limit": {"type": "integer"}}),
        ),
        tool(
            "write",
            true,
            &[
                "write_file",
                "writefile",
                "save",
                "save_file",
                "create_file",
                "write_to_file",
            ],
            &["path", "content"],
            &json!({"path": {"type": "string"}, "content": {"type": "string"}}),
        ),
        tool(
            "edit",
            true,
            &["edit_file", "str_replace", "replace_in_file"],
            &["path", "old_string", "new_string"],
            &json!({"path": {"type": "string"}, "old_string": {"type": "string"},
                   "new_string": {"type": "string"}}),
        ),
        tool(
            "exec",
            true,
            &[
                "execute",
                "run",
                "shell",
                "bash",
                "run_command",
                "execute_command",
                "terminal",
            ],
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
