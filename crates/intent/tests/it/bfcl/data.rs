//! The Berkeley function-calling data: questions, tools, and the calls that answer them.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

/// Files with expected calls.
const ANSWERED: &[&str] = &[
    "simple_python",
    "multiple",
    "parallel",
    "parallel_multiple",
    "live_simple",
    "live_parallel",
    "simple_java",
    "simple_javascript",
];

/// Points to the data where it does not lie beside the repository.
pub(crate) const FOLDER_VARIABLE: &str = "HOLDFAST_BFCL";

/// One call, as it should be made.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    pub(crate) name: String,
    pub(crate) arguments: Map<String, Value>,
}

/// One question with its tools and the calls that answer it.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub(crate) id: String,
    pub(crate) question: String,
    /// A list of tools, each with `name`, `description`, `parameters`.
    pub(crate) tools: Value,
    pub(crate) calls: Vec<Call>,
}

/// Where the data is, if it is there: the variable, else `../shared/data/bfcl` beside the root.
pub(crate) fn folder() -> Option<PathBuf> {
    let given = std::env::var_os(FOLDER_VARIABLE).map(PathBuf::from);
    let packages = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let mut beside = packages.map(|dir| dir.join("../shared/data/bfcl"));
    given
        .or_else(|| beside.find(|folder| folder.is_dir()))
        .filter(|folder| folder.is_dir())
}

/// All questions that calls answer.
pub(crate) fn answered(folder: &Path) -> Vec<Item> {
    let mut items = Vec::new();
    for file in ANSWERED {
        let file = format!("BFCL_v4_{file}.json");
        let answers = lines(&folder.join("possible_answer").join(&file));
        let questions = lines(&folder.join(&file));
        for question in questions {
            let truth = answers
                .iter()
                .find(|answer| answer["id"] == question["id"])
                .map(|answer| answer["ground_truth"].clone())
                .unwrap_or_default();
            items.push(item(&question, &truth));
        }
    }
    items
}

/// Questions that no tool answers.
pub(crate) fn irrelevant(folder: &Path) -> Vec<Item> {
    lines(&folder.join("BFCL_v4_irrelevance.json"))
        .iter()
        .map(|question| item(question, &Value::Null))
        .collect()
}

fn lines(path: &Path) -> Vec<Value> {
    let source =
        std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    source
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| serde_json::from_str(line).expect("a line of JSON"))
        .collect()
}

fn item(question: &Value, truth: &Value) -> Item {
    let mut calls: Vec<Call> = Vec::new();
    for call in truth.as_array().into_iter().flatten() {
        for (name, options) in call.as_object().into_iter().flatten() {
            let call = Call {
                name: name.clone(),
                arguments: members(options),
            };
            // The same call twice is one intent.
            if !calls.contains(&call) {
                calls.push(call);
            }
        }
    }
    Item {
        id: question["id"].as_str().unwrap_or_default().to_owned(),
        question: question["question"][0][0]["content"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
        tools: question["function"].clone(),
        calls,
    }
}

/// The first admissible value of each member; one whose first is "" is left out.
fn members(options: &Value) -> Map<String, Value> {
    let mut out = Map::new();
    for (name, options) in options.as_object().into_iter().flatten() {
        let first = match options {
            Value::Array(options) => options.first(),
            other => Some(other),
        };
        if let Some(first) = first
            && first.as_str() != Some("")
        {
            out.insert(name.clone(), settled(first));
        }
    }
    out
}

/// Members of objects have options of their own, also in lists.
fn settled(value: &Value) -> Value {
    match value {
        Value::Object(_) => Value::Object(members(value)),
        Value::Array(items) => Value::Array(items.iter().map(settled).collect()),
        other => other.clone(),
    }
}
