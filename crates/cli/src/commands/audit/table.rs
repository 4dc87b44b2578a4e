//! The columns of every table, on the terminal and on the page.

use holdfast_transcript::audit::Tally;

use super::numbers::{money, time, tokens, whole};

/// After the name.
pub(super) const COLUMNS: [&str; 9] = [
    "calls",
    "failed",
    "loops",
    "duplicates",
    "orphans",
    "stopped",
    "tokens lost",
    "time lost",
    "money lost",
];

/// Whether a table is unfolded at first.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    Open,
    Folded,
}

pub(super) fn cells(tally: &Tally) -> [String; 9] {
    [
        whole(tally.calls),
        whole(tally.failed),
        whole(tally.loops),
        whole(tally.duplicates),
        whole(tally.orphans),
        whole(tally.stopped),
        tokens(tally.wasted.tokens),
        time(tally.wasted.ms),
        money(&tally.wasted),
    ]
}
