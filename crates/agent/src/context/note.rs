//! What a model is told about the rounds that were left out.

use crate::chat::{Message, Role};

/// How a note begins.
const NOTE_HEAD: &str = "[Earlier steps were left out to save space";
/// What a note takes, about. Room for it is made before it is written.
pub(super) const NOTE_TOKENS_ABOUT: u64 = 400;
/// Lines of a note.
const NOTE_LINES_MAX: usize = 12;
/// Characters of one line.
const NOTE_LINE_CHARS_MAX: usize = 100;

/// Whether a message is such a note.
pub(super) fn is_note(message: &Message) -> bool {
    message.role == Role::User && message.content.starts_with(NOTE_HEAD)
}

/// A note about these messages: which calls were made and how their results began, the last ones.
pub(super) fn about(gone: &[&Message]) -> Message {
    let lines: Vec<String> = gone.iter().copied().flat_map(lines_of).collect();
    let skipped = lines.len().saturating_sub(NOTE_LINES_MAX);
    let mut text = format!("{NOTE_HEAD}: {} messages.", gone.len());
    if !lines.is_empty() {
        text.push_str(" What they held, in short:");
    }
    for line in &lines[skipped..] {
        text.push_str("\n- ");
        text.push_str(line);
    }
    text.push(']');
    Message::text(Role::User, text)
}

fn lines_of(message: &Message) -> Vec<String> {
    let calls = message.calls.iter().map(|call| {
        let arguments = serde_json::Value::Object(call.arguments.clone());
        short(&format!("called {} {arguments}", call.name))
    });
    let said = match message.role {
        Role::System => None,
        Role::User => Some("user"),
        Role::Assistant => Some("you"),
        Role::Tool => Some("result"),
    };
    let first = message.content.lines().find(|line| !line.trim().is_empty());
    let said = said
        .zip(first)
        .map(|(who, line)| short(&format!("{who}: {}", line.trim())));
    said.into_iter().chain(calls).collect()
}

fn short(line: &str) -> String {
    match line.char_indices().nth(NOTE_LINE_CHARS_MAX) {
        None => line.to_owned(),
        Some((end, _)) => format!("{}…", &line[..end]),
    }
}
