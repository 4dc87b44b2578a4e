//! Holds one answer against the table of outcomes and against what really happened.

use holdfast_contract::{DedupeMode, Status, ToolResultEnvelope};
use holdfast_testkit::sim::world::Run;
use holdfast_testkit::sim::{Nature, RunEnd};

use super::ledger::Ledger;
use super::people::People;
use super::plan::{Delivery, Intent, Protection};

/// A delivery and what became of it.
#[derive(Debug, Clone)]
pub(crate) struct Course {
    pub(crate) number: u64,
    pub(crate) process: u64,
    pub(crate) plan: Delivery,
    pub(crate) begun_ms: u64,
    pub(crate) ended_ms: Option<u64>,
    pub(crate) answer: Option<ToolResultEnvelope>,
}

/// Codes of failures that prove that nothing happened, worth another attempt.
const REFUSALS: [&str; 3] = ["http_429", "http_503", "ECONNREFUSED"];
/// Codes of failures that prove nothing.
const LOSSES: [&str; 4] = ["ECONNRESET", "http_500", "http_504", "timeout"];
/// Codes of the tool's own word that the call is wrong.
const MISTAKES: [&str; 3] = ["http_404", "execution_failed", "invalid_arguments"];
/// Codes of calls that were stopped before anything ran.
const STOPPED: [&str; 2] = ["loop_detected", "tool_error_limit"];
/// Codes of calls that waited for a person in vain.
const WAITED: [&str; 2] = ["cancelled", "permission_denied"];

/// Checks an answer by itself, and against the world.
pub(crate) fn check(ledger: &Ledger, people: People, intent: &Intent, course: &Course) {
    let Some(answer) = &course.answer else { return };
    let number = course.number;
    let runs = ledger.world.runs_of(number);
    if let Err(why) = well_formed(intent, course, answer, people) {
        ledger.broken(|| format!("malformed answer to delivery {number}: {why}: {answer:?}"));
    }
    if usize::try_from(answer.attempts) != Ok(runs.len()) {
        let ran = runs.len();
        ledger.broken(|| {
            format!(
                "delivery {number} says {} attempts and made {ran}",
                answer.attempts
            )
        });
    }
    if intent.protection == Protection::Protected {
        honest(ledger, intent, course, answer, &runs);
        // A read-only tool's records live and die with their process.
        if intent.nature != Nature::Look {
            lasting(ledger, course, answer);
        }
    }
}

/// Whether status, code and flags are a row of the table.
fn well_formed(
    intent: &Intent,
    course: &Course,
    answer: &ToolResultEnvelope,
    people: People,
) -> Result<(), &'static str> {
    let harmful = intent.nature.is_unsafe();
    let Some(error) = &answer.error else {
        let whole = answer.status == Status::Success && answer.output.is_some();
        return whole.then_some(()).ok_or("neither output nor error");
    };
    if answer.output.is_some() {
        return Err("output beside an error");
    }
    if error.terminal == error.retriable {
        return Err("terminal and retriable do not exclude each other");
    }
    let code = error.code.as_str();
    let nothing_ran = answer.attempts == 0;
    let fits = match answer.status {
        Status::Success | Status::RetriableError => false,
        Status::CircuitOpen => code == "circuit_open" && nothing_ran && !error.terminal,
        Status::Timeout => code == "timeout" && !error.terminal,
        Status::RetryExhausted => {
            let lost = LOSSES.contains(&code) && !harmful;
            (REFUSALS.contains(&code) || lost) && !error.terminal
        }
        Status::Error => match code {
            "outcome_unknown" => harmful && error.terminal,
            "idempotency_key_conflict" => nothing_ran && error.terminal,
            "duplicate_in_flight" => {
                nothing_ran && !error.terminal && course.plan.mode == DedupeMode::BestEffort
            }
            "store_full" | "store_unavailable" => nothing_ran && !error.terminal,
            "rate_limited" => !error.terminal,
            // A call that waited for a person may find its claim, or its approval, taken.
            code if WAITED.contains(&code) => {
                nothing_ran && people == People::Asked && error.terminal == (code != "cancelled")
            }
            "tool_panicked" => !harmful && error.terminal,
            code if STOPPED.contains(&code) => nothing_ran && error.terminal,
            code if MISTAKES.contains(&code) => error.terminal,
            _ => false,
        },
    };
    fits.then_some(())
        .ok_or("no such row in the table of outcomes")
}

/// An answer must not deny what happened, and must not doubt what can not have happened.
fn honest(
    ledger: &Ledger,
    intent: &Intent,
    course: &Course,
    answer: &ToolResultEnvelope,
    runs: &[Run],
) {
    if !intent.nature.is_unsafe() || answer.is_success() {
        return;
    }
    let number = course.number;
    let code = answer.error_code().unwrap_or_default().to_owned();
    let unknown = code == "outcome_unknown";
    if runs.iter().any(|run| run.effect.is_some()) && !unknown {
        ledger.broken(|| {
            format!("denied effect: delivery {number} took effect and was answered {code}")
        });
    }
    if unknown && !answer.from_cache && runs.iter().all(|run| run.end == RunEnd::NoEffect) {
        ledger.broken(|| {
            format!(
                "needless doubt: delivery {number} was answered outcome_unknown although its {} \
                 attempts proved that nothing had happened",
                runs.len()
            )
        });
    }
    let before =
        ledger.world.effects().into_iter().any(|effect| {
            effect.intent == course.plan.intent as u64 && effect.at_ms < course.begun_ms
        });
    if before && answer.from_cache && !unknown {
        ledger.broken(|| {
            format!("denied effect: the effect was there before delivery {number}, answered {code} from the record")
        });
    }
}

/// A success that the store has acknowledged is the answer from then on.
fn lasting(ledger: &Ledger, course: &Course, answer: &ToolResultEnvelope) {
    let number = course.number;
    let Some(key) = ledger.key_of(number) else {
        return;
    };
    let Some((at_ms, output)) = ledger.acknowledged(&key) else {
        return;
    };
    if at_ms >= course.begun_ms {
        return;
    }
    let same = answer
        .output
        .as_ref()
        .is_some_and(|given| *given.content == output);
    let excused = match answer.error_code() {
        None => false,
        Some("timeout") => course.plan.deadline_ms.is_some(),
        Some("idempotency_key_conflict" | "store_full" | "store_unavailable") => true,
        Some(code) => STOPPED.contains(&code),
    };
    if !(same || excused) {
        ledger.broken(|| {
            format!(
                "lost result: {output} was acknowledged at {at_ms} ms, and delivery {number} after \
                 that was answered {answer:?}"
            )
        });
    }
}
