//! Keeps a run's questions within the model's window, and the run within its budget.
//!
//! The history in the run's state stays whole. What goes to the model is made from it for each
//! question by pure functions, so a resumed run asks what it would have asked.
//!
//! | module | what it does |
//! |---|---|
//! | [`pair`] | calls and results that a server would refuse |
//! | [`fit`](mod@fit) | old results shortened, old rounds left out |
//! | `note` | what the model is told about what was left out |
//! | [`recast`](mod@recast) | another form for a server that refuses the history |
//! | [`words`] | calls and results in words |
//! | [`spend`] | tokens and money |

pub mod fit;
mod note;
pub mod pair;
pub mod recast;
#[cfg(test)]
pub(crate) mod samples;
pub mod spend;
pub mod words;

use holdfast_intent::FinishReason;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::chat::{Message, Role};
use crate::model::{ModelError, ModelReply};
use crate::run::RunState;
use crate::tokens;
use fit::{Budget, fit};
pub use recast::{HistoryForm, Reset, recast};

/// A server that counts more than this many times what we count is not believed.
const SCALE_PERMILLE_MAX: u64 = 3000;
/// When a server says that a question is too long and not how long it may be, this part of it is
/// tried.
const SQUEEZE_PERCENT: u64 = 60;
/// Ways in which servers name their window, each followed by the number.
const WINDOW_WORDS: [&str; 4] = [
    "maximum context length is ",
    "maximum model length of ",
    "available context size (",
    "n_ctx = ",
];

/// The window and its use.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WindowSettings {
    /// Tokens that the model can hold.
    pub tokens: u64,
    /// Tokens of it that are never used.
    pub reserve_tokens: u64,
    /// Old results are shortened from this share on.
    pub truncate_at: f64,
    /// Old rounds are left out from this share on.
    pub compact_at: f64,
}

impl Default for WindowSettings {
    fn default() -> Self {
        Self {
            tokens: 32_768,
            reserve_tokens: 2_000,
            truncate_at: 0.6,
            compact_at: 0.8,
        }
    }
}

/// What a run knows about its window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ContextAccount {
    /// Where the task is in the history.
    pub task: Option<usize>,
    /// What each question took as we counted it; the last one may not be answered yet.
    pub asked_tokens: u64,
    /// What the server counted for a thousand of ours, the last time.
    pub scale_permille: u64,
    /// The window, when the server has said that it is smaller.
    pub window_learned: Option<u64>,
    /// Results that the last question has in short.
    pub shortened: usize,
    /// Messages that the last question has left out.
    pub left_out: usize,
    /// Why the model stopped, the last time.
    pub finish: String,
    /// The form in which the history is sent.
    pub form: HistoryForm,
    /// Where it began anew with its task, when the server took no form of what was before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reset: Option<Reset>,
}

/// The messages of the next question: paired, and so many that they fit. `prompt` is what is put in
/// front of them, `tools` what is declared beside them.
pub fn prepare(
    state: &mut RunState,
    prompt: Option<&str>,
    tools: &Value,
) -> Result<Vec<Message>, ModelError> {
    let task = task(state);
    let budget = budget(state, prompt, tools);
    let (messages, task) = recast::in_form(state, task);
    if let Some(problem) = pair::problem(&messages) {
        return Err(ModelError::Refused(format!(
            "the history can not be sent: {problem}"
        )));
    }
    let fitted = fit(messages, task, &budget).map_err(|error| {
        state.context.asked_tokens = error.tokens;
        ModelError::TooLong(error.to_string())
    })?;
    state.context.asked_tokens = fitted.tokens;
    state.context.shortened = fitted.shortened;
    state.context.left_out = fitted.left_out;
    Ok(fitted.messages)
}

/// The task is the last thing that a user said before the model was first asked, where one said anything.
fn task(state: &mut RunState) -> usize {
    let messages = &state.messages;
    let last = || {
        let users = messages.iter().rposition(Message::is_users);
        users.or_else(|| messages.iter().rposition(|it| it.role == Role::User))
    };
    *state
        .context
        .task
        .get_or_insert_with(|| last().unwrap_or(0))
}

fn budget(state: &RunState, prompt: Option<&str>, declared: &Value) -> Budget {
    let window = &state.settings.window;
    let prompt = prompt.map_or(0, |text| {
        tokens::messages(&[Message::text(Role::System, text)])[0]
    });
    Budget {
        window: state.context.window_learned.unwrap_or(window.tokens),
        reserve: window.reserve_tokens,
        completion: u64::from(state.settings.max_tokens),
        fixed: tokens::preamble_tokens() + prompt + tokens::tools(declared),
        truncate_at: window.truncate_at,
        compact_at: window.compact_at,
        scale_permille: state.context.scale_permille,
    }
}

/// The model has answered: what that took goes into the books. A server that does not say gets our
/// own count, so that a budget holds with it too.
pub fn account(state: &mut RunState, reply: &mut ModelReply) {
    let asked = state.context.asked_tokens;
    let finish = match reply.finish {
        _ if reply.filtered => "content_filter",
        FinishReason::Stop => "stop",
        FinishReason::Length => "length",
        FinishReason::Unknown => "unknown",
    };
    finish.clone_into(&mut state.context.finish);
    if reply.tokens.total() == 0 {
        reply.tokens.prompt = asked;
        let calls = match &reply.calls {
            Value::Null => 0,
            calls => tokens::count(&calls["tool_calls"].to_string()),
        };
        let said = tokens::count(&reply.content) + tokens::count(&reply.reasoning);
        reply.tokens.completion = said + calls;
    }
    // What was scaled already is not scaled again.
    let before = state.context.scale_permille.max(1000);
    let ours = asked.saturating_mul(1000) / before;
    let now = reply
        .tokens
        .prompt
        .saturating_mul(1000)
        .div_ceil(ours.max(1));
    state.context.scale_permille = now.clamp(1000, SCALE_PERMILLE_MAX);
}

/// Whether the next question fits, going by what the last one took.
pub fn has_room(state: &RunState) -> bool {
    let window = &state.settings.window;
    let beside = window.reserve_tokens + u64::from(state.settings.max_tokens);
    let said = state.tokens.last().map_or(0, |used| used.completion);
    let known = state.context.window_learned.unwrap_or(window.tokens);
    let asked = state.context.asked_tokens;
    asked.saturating_add(said).saturating_add(beside) <= known.min(window.tokens)
}

/// The server says that the question is too long. True when a shorter one may be tried: once a run.
pub fn squeeze(state: &mut RunState, why: &str) -> bool {
    if state.context.window_learned.is_some() {
        return false;
    }
    let settings = &state.settings;
    let beside = settings.window.reserve_tokens + u64::from(settings.max_tokens);
    // Without a number: so much room that a part of what was asked fits.
    let guessed = state.context.asked_tokens * SQUEEZE_PERCENT / 100 + beside;
    let window = window_in(why).filter(|found| *found < settings.window.tokens);
    state.context.window_learned = Some(window.unwrap_or(guessed));
    true
}

/// The window that an error names.
fn window_in(why: &str) -> Option<u64> {
    let rest = WINDOW_WORDS
        .iter()
        .find_map(|words| why.split_once(words))?
        .1;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// How much of the window the last question took.
#[expect(clippy::cast_precision_loss, reason = "a percentage for people")]
pub fn usage_percent(state: &RunState) -> f64 {
    let window = &state.settings.window;
    let tokens = state.context.window_learned.unwrap_or(window.tokens);
    let available = tokens.saturating_sub(window.reserve_tokens).max(1);
    state.context.asked_tokens as f64 / available as f64 * 100.0
}

#[cfg(test)]
#[path = "context_tests.rs"]
mod tests;
