//! What to tell a model whose call could not be read: one message that shows the format.

use std::fmt::Write as _;

use crate::limits::CORRECTIVE_NAMES_MAX;
use crate::model::{Parsed, Strategy};
use crate::problem::Problem;
use crate::tools::{ToolSet, ToolSpec};

/// The message, when one would help. Open places alone need none: earlier results will fill them.
pub(crate) fn message(strategy: Strategy, tools: &ToolSet, parsed: &Parsed) -> Option<String> {
    let complaints = complaints(parsed);
    if complaints.is_empty() {
        return None;
    }
    let meant = parsed
        .intents
        .iter()
        .filter(|intent| intent.problems.iter().any(Problem::is_blocking))
        .find_map(|intent| tools.find(&intent.name));
    let example = Example::of(meant.or_else(|| tools.tools().first()));
    let mut text = complaints.join("\n");
    text.push('\n');
    text.push_str(how(strategy));
    text.push('\n');
    text.push_str(&format_of(strategy, &example));
    let names: Vec<&str> = tools
        .tools()
        .iter()
        .take(CORRECTIVE_NAMES_MAX)
        .map(|tool| tool.name.as_str())
        .collect();
    if !names.is_empty() {
        text.push_str("\nTools: ");
        text.push_str(&names.join(", "));
        let more = tools.tools().len() - names.len();
        if more > 0 {
            // Writing into a string can not fail.
            let _ = write!(text, " and {more} more");
        }
        text.push('.');
    }
    Some(text)
}

/// What is wrong, each thing once. What a server did wrong is not the model's mistake, nor is it that
/// its answer was too long.
fn complaints(parsed: &Parsed) -> Vec<String> {
    let has_call =
        !parsed.intents.is_empty() || parsed.problems.contains(&Problem::LooksLikeFailedCall);
    let is_mistake = |problem: &&Problem| match problem {
        Problem::EmptyReply | Problem::ServerError { .. } => false,
        Problem::Truncated => has_call,
        _ => true,
    };
    let mut found: Vec<String> = parsed
        .problems
        .iter()
        .filter(is_mistake)
        .map(Problem::message)
        .collect();
    for intent in &parsed.intents {
        let blocking = intent.problems.iter().filter(|problem| {
            problem.is_blocking() && !matches!(problem, Problem::Placeholder { .. })
        });
        found.extend(blocking.map(|problem| format!("`{}`: {}", intent.name, problem.message())));
    }
    let mut seen = Vec::new();
    found.retain(|complaint| {
        let new = !seen.contains(complaint);
        seen.push(complaint.clone());
        new
    });
    found
}

/// A call of one tool, with all that it requires.
struct Example {
    name: String,
    arguments: Vec<String>,
}

impl Example {
    fn of(tool: Option<&ToolSpec>) -> Self {
        let mut arguments: Vec<String> = tool
            .into_iter()
            .flat_map(ToolSpec::required)
            .map(str::to_owned)
            .collect();
        if arguments.is_empty()
            && let Some(main) = tool.and_then(ToolSpec::main_argument)
        {
            arguments.push(main.to_owned());
        }
        Self {
            name: tool.map_or_else(|| "tool_name".to_owned(), |tool| tool.name.clone()),
            arguments,
        }
    }

    fn json(&self) -> String {
        let members: Vec<String> = self
            .arguments
            .iter()
            .map(|argument| format!("\"{argument}\": \"…\""))
            .collect();
        format!("{{{}}}", members.join(", "))
    }

    fn pairs(&self) -> String {
        self.arguments
            .iter()
            .fold(String::new(), |mut text, argument| {
                text.push('|');
                text.push_str(argument);
                text.push_str("=…");
                text
            })
    }
}

fn how(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::Native => {
            "Call the tool again, with its arguments as one JSON object and nothing around it:"
        }
        _ => "To call a tool, reply with exactly this format and nothing else:",
    }
}

fn format_of(strategy: Strategy, example: &Example) -> String {
    let (name, json) = (&example.name, example.json());
    match strategy {
        Strategy::React | Strategy::Fuzzy => {
            format!("Thought: why\nAction: {name}\nAction Input: {json}")
        }
        Strategy::GuidedJson => format!(
            "{{\"reasoning\": \"why\", \"tool_calls\": [{{\"name\": \"{name}\", \"arguments\": {json}}}], \"done\": false}}"
        ),
        Strategy::Markers => format!("[TOOL:{name}{}]", example.pairs()),
        Strategy::Harmony => format!(
            "<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{json}<|call|>"
        ),
        Strategy::Native => format!("{name} {json}"),
        Strategy::Auto => {
            format!("<tool_call>\n{{\"name\": \"{name}\", \"arguments\": {json}}}\n</tool_call>")
        }
    }
}
