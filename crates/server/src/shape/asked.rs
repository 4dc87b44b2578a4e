//! What a client may send to the model. For the document only: `routes::chat` reads it field by field,
//! to name what is wrong.

use schemars::JsonSchema;
use serde_json::{Map, Value};

use crate::limits::{CLIENT_TOOLS_MAX, MESSAGES_MAX, RUN_TIMEOUT_S_MAX, STOPS_MAX};

/// A request for a completion. Fields that are not listed are ignored, and null is as good as absent.
#[derive(Debug, JsonSchema)]
pub struct ChatRequest {
    /// One of the names under `GET /v1/models`.
    #[schemars(example = "gpt-oss", example = "gpt-oss-tools")]
    pub model: String,
    /// The history.
    #[schemars(length(min = 1, max = MESSAGES_MAX))]
    pub messages: Vec<ChatMessage>,
    /// Whether the answer comes as server-sent events.
    pub stream: Option<bool>,
    /// What a stream says beside the answer.
    pub stream_options: Option<StreamOptions>,
    /// Sampling.
    #[schemars(range(min = 0, max = 2))]
    pub temperature: Option<f64>,
    /// Nucleus sampling.
    #[schemars(range(min = 0, max = 1))]
    pub top_p: Option<f64>,
    /// Tokens of one answer; more than the server's own cap are cut to it.
    #[schemars(range(min = 1))]
    pub max_tokens: Option<u64>,
    /// The newer name of the same.
    #[schemars(range(min = 1))]
    pub max_completion_tokens: Option<u64>,
    /// Seconds that the run may take.
    #[schemars(range(min = 1, max = RUN_TIMEOUT_S_MAX))]
    pub timeout: Option<u64>,
    /// One.
    #[schemars(range(min = 1, max = 1))]
    pub n: Option<u64>,
    /// Texts at which the model is to stop.
    pub stop: Option<Stop>,
    /// Makes sampling repeat itself.
    pub seed: Option<i64>,
    /// Passed on to the model's server.
    pub frequency_penalty: Option<f64>,
    /// Passed on to the model's server.
    pub presence_penalty: Option<f64>,
    /// How much the model thinks. Passed on to its server.
    pub reasoning_effort: Option<String>,
    /// The form of the answer.
    pub response_format: Option<ResponseFormat>,
    /// The client's functions, for the models that return calls.
    #[schemars(length(max = CLIENT_TOOLS_MAX))]
    pub tools: Option<Vec<ClientFunction>>,
    /// Which of them.
    pub tool_choice: Option<ToolChoiceAsked>,
    /// Whether several calls may come at once.
    pub parallel_tool_calls: Option<bool>,
    /// What becomes of the calls, whatever the model's name says.
    pub executor: Option<ExecutorAsked>,
}

/// A message of a history, by who says it.
#[derive(Debug, JsonSchema)]
#[serde(tag = "role", rename_all = "lowercase")]
pub enum ChatMessage {
    /// The rules.
    System(Spoken),
    /// The rules, by their newer name.
    Developer(Spoken),
    /// A person.
    User(Spoken),
    /// The model.
    Assistant(Spoken),
    /// A tool.
    Tool(Told),
    /// A tool, by its older name.
    Function(Told),
}

/// What somebody said.
#[derive(Debug, JsonSchema)]
pub struct Spoken {
    /// What is said.
    pub content: Option<Content>,
    /// The calls of an earlier answer.
    pub tool_calls: Option<Vec<CallAsked>>,
    /// Passed over.
    pub tool_call_id: Option<String>,
}

/// What a tool told.
#[derive(Debug, JsonSchema)]
pub struct Told {
    /// What is said.
    pub content: Option<Content>,
    /// Passed over.
    pub tool_calls: Option<Vec<CallAsked>>,
    /// The call that it answers.
    pub tool_call_id: String,
}

/// What is said.
#[derive(Debug, JsonSchema)]
#[serde(untagged)]
pub enum Content {
    /// A text.
    Text(String),
    /// Parts, of which only text can be read.
    Parts(Vec<Part>),
}

/// A part of what is said.
#[derive(Debug, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    /// A text.
    Text {
        /// The text.
        text: String,
    },
    /// A text.
    InputText {
        /// The text.
        text: String,
    },
    /// A text.
    OutputText {
        /// The text.
        text: String,
    },
    /// Passed over.
    Refusal {},
}

/// A call of an earlier answer.
#[derive(Debug, JsonSchema)]
pub struct CallAsked {
    /// What its result names.
    pub id: Option<String>,
    /// What was called.
    pub function: FunctionAsked,
}

/// What was called.
#[derive(Debug, JsonSchema)]
pub struct FunctionAsked {
    /// The tool.
    pub name: String,
    /// Its arguments: a JSON object, written as text.
    pub arguments: Option<String>,
}

/// What a stream says beside the answer.
#[derive(Debug, JsonSchema)]
pub struct StreamOptions {
    /// Whether it ends with what it took.
    pub include_usage: Option<bool>,
}

/// Texts at which the model is to stop.
#[derive(Debug, JsonSchema)]
#[serde(untagged)]
pub enum Stop {
    /// One.
    One(String),
    /// Several.
    Several(#[schemars(length(max = STOPS_MAX))] Vec<String>),
}

/// The form of the answer.
#[derive(Debug, JsonSchema)]
pub struct ResponseFormat {
    /// Which.
    #[serde(rename = "type")]
    pub kind: FormatKind,
    /// For `json_schema`; passed on to the model's server.
    pub json_schema: Option<Map<String, Value>>,
}

/// Forms of answers.
#[derive(Debug, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FormatKind {
    /// Text.
    Text,
    /// Any JSON object.
    JsonObject,
    /// JSON of a schema.
    JsonSchema,
}

/// A function of the client.
#[derive(Debug, JsonSchema)]
pub struct ClientFunction {
    /// `function`
    #[serde(rename = "type")]
    pub kind: FunctionKind,
    /// The function.
    pub function: FunctionOffered,
}

/// The one kind of tool that a client can offer.
#[derive(Debug, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FunctionKind {
    /// A function.
    Function,
}

/// A function that is offered.
#[derive(Debug, JsonSchema)]
pub struct FunctionOffered {
    /// Its name.
    #[schemars(regex(pattern = r"^[A-Za-z0-9_-]{1,64}$"))]
    pub name: String,
    /// What it does.
    pub description: Option<String>,
    /// The JSON Schema of its arguments.
    pub parameters: Option<Map<String, Value>>,
}

/// Which function.
#[derive(Debug, JsonSchema)]
#[serde(untagged)]
pub enum ToolChoiceAsked {
    /// By a word.
    Word(ChoiceWord),
    /// By its name.
    Named {
        /// The function.
        function: FunctionNamed,
    },
}

/// Words for a choice.
#[derive(Debug, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ChoiceWord {
    /// As the model likes.
    Auto,
    /// None.
    None,
    /// At least one.
    Required,
}

/// A function by its name.
#[derive(Debug, JsonSchema)]
pub struct FunctionNamed {
    /// The name.
    pub name: String,
}

/// What becomes of the calls.
#[derive(Debug, JsonSchema)]
pub struct ExecutorAsked {
    /// They run here, or go back to the client.
    pub mode: Option<ModeAsked>,
}

/// Where calls go.
#[derive(Debug, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ModeAsked {
    /// They run here.
    Loop,
    /// They go back to the client.
    Return,
}
