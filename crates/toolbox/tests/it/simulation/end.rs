//! Promises that can only be judged when a schedule is over.

use std::collections::BTreeMap;

use holdfast_contract::Status;
use holdfast_reliability::config::MESSAGE_ECHO_WINDOW_MS;
use holdfast_reliability::deadline::DEADLINE_GRACE_MS;
use holdfast_reliability::idempotency::record::RecordState;
use holdfast_reliability::store::{DedupeStore, RecordFilter};
use holdfast_testkit::sim::{Nature, RunEnd};

use super::answers::Course;
use super::handle::at_once;
use super::plan::{Happening, Protection};
use super::rates;
use super::schedule::{Stage, check_answers};

/// With a lease at most this long and stores at most this slow, no chain of lost holders fills the
/// time a duplicate waits, so who gave up was forgotten.
const SHORT_LEASE_MS: u64 = 20_000;
const QUICK_STORE_MS: u64 = 1_000;

/// Everything, before calm returns.
pub(crate) fn check(stage: &Stage) {
    check_answers(stage, 0);
    check_effects(stage);
    check_echoes(stage);
    check_times(stage);
    check_turns(stage);
    check_claims(stage);
    rates::check(stage);
}

/// At most once: the promise of promises.
pub(crate) fn check_effects(stage: &Stage) {
    let effects = stage.ledger.world.effects();
    let mut outputs: BTreeMap<usize, (u64, serde_json::Value)> = BTreeMap::new();
    for (number, intent) in stage.plan.intents.iter().enumerate() {
        if !intent.nature.is_unsafe() || intent.protection == Protection::Disabled {
            continue;
        }
        let mine: Vec<_> = effects
            .iter()
            .filter(|effect| effect.intent == number as u64)
            .collect();
        if mine.len() > 1 {
            let by: Vec<u64> = mine.iter().map(|effect| effect.delivery).collect();
            stage.ledger.broken(|| {
                format!(
                    "double effect: intent {number} took effect {} times, by deliveries {by:?}",
                    by.len()
                )
            });
        }
    }
    for course in stage.courses.lock().iter() {
        let intent = &stage.plan.intents[course.plan.intent];
        // An echo is given the answer of the intent it echoes, and has its own later.
        let echoes = intent.nature == Nature::Message && intent.key.is_none();
        if !intent.nature.is_unsafe() || intent.protection == Protection::Disabled || echoes {
            continue;
        }
        let Some(output) = course.answer.as_ref().and_then(|it| it.output.as_ref()) else {
            continue;
        };
        let (first, seen) = outputs
            .entry(course.plan.intent)
            .or_insert_with(|| (course.number, output.content.as_ref().clone()));
        if *seen != *output.content {
            stage.ledger.broken(|| {
                format!(
                    "two results: intent {} gave {seen} to delivery {first} and {} to delivery {}",
                    course.plan.intent, output.content, course.number
                )
            });
        }
    }
}

/// Equal content under a new id, within the window of an echo, does not act again.
fn check_echoes(stage: &Stage) {
    // A clock that went forth and back makes ages that nobody can tell from real ones.
    if stage.plan.jumps_back() {
        return;
    }
    let effects = stage.ledger.world.effects();
    let echoing = |intent: u64| {
        let intent = usize::try_from(intent)
            .ok()
            .and_then(|it| stage.plan.intents.get(it));
        intent.is_some_and(|it| {
            it.nature == Nature::Message
                && it.key.is_none()
                && it.protection == Protection::Protected
        })
    };
    let window_ms = MESSAGE_ECHO_WINDOW_MS.min(stage.plan.unknown_window_ms);
    for (index, later) in effects
        .iter()
        .enumerate()
        .filter(|(_, it)| echoing(it.intent))
    {
        let before = effects[..index].iter().rev();
        let echoed = before.filter(|it| echoing(it.intent) && it.intent != later.intent);
        for first in echoed.filter(|it| it.content == later.content) {
            // The window runs from when a stalled holder was given up on, not from its late effect.
            let both = [first, later];
            if both
                .iter()
                .any(|it| stage.ledger.was_given_up(it.delivery, it.at_ms))
            {
                continue;
            }
            let age_ms = later.wall_ms.saturating_sub(first.wall_ms);
            if age_ms < window_ms {
                stage.ledger.broken(|| {
                    format!(
                        "echo: delivery {} sent what delivery {} had sent {age_ms} ms before",
                        later.delivery, first.delivery
                    )
                });
            }
        }
    }
}

/// Nobody waits beyond the own deadline, and nobody is forgotten without one.
fn check_times(stage: &Stage) {
    let stalled_ms: u64 = stage
        .plan
        .happenings
        .iter()
        .fold(0, |sum, (_, it)| match it {
            Happening::Stall { ms, .. } => sum + ms,
            _ => sum,
        });
    let unhurried = stage.plan.faults.slow_ms_max > QUICK_STORE_MS && stage.plan.faults.slow > 0;
    for course in stage.courses.lock().iter() {
        let Some(ended_ms) = course.ended_ms else {
            continue;
        };
        let took_ms = ended_ms.saturating_sub(course.begun_ms);
        let limit_ms = [course.plan.deadline_ms, course.plan.cancel_ms];
        let limit_ms = limit_ms.into_iter().flatten().min();
        // A slow store may hold the loop guard up, within its grace.
        let slack_ms = stalled_ms + DEADLINE_GRACE_MS + 2;
        if limit_ms.is_some_and(|limit_ms| took_ms > limit_ms + slack_ms) {
            stage.ledger.broken(|| {
                format!(
                    "late: delivery {} had {limit_ms:?} ms and took {took_ms}",
                    course.number
                )
            });
        }
        if gave_up_waiting(course)
            && !unhurried
            && stage.plan.lease_ms <= SHORT_LEASE_MS
            && !stage.plan.jumps_back()
        {
            stage.ledger.broken(|| {
                format!(
                    "forgotten waiter: delivery {} waited {took_ms} ms for nobody",
                    course.number
                )
            });
        }
    }
}

fn gave_up_waiting(course: &Course) -> bool {
    course.plan.deadline_ms.is_none()
        && course
            .answer
            .as_ref()
            .is_some_and(|it| it.status == Status::Timeout && it.attempts == 0 && !it.from_cache)
}

/// A turn that was ended runs nothing any more.
fn check_turns(stage: &Stage) {
    let faults = stage.plan.faults;
    let outage = |it: &Happening| matches!(it, Happening::Outage { .. });
    // A guard that can not be asked lets calls pass, by design.
    if faults.fails + faults.answer_lost > 0
        || stage.plan.happenings.iter().any(|(_, it)| outage(it))
    {
        return;
    }
    let courses = stage.courses.lock();
    let mut ended: BTreeMap<u64, u64> = BTreeMap::new();
    for course in courses.iter() {
        let code = course.answer.as_ref().and_then(|it| it.error_code());
        if let (Some("tool_error_limit"), Some(at_ms)) = (code, course.ended_ms) {
            let first = ended.entry(course.plan.turn).or_insert(at_ms);
            *first = at_ms.min(*first);
        }
    }
    for course in courses.iter() {
        let over = ended.get(&course.plan.turn);
        let ran = !stage.ledger.world.runs_of(course.number).is_empty();
        if ran && over.is_some_and(|at_ms| *at_ms < course.begun_ms) {
            stage.ledger.broken(|| {
                format!(
                    "guard: delivery {} ran after its turn was ended",
                    course.number
                )
            });
        }
    }
}

/// Nobody is left, so no claim is held, except by who died or was not heard.
fn check_claims(stage: &Stage) {
    let Ok(records) = at_once(stage.records.list(&RecordFilter::default())) else {
        return;
    };
    for record in records {
        if record.state != RecordState::Inflight {
            continue;
        }
        let Some(delivery) = stage.ledger.delivery_behind(&record.owner) else {
            continue;
        };
        let process = usize::try_from(delivery)
            .ok()
            .and_then(|it| stage.courses.lock().get(it).map(|course| course.process));
        let died = process.is_some_and(|process| stage.crashed.contains(&process));
        if !died && !stage.ledger.is_unheard(delivery) {
            stage.ledger.broken(|| {
                format!(
                    "leaked claim: delivery {delivery} is over and its record is still in flight"
                )
            });
        }
    }
}

/// The last delivery of an intent, when all is calm: a success, or an honest "nobody knows".
pub(crate) fn check_last(stage: &Stage, intent: usize) {
    let (count, last) = {
        let courses = stage.courses.lock();
        (courses.len(), courses.last().cloned())
    };
    let Some(last) = last else { return };
    check_answers(stage, count - 1);
    let Some(answer) = &last.answer else {
        stage
            .ledger
            .broken(|| format!("no answer: the last delivery of intent {intent} got none"));
        return;
    };
    match answer.error_code() {
        None => {}
        Some("outcome_unknown") => check_doubt(stage, intent),
        Some("idempotency_key_conflict") if took_other_arguments(stage, intent) => {}
        Some(code) => {
            let code = code.to_owned();
            stage.ledger.broken(|| {
                format!("no clear end: all is calm and intent {intent} is answered {code}")
            });
        }
    }
}

fn took_other_arguments(stage: &Stage, intent: usize) -> bool {
    let courses = stage.courses.lock();
    let mut mine = courses.iter().filter(|it| it.plan.intent == intent);
    mine.any(|course| course.plan.other_arguments)
}

/// "Nobody knows" needs a reason: a run without a clear end, a crash, a word that was lost.
fn check_doubt(stage: &Stage, intent: usize) {
    let content = stage.plan.intents[intent].content;
    let courses = stage.courses.lock();
    // An echo is answered by the record of the intent it echoes.
    let related = courses
        .iter()
        .filter(|it| stage.plan.intents[it.plan.intent].content == content);
    for course in related {
        let runs = stage.ledger.world.runs_of(course.number);
        let unclear = runs.iter().any(|run| run.end != RunEnd::NoEffect);
        let died = stage.crashed.contains(&course.process);
        if unclear || died || stage.ledger.is_unheard(course.number) {
            return;
        }
    }
    drop(courses);
    stage.ledger.broken(|| {
        format!("needless doubt: nothing ever ran for intent {intent}, and it ended as unknown")
    });
}
