//! The state of one turn and its two steps: may this call run, and what became of it.

use serde::{Deserialize, Serialize};

use super::answers::{Answers, RecordMark};
use super::calls::{Calls, Noted, When};
use super::config::{FORGIVE_AFTER_MAX, GuardConfig};
use super::failing::{Failing, advise_loop, block_failing};
use super::failures::{Failures, Family, Waiting};
use super::hash::{Hash64, Hash128};
use super::identity::CallIdentity;
use super::output::{ExitDigest, OutputDigest};
use super::rounds::Rounds;
use super::signature::ErrorSignature;
use super::text;
use super::verdict::{Advice, Block, BlockCode, FailureKind, GuardAction, Observation, Verdict};

/// The version of the stored form. A state of another version is refused when it is read; the
/// host then starts the turn afresh, which can only make the guard more patient.
pub const STATE_VERSION: u32 = 3;

/// Everything the guard knows about one turn of one session.
///
/// A turn starts with the default state. Between calls the state can be stored as JSON; its size
/// is bounded by the `…_KEPT_MAX` constants, whatever the turn does. Calls that overlap are checked
/// and observed in the order in which they come; each is counted once, when it is observed.
///
/// ```
/// use holdfast_reliability::guard::{
///     CallIdentity, FailureKind, GuardConfig, Observation, TurnState, Verdict,
/// };
///
/// let config = GuardConfig::default();
/// let args = serde_json::json!({});
/// let call = CallIdentity::of("read", &args);
/// let error = "Missing required parameter: path";
/// let failed = Observation::Failed { kind: FailureKind::Validation, error };
///
/// let mut turn = TurnState::default();
/// assert_eq!(turn.check(&call, &config), Verdict::Run);
/// assert!(turn.observe(&call, &failed, &config).texts.is_empty());
/// assert_eq!(turn.check(&call, &config), Verdict::Run);
/// assert!(turn.observe(&call, &failed, &config).texts[0].starts_with("[LOOP DETECTED]"));
/// assert!(turn.check(&call, &config).is_block());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "StoredTurn")]
pub struct TurnState {
    version: u32,
    /// Layer C: failures and refused calls, less what was forgiven.
    failures_in_turn: u32,
    rounds: Rounds,
    /// Layer C has ended this turn. Nothing takes that back.
    stopped: bool,
    /// How long the tools of this turn have taken, as far as the host says.
    tools_ms: u64,
    /// Distinct successes in a row since the last failure, while there is one to forgive.
    streak: Vec<Hash128>,
    failures: Failures,
    calls: Calls,
    #[serde(skip_serializing_if = "Answers::is_empty")]
    answers: Answers,
}

impl Default for TurnState {
    fn default() -> Self {
        Self {
            version: STATE_VERSION,
            failures_in_turn: 0,
            rounds: Rounds::default(),
            stopped: false,
            tools_ms: 0,
            streak: Vec::new(),
            failures: Failures::default(),
            calls: Calls::default(),
            answers: Answers::default(),
        }
    }
}

impl TurnState {
    /// Whether `call` may run. Changes nothing: the outcome goes to [`observe`](Self::observe).
    pub fn check(&self, call: &CallIdentity<'_>, config: &GuardConfig) -> Verdict {
        if !config.enabled {
            return Verdict::Run;
        }
        if self.stopped {
            return Verdict::Block(self.block_stopped(config));
        }
        let known = self
            .failures
            .known(call.call, call.form, self.waiting(config));
        for (family, counted) in known {
            if let Some(failing) = Failing::of(family, counted, config) {
                return Verdict::Block(block_failing(call, failing, config));
            }
        }
        let repeats = self.calls.repeats(call.call);
        if config.polls(call.name()) {
            return Verdict::Run;
        }
        if repeats >= config.cut_identical_successes {
            return Verdict::Block(block_repeating(call, repeats, config));
        }
        let varying = self.calls.varying(call.call, call.sent.at_ms);
        if varying >= config.cut_varying_successes {
            return Verdict::Block(block_varying(call, varying, config));
        }
        Verdict::Run
    }

    /// Takes note of what became of `call` and says what to do with the answer.
    ///
    /// A host that can not refuse a call before it runs may observe it anyway; the advice then
    /// carries the same texts.
    pub fn observe(
        &mut self,
        call: &CallIdentity<'_>,
        what: &Observation<'_>,
        config: &GuardConfig,
    ) -> Advice {
        let mut advice = Advice::default();
        if !config.enabled {
            return advice;
        }
        match *what {
            Observation::Succeeded {
                mutating,
                polls,
                output,
            } => {
                self.succeeded(call, mutating, polls, output, config, &mut advice);
            }
            Observation::NonZeroExit { polls, output } => {
                self.exited_non_zero(call, polls, output, config, &mut advice);
            }
            Observation::Failed { kind, error } => {
                self.failed(call, kind, error, config, &mut advice);
            }
            Observation::Blocked => {
                advice.action = GuardAction::LoopDetected;
                if self.failures.is_refused(call.call, call.form) {
                    advice.wrong_attempts = self.failures.count_validation_again(call.tool);
                }
                self.count_failure(call, config, &mut advice);
            }
            Observation::Neutral => {}
        }
        self.answers.ended(call.record);
        advice.stop_turn = self.stopped;
        advice
    }

    /// Takes note of how long a call took, before it is observed. That is all the guard knows of time: a model
    /// that waits does so in a tool, and how long it thinks changes nothing.
    pub fn passed(&mut self, took_ms: u64) {
        self.tools_ms = self.tools_ms.saturating_add(took_ms);
    }

    fn waiting(&self, config: &GuardConfig) -> Waiting {
        Waiting {
            now_ms: self.tools_ms,
            wait_ms: u64::from(config.probe_wait_ms),
        }
    }

    /// How many failures counted so far; for [`Sent::failures_seen`](super::Sent::failures_seen).
    pub fn failures_seen(&self) -> u32 {
        self.rounds.seen
    }

    /// An answer has arrived.
    pub fn delivered(&mut self, record: RecordMark) {
        self.answers.delivered(record);
    }

    /// The records that answer no more: what they say has arrived, and a call has changed something
    /// since.
    pub fn superseded(&self) -> Vec<RecordMark> {
        self.answers.superseded()
    }

    /// Whether no tool runs any more in this turn.
    pub fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// Failures of this turn as layer C counts them.
    pub fn failures_in_turn(&self) -> u32 {
        self.failures_in_turn
    }

    fn succeeded(
        &mut self,
        call: &CallIdentity<'_>,
        mutating: bool,
        polls: bool,
        output: OutputDigest,
        config: &GuardConfig,
        advice: &mut Advice,
    ) {
        let counted = !polls && !config.polls(call.name());
        if mutating {
            self.answers.changed();
        }
        let when = self.when(call, config);
        let noted = self.calls.note(call.call, output.0, true, counted, when);
        self.failures.settle(call.call);
        self.failures.arguments_accepted(call.tool);
        // Repeating a change that was made already changes nothing, so only a first success does.
        if mutating && noted.first_success {
            self.failures.world_changed();
            self.calls.world_changed();
        }
        self.forgive(call.call, config);
        if counted {
            advise_repeats(call, noted, config, advice);
        }
    }

    fn exited_non_zero(
        &mut self,
        call: &CallIdentity<'_>,
        polls: bool,
        output: ExitDigest,
        config: &GuardConfig,
        advice: &mut Advice,
    ) {
        self.failures.arguments_accepted(call.tool);
        let counted = !polls && !config.polls(call.name());
        // A command can print one and the same text and exit with zero or not.
        let loose = Hash64(!output.signature.0.0);
        let when = self.when(call, config);
        let noted = self.calls.note(call.call, loose, false, counted, when);
        if !counted {
            return;
        }
        let exact = output.output.0;
        self.failures.settle_other_exits(call.call, exact);
        let waiting = self.waiting(config);
        let counted =
            self.failures
                .count(call.call, call.form, exact, Family::NonZeroExit, waiting);
        if let Some(failing) = Failing::of(Family::NonZeroExit, counted, config) {
            advise_loop(call, failing, advice);
        } else {
            advise_repeats(call, noted, config, advice);
        }
    }

    fn when(&self, call: &CallIdentity<'_>, config: &GuardConfig) -> When {
        When {
            now_ms: call.sent.at_ms,
            waiting: self.waiting(config),
        }
    }

    fn failed(
        &mut self,
        call: &CallIdentity<'_>,
        kind: FailureKind,
        error: &str,
        config: &GuardConfig,
        advice: &mut Advice,
    ) {
        let attempts = match kind {
            FailureKind::Validation => self.failures.count_validation(call.tool),
            FailureKind::UnknownTool => self.failures.count_unknown_tool(),
            // In the stack permission comes before the arguments are looked at.
            FailureKind::Permission => 0,
            FailureKind::Deterministic | FailureKind::Retryable => {
                self.failures.arguments_accepted(call.tool);
                0
            }
        };
        advice.non_retryable = attempts > 0;
        advice.wrong_attempts = attempts;
        advice.escalate_to_parent = attempts >= config.validation_attempts_max;
        let family = match kind {
            FailureKind::UnknownTool | FailureKind::Validation | FailureKind::Permission => {
                Some(Family::Refusal)
            }
            FailureKind::Deterministic => Some(Family::Execution),
            FailureKind::Retryable => None,
        };
        if let Some(family) = family {
            // The suggestions in an unknown tool's error may change; the mistake is the same.
            let signature = match kind {
                FailureKind::UnknownTool => Hash64(0),
                _ => ErrorSignature::of(error).0,
            };
            let waiting = self.waiting(config);
            let counted = self
                .failures
                .count(call.call, call.form, signature, family, waiting);
            if let Some(failing) = Failing::of(family, counted, config) {
                advise_loop(call, failing, advice);
            }
        }
        self.count_failure(call, config, advice);
    }

    /// Layer C.
    fn count_failure(
        &mut self,
        call: &CallIdentity<'_>,
        config: &GuardConfig,
        advice: &mut Advice,
    ) {
        self.streak.clear();
        let counts = self.rounds.counts(call.sent);
        let was_stopped = self.stopped;
        // The count stays at what ended the turn, so that the text stays the same after it.
        if counts && !self.stopped {
            self.failures_in_turn = self.failures_in_turn.saturating_add(1);
            self.stopped = self.failures_in_turn >= config.max_failures_per_turn;
        }
        if self.stopped {
            let count = self.failures_in_turn;
            advice.texts.push(if was_stopped {
                text::answer_now(count)
            } else {
                text::tool_error_limit(count)
            });
            advice.action = GuardAction::HardCap;
        }
    }

    fn forgive(&mut self, call: Hash128, config: &GuardConfig) {
        if self.failures_in_turn == 0 || self.stopped || config.forgive_after == 0 {
            return;
        }
        if !self.streak.contains(&call) {
            self.streak.push(call);
        }
        if self.streak.len() >= config.forgive_after.min(FORGIVE_AFTER_MAX) as usize {
            self.streak.clear();
            self.failures_in_turn -= 1;
            self.failures.forgive_unknown_tool();
        }
    }

    fn block_stopped(&self, config: &GuardConfig) -> Block {
        let count = self.failures_in_turn;
        Block {
            code: BlockCode::ToolErrorLimit,
            text: text::answer_now(count),
            why: format!(
                "{count} tool failures and refused calls were counted in this turn \
                 (maxFailuresPerTurn = {}). No tool runs until the turn ends.",
                config.max_failures_per_turn,
            ),
        }
    }
}

fn block_repeating(call: &CallIdentity<'_>, repeats: u32, config: &GuardConfig) -> Block {
    Block {
        code: BlockCode::LoopDetected,
        text: text::success_loop_detected(call.name(), config.cut_identical_successes),
        why: format!(
            "This call of {:?} returned the same result {repeats} times with the same arguments \
             (cutIdenticalSuccesses = {}), and no call in between returned anything new. A tool \
             that polls can be named in pollingTools.",
            call.name(),
            config.cut_identical_successes,
        ),
    }
}

fn block_varying(call: &CallIdentity<'_>, varying: u32, config: &GuardConfig) -> Block {
    let cut = config.cut_varying_successes;
    Block {
        code: BlockCode::LoopDetected,
        text: text::varying_loop_detected(call.name(), cut),
        why: format!(
            "This call of {:?} was made {varying} times in a row within ten minutes with the same \
             arguments (cutVaryingSuccesses = {cut}). It returned something else each time, nothing \
             was changed in between, and tools did not take {} ms between two of them (probeWaitMs).",
            call.name(),
            config.probe_wait_ms,
        ),
    }
}

fn advise_repeats(
    call: &CallIdentity<'_>,
    noted: Noted,
    config: &GuardConfig,
    advice: &mut Advice,
) {
    let repeats = noted.repeats;
    if noted.varying >= config.cut_varying_successes {
        let cut = config.cut_varying_successes;
        advice
            .texts
            .push(text::varying_loop_detected(call.name(), cut));
        advice.action = GuardAction::LoopDetected;
    } else if repeats >= config.cut_identical_successes {
        let cut = config.cut_identical_successes;
        advice
            .texts
            .push(text::success_loop_detected(call.name(), cut));
        advice.action = GuardAction::LoopDetected;
    } else if repeats == config.advised_success() {
        advice.texts.push(text::no_progress(call.name(), repeats));
        advice.action = GuardAction::NoProgress;
    }
}

#[derive(Deserialize)]
struct StoredTurn {
    version: u32,
    failures_in_turn: u32,
    #[serde(default)]
    rounds: Rounds,
    stopped: bool,
    tools_ms: u64,
    streak: Vec<Hash128>,
    failures: Failures,
    calls: Calls,
    #[serde(default)]
    answers: Answers,
}

/// A state that another version wrote.
#[derive(Debug, thiserror::Error)]
#[error("loop guard state has version {found}, this build reads version {STATE_VERSION}")]
struct UnknownStateVersion {
    found: u32,
}

impl TryFrom<StoredTurn> for TurnState {
    type Error = UnknownStateVersion;

    fn try_from(mut stored: StoredTurn) -> Result<Self, Self::Error> {
        if stored.version != STATE_VERSION {
            return Err(UnknownStateVersion {
                found: stored.version,
            });
        }
        stored.streak.truncate(FORGIVE_AFTER_MAX as usize);
        Ok(Self {
            version: stored.version,
            failures_in_turn: stored.failures_in_turn,
            rounds: stored.rounds,
            stopped: stored.stopped,
            tools_ms: stored.tools_ms,
            streak: stored.streak,
            failures: stored.failures,
            calls: stored.calls,
            answers: stored.answers.bounded(),
        })
    }
}

#[cfg(test)]
mod tests;
