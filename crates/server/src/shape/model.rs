//! Answers of the routes to the model.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// A completion.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Completion<'a> {
    /// Its name, after that of its run.
    pub id: String,
    /// `chat.completion`
    pub object: &'a str,
    /// When its run began, in seconds since 1970.
    pub created: u64,
    /// The model, as the client named it.
    pub model: &'a str,
    /// One.
    pub choices: [Choice<'a>; 1],
    /// What it took.
    pub usage: UsageShown,
    /// What became of it here.
    pub executor_metadata: Metadata<'a>,
}

/// What was answered.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Choice<'a> {
    /// 0
    pub index: u32,
    /// The message.
    pub message: ChoiceMessage<'a>,
    /// `stop`, `length`, `content_filter` or `tool_calls`.
    pub finish_reason: &'a str,
    /// Always null.
    pub logprobs: Option<()>,
}

/// A message of the model.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ChoiceMessage<'a> {
    /// `assistant`
    pub role: &'a str,
    /// What it says.
    pub content: Option<&'a str>,
    /// What it thought.
    pub reasoning: &'a str,
    /// Always null.
    pub refusal: Option<()>,
    /// The calls that the client is to run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<Vec<CallShown>>,
}

/// A call for a client.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CallShown {
    /// What its result has to name.
    pub id: String,
    /// `function`
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// What is called.
    pub function: FunctionShown,
}

/// What is called.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FunctionShown {
    /// The tool.
    pub name: String,
    /// Its arguments: a JSON object, written as text.
    pub arguments: String,
}

/// What a completion took.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct UsageShown {
    /// Tokens of the last question.
    pub prompt_tokens: u64,
    /// Tokens of the last reply.
    pub completion_tokens: u64,
    /// Tokens of all questions and replies of the run.
    pub total_tokens: u64,
}

/// What became of a request here.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Metadata<'a> {
    /// The run.
    pub run_id: &'a str,
    /// How often the model was asked.
    pub iterations: u32,
    /// The tools that were called, in their order.
    pub tools_called: &'a [String],
    /// How long they took.
    pub total_tool_execution_time_ms: u64,
    /// The part of the window that the last answer took.
    pub context_usage_percent: f64,
    /// What was asked for, where it was too much.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens_clamped: Option<Clamped>,
    /// The last content of a run that has no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<&'a str>,
    /// What the model wanted at the end and nothing came of.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_done: Vec<NotDoneShown<'a>>,
    /// Calls beside those of the answer that stayed wrong, also after the model was told so.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls_left_out: Vec<CallLeftOut<'a>>,
}

/// A wish of the model that nothing came of.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct NotDoneShown<'a> {
    /// The tool, as far as it could be read.
    pub tool: &'a str,
    /// The arguments, as far as they could be read; long texts are cut.
    pub arguments: &'a Map<String, Value>,
    /// Why nothing came of it.
    pub why: &'a str,
}

/// A call that is not given to the client.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct CallLeftOut<'a> {
    /// The tool, as the model named it.
    pub name: &'a str,
    /// What is wrong with the call.
    pub reason: &'a str,
}

/// A wish that was too large.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct Clamped {
    /// The wish.
    pub asked: u64,
    /// What it got.
    pub used: u32,
}

/// A list of models.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ModelList<'a> {
    /// `list`
    pub object: &'a str,
    /// The models.
    pub data: Vec<ModelShown<'a>>,
}

/// A model.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ModelShown<'a> {
    /// Its name.
    pub id: &'a str,
    /// `model`
    pub object: &'a str,
    /// When the server began, in seconds since 1970.
    pub created: u64,
    /// `holdfast`
    pub owned_by: &'a str,
}

/// A page of runs.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunList<'a> {
    /// `list`
    pub object: &'a str,
    /// The runs, newest first.
    pub data: Vec<RunShown<'a>>,
    /// `after` of the next page; null on the last.
    pub next: Option<&'a str>,
}

/// A run.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunShown<'a> {
    /// Its name.
    pub id: &'a str,
    /// `run`
    pub object: &'a str,
    /// `running` (here), `unfinished`, `answered`, `calls`, `failed` or `cancelled`.
    pub status: &'a str,
    /// The model, as the client named it.
    pub model: &'a str,
    /// Whose it is; keys are told apart by fingerprints.
    pub client: &'a str,
    /// When it began, in seconds since 1970.
    pub created: u64,
    /// When it was last kept.
    pub updated: u64,
    /// How often the model was asked.
    pub iterations: u32,
    /// The tools that were called.
    pub tools_called: &'a [String],
    /// Tokens of all questions and replies.
    pub total_tokens: u64,
    /// How it ended; only of a single run, and null before its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<RunResult<'a>>,
    /// What the model last thought; only of a single run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<&'a str>,
    /// The approvals that its calls wait for; only of a single run, and only while there are any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waits_for_approvals: Vec<String>,
}

/// How a run ended.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum RunResult<'a> {
    /// With an answer, or calls for the client.
    Answer {
        /// The answer.
        content: &'a str,
        /// The calls.
        #[serde(skip_serializing_if = "Option::is_none")]
        tool_calls: Option<Vec<CallShown>>,
        /// `stop`, `length`, `content_filter` or `tool_calls`.
        finish_reason: &'a str,
        /// Calls beside those that stayed wrong.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        calls_left_out: Vec<CallLeftOut<'a>>,
    },
    /// With an error.
    Failed {
        /// The error.
        error: RunErrorShown<'a>,
    },
    /// Not yet, or it was cancelled.
    Nothing,
}

/// Why a run has no answer.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunErrorShown<'a> {
    /// For programs.
    pub code: &'a str,
    /// For people.
    pub message: &'a str,
}

/// What became of a wish about a run.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunStatus<'a> {
    /// The run.
    pub id: &'a str,
    /// How it is now.
    pub status: &'a str,
}
