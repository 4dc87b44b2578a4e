//! The cases under `cases/`, read from their files.

use std::path::{Path, PathBuf};

use holdfast_intent::{FinishReason, Parser, Strategy, ToolSet};

pub(crate) struct Case {
    pub(crate) file: String,
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) expect: String,
    pub(crate) parser: Parser,
    pub(crate) finish: FinishReason,
}

fn folder() -> PathBuf {
    // The bench that reads them is in another package.
    let packages = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let mut folders = packages.map(|dir| dir.join("crates/intent/cases"));
    folders.find(|dir| dir.is_dir()).expect("the folder")
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
        file: String::new(),
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
    let (mut tools, mut strategy) = (ToolSet::built_in(), None);
    let mut finish = FinishReason::Unknown;
    for line in lines {
        match line.split_once(": ") {
            Some(("finish", reason)) => finish = FinishReason::from_wire(reason),
            Some(("strategy", name)) => {
                strategy = Some(Strategy::from_name(name).expect("a strategy"));
            }
            Some(("tools", file)) => {
                let source = std::fs::read_to_string(folder().join(file)).expect("tools");
                let value = serde_json::from_str(&source).expect("tools are JSON");
                tools = ToolSet::from_json(&value).expect("a list of tools");
            }
            _ => panic!("{name}: unknown line {line}"),
        }
    }
    let mut parser = Parser::new(tools);
    if let Some(strategy) = strategy {
        parser = parser.with_strategies(strategy, Some(Strategy::Fuzzy));
    }
    Case {
        file: String::new(),
        name,
        text: text.to_owned(),
        expect: expect.to_owned(),
        parser,
        finish,
    }
}

/// Every case of every file, in the files' order.
pub(crate) fn all_cases() -> Vec<Case> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder())
        .expect("the folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    files.sort();
    let mut cases = Vec::new();
    for file in files {
        let stem = file.file_stem().expect("a name").display().to_string();
        cases.extend(read_cases(&file).into_iter().map(|case| Case {
            file: stem.clone(),
            ..case
        }));
    }
    cases
}
