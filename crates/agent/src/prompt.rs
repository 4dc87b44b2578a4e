//! What a model is told about its tools.

use crate::chat::{Message, Role};
use crate::settings::{PromptPlace, RunSettings, StructuredOutput};
use holdfast_intent::Strategy;
use holdfast_toolbox::declare;
use holdfast_toolbox::registry::Registry;
use serde_json::{Map, Value, json};

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

/// The prompt of a run: its own when it has one, else the built-in one of its strategy.
pub fn of(registry: &Registry, settings: &RunSettings) -> Option<String> {
    match &settings.prompt {
        Some(own) => Some(own.replace("{tools}", &declare::prompt(registry))),
        None => system(registry, settings.strategies().0),
    }
}

/// The messages with the prompt in its place. It joins what is there, since many servers take one
/// system message only, and some want users and assistants to alternate.
pub fn placed(prompt: Option<String>, place: PromptPlace, messages: &[Message]) -> Vec<Message> {
    let mut all = messages.to_vec();
    let Some(prompt) = prompt else { return all };
    match place {
        PromptPlace::System => match all.first_mut().filter(|first| first.role == Role::System) {
            Some(first) => first.content = format!("{}\n\n{prompt}", first.content),
            None => all.insert(0, Message::text(Role::System, prompt)),
        },
        PromptPlace::User => match all.iter_mut().find(|message| message.role == Role::User) {
            Some(first) => first.content = format!("{prompt}\n\n{}", first.content),
            None => all.insert(0, Message::text(Role::User, prompt)),
        },
    }
    all
}

/// Says more to the model as its user. Some servers want users and assistants to alternate.
pub fn join_user(messages: &mut Vec<Message>, text: &str) {
    match messages.last_mut().filter(|last| last.role == Role::User) {
        Some(last) => last.content = format!("{}\n\n{text}", last.content),
        None => messages.push(Message::text(Role::User, text)),
    }
}

/// The members of a request that make a server keep to the format of `guided_json`.
pub fn structured(registry: &Registry, settings: &RunSettings) -> Map<String, Value> {
    let mut members = Map::new();
    if settings.strategies().0 != Strategy::GuidedJson {
        return members;
    }
    let own = settings.guided_schema.clone();
    let schema = own.unwrap_or_else(|| reply_schema(registry));
    match settings.structured_output {
        StructuredOutput::ResponseFormat => {
            let format =
                json!({"type": "json_schema", "json_schema": {"name": "reply", "schema": schema}});
            members.insert("response_format".to_owned(), format);
        }
        StructuredOutput::GuidedJson => {
            members.insert("guided_json".to_owned(), schema);
        }
        StructuredOutput::Off => {}
    }
    members
}

/// What a reply in `guided_json` looks like, with the names of the tools that there are.
fn reply_schema(registry: &Registry) -> Value {
    let names: Vec<&str> = registry.iter().map(|found| found.tool.name()).collect();
    json!({
        "type": "object",
        "properties": {
            "reasoning": {"type": "string"},
            "tool_calls": {"type": "array", "items": {
                "type": "object",
                "properties": {
                    "name": {"type": "string", "enum": names},
                    "arguments": {"type": "object"},
                },
                "required": ["name", "arguments"],
            }},
            "done": {"type": "boolean"},
            "answer": {"type": "string"},
        },
        "required": ["reasoning", "tool_calls", "done"],
    })
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

    #[test]
    fn a_prompt_goes_where_it_is_told_to_and_joins_what_is_there() {
        let said = |role, text: &str| Message::text(role, text);
        let system = PromptPlace::System;
        let prompt = || Some("P".to_owned());
        let (rules, task) = (said(Role::System, "R"), said(Role::User, "T"));
        let both = [rules.clone(), task.clone()];
        let one = std::slice::from_ref(&task);
        assert_eq!(placed(None, system, &both), both);
        assert_eq!(placed(prompt(), system, &both)[0].content, "R\n\nP");
        assert_eq!(
            placed(prompt(), system, one),
            [said(Role::System, "P"), task.clone()]
        );
        assert_eq!(
            placed(prompt(), PromptPlace::User, &both),
            [rules, said(Role::User, "P\n\nT")]
        );
    }

    #[test]
    fn a_prompt_of_ones_own_names_the_tools() {
        let registry = Registry::new();
        let mut settings = RunSettings {
            prompt: Some("Use:{tools}!".to_owned()),
            ..RunSettings::default()
        };
        let text = of(&registry, &settings).unwrap();
        assert!(text.starts_with("Use:") && text.ends_with('!') && !text.contains("{tools}"));
        settings.prompt = None;
        assert!(of(&registry, &settings).unwrap().contains("Action Input"));
    }

    #[test]
    fn a_format_is_asked_for_in_the_server_s_words() {
        let registry = Registry::new();
        let mut settings = RunSettings::default();
        assert!(structured(&registry, &settings).is_empty());
        settings.strategy = "guided_json".to_owned();
        let asked = structured(&registry, &settings);
        let required = &asked["response_format"]["json_schema"]["schema"]["required"];
        assert_eq!(required, &json!(["reasoning", "tool_calls", "done"]));
        settings.structured_output = StructuredOutput::GuidedJson;
        settings.guided_schema = Some(json!({"type": "object"}));
        assert_eq!(
            structured(&registry, &settings)["guided_json"],
            json!({"type": "object"})
        );
        settings.structured_output = StructuredOutput::Off;
        assert!(structured(&registry, &settings).is_empty());
    }

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
