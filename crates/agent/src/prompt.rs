//! What a model is told about its tools.

use holdfast_intent::Strategy;
use holdfast_toolbox::declare;
use holdfast_toolbox::registry::Registry;
use serde_json::Value;

/// How to call tools, for each way of reading. A server with native calls tells its model itself.
pub fn format_rules(strategy: Strategy) -> Option<&'static str> {
    match strategy {
        Strategy::React => Some(include_str!("../prompts/react.txt")),
        Strategy::GuidedJson => Some(include_str!("../prompts/guided_json.txt")),
        Strategy::Markers => Some(include_str!("../prompts/markers.txt")),
        Strategy::Fuzzy => Some(include_str!("../prompts/fuzzy.txt")),
        Strategy::Auto => Some(include_str!("../prompts/tags.txt")),
        Strategy::Native | Strategy::Harmony => None,
    }
}

/// The system prompt: the tools, and how to call them.
pub fn system(registry: &Registry, strategy: Strategy) -> Option<String> {
    let rules = format_rules(strategy)?;
    Some(format!("{}\n{rules}", declare::prompt(registry)))
}

/// What a client wants its answer to look like, in words.
pub fn answer_format(response_format: &Value) -> Option<String> {
    let said = match response_format["type"].as_str()? {
        "json_object" => "one JSON object and nothing else.".to_owned(),
        "json_schema" => format!(
            "one JSON value and nothing else, and has to fit this JSON Schema: {}",
            response_format["json_schema"]["schema"]
        ),
        _ => return None,
    };
    Some(format!("Your final answer to the user has to be {said}"))
}

#[cfg(test)]
mod tests {
    use holdfast_intent::{FinishReason, Parser};

    use super::*;

    /// What the prompts show must be readable, and must not run when a model repeats them.
    #[test]
    fn a_prompt_that_is_echoed_runs_nothing() {
        for strategy in Strategy::ALL {
            let Some(rules) = format_rules(strategy) else {
                continue;
            };
            let parser = Parser::default().with_strategies(strategy, Some(Strategy::Fuzzy));
            let parsed = parser.parse(rules, FinishReason::Stop);
            let runs: Vec<_> = parsed
                .intents
                .iter()
                .filter(|it| it.is_runnable())
                .collect();
            assert!(runs.is_empty(), "{}: {runs:?}", strategy.name());
        }
    }
}
