//! What is known of the gateway's tools.

use holdfast_contract::{Effect, PermissionTier};

/// What is known of the gateway's tools: their tier and what they leave behind. One that is not
/// listed is of the System tier and may do anything.
pub(crate) const KNOWN: &[(&str, PermissionTier, Effect, &str)] = &[
    (
        "web_search",
        PermissionTier::ReadOnly,
        Effect::None,
        "Searches the web through the gateway.",
    ),
    (
        "web_fetch",
        PermissionTier::ReadOnly,
        Effect::None,
        "Fetches a web page through the gateway.",
    ),
    (
        "memory_search",
        PermissionTier::ReadOnly,
        Effect::None,
        "Searches the gateway's memory.",
    ),
    (
        "memory_get",
        PermissionTier::ReadOnly,
        Effect::None,
        "Reads from the gateway's memory.",
    ),
    (
        "sessions_list",
        PermissionTier::ReadOnly,
        Effect::None,
        "Lists the gateway's sessions.",
    ),
    (
        "sessions_history",
        PermissionTier::ReadOnly,
        Effect::None,
        "Reads a session's history.",
    ),
    (
        "session_status",
        PermissionTier::ReadOnly,
        Effect::None,
        "Says how a session is.",
    ),
    (
        "agents_list",
        PermissionTier::ReadOnly,
        Effect::None,
        "Lists the gateway's agents.",
    ),
    (
        "sessions_send",
        PermissionTier::System,
        Effect::External,
        "Sends to another session.",
    ),
    (
        "sessions_spawn",
        PermissionTier::System,
        Effect::External,
        "Starts another session.",
    ),
    (
        "subagents",
        PermissionTier::System,
        Effect::External,
        "Starts and steers other agents.",
    ),
    (
        "message",
        PermissionTier::System,
        Effect::External,
        "Sends a message through the gateway.",
    ),
    (
        "browser",
        PermissionTier::System,
        Effect::External,
        "Drives the gateway's browser.",
    ),
    (
        "canvas",
        PermissionTier::System,
        Effect::External,
        "Draws on the gateway's canvas.",
    ),
    (
        "nodes",
        PermissionTier::System,
        Effect::External,
        "Reaches devices through the gateway.",
    ),
    (
        "tts",
        PermissionTier::System,
        Effect::External,
        "Speaks through the gateway.",
    ),
    (
        "cron",
        PermissionTier::System,
        Effect::External,
        "Changes the gateway's schedule.",
    ),
    (
        "gateway",
        PermissionTier::Elevated,
        Effect::External,
        "Changes the gateway itself.",
    ),
    (
        "read",
        PermissionTier::ReadOnly,
        Effect::None,
        "Reads a file on the gateway's host.",
    ),
    (
        "write",
        PermissionTier::System,
        Effect::External,
        "Writes a file on the gateway's host.",
    ),
    (
        "edit",
        PermissionTier::System,
        Effect::External,
        "Changes a file on the gateway's host.",
    ),
    (
        "exec",
        PermissionTier::System,
        Effect::External,
        "Runs a command on the gateway's host.",
    ),
];
