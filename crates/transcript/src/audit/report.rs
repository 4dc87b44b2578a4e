//! What an audit says.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_contract::time::rfc3339;
use serde::{Serialize, Serializer};

use super::tally::Tally;

/// Sessions that are named with their trouble.
pub const WORST_SESSIONS_MAX: usize = 20;
/// Tools, models or days that are kept apart; what comes later is added up under one name, so that
/// a history of generated names can not fill the memory.
const ROWS_MAX: usize = 10_000;
const THE_REST: &str = "(all others)";
const NO_DAY: &str = "unknown day";

/// The sums of all sessions.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Sessions that were read.
    pub sessions: u64,
    /// Everything.
    pub total: Tally,
    /// By model.
    #[serde(serialize_with = "rows")]
    pub by_model: BTreeMap<String, Tally>,
    /// By tool.
    #[serde(serialize_with = "rows")]
    pub by_tool: BTreeMap<String, Tally>,
    /// By day (UTC).
    #[serde(serialize_with = "rows")]
    pub by_day: BTreeMap<String, Tally>,
    /// The sessions with the most waste.
    pub worst: Vec<Worst>,
    /// Where the prices are from.
    pub prices_of: String,
    /// Models nobody knows a price of.
    pub models_without_price: BTreeSet<String>,
}

/// One line of a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row<'a> {
    /// The model, tool or day.
    pub name: &'a str,
    /// Its sums.
    #[serde(flatten)]
    pub tally: &'a Tally,
}

/// A session worth a look.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Worst {
    /// Its file.
    pub session: String,
    /// Its sums.
    #[serde(flatten)]
    pub tally: Tally,
}

impl Report {
    pub(super) fn model(&mut self, name: &str) -> &mut Tally {
        entry(&mut self.by_model, name)
    }

    pub(super) fn tool(&mut self, name: &str) -> &mut Tally {
        entry(&mut self.by_tool, name)
    }

    pub(super) fn day(&mut self, at_ms: Option<u64>) -> &mut Tally {
        let day = at_ms.and_then(day_of);
        entry(&mut self.by_day, day.as_deref().unwrap_or(NO_DAY))
    }

    pub(super) fn note_unpriced(&mut self, model: &str) {
        if self.models_without_price.len() < ROWS_MAX {
            self.models_without_price.insert(model.to_owned());
        }
    }

    pub(super) fn note_session(&mut self, name: &str, tally: &Tally) {
        if tally.trouble() + tally.orphaned_results == 0 {
            return;
        }
        let at = self
            .worst
            .partition_point(|other| rank(&other.tally) >= rank(tally));
        if at >= WORST_SESSIONS_MAX {
            return;
        }
        self.worst.insert(
            at,
            Worst {
                session: name.to_owned(),
                tally: tally.clone(),
            },
        );
        self.worst.truncate(WORST_SESSIONS_MAX);
    }
}

/// By troubled calls, then by what they took. Whole numbers, so that the order is total.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "tokens are counted up from zero and only order sessions here"
)]
fn rank(tally: &Tally) -> (u64, u64) {
    (tally.trouble(), tally.wasted.tokens as u64)
}

fn entry<'a>(map: &'a mut BTreeMap<String, Tally>, name: &str) -> &'a mut Tally {
    let known = map.contains_key(name) || map.len() < ROWS_MAX;
    let name = if known { name } else { THE_REST };
    map.entry(name.to_owned()).or_default()
}

fn day_of(at_ms: u64) -> Option<String> {
    let time = rfc3339(at_ms);
    time.split_once('T').map(|(day, _)| day.to_owned())
}

fn rows<S: Serializer>(map: &BTreeMap<String, Tally>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(map.iter().map(|(name, tally)| Row { name, tally }))
}
