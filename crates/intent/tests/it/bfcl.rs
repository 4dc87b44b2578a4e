//! Round trips over the Berkeley function-calling data: every expected call, written in every form
//! that the parser knows, with and without damage, comes back.
//!
//! The data is not part of the repository: where it is absent the tests say so and pass. In a debug
//! build a seeded sample is read; `HOLDFAST_BFCL_ALL=1` reads everything.

mod data;
mod forms;
mod nested;
mod pen;
mod plain;
mod trial;
mod vendors;
mod writers;

use std::collections::BTreeMap;
use std::path::PathBuf;

use data::Item;
use forms::FORMS;
use holdfast_intent::{Parser, ToolSet};
use trial::Harm;

/// Each item meets every form in turn: one of so many items is taken for a form.
const SAMPLE_ONE_OF: usize = 10;
/// What has to come back of the undamaged replies, and of the damaged ones.
const UNDAMAGED_MIN: f64 = 0.99;
const DAMAGED_MIN: f64 = 0.97;

#[derive(Default, Clone, Copy)]
struct Score {
    exact: usize,
    all: usize,
}

impl Score {
    fn add(&mut self, exact: bool) {
        self.exact += usize::from(exact);
        self.all += 1;
    }

    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
    fn share(self) -> f64 {
        self.exact as f64 / self.all.max(1) as f64
    }

    fn shown(self) -> String {
        if self.all == 0 {
            return "-".to_owned();
        }
        format!("{:.2} %", self.share() * 100.0)
    }
}

fn folder() -> Option<PathBuf> {
    let found = data::folder();
    if found.is_none() {
        println!(
            "skipped: no BFCL data in ../shared/data/bfcl beside the repository; {} can name its folder",
            data::FOLDER_VARIABLE
        );
    }
    found
}

fn reads_all() -> bool {
    !cfg!(debug_assertions) || std::env::var_os("HOLDFAST_BFCL_ALL").is_some()
}

fn parser(item: &Item) -> Parser {
    Parser::new(ToolSet::from_json(&item.tools).expect("a list of tools"))
}

#[test]
fn every_expected_call_comes_back_in_every_form() {
    let Some(folder) = folder() else { return };
    let items = data::answered(&folder);
    let mut table: BTreeMap<(usize, &str), Score> = BTreeMap::new();
    let mut examples: BTreeMap<(&str, &str), String> = BTreeMap::new();
    for (number, item) in items.iter().enumerate() {
        let parser = parser(item);
        for (place, form) in FORMS.iter().enumerate() {
            if !reads_all() && (number + place) % SAMPLE_ONE_OF != 0 {
                continue;
            }
            let seed = (number * FORMS.len() + place) as u64;
            for trial in trial::trials(item, form, seed) {
                let complaint = trial::complaint(&trial, &trial::parse(&parser, &trial.text));
                let kind = trial.harm.name();
                table
                    .entry((place, kind))
                    .or_default()
                    .add(complaint.is_none());
                if let Some(complaint) = complaint {
                    let shown = format!("{}: {complaint}\n{}", item.id, trial.text);
                    let key = (form.name, kind);
                    let shorter = examples
                        .get(&key)
                        .is_none_or(|known| known.len() > shown.len());
                    if shorter {
                        examples.insert(key, shown);
                    }
                }
            }
        }
    }
    if std::env::var_os("HOLDFAST_BFCL_SHOW").is_some() {
        for ((form, kind), example) in &examples {
            println!("--- {form}, {kind}\n{example}\n");
        }
    }
    report(&table);
}

/// Prints the table by form and by kind of damage, and holds it against the aims.
fn report(table: &BTreeMap<(usize, &str), Score>) {
    let sum = |wanted: &dyn Fn(usize, &str) -> bool| {
        let mut total = Score::default();
        for ((place, kind), score) in table {
            if wanted(*place, kind) {
                total.exact += score.exact;
                total.all += score.all;
            }
        }
        total
    };
    let none = Harm::None.name();
    let mut missed = Vec::new();
    let mut line = |name: &str, plain: Option<Score>, harmed: Option<Score>| {
        let shown = |score: Option<Score>| score.map_or("-".to_owned(), Score::shown);
        println!("{name:<28} {:>12} {:>12}", shown(plain), shown(harmed));
        for (score, least) in [(plain, UNDAMAGED_MIN), (harmed, DAMAGED_MIN)] {
            if score.is_some_and(|score| score.all > 0 && score.share() < least) {
                missed.push(name.to_owned());
            }
        }
    };
    println!("{:<28} {:>12} {:>12}", "form", "undamaged", "damaged");
    for (place, form) in FORMS.iter().enumerate() {
        let plain = sum(&|own, kind| own == place && kind == none);
        let harmed = sum(&|own, kind| own == place && kind != none);
        line(form.name, Some(plain), Some(harmed));
    }
    println!("{:<28} {:>12} {:>12}", "damage", "", "exact");
    let kinds = pen::Damage::ALL.map(pen::Damage::name);
    for kind in kinds.into_iter().chain(["combinations"]) {
        line(kind, None, Some(sum(&|_, own| own == kind)));
    }
    let (plain, harmed) = (sum(&|_, kind| kind == none), sum(&|_, kind| kind != none));
    println!("{} undamaged replies, {} damaged", plain.all, harmed.all);
    line("all", Some(plain), Some(harmed));
    assert!(missed.is_empty(), "below the aims: {}", missed.join(", "));
}

#[test]
fn plain_answers_to_irrelevant_questions_ask_for_nothing() {
    let Some(folder) = folder() else { return };
    let mut wrong = Vec::new();
    let mut all = 0;
    for item in data::irrelevant(&folder) {
        let parser = parser(&item);
        for answer in plain::answers(&item) {
            all += 1;
            let parsed = trial::parse(&parser, &answer);
            if !parsed.intents.is_empty() {
                wrong.push(format!("{answer}\n  {:?}", parsed.intents));
            }
        }
    }
    println!("{all} plain answers, {} taken for calls", wrong.len());
    assert!(
        wrong.is_empty(),
        "{} of {all} plain answers were taken for calls, such as\n{}",
        wrong.len(),
        wrong[0]
    );
}
