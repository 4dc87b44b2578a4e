//! What to tell a model whose call could not be read: one message that shows the format.

use crate::model::{Parsed, Strategy};
use crate::problem::Problem;
use crate::tools::ToolSet;

/// The message, when one would help.
pub(crate) fn message(strategy: Strategy, tools: &ToolSet, parsed: &Parsed) -> Option<String> {
    let mut complaints: Vec<String> = Vec::new();
    for problem in &parsed.problems {
        complaints.push(problem.message());
    }
    for intent in &parsed.intents {
        for problem in intent
            .problems
            .iter()
            .filter(|problem| problem.is_blocking())
        {
            if !matches!(problem, Problem::Placeholder { .. }) {
                complaints.push(format!("`{}`: {}", intent.name, problem.message()));
            }
        }
    }
    if complaints.is_empty() {
        return None;
    }
    let names: Vec<&str> = tools
        .tools()
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    let example = names.first().copied().unwrap_or("tool_name");
    let argument = tools
        .tools()
        .first()
        .and_then(|tool| tool.main_argument())
        .unwrap_or("argument");
    Some(format!(
        "{}\nTo call a tool, reply with exactly this format and nothing else:\n{}\nTools: {}.",
        complaints.join("\n"),
        format_of(strategy, example, argument),
        names.join(", "),
    ))
}

fn format_of(strategy: Strategy, name: &str, argument: &str) -> String {
    match strategy {
        Strategy::React | Strategy::Fuzzy => {
            format!("Thought: why\nAction: {name}\nAction Input: {{\"{argument}\": \"…\"}}")
        }
        Strategy::GuidedJson => format!(
            "{{\"reasoning\": \"why\", \"tool_calls\": [{{\"name\": \"{name}\", \"arguments\": {{\"{argument}\": \"…\"}}}}], \"done\": false}}"
        ),
        Strategy::Markers => format!("[TOOL:{name}|{argument}=…]"),
        Strategy::Harmony => format!(
            "<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{{\"{argument}\": \"…\"}}<|call|>"
        ),
        Strategy::Native | Strategy::Auto => format!(
            "<tool_call>\n{{\"name\": \"{name}\", \"arguments\": {{\"{argument}\": \"…\"}}}}\n</tool_call>"
        ),
    }
}
