//! The table for people and the raw data for later.

use std::fmt::Write as _;

use serde::Serialize;

use crate::linear::{Growth, RATIO_MAX};
use crate::python::Versions;

/// The aims.
const REPAIR_RATIO_MIN: f64 = 100.0;
const PROSE_MIN: f64 = 100.0;

/// Texts under one strategy.
#[derive(Debug, Serialize)]
pub struct Speed {
    pub name: String,
    pub bytes: usize,
    pub intents: usize,
    pub megabytes_per_second: f64,
}

/// Both sides on one group of damaged documents.
#[derive(Debug, Serialize)]
pub struct Repair {
    pub name: String,
    pub documents: usize,
    pub ours_megabytes_per_second: f64,
    /// The whole parser on the same text, schemas and all.
    pub parser_megabytes_per_second: f64,
    pub theirs_megabytes_per_second: f64,
    pub ours_exact: usize,
    pub theirs_exact: usize,
}

impl Repair {
    fn ratio(&self) -> f64 {
        self.ours_megabytes_per_second / self.theirs_megabytes_per_second
    }
}

/// Everything one run found.
#[derive(Serialize)]
pub struct Report {
    pub machine: serde_json::Value,
    pub versions: Versions,
    pub speed: Vec<Speed>,
    pub repair: Vec<Repair>,
    pub large_bytes: usize,
    pub growth: Vec<Growth>,
}

impl Report {
    pub fn table(&self) -> String {
        let mut out = String::new();
        // Writing to a string can not fail.
        let _ = writeln!(out, "{:<40} {:>10} {:>9}", "one core", "MB/s", "intents");
        for row in &self.speed {
            let _ = writeln!(
                out,
                "{:<40} {:>10.1} {:>9}",
                row.name, row.megabytes_per_second, row.intents
            );
        }
        self.repair_table(&mut out);
        self.ratio_table(&mut out);
        self.growth_table(&mut out);
        self.aims(&mut out);
        out
    }

    fn repair_table(&self, out: &mut String) {
        let _ = writeln!(
            out,
            "\n{:<20} {:>9} {:>9} {:>9} {:>8} {:>11} {:>11}",
            "damaged JSON", "ours MB/s", "parser", "theirs", "ratio", "ours exact", "theirs"
        );
        for row in &self.repair {
            let _ = writeln!(
                out,
                "{:<20} {:>9.1} {:>9.1} {:>9.3} {:>7.0}x {:>7}/{:<3} {:>7}/{:<3}",
                row.name,
                row.ours_megabytes_per_second,
                row.parser_megabytes_per_second,
                row.theirs_megabytes_per_second,
                row.ratio(),
                row.ours_exact,
                row.documents,
                row.theirs_exact,
                row.documents
            );
        }
        let Versions {
            python,
            json_repair,
        } = &self.versions;
        let _ = writeln!(out, "theirs: json_repair {json_repair} on Python {python}");
    }

    /// Every text under every strategy: how much more a byte of the large text costs.
    fn ratio_table(&self, out: &mut String) {
        let mut strategies: Vec<&str> = Vec::new();
        let mut texts: Vec<&str> = Vec::new();
        for row in &self.growth {
            if !strategies.contains(&row.strategy) {
                strategies.push(row.strategy);
            }
            if !texts.contains(&row.text.as_str()) {
                texts.push(&row.text);
            }
        }
        let _ = write!(
            out,
            "\n{:<36}",
            format!("ns/byte, {} MB / 10 KB", self.large_bytes / 1_000_000)
        );
        for strategy in &strategies {
            let _ = write!(out, " {strategy:>11}");
        }
        let _ = writeln!(out);
        for text in texts {
            let _ = write!(out, "{text:<36}");
            for strategy in &strategies {
                let row = self
                    .growth
                    .iter()
                    .find(|row| row.text == text && row.strategy == *strategy);
                let shown = row.map_or("-".to_owned(), |row| format!("{:.2}x", row.ratio()));
                let _ = write!(out, " {shown:>11}");
            }
            let _ = writeln!(out);
        }
    }

    fn growth_table(&self, out: &mut String) {
        let _ = writeln!(
            out,
            "\n{:<46} {:>10} {:>10} {:>7}",
            "the steepest, ns/byte",
            "10 KB",
            format!("{} MB", self.large_bytes / 1_000_000),
            "ratio"
        );
        let mut rows: Vec<&Growth> = self.growth.iter().collect();
        rows.sort_by(|one, other| other.ratio().total_cmp(&one.ratio()));
        for row in rows.iter().take(8) {
            Self::growth_row(out, row);
        }
        let _ = writeln!(out, "the slowest");
        rows.sort_by(|one, other| other.large_ns_per_byte.total_cmp(&one.large_ns_per_byte));
        for row in rows.iter().take(8) {
            Self::growth_row(out, row);
        }
    }

    fn growth_row(out: &mut String, row: &Growth) {
        let _ = writeln!(
            out,
            "{:<46} {:>10.1} {:>10.1} {:>6.2}x",
            format!("{}: {}", row.strategy, row.text),
            row.small_ns_per_byte,
            row.large_ns_per_byte,
            row.ratio()
        );
    }

    fn aims(&self, out: &mut String) {
        let _ = writeln!(out);
        let mut aim = |what: &str, figure: String, aim: &str, met: bool| {
            let verdict = if met { "met" } else { "MISSED" };
            let _ = writeln!(out, "{what:<52} {figure:>16}  {aim:<18} {verdict}");
        };
        for row in &self.repair {
            let met = row.ratio() >= REPAIR_RATIO_MIN;
            let what = format!("damaged JSON against json_repair, {}", row.name);
            aim(&what, format!("{:.0}x", row.ratio()), "at least 100x", met);
        }
        for row in self.speed.iter().filter(|row| row.name.contains("prose")) {
            let rate = row.megabytes_per_second;
            let figure = format!("{rate:.0} MB/s");
            aim(&row.name, figure, "at least 100 MB/s", rate >= PROSE_MIN);
        }
        let steep = self
            .growth
            .iter()
            .filter(|row| row.ratio() > RATIO_MAX)
            .count();
        let figure = format!("{steep} of {} above", self.growth.len());
        aim(
            "time per byte, large against 10 KB",
            figure,
            "at most 1.5x",
            steep == 0,
        );
    }
}
