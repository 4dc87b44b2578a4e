//! Any text as a command, and what is behind the first NUL as its standard input: judging it never
//! panics, comes to the same each time, and what removes everything is seen behind whatever was read.

#![no_main]

use std::sync::LazyLock;

use holdfast_contract::{Reason, SessionContext, Tool};
use holdfast_toolbox::tools::ExecTool;
use libfuzzer_sys::fuzz_target;
use serde_json::json;

const REMOVAL: &str = "rm -rf /";

static EXEC: LazyLock<ExecTool> = LazyLock::new(ExecTool::new);
static SESSION: LazyLock<SessionContext> =
    LazyLock::new(|| SessionContext::main("s", "a", "/nowhere/space".into()));

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let (command, stdin) = match text.split_once('\0') {
        Some((command, stdin)) => (command, Some(stdin)),
        None => (&*text, None),
    };
    if command.trim().is_empty() || command.contains('\0') {
        return;
    }
    let found = reasons(command, stdin);
    assert_eq!(found, reasons(command, stdin));
    if is_closed(command) && !found.iter().any(is_unread) {
        let behind = reasons(&format!("{command}\n{REMOVAL}"), stdin);
        let sees = |reason: &Reason| reason.text.starts_with("`rm -rf /` ") || is_unread(reason);
        assert!(behind.iter().any(sees), "{behind:?}");
    }
});

fn reasons(command: &str, stdin: Option<&str>) -> Vec<Reason> {
    let mut params = json!({"command": command});
    if let Some(stdin) = stdin {
        params["stdin"] = stdin.into();
    }
    EXEC.tier_for(&params, &SESSION).reasons
}

fn is_unread(reason: &Reason) -> bool {
    reason.code == "unreadable_command"
}

/// Whether a new line surely begins a new command: no bracket may be open, no here-document may
/// follow, and the line's end counts. Quotes that do not end make a command unreadable.
fn is_closed(command: &str) -> bool {
    !command.contains('(') && !command.contains("<<") && !command.ends_with('\\')
}
