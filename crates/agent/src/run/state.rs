//! What a run is at any moment: all that a checkpoint has to hold.

use holdfast_contract::Artifact;
use holdfast_reliability::canonical::Digest;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::doubt::Doubt;
use super::held::HeldCalls;
use super::returning::Mode;
use super::wishes::Chain;
use crate::chat::{Message, NativeCall};
use crate::context::ContextAccount;
use crate::results::CallResult;
use crate::settings::RunSettings;

/// The version of a stored run. One of another version is not gone on with.
pub const RUN_FORMAT: u32 = 1;

/// A run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each says another thing that the model has heard or said"
)]
pub struct RunState {
    /// [`RUN_FORMAT`].
    pub format: u32,
    /// The run's name; also its calls' turn, so that the loop guard counts per run.
    pub id: String,
    /// The model as the client named it.
    pub model: String,
    /// The session its calls belong to.
    pub session: String,
    /// On whose behalf.
    pub actor: String,
    /// The session whose subagent it works for. Such a run ends with the process it runs in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The rules it began under.
    pub settings: RunSettings,
    /// Where its calls go.
    #[serde(default)]
    pub mode: Mode,
    /// When its answer is told.
    #[serde(default)]
    pub telling: Telling,
    /// What the request is known by that began it, if its client counts its tries: one that is made
    /// again belongs to this run, also after the process has died that it was made to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Digest>,
    /// Fields of the client's request that go to the model's server as they are.
    #[serde(default)]
    pub passed_on: Map<String, Value>,
    /// Everything said so far, the prompt not included: that is made anew for every request.
    pub messages: Vec<Message>,
    /// When it began.
    pub begun_at_ms: u64,
    /// When the process that works on it took it up.
    pub taken_up_at_ms: u64,
    /// How long others had worked on it before. Time in which nobody did does not count.
    #[serde(default)]
    pub worked_before_ms: u64,
    /// How often it was taken up since it last came further.
    #[serde(default)]
    pub take_ups: u32,
    /// The call that may have begun before it was taken up.
    #[serde(default)]
    pub doubt: Option<Doubt>,
    /// How often the model has been asked and has answered.
    pub iteration: u32,
    /// What is to be done next.
    pub phase: Phase,
    /// What each answer of the model took.
    pub tokens: Vec<TokensUsed>,
    /// The tools that were called, in order.
    pub tools_called: Vec<String>,
    /// How long they took in all.
    pub tools_ms: u64,
    /// What they made besides their output.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub made: Vec<Artifact>,
    /// Whether one of them may have changed anything.
    #[serde(default)]
    pub effects: Effects,
    /// Whether the last thing the model heard was that its call could not be read.
    pub corrected: bool,
    /// The calls for the client that were right when others were asked back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<HeldCalls>,
    /// Whether the last thing the model said was nothing, and it was just asked again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub said_nothing: bool,
    /// Whether what the model said, the last time, is a call; looked at where it could be the answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub said_a_call: bool,
    /// What the model wanted with its last reply, and what was not done of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_done: Vec<NotDone>,
    /// Guesses at prose that a person has said no to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<(String, Map<String, Value>)>,
    /// Whether the model heard that no tool runs any more in this run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub told_to_stop: bool,
    /// What the model thought, the last time.
    pub reasoning: String,
    /// What the model said, the last time.
    pub content: String,
    /// What is known about its window.
    #[serde(default)]
    pub context: ContextAccount,
}

/// When the answer of a run is told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Telling {
    /// When it is whole.
    #[default]
    Whole,
    /// As it comes, as soon as it is certain that it is the answer.
    AsItComes,
}

/// Whether a run has changed anything outside itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effects {
    /// Nothing was called that could have.
    #[default]
    None,
    /// Something was.
    Possible,
}

/// What is to be done next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Ask the model.
    Ask,
    /// Run the calls that have no result yet.
    Act(Vec<PlannedCall>),
    /// Nothing: it is over.
    Ended(Ending),
}

/// A call of this iteration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedCall {
    /// The tool.
    pub name: String,
    /// The arguments.
    pub arguments: Map<String, Value>,
    /// The server's name of the call, where it was a native one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// Whether it changes anything, as far as is known.
    pub mutating: bool,
    /// Whether it was read from prose, so that a person is asked whether it was meant.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub guess: bool,
    /// What it takes from the results of the calls before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chained: Option<Chain>,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<CallResult>,
}

/// A wish of the model that nothing came of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotDone {
    /// The tool, as far as it could be read.
    pub tool: String,
    /// The arguments, as far as they could be read.
    pub arguments: Map<String, Value>,
    /// Why nothing came of it.
    pub why: String,
}

/// What one answer of the model took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokensUsed {
    /// What it read.
    pub prompt: u64,
    /// What it wrote.
    pub completion: u64,
}

impl TokensUsed {
    /// Both.
    pub fn total(self) -> u64 {
        self.prompt.saturating_add(self.completion)
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// With an answer.
    Answered {
        /// The answer.
        content: String,
        /// Whether the model was cut off in it.
        cut_off: bool,
        /// Whether a filter of its server did that, and no limit.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        filtered: bool,
    },
    /// With calls that are the client's to make.
    Calls {
        /// What the model said beside them.
        content: String,
        /// The calls.
        calls: Vec<NativeCall>,
        /// Those that stayed wrong.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        left_out: Vec<CallLeftOut>,
    },
    /// Without one.
    Failed(RunError),
    /// Somebody said stop.
    Cancelled,
}

/// A call that is not given to the client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallLeftOut {
    /// The tool, as the model named it.
    pub name: String,
    /// What is wrong with the call.
    pub reason: String,
}

impl std::fmt::Display for CallLeftOut {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "`{}`: {}", self.name, self.reason)
    }
}

impl Ending {
    /// Why an answer ends where it does, in the words of chat completions.
    pub fn finish_reason(&self) -> &'static str {
        match self {
            Self::Answered { filtered: true, .. } => "content_filter",
            Self::Answered { cut_off: true, .. } => "length",
            Self::Calls { .. } => "tool_calls",
            Self::Answered { .. } | Self::Failed(_) | Self::Cancelled => "stop",
        }
    }
}

/// Why a run has no answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{code}: {message}", code = .code.as_str())]
pub struct RunError {
    /// Which of the documented ways.
    pub code: RunErrorCode,
    /// For people.
    pub message: String,
    /// How long the model's server wants to be left alone, where that is why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// Whether the same request would most likely end in the same way, so that no client is to repeat
    /// it by itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lasts: bool,
}

impl RunError {
    /// One of which nobody says how long it lasts.
    pub fn new(code: RunErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            retry_after_ms: None,
            lasts: false,
        }
    }
}

/// The ways in which a run can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunErrorCode {
    /// No model server answers.
    GptOssUnreachable,
    /// The iterations are used up.
    MaxIterationsExceeded,
    /// The time is up.
    TimeoutExceeded,
    /// The history does not fit.
    ContextWindowExceeded,
    /// The run's tokens are used up.
    BudgetExceeded,
    /// The state is away, so no call can be made that would be remembered; or a subagent does not
    /// get a call right.
    ToolExecutionFailed,
}

impl RunErrorCode {
    /// The code on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::GptOssUnreachable => "gpt_oss_unreachable",
            Self::MaxIterationsExceeded => "max_iterations_exceeded",
            Self::TimeoutExceeded => "timeout_exceeded",
            Self::ContextWindowExceeded => "context_window_exceeded",
            Self::BudgetExceeded => "budget_exceeded",
            Self::ToolExecutionFailed => "tool_execution_failed",
        }
    }
}

impl RunState {
    /// A run that has not begun.
    pub fn new(
        id: impl Into<String>,
        model: impl Into<String>,
        messages: Vec<Message>,
        settings: RunSettings,
        now_ms: u64,
    ) -> Self {
        let id = id.into();
        Self {
            format: RUN_FORMAT,
            session: format!("run:{id}"),
            actor: "local".to_owned(),
            parent: None,
            id,
            model: model.into(),
            settings,
            mode: Mode::Loop,
            telling: Telling::default(),
            request: None,
            passed_on: Map::new(),
            messages,
            begun_at_ms: now_ms,
            taken_up_at_ms: now_ms,
            take_ups: 0,
            doubt: None,
            worked_before_ms: 0,
            iteration: 0,
            phase: Phase::Ask,
            tokens: Vec::new(),
            tools_called: Vec::new(),
            tools_ms: 0,
            made: Vec::new(),
            effects: Effects::None,
            corrected: false,
            held: None,
            said_nothing: false,
            not_done: Vec::new(),
            denied: Vec::new(),
            told_to_stop: false,
            said_a_call: false,
            reasoning: String::new(),
            content: String::new(),
            context: ContextAccount::default(),
        }
    }

    /// When its time is up.
    pub fn deadline_at_ms(&self) -> u64 {
        let left_ms = self.settings.run_timeout_ms;
        self.taken_up_at_ms
            .saturating_add(left_ms.saturating_sub(self.worked_before_ms))
    }

    /// Another process goes on with it. It was last kept at `kept_at_ms` by the clock of the process
    /// before, and `ago_ms` before `now_ms`, which is by the clock of this one.
    pub fn take_up(&mut self, kept_at_ms: u64, ago_ms: u64, now_ms: u64) {
        let worked_ms = kept_at_ms.saturating_sub(self.taken_up_at_ms);
        self.worked_before_ms = self.worked_before_ms.saturating_add(worked_ms);
        self.taken_up_at_ms = now_ms;
        self.take_ups = self.take_ups.saturating_add(1);
        let doubt = Doubt::about(&self.phase, now_ms.saturating_sub(ago_ms));
        self.doubt = doubt.map(|doubt| doubt.since_the_first(self.doubt));
    }

    /// The same run without what makes it large, and without a copy of that on the way.
    #[must_use]
    pub fn outline(&self) -> Self {
        let phase = match &self.phase {
            Phase::Ask => Phase::Ask,
            Phase::Act(_) => Phase::Act(Vec::new()),
            Phase::Ended(ending) => Phase::Ended(ending.clone()),
        };
        Self {
            format: self.format,
            id: self.id.clone(),
            model: self.model.clone(),
            session: self.session.clone(),
            actor: self.actor.clone(),
            parent: self.parent.clone(),
            settings: self.settings.clone(),
            mode: Mode::Loop,
            telling: self.telling,
            request: self.request,
            passed_on: Map::new(),
            messages: Vec::new(),
            begun_at_ms: self.begun_at_ms,
            taken_up_at_ms: self.taken_up_at_ms,
            worked_before_ms: self.worked_before_ms,
            take_ups: self.take_ups,
            doubt: self.doubt,
            iteration: self.iteration,
            phase,
            tokens: self.tokens.clone(),
            tools_called: self.tools_called.clone(),
            tools_ms: self.tools_ms,
            made: self.made.clone(),
            effects: self.effects,
            corrected: self.corrected,
            held: None,
            said_nothing: self.said_nothing,
            not_done: self.not_done.clone(),
            denied: self.denied.clone(),
            told_to_stop: self.told_to_stop,
            said_a_call: self.said_a_call,
            reasoning: String::new(),
            content: String::new(),
            context: self.context.clone(),
        }
    }

    /// Drops all that makes a run large and that nobody asks for when it has ended without an
    /// answer.
    pub fn empty(&mut self) {
        self.messages = Vec::new();
        self.passed_on = Map::new();
        self.held = None;
        self.content = String::new();
        self.reasoning = String::new();
    }

    /// Whether there are calls for the client already.
    pub(super) fn holds_calls(&self) -> bool {
        self.held.as_ref().is_some_and(HeldCalls::has_calls)
    }

    /// How it ended, if it has.
    pub fn ending(&self) -> Option<&Ending> {
        match &self.phase {
            Phase::Ended(ending) => Some(ending),
            Phase::Ask | Phase::Act(_) => None,
        }
    }

    /// All tokens of all iterations.
    pub fn tokens_total(&self) -> u64 {
        self.tokens
            .iter()
            .fold(0, |sum, used| sum.saturating_add(used.total()))
    }

    /// Ends it without an answer.
    pub fn fail(&mut self, code: RunErrorCode, message: impl Into<String>) {
        self.phase = Phase::Ended(Ending::Failed(RunError::new(code, message)));
    }

    /// The same for what a repetition would not mend.
    pub(super) fn fail_for_good(&mut self, code: RunErrorCode, message: impl Into<String>) {
        self.phase = Phase::Ended(Ending::Failed(RunError {
            lasts: true,
            ..RunError::new(code, message)
        }));
    }

    /// Whether the model has been asked as often as it may be.
    pub fn is_used_up(&self) -> bool {
        self.iteration >= self.settings.max_iterations
    }
}
