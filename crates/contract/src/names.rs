//! What models call the tools that every host has under names of its own.
//!
//! Models were trained on many hosts and mix their words up. A name that can only mean one tool is taken
//! for it: by the registry for our own tools, and by the parser for replies that come without a list.

/// How the names begin under which a gateway's tools are offered.
pub const GATEWAY_PREFIX: &str = "gateway_";

/// Tools of a gateway that are offered under their names there, each with its other names here.
const UNPREFIXED: &[(&str, &[&str])] = &[
    ("browser", &["gateway_browser"]),
    ("canvas", &["gateway_canvas"]),
    ("nodes", &["gateway_nodes"]),
];

/// The name under which a gateway's tool is offered here, and its other names.
///
/// ```
/// use holdfast_contract::names::of_gateway;
/// assert_eq!(of_gateway("browser"), ("browser".to_owned(), &["gateway_browser"][..]));
/// assert_eq!(of_gateway("exec").0, "gateway_exec");
/// ```
pub fn of_gateway(remote: &str) -> (String, &'static [&'static str]) {
    match UNPREFIXED.iter().find(|(name, _)| *name == remote) {
        Some((name, others)) => ((*name).to_owned(), others),
        None => (format!("{GATEWAY_PREFIX}{remote}"), &[]),
    }
}

/// The name at the gateway of a tool that is offered here; none for tools of our own.
pub fn at_gateway(tool: &str) -> Option<&str> {
    let is_unprefixed = UNPREFIXED.iter().any(|(name, _)| *name == tool);
    tool.strip_prefix(GATEWAY_PREFIX)
        .or(is_unprefixed.then_some(tool))
}

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
