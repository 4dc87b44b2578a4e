//! What the demo tells while it plays, and the table at the end.

use holdfast_contract::ToolResultEnvelope;

use super::scenes::{Counts, Run, SceneResult};
use crate::output;

pub(super) fn announce(narrate: bool, title: &str, story: &str) {
    line(narrate, &format!("\n{}\n{story}", output::bold(title)));
}

pub(super) fn line(narrate: bool, text: &str) {
    if narrate {
        output::line(text);
    }
}

/// One call and its answer.
pub(super) fn step(narrate: bool, what: &str, result: &ToolResultEnvelope) {
    let answer = match &result.error {
        None if result.from_cache => "answered from the record".to_owned(),
        None if result.attempts > 1 => format!("worked at attempt {}", result.attempts),
        None => "worked".to_owned(),
        Some(error) => {
            let first = error.message.lines().last().unwrap_or_default();
            let short: String = first.chars().take(70).collect();
            format!("{} — {short}", error.code)
        }
    };
    line(narrate, &output::dim(&format!("  {what}: {answer}")));
}

pub(super) fn outcome(narrate: bool, run: Run, counts: &Counts) {
    let who = match run {
        Run::Without => output::red("without"),
        Run::With => output::green("with"),
    };
    line(
        narrate,
        &format!(
            "  {who}: {} calls, {} effects, {} of them duplicates, {} wasted, {}",
            counts.calls,
            counts.effects,
            counts.duplicates,
            counts.wasted,
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
    let header = ["scene", "calls", "effects", "duplicates", "wasted", "time"];
    output::line(&output::table(&header, rows));
}
