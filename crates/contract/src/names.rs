//! What models call the tools that every host has under names of its own.
//!
//! Models were trained on many hosts and mix their words up. A name that can only mean one tool is taken
//! for it: by the registry for our own tools, and by the parser for replies that come without a list.

/// How the names begin under which a gateway's tools are offered.
pub const GATEWAY_PREFIX: &str = "gateway_";

/// A tool's name where it is at home: a gateway's has a prefix here only.
pub fn at_home(tool: &str) -> &str {
    tool.strip_prefix(GATEWAY_PREFIX).unwrap_or(tool)
}

/// Other names of `read`.
pub const READ: &[&str] = &[
    "read_file",
    "readfile",
    "open",
    "open_file",
    "view",
    "view_file",
    "cat",
];
/// Other names of `write`.
pub const WRITE: &[&str] = &[
    "write_file",
    "writefile",
    "save",
    "save_file",
    "create_file",
    "write_to_file",
];
/// Other names of `edit`.
pub const EDIT: &[&str] = &["edit_file", "str_replace", "replace_in_file"];
/// Other names of `exec`.
pub const EXEC: &[&str] = &[
    "execute",
    "run",
    "shell",
    "bash",
    "run_command",
    "execute_command",
    "terminal",
];
/// Other names of `web_search`.
pub const WEB_SEARCH: &[&str] = &[
    "websearch",
    "search",
    "search_web",
    "google",
    "google_search",
    "brave_search",
];
/// Other names of `web_fetch`.
pub const WEB_FETCH: &[&str] = &[
    "webfetch",
    "fetch",
    "fetch_url",
    "http_get",
    "get_url",
    "open_url",
];
