//! What comes out: intents, the final answer, whether the model is done, and what went wrong.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::problem::Problem;

/// How an intent was read, and which reading is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// Whatever the text looks like: every structured form, then plain English.
    #[default]
    Auto,
    /// The server returned `tool_calls`, or the model's own call tokens were left in the text.
    Native,
    /// gpt-oss channel tokens in raw text.
    Harmony,
    /// JSON in the content: guided decoding, a fenced block, a bare object or list.
    GuidedJson,
    /// `Thought:` / `Action:` / `Action Input:`.
    React,
    /// `[TOOL:name|key=value]`.
    Markers,
    /// Plain English.
    Fuzzy,
}

impl Strategy {
    /// All strategies, in the order in which they are documented.
    pub const ALL: [Self; 7] = [
        Self::Auto,
        Self::Native,
        Self::Harmony,
        Self::GuidedJson,
        Self::React,
        Self::Markers,
        Self::Fuzzy,
    ];

    /// The name in configuration and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Native => "native",
            Self::Harmony => "harmony",
            Self::GuidedJson => "guided_json",
            Self::React => "react",
            Self::Markers => "markers",
            Self::Fuzzy => "fuzzy",
        }
    }

    /// The strategy of that name.
    ///
    /// ```
    /// use holdfast_intent::Strategy;
    /// assert_eq!(Strategy::from_name("react"), Some(Strategy::React));
    /// assert_eq!(Strategy::from_name("telepathy"), None);
    /// ```
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.name() == name)
    }
}

/// Why the model stopped, as its server says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum FinishReason {
    /// Nobody said.
    #[default]
    Unknown,
    /// It ended by itself, or to call a tool.
    Stop,
    /// It was cut off, by a limit or a filter: the last thing in the text may not be whole.
    Length,
}

impl FinishReason {
    /// Reads an OpenAI-compatible, Anthropic or Gemini finish reason. Whatever ended the model
    /// against its will (a limit, a filter, an error) can have cut its last call.
    pub fn from_wire(reason: &str) -> Self {
        match reason.to_ascii_lowercase().as_str() {
            "length"
            | "max_tokens"
            | "max_output_tokens"
            | "model_length"
            | "model_context_window_exceeded"
            | "content_filter"
            | "content_filtered"
            | "safety"
            | "recitation"
            | "blocklist"
            | "prohibited_content"
            | "spii"
            | "language"
            | "malformed_function_call"
            | "guardrail_intervened"
            | "insufficient_system_resource"
            | "incomplete"
            | "abort"
            | "aborted"
            | "cancelled"
            | "canceled"
            | "timeout"
            | "error" => Self::Length,
            "stop" | "stop_sequence" | "tool_calls" | "tool_use" | "function_call" | "end_turn"
            | "eos" | "eos_token" | "complete" | "refusal" => Self::Stop,
            _ => Self::Unknown,
        }
    }
}

/// One thing that the model wants done.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Intent {
    /// The tool's own name where the tool is known, else the name as written.
    pub name: String,
    /// A JSON object, with the names and types of the tool's schema.
    pub arguments: Map<String, Value>,
    /// From 0 to 1; see [`crate::RUN_READ_ONLY_MIN`] and [`crate::RUN_MUTATING_MIN`].
    pub confidence: f64,
    /// How it was read.
    pub strategy: Strategy,
    /// Where it stands: byte offsets, start and end. A call that the server returned as such does
    /// not stand in the text: 0 and 0.
    pub span: [usize; 2],
    /// False when the text was cut off inside the call. Never run such a call.
    pub complete: bool,
    /// What is wrong with it.
    pub problems: Vec<Problem>,
    /// The server's name of this call, which its result has to carry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// Whether the tool changes anything, as far as is known. An unknown tool counts as mutating.
    #[serde(skip)]
    pub mutating: bool,
}

impl Intent {
    /// Whether it can be run as it is, without asking back.
    pub fn is_runnable(&self) -> bool {
        let threshold = if self.mutating {
            crate::RUN_MUTATING_MIN
        } else {
            crate::RUN_READ_ONLY_MIN
        };
        self.complete
            && self.confidence >= threshold
            && !self.problems.iter().any(Problem::is_blocking)
    }

    /// Whether a call was plainly meant and only its arguments do not fit: then the tool's schema
    /// has the last word, and its answer says more than we do.
    pub fn is_refusable(&self) -> bool {
        let of_arguments = |problem: &Problem| {
            matches!(
                problem,
                Problem::MissingArgument { .. }
                    | Problem::WrongType { .. }
                    | Problem::WrongValue { .. }
            )
        };
        let mut fits_but_for_them = self.clone();
        fits_but_for_them.problems.retain(|it| !of_arguments(it));
        self.strategy != Strategy::Fuzzy
            && self.problems.iter().any(of_arguments)
            && fits_but_for_them.is_runnable()
    }
}

/// What one reply of a model means.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Parsed {
    /// In the order of the text, without repetitions.
    pub intents: Vec<Intent>,
    /// The answer for the user, when there is one.
    #[serde(rename = "final")]
    pub final_text: Option<String>,
    /// Whether the model says it is done: an explicit signal, or nothing left to do.
    pub completed: bool,
    /// Whether it was such a signal.
    #[serde(skip)]
    pub signalled: bool,
    /// What is wrong with the reply as a whole.
    pub problems: Vec<Problem>,
}
