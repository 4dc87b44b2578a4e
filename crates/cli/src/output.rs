//! What a person reads on the terminal.

use std::io::{IsTerminal, Write};

use comfy_table::Cell;
use holdfast_contract::visible::{is_unseen, json_text};

use crate::environment;
use crate::fail::Failure;

/// Prints a line to standard output. A closed pipe (`holdfast tools | head -1`) is not an error.
pub(crate) fn line(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// Text from outside as it may be shown. What would move the cursor, ring or colour becomes a sign:
/// a command's output must not be able to rewrite what stands above it. What shows as nothing or
/// turns the text around it is spelled out, but for what emoji are joined with.
pub(crate) fn harmless(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for sign in text.chars() {
        match sign {
            '\n' | '\t' => shown.push(sign),
            sign if sign.is_control() => shown.push('\u{fffd}'),
            '\u{200d}' | '\u{fe0f}' => shown.push(sign),
            sign if is_unseen(sign) && !sign.is_whitespace() => shown.extend(sign.escape_default()),
            sign => shown.push(sign),
        }
    }
    shown
}

/// The same for a text that has one line to stand in: a name, a key.
pub(crate) fn harmless_line(text: &str) -> String {
    harmless(text).replace(['\n', '\t'], " ")
}

/// Prints a value as JSON, indented on a terminal.
pub(crate) fn json(value: &impl serde::Serialize) {
    let text = if std::io::stdout().is_terminal() {
        serde_json::to_string_pretty(value)
    } else {
        serde_json::to_string(value)
    };
    // Our own types always serialise.
    line(&json_text(&text.unwrap_or_default()));
}

/// Prints a value as indented JSON.
pub(crate) fn pretty_json(value: &impl serde::Serialize) {
    line(&json_text(
        &serde_json::to_string_pretty(value).unwrap_or_default(),
    ));
}

/// Says something on standard error that is not part of the answer.
pub(crate) fn note(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", harmless(text));
}

/// Tells a person, on standard error, why the command ended.
pub(crate) fn failure(failure: &Failure, json: bool) {
    let mut stderr = std::io::stderr();
    if json {
        let value =
            serde_json::json!({"error": {"message": failure.message, "hint": failure.hint}});
        let _ = writeln!(stderr, "{}", json_text(&value.to_string()));
        return;
    }
    let coloured = takes_colours(&stderr);
    let (error, hint) = (
        paint_if(coloured, "31", "error:"),
        paint_if(coloured, "2", "hint:"),
    );
    let _ = writeln!(stderr, "{error} {}", harmless(&failure.message));
    if let Some(text) = &failure.hint {
        let _ = writeln!(stderr, "{hint} {}", harmless(text));
    }
}

fn takes_colours(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && environment::get("NO_COLOR").is_none()
}

/// Whether standard output takes colours.
pub(crate) fn colours() -> bool {
    takes_colours(&std::io::stdout())
}

fn paint(code: &str, text: &str) -> String {
    paint_if(colours(), code, text)
}

fn paint_if(coloured: bool, code: &str, text: &str) -> String {
    if coloured {
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    } else {
        text.to_owned()
    }
}

pub(crate) fn green(text: &str) -> String {
    paint("32", text)
}

pub(crate) fn red(text: &str) -> String {
    paint("31", text)
}

pub(crate) fn yellow(text: &str) -> String {
    paint("33", text)
}

pub(crate) fn bold(text: &str) -> String {
    paint("1", text)
}

pub(crate) fn dim(text: &str) -> String {
    paint("2", text)
}

/// A table without frames. A row stays a row, whatever its cells hold.
pub(crate) fn table(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_header(header.iter().map(|name| {
        let cell = Cell::new(name);
        if colours() {
            cell.add_attribute(comfy_table::Attribute::Bold)
        } else {
            cell
        }
    }));
    for row in rows {
        table.add_row(row.iter().map(|cell| harmless_line(cell)));
    }
    table.to_string()
}

/// A noun for as many things.
pub(crate) fn plural(count: u64, one: &str) -> String {
    if count == 1 {
        one.to_owned()
    } else {
        format!("{one}s")
    }
}

/// How many of them there are: `1 record`, `2 records`.
pub(crate) fn counted(count: u64, one: &str) -> String {
    format!("{count} {}", plural(count, one))
}

/// How long ago, in the largest fitting unit.
pub(crate) fn ago(then_ms: u64, now_ms: u64) -> String {
    duration(now_ms.saturating_sub(then_ms)) + " ago"
}

/// A duration in the largest fitting unit.
pub(crate) fn duration(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        60_000..3_600_000 => format!("{} min", ms / 60_000),
        3_600_000..86_400_000 => format!("{} h", ms / 3_600_000),
        _ => format!("{} d", ms / 86_400_000),
    }
}
