//! The bounds and ways of one run.

use std::collections::BTreeMap;

use holdfast_contract::names::at_home;
use holdfast_intent::Strategy;
use serde::{Deserialize, Serialize};

use crate::context::WindowSettings;
use crate::context::spend::CostSettings;
use crate::results::RESULT_CHARS_DEFAULT;
use crate::runs::CLIENT_AWAY_MS_MAX;

/// Which field of a reply is read for calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceField {
    /// What the model thought.
    Reasoning,
    /// What the model said.
    Content,
}

/// How private reasoning stands in the content, where a server leaves it there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Thought {
    /// Between tags, both written by the model.
    #[default]
    Tagged,
    /// The chat template opens it, so that a reply begins inside of it and only its end is seen.
    Opened,
}

/// What becomes of a run whose iterations are used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhenUsedUp {
    /// An error that carries the last content.
    Fail,
    /// The last content is the answer.
    Answer,
}

/// What becomes of a guess at prose that would change things.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MutatingGuess {
    /// The model is asked to say it as a call, as often as iterations remain.
    AskModel,
    /// A person is asked whether it may run.
    AskPerson,
    /// It runs from a confidence on.
    Run,
}

/// How a server is told to keep to the format of `guided_json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StructuredOutput {
    /// As `response_format`, which most servers have.
    ResponseFormat,
    /// As `guided_json`, which older vLLM has.
    GuidedJson,
    /// Not at all: the prompt has to do.
    Off,
}

/// Where the prompt goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptPlace {
    /// Into the system message.
    System,
    /// In front of the first user message, for servers that drop the system message.
    User,
}

/// One run's settings. Kept with the run: a resumed one goes on by the rules it began under.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunSettings {
    /// How often the model is asked at most.
    pub max_iterations: u32,
    /// How long the run may take.
    pub run_timeout_ms: u64,
    /// How long one answer of the model may take; of one that comes in pieces, how long each of them.
    pub call_timeout_ms: u64,
    /// How long a client that went away may take to come back, before its run is cancelled.
    pub client_away_ms: u64,
    /// How often a model server that is away is asked for one answer.
    pub model_attempts_max: u32,
    /// Tokens of one answer.
    pub max_tokens: u32,
    /// Sampling.
    pub temperature: f64,
    /// Nucleus sampling; none leaves it to the server.
    pub top_p: Option<f64>,
    /// The way of reading that is tried first.
    pub strategy: String,
    /// The way that is tried when the first finds nothing.
    pub fallback_strategy: Option<String>,
    /// The field that is read first.
    pub source_field: SourceField,
    /// The field that is read when the first has no call. The same as the first: none.
    pub fallback_field: SourceField,
    /// How private reasoning stands in the content.
    pub thought: Thought,
    /// What becomes of a guess at prose that would change things.
    pub mutating_guess: MutatingGuess,
    /// From this confidence on such a guess runs, where guesses may run.
    pub mutating_guess_min: f64,
    /// Characters of a result that the model sees, by tool.
    pub result_limits: BTreeMap<String, usize>,
    /// What becomes of a run whose iterations are used up.
    pub when_used_up: WhenUsedUp,
    /// Tokens that the run may use in all; none for no bound.
    pub tokens_max: Option<u64>,
    /// The model's window.
    pub window: WindowSettings,
    /// What the model costs.
    pub cost: CostSettings,
    /// A prompt in place of the built-in one; `{tools}` in it stands for the list of tools.
    pub prompt: Option<String>,
    /// Where the prompt goes.
    pub prompt_place: PromptPlace,
    /// How a server is told to keep to a format.
    pub structured_output: StructuredOutput,
    /// A JSON Schema in place of the built-in one.
    pub guided_schema: Option<serde_json::Value>,
}

impl Default for RunSettings {
    fn default() -> Self {
        let limits = [
            ("web_search", 1000),
            ("web_fetch", 3000),
            ("read", 5000),
            ("write", 200),
            ("exec", 2000),
            ("browser", 3000),
        ];
        Self {
            max_iterations: 5,
            run_timeout_ms: 300_000,
            call_timeout_ms: 60_000,
            client_away_ms: CLIENT_AWAY_MS_MAX,
            model_attempts_max: 3,
            max_tokens: 1000,
            temperature: 0.25,
            top_p: Some(0.95),
            strategy: Strategy::React.name().to_owned(),
            fallback_strategy: Some(Strategy::Auto.name().to_owned()),
            source_field: SourceField::Reasoning,
            fallback_field: SourceField::Content,
            thought: Thought::default(),
            mutating_guess: MutatingGuess::AskModel,
            mutating_guess_min: 0.6,
            result_limits: limits
                .into_iter()
                .map(|(tool, chars)| (tool.to_owned(), chars))
                .collect(),
            when_used_up: WhenUsedUp::Fail,
            tokens_max: None,
            window: WindowSettings::default(),
            cost: CostSettings::default(),
            prompt: None,
            prompt_place: PromptPlace::System,
            structured_output: StructuredOutput::ResponseFormat,
            guided_schema: None,
        }
    }
}

impl RunSettings {
    /// Characters of a result of this tool that the model sees.
    pub fn result_chars_max(&self, tool: &str) -> usize {
        let limits = &self.result_limits;
        let limit = limits.get(tool).or_else(|| limits.get(at_home(tool)));
        limit.copied().unwrap_or(RESULT_CHARS_DEFAULT)
    }

    /// The strategies. Names that are not known were refused when the settings were read.
    pub fn strategies(&self) -> (Strategy, Option<Strategy>) {
        let primary = Strategy::from_name(&self.strategy).unwrap_or_default();
        let fallback = self.fallback_strategy.as_deref();
        (primary, fallback.and_then(Strategy::from_name))
    }
}
