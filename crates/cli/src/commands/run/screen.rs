//! What `holdfast run` shows on the terminal while it works.
//!
//! Each event is a line. While the model thinks, one line below them lives: a clock, and the end of the
//! thought. It is drawn only where standard error is a terminal.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use holdfast_agent::runs::Event;
use serde_json::Value;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval};

use crate::output::{self, harmless, harmless_line};

/// How often the living line is drawn.
const REDRAW_EVERY: Duration = Duration::from_millis(250);
/// Characters of arguments and errors that are shown of a call.
const SHOWN_CHARS_MAX: usize = 100;
/// Lines of a tool's output that are shown.
const SHOWN_LINES_MAX: usize = 3;
/// The width of a terminal that does not tell its own.
const COLUMNS_DEFAULT: usize = 80;

/// Whether a person sees what happens.
pub(super) fn is_watched() -> bool {
    std::io::stderr().is_terminal()
}

/// The terminal of a run.
pub(super) struct Screen {
    redraws: Option<Interval>,
    /// Since when the model thinks.
    thinks_since: Option<Instant>,
    is_drawn: bool,
    /// What was shown of the answer.
    said: String,
    /// Whether the answer's last line still goes on.
    is_open: bool,
}

impl Screen {
    /// The living line has no place between the lines of a log.
    pub(super) fn new(json: bool, has_log: bool) -> Self {
        let is_live = !json && !has_log && is_watched();
        Self {
            redraws: is_live.then(|| {
                let mut redraws = interval(REDRAW_EVERY);
                redraws.set_missed_tick_behavior(MissedTickBehavior::Skip);
                redraws
            }),
            thinks_since: None,
            is_drawn: false,
            said: String::new(),
            is_open: false,
        }
    }

    /// Waits until the living line is to be drawn; for ever where there is none.
    pub(super) async fn is_due(&mut self) {
        match &mut self.redraws {
            Some(redraws) => {
                redraws.tick().await;
            }
            None => std::future::pending().await,
        }
    }

    /// Draws the living line.
    pub(super) fn redraw(&mut self, thinking: &str) {
        let Some(since) = self.thinks_since.filter(|_| self.said.is_empty()) else {
            return;
        };
        let columns = columns().saturating_sub(1);
        let line = living_line(since.elapsed().as_secs(), &harmless_line(thinking), columns);
        let mut stderr = std::io::stderr();
        // Wide signs would wrap: then only the last row could be wiped.
        let _ = write!(stderr, "\r\u{1b}[2K\u{1b}[?7l{line}\u{1b}[?7h");
        let _ = stderr.flush();
        self.is_drawn = true;
    }

    /// Takes the living line away.
    pub(super) fn wipe(&mut self) {
        if std::mem::take(&mut self.is_drawn) {
            let mut stderr = std::io::stderr();
            let _ = write!(stderr, "\r\u{1b}[2K");
            let _ = stderr.flush();
        }
    }

    /// Shows what was not shown of the answer yet.
    pub(super) fn answer(&mut self, content: &str) {
        match content.strip_prefix(self.said.as_str()) {
            Some("") if !self.said.is_empty() => self.end_line(),
            Some(rest) => output::line(&harmless(rest)),
            None => {
                self.end_line();
                output::line(&harmless(content));
            }
        }
        self.is_open = false;
    }

    fn end_line(&mut self) {
        if std::mem::take(&mut self.is_open) {
            output::line("");
        }
    }

    /// Tells what happened.
    pub(super) fn tell(&mut self, event: &Event) {
        self.wipe();
        if let Event::Says { text } = event {
            self.say(text);
            return;
        }
        // The answer is whole, or another one follows.
        self.end_line();
        for line in lines(event) {
            output::note(&line);
        }
        // While a call runs a person may be asked here, and what is typed must stay.
        match event {
            Event::Asks { .. } => self.thinks_since = Some(Instant::now()),
            // It is asked again.
            Event::Waits { .. } => {}
            _ => self.thinks_since = None,
        }
    }

    fn say(&mut self, text: &str) {
        // Whoever reads the answer from a pipe gets it whole.
        if !is_watched() || !std::io::stdout().is_terminal() {
            return;
        }
        self.said.push_str(text);
        self.is_open = true;
        let mut stdout = std::io::stdout();
        let _ = write!(stdout, "{}", harmless(text));
        let _ = stdout.flush();
    }
}

fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stderr());
    match size.map(|size| usize::from(size.ws_col)) {
        Ok(columns) if columns > 0 => columns,
        _ => COLUMNS_DEFAULT,
    }
}

/// For how long the model thinks, and the end of its thought: as much as the line has room for.
fn living_line(seconds: u64, thinking: &str, columns: usize) -> String {
    let head = format!("… the model thinks ({seconds} s)");
    let thinking = thinking.split_whitespace().collect::<Vec<_>>().join(" ");
    let room = columns.saturating_sub(head.chars().count() + 2);
    let all = thinking.chars().count();
    let tail: String = thinking.chars().skip(all.saturating_sub(room)).collect();
    let tail = tail.trim_start();
    let line = if tail.is_empty() {
        head
    } else {
        format!("{head}: {tail}")
    };
    line.chars().take(columns).collect()
}

/// The lines for something that happened.
fn lines(event: &Event) -> Vec<String> {
    match event {
        Event::Asks { iteration } => vec![format!("· asking the model ({iteration})")],
        Event::Waits {
            attempt,
            why,
            wait_ms,
        } => vec![format!(
            "· attempt {attempt} failed ({why}); again in {}",
            output::duration(*wait_ms)
        )],
        Event::Says { .. } => Vec::new(),
        Event::Heard {
            tokens, asked_back, ..
        } => {
            let heard = format!(
                "  heard: {} tokens read, {} written",
                tokens.prompt, tokens.completion
            );
            let back = asked_back.as_ref().map(|told| {
                let why = told.lines().next().unwrap_or_default();
                format!(
                    "· asked back, since no call could be made of that: {}",
                    short(why)
                )
            });
            std::iter::once(heard).chain(back).collect()
        }
        Event::Calls {
            tool, arguments, ..
        } => {
            let arguments = Value::Object(arguments.clone()).to_string();
            vec![format!("→ {tool} {}", short(&arguments))]
        }
        Event::NeedsApproval { tool, approval, .. } => {
            vec![format!("· {tool} waits for the approval {approval}")]
        }
        Event::Called {
            tool,
            ok,
            exit_code,
            duration_ms,
            text,
            ..
        } => called(tool, *ok, *exit_code, *duration_ms, text),
    }
}

/// How a call ended, with the first lines of what it printed.
fn called(tool: &str, ok: bool, exit: Option<i64>, ms: u64, text: &str) -> Vec<String> {
    let is_well = ok && exit.unwrap_or(0) == 0;
    let mark = if is_well { "✓" } else { "✗" };
    let lasted = output::duration(ms);
    if !ok {
        return vec![format!("{mark} {tool} ({lasted}): {}", short(text))];
    }
    let code = exit.filter(|code| *code != 0);
    let code = code.map_or_else(String::new, |code| format!(" ended with exit code {code}"));
    let head = format!("{mark} {tool} ({lasted}){code}");
    let printed = printed(text);
    let mut shown = printed.lines().filter(|line| !line.trim().is_empty());
    let mut lines = vec![head];
    lines.extend(
        shown
            .by_ref()
            .take(SHOWN_LINES_MAX)
            .map(|line| format!("    {}", short(line))),
    );
    let more = shown.count() as u64;
    if more > 0 {
        lines.push(format!("    … {} more", output::counted(more, "line")));
    }
    lines
}

/// What a person wants to see of a result: what a command printed, or the text itself.
fn printed(text: &str) -> String {
    let Ok(Value::Object(members)) = serde_json::from_str::<Value>(text) else {
        return text.to_owned();
    };
    let texts = ["stdout", "stderr", "content", "text"].into_iter();
    let found: Vec<&str> = texts
        .filter_map(|name| members.get(name)?.as_str())
        .filter(|text| !text.trim().is_empty())
        .collect();
    if found.is_empty() && !members.contains_key("exit_code") {
        return text.to_owned();
    }
    found.join("\n")
}

/// A text in one line, no longer than is shown of a call.
pub(super) fn short(text: &str) -> String {
    let one_line = text.replace('\n', " ");
    let mut chars = one_line.chars();
    let shown: String = chars.by_ref().take(SHOWN_CHARS_MAX).collect();
    if chars.next().is_some() {
        shown + "…"
    } else {
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_failed_has_no_tick_and_shows_what_it_printed() {
        let pushed = r#"{"exit_code":128,"stdout":"","stderr":"fatal: no remote\nhint: a\nhint: b\nhint: c\n"}"#;
        assert_eq!(
            called("exec", true, Some(128), 200, pushed),
            [
                "✗ exec (200 ms) ended with exit code 128",
                "    fatal: no remote",
                "    hint: a",
                "    hint: b",
                "    … 1 line more",
            ]
        );
        let listed = r#"{"exit_code":0,"stdout":"a\nb\n","stderr":""}"#;
        assert_eq!(
            called("exec", true, Some(0), 20, listed),
            ["✓ exec (20 ms)", "    a", "    b"]
        );
        assert_eq!(
            called("read", false, None, 1, "not_found: no such file"),
            ["✗ read (1 ms): not_found: no such file"]
        );
    }

    #[test]
    fn the_living_line_fits_and_shows_the_end_of_the_thought() {
        assert_eq!(living_line(3, "", 80), "… the model thinks (3 s)");
        let line = living_line(12, "So I read\nthe notes first.", 40);
        assert_eq!(line, "… the model thinks (12 s): notes first.");
        assert_eq!(living_line(12, "x", 10).chars().count(), 10);
    }
}
