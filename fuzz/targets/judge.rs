//! Any text as a command: reading and judging it never panics, comes to the same each time, and sees a
//! command on a line of its own behind whatever was read in full.

#![no_main]

use holdfast_judge::{Context, Why, blocked, judge, read};
use libfuzzer_sys::fuzz_target;

const RULE: &str = "git push";

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let reading = read(&text);
    assert_eq!(reading, read(&text));
    let context = Context {
        undoable: true,
        user_rules: None,
    };
    assert_eq!(judge(&text, &context), judge(&text, &context));
    let _ = blocked(RULE, &reading);
    // A here-document would take the next line, and so would a backslash.
    if reading.unreadable.is_empty() && !text.contains("<<") && !text.ends_with('\\') {
        let behind = read(&format!("{text}\n{RULE}"));
        let why = blocked(RULE, &behind).map(|it| it.why);
        assert!(
            matches!(why, Some(Why::Blocked | Why::Unreadable)),
            "{behind:?}"
        );
    }
});
