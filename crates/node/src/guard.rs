//! The class `ToolGuard`.

#![expect(
    clippy::needless_pass_by_value,
    reason = "what comes from JavaScript is a copy of its own"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::FutureExt;
use holdfast_contract::clock::{Clock, SystemClock};
use holdfast_contract::redact::Redactor;
use holdfast_contract::time::rfc3339;
use holdfast_reliability::guard::attribution_log::AttributionLog;
use holdfast_reliability::guard::{
    Advice, AttributionEntry, BlockCode, CallIdentity, FailureKind, GuardAction, GuardConfig,
    GuardStore, KeptIdentity, Sent, TurnKey, Verdict, attribute_model, error_suffix, output_suffix,
};
use holdfast_reliability::store::StoreFuture;
use holdfast_reliability::store::memory::MemoryGuardStore;
use napi::Result;
use napi_derive::napi;

use crate::arguments::{self, KeptArguments};
use crate::outcome::{Ending, Outcome};
use crate::safely::{failed, run};
use crate::settings;

/// How the log names a command that returned non-zero too often.
const NON_ZERO_EXIT: &str = "non_zero_exit";

/// A call of a tool, as the host names it.
#[napi(object, object_to_js = false)]
pub struct ToolCall {
    /// The session.
    pub session: String,
    /// The turn; without one a pause of ten minutes ends it.
    pub turn: Option<String>,
    /// The tool.
    pub tool: String,
    /// The arguments as JSON; what is no JSON counts as a string where calls are compared, and is denied
    /// where they are judged.
    pub args: String,
    /// The model's id of the call.
    pub call_id: Option<String>,
    /// The model, where the host knows it.
    pub model: Option<String>,
}

/// A call as the guard compares it. The host's hooks tell of a call several times: its arguments cross from
/// JavaScript once, and are read and compared once.
#[napi]
pub struct GuardedCall {
    identity: KeptIdentity,
    turn: TurnKey,
    began_ms: u64,
    /// What the log needs of it should it fail, until it has ended.
    told: Option<Told>,
}

/// A call as the log tells of it.
struct Told {
    tool: String,
    args: KeptArguments,
    call_id: Option<String>,
    model: Option<String>,
}

#[napi]
impl GuardedCall {
    /// Reads a call. Long texts of its arguments cross by themselves, in UTF-8 one after the other: `ends`
    /// says where in `texts` each of them ends, and in the JSON a NUL and a text's place stand for it.
    #[napi(constructor)]
    pub fn new(call: ToolCall, texts: Option<&[u8]>, ends: Option<Vec<u32>>) -> Result<Self> {
        run(|| {
            let texts = arguments::apart(texts.unwrap_or_default(), &ends.unwrap_or_default())?;
            let bytes = call.args.len() + texts.iter().map(String::len).sum::<usize>();
            let args = arguments::with_texts(&call.args, texts);
            let identity = CallIdentity::of(&call.tool, &args).into();
            let turn = TurnKey {
                session: call.session,
                turn: call.turn,
            };
            let told = Told {
                tool: call.tool,
                args: KeptArguments::of(args, bytes),
                call_id: call.call_id,
                model: call.model,
            };
            Ok(Self {
                identity,
                turn,
                began_ms: SystemClock.now_ms(),
                told: Some(told),
            })
        })
    }

    /// What calls have in common that are the same one, in hexadecimal.
    #[napi(getter)]
    pub fn fingerprint(&self) -> String {
        self.identity.identity().fingerprint()
    }
}

/// A call that may not run.
#[napi(object)]
pub struct Refusal {
    /// The error code.
    pub code: String,
    /// What the model reads.
    pub text: String,
    /// What a person reads.
    pub why: String,
}

/// What the guard says to a call's end.
#[napi(object)]
pub struct Answer {
    /// What the model has to read after the text, if anything.
    pub append: Option<String>,
    /// What the guard did, in one word: `continue`, `loop-detected`, `hard-cap` or `no-progress`.
    pub action: String,
    /// No tool runs any more in this turn.
    pub stop_turn: bool,
    /// The model does not get the arguments right: it should hand the task back.
    pub hand_back: bool,
}

/// The loop guard of one process.
#[napi]
pub struct ToolGuard {
    config: GuardConfig,
    turns: MemoryGuardStore,
    log: Option<AttributionLog>,
}

#[napi]
impl ToolGuard {
    /// A guard with the settings of the `guard` section, as JSON; `logPath` has to be a real path by now.
    /// Without a log path nothing is logged.
    #[napi(constructor)]
    pub fn new(settings: String, log_path: Option<String>) -> Result<Self> {
        run(|| {
            Ok(Self {
                config: parse(&settings)?,
                turns: MemoryGuardStore::new(Arc::new(SystemClock)),
                log: log_path.map(open_log).transpose()?,
            })
        })
    }

    /// Takes new settings; the turns under way go on.
    #[napi]
    pub fn configure(&mut self, settings: String, log_path: Option<String>) -> Result<()> {
        run(|| {
            self.config = parse(&settings)?;
            let known = self.log.as_ref().map(AttributionLog::path);
            if known != log_path.as_deref().map(Path::new) {
                let old = std::mem::replace(&mut self.log, log_path.map(open_log).transpose()?);
                // It writes what waits before it is gone, and nobody is to wait for that.
                std::thread::spawn(move || drop(old));
            }
            Ok(())
        })
    }

    /// Whether a call may run: nothing, or why not.
    #[napi]
    pub fn check(&self, call: &mut GuardedCall) -> Result<Option<Refusal>> {
        run(|| {
            let mut sent = Sent {
                at_ms: Some(call.began_ms),
                ..Sent::default()
            };
            call.identity.set_sent(sent);
            let identity = call.identity.identity();
            let checked = now(self.turns.check(&call.turn, &identity, &self.config))?;
            sent.failures_seen = Some(checked.failures_seen);
            call.identity.set_sent(sent);
            Ok(match checked.verdict {
                Verdict::Run => None,
                Verdict::Block(block) => Some(Refusal {
                    code: block.code.as_str().to_owned(),
                    text: block.text,
                    why: block.why,
                }),
            })
        })
    }

    /// Takes note of what became of a call, and says what the model has to read. The text is the result or
    /// the error before anything was appended to it: the first `length` bytes of `text`, in UTF-8. What is to be
    /// logged waits for `writeLog`.
    #[napi]
    pub fn observe(
        &self,
        call: &mut GuardedCall,
        outcome: Outcome,
        text: &[u8],
        length: u32,
    ) -> Result<Answer> {
        run(|| {
            let text = arguments::first(text, length)?;
            let identity = call.identity.identity();
            let failure = outcome.failure(&text);
            let observation = outcome.observation(&text, failure);
            let took_ms = SystemClock.now_ms().saturating_sub(call.began_ms);
            let config = &self.config;
            let observed = self
                .turns
                .observe(&call.turn, &identity, observation, took_ms, config);
            let advice = now(observed)?;
            let append = appended(&outcome, &text, &advice);
            // Whatever became of it, its arguments are not needed any longer.
            if let Some(told) = call.told.take() {
                self.note(&call.turn, told, &outcome, &text, (failure, advice.action));
            }
            Ok(Answer {
                append,
                action: in_a_word(advice.action).to_owned(),
                stop_turn: advice.stop_turn,
                hand_back: advice.escalate_to_parent,
            })
        })
    }

    /// Ends a turn: its counts are forgotten.
    #[napi]
    pub fn end_turn(&self, session: String, turn: Option<String>) -> Result<()> {
        run(|| now(self.turns.end_turn(&TurnKey { session, turn })))
    }

    /// Has the lines of the attribution log written that came since it was asked last: when the host has its
    /// answers.
    #[napi]
    pub fn write_log(&self) -> Result<()> {
        run(|| {
            if let Some(log) = &self.log {
                log.release();
            }
            Ok(())
        })
    }

    /// Lines of the attribution log that could not be written.
    #[napi]
    pub fn lines_lost(&self) -> i64 {
        let lost = self.log.as_ref().map_or(0, AttributionLog::dropped);
        i64::try_from(lost).unwrap_or(i64::MAX)
    }
}

impl ToolGuard {
    /// Layer D: a line for every call that went wrong. What is secret in it is hidden by the thread that
    /// writes it.
    fn note(
        &self,
        turn: &TurnKey,
        told: Told,
        outcome: &Outcome,
        text: &str,
        (failure, action): (Option<FailureKind>, GuardAction),
    ) {
        let Some(log) = self.log.as_ref().filter(|_| self.config.enabled) else {
            return;
        };
        let error_type = match (&outcome.ending, failure) {
            (Ending::Blocked, _) if action == GuardAction::HardCap => {
                BlockCode::ToolErrorLimit.as_str()
            }
            (Ending::Blocked, _) => BlockCode::LoopDetected.as_str(),
            (_, Some(kind)) => name(kind),
            // That a command says no is a result; that it is asked again and again is worth a line.
            (Ending::ExitedNonZero, None) if action == GuardAction::LoopDetected => NON_ZERO_EXIT,
            _ => return,
        };
        let call_id = told.call_id.as_deref().unwrap_or_default();
        let model_id = attribute_model(told.model.as_deref(), call_id).to_owned();
        let timestamp = rfc3339(SystemClock.now_ms());
        let error = outcome.error(text).to_owned();
        let bytes = told.args.bytes() + error.len();
        let args = told.args.into_value();
        let TurnKey { session, turn } = turn.clone();
        log.hold(bytes, move || AttributionEntry {
            timestamp,
            model_id,
            tool: told.tool,
            args,
            error_type: error_type.to_owned(),
            error,
            request_id: None,
            tool_call_id: told.call_id,
            session_key: Some(session),
            turn_id: turn,
            action,
        });
    }
}

/// What the model reads besides. Nearly every result stays as it is.
fn appended(outcome: &Outcome, text: &str, advice: &Advice) -> Option<String> {
    let append = match outcome.ending {
        Ending::Failed | Ending::Blocked => error_suffix(text, advice),
        Ending::Succeeded | Ending::ExitedNonZero => output_suffix(text, advice),
        Ending::Neutral => return None,
    };
    (!append.is_empty()).then_some(append)
}

fn parse(settings: &str) -> Result<GuardConfig> {
    let config: GuardConfig = settings::read(settings)?;
    config.validate().map_err(failed)?;
    Ok(config)
}

fn open_log(path: String) -> Result<AttributionLog> {
    AttributionLog::start(PathBuf::from(path), Redactor::default()).map_err(failed)
}

/// Turns in memory are answered at once.
fn now<T>(asked: StoreFuture<'_, T>) -> Result<T> {
    match asked.now_or_never() {
        Some(answer) => answer.map_err(failed),
        None => Err(failed("the store of turns did not answer")),
    }
}

fn name(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::UnknownTool => "tool_not_found",
        FailureKind::Validation => "invalid_arguments",
        FailureKind::Permission => "permission_denied",
        FailureKind::Deterministic => "tool_error",
        FailureKind::Retryable => "retryable",
    }
}

fn in_a_word(action: GuardAction) -> &'static str {
    match action {
        GuardAction::Continue => "continue",
        GuardAction::LoopDetected => "loop-detected",
        GuardAction::HardCap => "hard-cap",
        GuardAction::NoProgress => "no-progress",
    }
}
