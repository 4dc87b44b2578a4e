//! How well replies are read, form by form, next to two baselines on the same texts: the seed's
//! regular expressions, and strict JSON only. Run by `bench/intent/run`, which also builds it.

#[path = "../../../crates/intent/tests/it/support/mod.rs"]
#[expect(dead_code, reason = "tests ask cases for more")]
mod cases;
#[path = "../../../crates/intent/tests/it/bfcl/data.rs"]
#[expect(dead_code, reason = "tests name the item that went wrong")]
mod data;
#[path = "../../../crates/intent/tests/it/bfcl/forms.rs"]
mod forms;
#[path = "../../../crates/intent/tests/it/bfcl/pen.rs"]
mod pen;
#[path = "../../../crates/intent/tests/it/bfcl/plain.rs"]
mod plain;
mod report;
mod score;
mod seed;
mod strict;
#[path = "../../../crates/intent/tests/it/bfcl/trial.rs"]
#[expect(dead_code, reason = "scores are counted here, not complaints")]
mod trial;
#[path = "../../../crates/intent/tests/it/bfcl/vendors.rs"]
mod vendors;
#[path = "../../../crates/intent/tests/it/bfcl/writers.rs"]
mod writers;

use std::io;
use std::path::Path;

use holdfast_intent::{FinishReason, Parser, RUN_MUTATING_MIN, Strategy, ToolSet};
use report::{Group, Report, Row};
use score::{Said, Wanted};
use seed::Seed;
use serde_json::Value;
use trial::Harm;

/// With `--quick` one of so many items is written in each form.
const QUICK_ONE_OF: usize = 25;

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["--machine", machine, "--out", out] => run(1, machine, Path::new(out)),
        ["--quick", "--machine", machine, "--out", out] => {
            run(QUICK_ONE_OF, machine, Path::new(out))
        }
        _ => Err(io::Error::other("use bench/intent/run")),
    }
}

fn run(one_of: usize, machine: &str, out: &Path) -> io::Result<()> {
    let bench = Bench {
        seed: Seed::new().map_err(io::Error::other)?,
    };
    let mut rows = bench.cases()?;
    match data::folder() {
        Some(folder) => rows.extend(bench.round_trips(&folder, one_of)),
        None => println!(
            "no BFCL data beside the repository ({} can name its folder): only the cases",
            data::FOLDER_VARIABLE
        ),
    }
    let report = Report {
        machine: serde_json::from_str(machine)?,
        rows,
    };
    println!("{}", report.table());
    let mut text = serde_json::to_string_pretty(&report)?;
    text.push('\n');
    std::fs::write(out, text)
}

struct Bench {
    seed: Seed,
}

impl Bench {
    /// All subjects on one text.
    fn judge(
        &self,
        row: &mut Row,
        parser: &Parser,
        (text, finish): (&str, FinishReason),
        wanted: &[Wanted],
    ) {
        let names: Vec<String> = parser
            .tools()
            .tools()
            .iter()
            .map(|tool| tool.name.clone())
            .collect();
        let parsed = parser.parse_any(text, finish);
        row.unsafe_guesses += parsed
            .intents
            .iter()
            .filter(|intent| intent.strategy == Strategy::Fuzzy && intent.mutating)
            .filter(|intent| intent.is_runnable() || intent.confidence >= RUN_MUTATING_MIN)
            .count();
        let ours: Vec<Said> = parsed
            .intents
            .into_iter()
            .map(|intent| Said {
                name: intent.name,
                arguments: intent.arguments,
            })
            .collect();
        row.texts += 1;
        row.ours.add(wanted, &ours);
        row.seed.add(wanted, &self.seed.parse(text, &names));
        row.strict.add(wanted, &strict::parse(text));
    }

    fn cases(&self) -> io::Result<Vec<Row>> {
        let mut rows: Vec<Row> = Vec::new();
        for case in cases::all_cases() {
            let prose = case.file.starts_with("fuzzy") || case.file.starts_with("inert");
            let group = if prose {
                Group::Fuzzy
            } else {
                Group::Structured
            };
            if rows.last().is_none_or(|row| row.form != case.file) {
                rows.push(Row::new(&case.file, group));
            }
            let mut wanted = Vec::new();
            for line in case.expect.lines().filter(|line| line.starts_with('{')) {
                let value: Value = serde_json::from_str(line)?;
                if let Some(name) = value["name"].as_str() {
                    wanted.push(Wanted {
                        name: name.to_owned(),
                        arguments: value["arguments"].as_object().cloned(),
                    });
                }
            }
            if let Some(row) = rows.last_mut() {
                self.judge(row, &case.parser, (&case.text, case.finish), &wanted);
            }
        }
        Ok(rows)
    }

    /// Every expected call of the Berkeley data in every form, undamaged and damaged, and plain
    /// answers to questions that no tool answers.
    fn round_trips(&self, folder: &Path, one_of: usize) -> Vec<Row> {
        let mut rows = Vec::new();
        for form in forms::FORMS {
            rows.push(Row::new(&format!("bfcl {}", form.name), Group::Structured));
            rows.push(Row::new(
                &format!("bfcl {}, damaged", form.name),
                Group::Structured,
            ));
        }
        for (number, item) in data::answered(folder).iter().enumerate() {
            let Some(parser) = parser(item) else { continue };
            for (place, form) in forms::FORMS.iter().enumerate() {
                if (number + place) % one_of != 0 {
                    continue;
                }
                let seed = (number * forms::FORMS.len() + place) as u64;
                for trial in trial::trials(item, form, seed) {
                    let damaged = usize::from(trial.harm != Harm::None);
                    let wanted: Vec<Wanted> = trial
                        .wanted
                        .iter()
                        .map(|call| Wanted {
                            name: call.name.clone(),
                            arguments: Some(call.arguments.clone()),
                        })
                        .collect();
                    let text = (trial.text.as_str(), FinishReason::Stop);
                    self.judge(&mut rows[2 * place + damaged], &parser, text, &wanted);
                }
            }
        }
        let mut inert = Row::new("bfcl irrelevance", Group::Fuzzy);
        for (number, item) in data::irrelevant(folder).iter().enumerate() {
            let Some(parser) = parser(item).filter(|_| number % one_of == 0) else {
                continue;
            };
            for answer in plain::answers(item) {
                self.judge(&mut inert, &parser, (&answer, FinishReason::Stop), &[]);
            }
        }
        rows.push(inert);
        rows
    }
}

fn parser(item: &data::Item) -> Option<Parser> {
    Some(Parser::new(ToolSet::from_json(&item.tools)?))
}
