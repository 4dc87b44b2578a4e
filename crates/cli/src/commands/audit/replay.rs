//! The real stack, replayed over a history.
//!
//! Every call of the past goes through `ToolStack::call` at its own time, with tools that answer
//! what the transcript says they answered. What the guard and idempotency make of it is the verdict;
//! nothing here decides anything. Retry and breaker stand aside: the past has no second attempts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use holdfast_contract::envelope::NAME_BYTES_MAX;
use holdfast_contract::{
    Clock, Effect, ErrorCode, PermissionTier, SessionContext, SystemEntropy, Tool,
    ToolCallEnvelope, ToolContext, ToolError, ToolResult, ToolResultEnvelope, ToolStep,
};
use holdfast_reliability::config::{MESSAGE_ECHO_WINDOW_MS, ReliabilityConfig, ToolSettings};
use holdfast_reliability::guard::{FailureKind, GuardConfig, classify_failure};
use holdfast_reliability::observe::Observers;
use holdfast_reliability::policy::Mode;
use holdfast_reliability::retry::RetryOverrides;
use holdfast_reliability::runtime::Runtime;
use holdfast_reliability::store::memory::MemoryLimits;
use holdfast_toolbox::registry::TOOLS_MAX;
use holdfast_toolbox::stack::{Parts, Stores, ToolStack};
use holdfast_transcript::audit::{Judge, Verdict};
use holdfast_transcript::history::{Call, Outcome, Request, Session};
use serde_json::{Map, Value, json};

use crate::fail::{Failure, Outcome as Ended};

/// Calls without a time of their own are taken to be this far apart.
const STEP_MS: u64 = 1_000;
/// The texts with which the guard speaks to a model.
const GUARD_TEXTS: &[&str] = &["[LOOP DETECTED]", "[TOOL ERROR LIMIT]", "[NO PROGRESS]"];

/// Judges sessions by replaying them.
pub(super) struct Replay {
    runtime: tokio::runtime::Runtime,
    guard: GuardConfig,
}

impl Replay {
    /// With the guard's settings of this user.
    pub(super) fn new(guard: &GuardConfig) -> Ended<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .map_err(|error| Failure::failed(format!("the runtime can not be started: {error}")))?;
        Ok(Self {
            runtime,
            guard: guard.clone(),
        })
    }
}

impl Judge for Replay {
    fn judge(&mut self, session: &Session) -> Vec<Verdict> {
        let past = Arc::new(Past::default());
        match stack(session, &past, self.guard.clone()) {
            Some(stack) => self.runtime.block_on(replay(&stack, &past, session)),
            None => Vec::new(),
        }
    }
}

/// The time of the call that is replayed, and what it came to.
#[derive(Default)]
struct Past {
    now_ms: AtomicU64,
    outcome: Mutex<Option<Outcome>>,
}

impl Clock for Past {
    fn now_ms(&self) -> u64 {
        self.now_ms.load(Ordering::Relaxed)
    }
}

impl Past {
    /// Time never goes back, whatever the transcript says.
    fn advance(&self, request: &Request, outcome: Option<&Outcome>) {
        let before = self.now_ms();
        let at_ms = request.at_ms.unwrap_or(before + STEP_MS);
        self.now_ms.store(at_ms.max(before), Ordering::Relaxed);
        *self.outcome.lock().unwrap_or_else(PoisonError::into_inner) = outcome.cloned();
    }

    /// What the call came to, by now.
    fn take(&self) -> Option<Outcome> {
        let mut kept = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        let outcome = kept.take()?;
        let before = self.now_ms();
        let ended_ms = outcome.at_ms.unwrap_or(before);
        self.now_ms.store(ended_ms.max(before), Ordering::Relaxed);
        Some(outcome)
    }
}

fn stack(session: &Session, past: &Arc<Past>, guard: GuardConfig) -> Option<ToolStack> {
    let names: BTreeSet<&str> = session
        .calls()
        .map(|(_, call)| call.tool.as_str())
        .filter(|name| !name.is_empty())
        .take(TOOLS_MAX)
        .collect();
    // Every tool that sends is given the window that `message` has of its own.
    let sends = names
        .iter()
        .filter(|name| effect_of(name) == Effect::External);
    let settings = ToolSettings {
        echo_window_ms: Some(MESSAGE_ECHO_WINDOW_MS),
        ..ToolSettings::default()
    };
    let settings: BTreeMap<String, ToolSettings> = sends
        .map(|name| ((*name).to_owned(), settings.clone()))
        .collect();
    let tools = names.into_iter().map(|name| -> Arc<dyn Tool> {
        Arc::new(PastTool {
            name: name.to_owned(),
            effect: effect_of(name),
            past: past.clone(),
        })
    });
    let runtime = Arc::new(Runtime::new(
        past.clone(),
        Arc::new(SystemEntropy),
        Observers::new(),
    ));
    let stores = Stores::memory(&runtime, MemoryLimits::default());
    let sessions = Arc::new(|envelope: &ToolCallEnvelope| {
        let key = &envelope.target.session_key;
        Arc::new(SessionContext::main(
            key,
            "audit",
            std::path::PathBuf::new(),
        ))
    });
    let mut parts = Parts::new(runtime, stores, sessions).with_tools(tools);
    parts.guard = guard;
    parts.reliability = ReliabilityConfig {
        open_mode: Mode::Off,
        tools: settings,
        retry: RetryOverrides {
            max_attempts: Some(1),
            ..RetryOverrides::default()
        },
        ..ReliabilityConfig::default()
    };
    // A history that can not be replayed is counted without verdicts.
    ToolStack::new(parts).ok()
}

async fn replay(stack: &ToolStack, past: &Past, session: &Session) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for (turn_number, turn) in session.turns.iter().enumerate() {
        for (iteration, request) in turn.requests.iter().enumerate() {
            for (index, call) in request.calls.iter().enumerate() {
                let place = [turn_number, iteration, index];
                past.advance(request, call.result.as_ref());
                let answer = stack.call(envelope(call, request, place)).await;
                verdicts.push(verdict(call, &answer));
            }
        }
    }
    verdicts
}

/// Each call of a history is an intent of its own: its place is its identity, since hosts use the
/// ids of calls again.
fn envelope(call: &Call, request: &Request, place: [usize; 3]) -> ToolCallEnvelope {
    let [turn, iteration, index] = place;
    let params = match &call.arguments {
        Value::Object(arguments) => arguments.clone(),
        Value::Null => Map::new(),
        other => Map::from_iter([("arguments".to_owned(), other.clone())]),
    };
    let request_id = format!("{turn}.{iteration}.{index}");
    let mut envelope = ToolCallEnvelope::new(request_id, &call.tool, params, "audit", "audit");
    envelope.target.turn_id = Some(turn.to_string());
    envelope.target.model_id = request
        .model
        .clone()
        .filter(|id| id.len() <= NAME_BYTES_MAX);
    envelope.payload.tool_step = Some(ToolStep {
        iteration: iteration as u64,
        index: index as u64,
    });
    envelope
}

fn verdict(call: &Call, answer: &ToolResultEnvelope) -> Verdict {
    if answer.from_cache {
        return Verdict::Duplicate;
    }
    let by_guard = [ErrorCode::LoopDetected, ErrorCode::ToolErrorLimit];
    let error = answer.error.as_ref();
    if error.is_some_and(|error| by_guard.iter().any(|code| code.as_str() == error.code)) {
        return Verdict::Stopped;
    }
    // A host with a guard of its own may have written the same words into its transcript.
    let said_before = call
        .result
        .as_ref()
        .is_some_and(|result| speaks(&result.text));
    let advised = answer
        .output
        .as_ref()
        .and_then(|output| output.metadata.as_ref())
        .is_some_and(|metadata| metadata.contains_key("advisory"));
    let told = error.is_some_and(|error| speaks(&error.message));
    if advised || (told && !said_before) {
        Verdict::Warned
    } else {
        Verdict::Fine
    }
}

fn speaks(text: &str) -> bool {
    GUARD_TEXTS.iter().any(|said| text.contains(said))
}

/// A tool that answers what it answered.
struct PastTool {
    name: String,
    effect: Effect,
    past: Arc<Past>,
}

#[async_trait::async_trait]
impl Tool for PastTool {
    fn name(&self) -> &str {
        &self.name
    }

    fn description(&self) -> &str {
        "A tool of the past."
    }

    fn parameters_schema(&self) -> Value {
        json!({})
    }

    fn permission_tier(&self) -> PermissionTier {
        PermissionTier::ReadOnly
    }

    fn effect(&self) -> Effect {
        self.effect
    }

    async fn execute(&self, _: &Value, _: &ToolContext) -> Result<ToolResult, ToolError> {
        let Some(outcome) = self.past.take() else {
            return Err(ToolError::lost_track("there is no result on record"));
        };
        if outcome.failed {
            return Err(failure(outcome.text));
        }
        let mut result = ToolResult::new(Value::String(outcome.text), "");
        result.exit_code = outcome.exit_code.filter(|code| *code != 0);
        Ok(result)
    }
}

/// The kind of a failure of which only the text is left.
fn failure(text: String) -> ToolError {
    match classify_failure(&text) {
        FailureKind::Validation | FailureKind::UnknownTool => ToolError::ValidationError {
            message: text,
            field: None,
        },
        FailureKind::Retryable => ToolError::http(503, None, text),
        FailureKind::Permission => ToolError::PermissionDenied {
            tier: PermissionTier::ReadOnly,
            reason: text,
        },
        FailureKind::Deterministic => ToolError::failed(text),
    }
}

/// What a tool of that name leaves behind. Names of other hosts are all there is; a name that says
/// nothing is taken for one with effects in the workspace, whose repeats are never called duplicates.
fn effect_of(name: &str) -> Effect {
    const READS: &[&str] = &[
        "read", "grep", "glob", "ls", "list", "search", "find", "fetch", "get", "view", "cat",
        "status", "think", "query", "lookup", "show", "describe",
    ];
    const SENDS: &[&str] = &[
        "message", "send", "email", "mail", "post", "publish", "notify", "pay", "book", "order",
        "transfer",
    ];
    let words = words(name);
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    if has(SENDS) {
        Effect::External
    } else if has(READS) {
        Effect::None
    } else {
        Effect::Workspace
    }
}

/// The words of a name, in small letters: `mcp__gmail__send_email`, `sendEmail` and `send-email` all
/// hold `send`.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_small = false;
    for sign in name.chars() {
        let begins = !sign.is_ascii_alphanumeric() || was_small && sign.is_ascii_uppercase();
        if begins {
            words.push(String::new());
        }
        was_small = sign.is_ascii_lowercase() || sign.is_ascii_digit();
        if let (true, Some(word)) = (sign.is_ascii_alphanumeric(), words.last_mut()) {
            word.push(sign.to_ascii_lowercase());
        }
    }
    words
}

#[cfg(test)]
#[path = "replay_tests.rs"]
mod tests;
