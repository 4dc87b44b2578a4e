//! Every case under `cases/`, by file.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests are tests, whatever the lint takes them for"
)]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use holdfast_intent::{FinishReason, Parsed, Parser, Strategy, StreamParser, ToolSet};
use serde_json::{Value, json};

struct Case {
    name: String,
    text: String,
    expect: String,
    parser: Parser,
    finish: FinishReason,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("cases")
}

fn read_cases(file: &Path) -> Vec<Case> {
    let source = std::fs::read_to_string(file).expect("a readable file");
    if file
        .file_name()
        .is_some_and(|name| name.to_string_lossy().ends_with("_lines.txt"))
    {
        return source.lines().filter_map(read_line).collect();
    }
    source.split("\n=== ").skip(1).map(read_case).collect()
}

/// `text => expectation | expectation`.
fn read_line(line: &str) -> Option<Case> {
    let (text, expect) = line.rsplit_once(" => ")?;
    Some(Case {
        name: text.to_owned(),
        text: text.to_owned(),
        expect: expect.replace(" | {", "\n{"),
        parser: Parser::default(),
        finish: FinishReason::Stop,
    })
}

fn read_case(source: &str) -> Case {
    let (head, rest) = source
        .split_once("\n--- text\n")
        .unwrap_or_else(|| panic!("no text: {source}"));
    let (text, expect) = rest
        .rsplit_once("\n--- expect\n")
        .unwrap_or_else(|| panic!("no expect: {source}"));
    let mut lines = head.lines();
    let name = lines.next().expect("a name").to_owned();
    let mut parser = Parser::default();
    let mut finish = FinishReason::Unknown;
    for line in lines {
        match line.split_once(": ") {
            Some(("finish", reason)) => finish = FinishReason::from_wire(reason),
            Some(("strategy", name)) => {
                let strategy = Strategy::from_name(name).expect("a strategy");
                parser = parser.with_strategies(strategy, Some(Strategy::Fuzzy));
            }
            Some(("tools", file)) => {
                let source = std::fs::read_to_string(folder().join(file)).expect("tools");
                let value = serde_json::from_str(&source).expect("tools are JSON");
                parser = Parser::new(ToolSet::from_json(&value).expect("a list of tools"));
            }
            _ => panic!("{name}: unknown line {line}"),
        }
    }
    Case {
        name,
        text: text.to_owned(),
        expect: expect.to_owned(),
        parser,
        finish,
    }
}

/// What differs, or nothing.
fn complaint(case: &Case, parsed: &Parsed) -> Option<String> {
    let mut wanted = Vec::new();
    for line in case.expect.lines().filter(|line| !line.trim().is_empty()) {
        if line.trim() == "none" {
            continue;
        }
        let value: Value =
            serde_json::from_str(line).unwrap_or_else(|_| panic!("{}: {line}", case.name));
        if value.get("name").is_some() {
            wanted.push(value);
            continue;
        }
        let whole = serde_json::to_value(parsed).expect("it serialises");
        for (key, value) in value.as_object().expect("an object") {
            if &whole[key] != value {
                return Some(format!("{key} is {}, not {value}", whole[key]));
            }
        }
    }
    let shown = || serde_json::to_string(&parsed.intents).expect("it serialises");
    if wanted.len() != parsed.intents.len() {
        return Some(format!(
            "{} intents, not {}: {}",
            parsed.intents.len(),
            wanted.len(),
            shown()
        ));
    }
    for (wanted, intent) in wanted.iter().zip(&parsed.intents) {
        let got = serde_json::to_value(intent).expect("it serialises");
        let codes: Vec<&str> = got["problems"]
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(|problem| problem["code"].as_str())
            .collect();
        let same = got["name"] == wanted["name"]
            && wanted
                .get("arguments")
                .is_none_or(|arguments| got["arguments"] == *arguments)
            && got["complete"] == *wanted.get("complete").unwrap_or(&json!(true))
            && wanted
                .get("strategy")
                .is_none_or(|strategy| got["strategy"] == *strategy)
            && wanted
                .get("runnable")
                .is_none_or(|runnable| json!(intent.is_runnable()) == *runnable)
            && wanted
                .get("problems")
                .and_then(Value::as_array)
                .is_none_or(|wanted| {
                    wanted
                        .iter()
                        .all(|code| codes.contains(&code.as_str().unwrap_or("")))
                });
        if !same {
            return Some(format!("expected {wanted}\n      got      {got}"));
        }
        let [start, end] = intent.span;
        if start > end || case.text.get(start..end).is_none() {
            return Some(format!("span {start}..{end} is not in the text"));
        }
    }
    None
}

#[test]
fn every_case_is_read_as_it_says() {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder())
        .expect("the folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    files.sort();
    let (mut report, mut failed, mut total, mut inert) = (String::new(), 0, 0, 0);
    for file in files {
        for case in read_cases(&file) {
            total += 1;
            inert += usize::from(case.expect.trim_start().starts_with("none"));
            let parsed = case.parser.parse(&case.text, case.finish);
            if let Some(complaint) = complaint(&case, &parsed) {
                failed += 1;
                let place = file.file_stem().expect("a name").display();
                writeln!(report, "{place}: {}\n      {complaint}", case.name).expect("memory");
            }
            let mut stream = StreamParser::new(&case.parser);
            case.text
                .as_bytes()
                .chunks(3)
                .for_each(|chunk| stream.feed(chunk));
            assert_eq!(
                stream.finish(case.finish),
                parsed,
                "{}: chunks change the result",
                case.name
            );
        }
    }
    println!("{total} cases, {inert} of them inert, {failed} failed");
    assert_eq!(failed, 0, "{failed} of {total} cases failed:\n{report}");
}
