//! Replies with calls, one kind for each strategy.

use holdfast_intent::Strategy;
use serde_json::{Value, json};

use crate::prose::{Prose, prose};

/// Replies of one strategy, as they come in one conversation: some words, then a call.
pub fn replies(strategy: Strategy, many: usize) -> Vec<String> {
    (0..many)
        .map(|number| {
            let words = prose(Prose::Usual, 200, number as u64);
            let words = words.replace("I'll ", "They ").replace("Let me ", "We often ");
            let text = content(number);
            match strategy {
                Strategy::Auto | Strategy::Native => {
                    let call = json!({"name": "write", "arguments": arguments(number, &text)});
                    format!("{words}\n<tool_call>\n{call}\n</tool_call>")
                }
                Strategy::Harmony => format!(
                    "<|channel|>analysis<|message|>{words}<|end|><|start|>assistant<|channel|>commentary \
                     to=functions.write <|constrain|>json<|message|>{}<|call|>",
                    arguments(number, &text)
                ),
                Strategy::GuidedJson => json!({"reasoning": words, "done": false, "tool_calls":
                    [{"name": "write", "arguments": arguments(number, &text)}]})
                .to_string(),
                Strategy::React => format!(
                    "Thought: {}\nAction: write\nAction Input: {}\n",
                    words.replace('\n', " "),
                    arguments(number, &text)
                ),
                Strategy::Markers => format!(
                    "{words}\n[TOOL:write|path=notes/{number}.md|content={}]",
                    text.replace(['[', ']', '|', '\n'], " ")
                ),
                Strategy::Fuzzy => prose(Prose::Usual, 2_000, number as u64),
            }
        })
        .collect()
}

fn arguments(number: usize, text: &str) -> Value {
    json!({"path": format!("notes/{number}.md"), "content": text})
}

/// Something to write: words, code and marks to escape.
fn content(number: usize) -> String {
    let words = prose(Prose::Usual, 600, 1_000 + number as u64);
    format!("# Notes {number}\n\n{words}\n\n    let name = \"value\";\n    print(name)\n")
}
