//! The table for people and the raw data for later.

use std::fmt::Write as _;

use serde::Serialize;

use crate::score::Score;

/// Which aim a form has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    Structured,
    Fuzzy,
}

/// All subjects on one form.
#[derive(Debug, Serialize)]
pub struct Row {
    pub form: String,
    pub group: Group,
    pub texts: usize,
    pub ours: Score,
    pub seed: Score,
    pub strict: Score,
    /// Tools that change things, at a confidence that would run them, from a guess at prose.
    pub unsafe_guesses: usize,
}

impl Row {
    pub fn new(form: &str, group: Group) -> Self {
        Self {
            form: form.to_owned(),
            group,
            texts: 0,
            ours: Score::default(),
            seed: Score::default(),
            strict: Score::default(),
            unsafe_guesses: 0,
        }
    }

    fn join(&mut self, other: &Self) {
        self.texts += other.texts;
        self.ours.join(other.ours);
        self.seed.join(other.seed);
        self.strict.join(other.strict);
        self.unsafe_guesses += other.unsafe_guesses;
    }
}

/// Everything one run found.
#[derive(Serialize)]
pub struct Report {
    pub machine: serde_json::Value,
    pub rows: Vec<Row>,
}

impl Report {
    pub fn table(&self) -> String {
        let mut out = String::new();
        // Writing to a string can not fail.
        let _ = writeln!(
            out,
            "{:<36} {:>7} | {:^20} | {:^20} | {:^20} |\n{:<36} {:>7} | {:>6} {:>6} {:>6} | {:>6} {:>6} {:>6} | {:>6} {:>6} {:>6} | {:>6}",
            "in percent",
            "",
            "Holdfast",
            "the seed's patterns",
            "strict JSON only",
            "form",
            "texts",
            "prec",
            "recall",
            "exact",
            "prec",
            "recall",
            "exact",
            "prec",
            "recall",
            "exact",
            "unsafe"
        );
        for row in &self.rows {
            line(&mut out, row);
        }
        let structured = self.sum("all structured", Group::Structured, |_| true);
        let own = self.sum("structured cases", Group::Structured, |row| {
            !row.form.starts_with("bfcl")
        });
        let fuzzy = self.sum("all fuzzy", Group::Fuzzy, |_| true);
        let _ = writeln!(out);
        for row in [&structured, &own, &fuzzy] {
            line(&mut out, row);
        }
        let _ = writeln!(out);
        for row in [&structured, &own] {
            aim(
                &mut out,
                &format!("{}: recall", row.form),
                row.ours.recall(),
                0.995,
            );
            aim(
                &mut out,
                &format!("{}: precision", row.form),
                row.ours.precision(),
                0.995,
            );
        }
        aim(&mut out, "all fuzzy: recall", fuzzy.ours.recall(), 0.9);
        aim(
            &mut out,
            "all fuzzy: precision",
            fuzzy.ours.precision(),
            0.95,
        );
        let risky: usize = self.rows.iter().map(|row| row.unsafe_guesses).sum();
        let verdict = if risky == 0 { "met" } else { "MISSED" };
        let _ = writeln!(
            out,
            "{:<52} {risky:>9}  {:<18} {verdict}",
            "guesses that would run a tool that changes things", "none"
        );
        self.round_trip_aims(&mut out);
        out
    }

    /// The round trip over the Berkeley data, where it is there.
    fn round_trip_aims(&self, out: &mut String) {
        if !self.rows.iter().any(|row| row.form.starts_with("bfcl")) {
            let _ = writeln!(out, "round trip: not measured, the data is not there");
            return;
        }
        let is_plain = |row: &Row| row.form.starts_with("bfcl irrelevance");
        let mut sums = [
            Row::new("", Group::Structured),
            Row::new("", Group::Structured),
        ];
        for row in self
            .rows
            .iter()
            .filter(|row| row.form.starts_with("bfcl") && !is_plain(row))
        {
            sums[usize::from(row.form.ends_with(", damaged"))].join(row);
        }
        let [whole, damaged] = sums;
        aim(
            out,
            "round trip, undamaged: exact",
            whole.ours.exactness(),
            0.99,
        );
        aim(
            out,
            "round trip, damaged: exact",
            damaged.ours.exactness(),
            0.97,
        );
        let wrong: usize = self
            .rows
            .iter()
            .filter(|row| is_plain(row))
            .map(|row| row.ours.wrong)
            .sum();
        let verdict = if wrong == 0 { "met" } else { "MISSED" };
        let _ = writeln!(
            out,
            "{:<52} {wrong:>9}  {:<18} {verdict}",
            "calls in plain answers to irrelevant questions", "none"
        );
    }

    fn sum(&self, name: &str, group: Group, wanted: impl Fn(&Row) -> bool) -> Row {
        let mut sum = Row::new(name, group);
        for row in self
            .rows
            .iter()
            .filter(|row| row.group == group && wanted(row))
        {
            sum.join(row);
        }
        sum
    }
}

fn line(out: &mut String, row: &Row) {
    let _ = write!(out, "{:<36} {:>7} |", row.form, row.texts);
    for score in [row.ours, row.seed, row.strict] {
        for share in [score.precision(), score.recall(), score.exactness()] {
            let shown = share.map_or("-".to_owned(), |share| format!("{:.2}", share * 100.0));
            let _ = write!(out, " {shown:>6}");
        }
        out.push_str(" |");
    }
    let _ = writeln!(out, " {:>6}", row.unsafe_guesses);
}

fn aim(out: &mut String, what: &str, figure: Option<f64>, least: f64) {
    let figure = figure.unwrap_or(0.0);
    let verdict = if figure >= least { "met" } else { "MISSED" };
    let _ = writeln!(
        out,
        "{what:<52} {:>7.2} %  {:<18} {verdict}",
        figure * 100.0,
        format!("at least {} %", least * 100.0)
    );
}
