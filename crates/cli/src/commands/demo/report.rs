//! What the demo tells while it plays, and the table at the end.

use std::cell::RefCell;

use holdfast_contract::ToolResultEnvelope;

use super::scenes::{Counts, Run, SceneResult};
use crate::output;

/// A message is told up to this length.
const GIST_CHARS: usize = 76;

pub(super) fn announce(narrate: bool, title: &str, story: &str) {
    line(narrate, &format!("\n{}\n{story}", output::bold(title)));
}

fn line(narrate: bool, text: &str) {
    if narrate {
        output::line(text);
    }
}

/// Tells what happens on a stage; the same thing many times over is told once, with its count.
pub(super) struct Narrator {
    on: bool,
    last: RefCell<Option<(String, u32)>>,
}

impl Narrator {
    pub(super) fn new(on: bool) -> Self {
        Self {
            on,
            last: RefCell::default(),
        }
    }

    /// One call and its answer.
    pub(super) fn step(&self, what: &str, result: &ToolResultEnvelope) {
        let answer = match &result.error {
            None if result.from_cache => "answered from the record".to_owned(),
            None if result.attempts > 1 => format!("worked at attempt {}", result.attempts),
            None => "worked".to_owned(),
            Some(error) => format!("{} — {}", error.code, gist(&error.message)),
        };
        self.line(&format!("{what}: {answer}"));
    }

    pub(super) fn line(&self, text: &str) {
        let mut last = self.last.borrow_mut();
        if let Some((told, count)) = last.as_mut()
            && told == text
        {
            *count += 1;
            return;
        }
        let before = last.replace((text.to_owned(), 1));
        drop(last);
        self.print(before);
    }

    /// Tells what is still held back.
    pub(super) fn flush(&self) {
        let last = self.last.borrow_mut().take();
        self.print(last);
    }

    fn print(&self, told: Option<(String, u32)>) {
        if let Some((text, count)) = told {
            let times = if count > 1 {
                format!(" ({count} times)")
            } else {
                String::new()
            };
            line(self.on, &output::dim(&format!("  {text}{times}")));
        }
    }
}

/// What a model reads first in a message: the guard's text if there is one, else the beginning.
fn gist(message: &str) -> String {
    let line = message
        .lines()
        .find(|line| line.starts_with('[') && line.contains(']'))
        .or_else(|| message.lines().next())
        .unwrap_or_default();
    if line.chars().count() <= GIST_CHARS {
        return line.to_owned();
    }
    let cut: String = line.chars().take(GIST_CHARS).collect();
    // Not in the middle of a word.
    let whole = cut.rsplit_once(' ').map_or(&*cut, |(whole, _)| whole);
    format!("{whole} …")
}

pub(super) fn outcome(narrate: bool, run: Run, counts: &Counts) {
    let who = match run {
        Run::Without => output::red("without"),
        Run::With => output::green("with"),
    };
    line(
        narrate,
        &format!(
            "  {who}: {}, {}, {} of them duplicates, {} wasted, {}, {}",
            output::counted(counts.calls.into(), "call"),
            output::counted(counts.effects.into(), "effect"),
            counts.duplicates,
            counts.wasted,
            format_args!("{} lost", output::counted(counts.lost.into(), "file")),
            output::duration(counts.elapsed_ms)
        ),
    );
}

/// The table: every number was counted.
pub(super) fn print(results: &[SceneResult]) {
    let pair = |pick: fn(&Counts) -> u64, result: &SceneResult| {
        format!("{} → {}", pick(&result.without), pick(&result.with))
    };
    let rows = results.iter().map(|result| {
        vec![
            result.scene.to_owned(),
            pair(|counts| u64::from(counts.calls), result),
            pair(|counts| u64::from(counts.effects), result),
            pair(|counts| u64::from(counts.duplicates), result),
            pair(|counts| u64::from(counts.wasted), result),
            pair(|counts| u64::from(counts.lost), result),
            format!(
                "{} → {}",
                output::duration(result.without.elapsed_ms),
                output::duration(result.with.elapsed_ms)
            ),
        ]
    });
    output::line("");
    output::line(&output::bold(
        "What really happened, without Holdfast → with it",
    ));
    let header = [
        "scene",
        "calls",
        "effects",
        "duplicates",
        "wasted",
        "lost",
        "time",
    ];
    output::line(&output::table(&header, rows));
}
