//! What the loops, duplicates and orphans of a history cost.
//!
//! Pure: sessions and verdicts in, sums out. Who judges the calls is passed in ([`Judge`]), because
//! the judge is the real stack, replayed over the history, and this crate does not know it.

mod price;
mod report;
mod tally;

pub use price::{Price, PriceError, Prices};
pub use report::{Report, Row, WORST_SESSIONS_MAX, Worst};
pub use tally::{Cost, Tally};

use crate::history::{Call, Request, Session, Usage};

/// What the stack says about one call of the past.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Verdict {
    /// Nothing to say.
    #[default]
    Fine,
    /// It would have run, with a text that tells the model it is looping.
    Warned,
    /// It would not have run.
    Stopped,
    /// It would have been answered from the record of an earlier call.
    Duplicate,
}

/// Judges the calls of a session, in their order.
pub trait Judge {
    /// One verdict a call.
    fn judge(&mut self, session: &Session) -> Vec<Verdict>;
}

/// Adds sessions up.
pub struct Audit {
    prices: Prices,
    report: Report,
}

impl Audit {
    /// Nothing yet.
    pub fn new(prices: Prices) -> Self {
        let report = Report {
            prices_of: prices.source().to_owned(),
            ..Report::default()
        };
        Self { prices, report }
    }

    /// Adds one session. `orphaned_results` is what the checker found and no call can be blamed for.
    pub fn add(
        &mut self,
        name: &str,
        session: &Session,
        orphaned_results: u64,
        judge: &mut dyn Judge,
    ) {
        let verdicts = judge.judge(session);
        let mut verdicts = verdicts.into_iter();
        let mut own = Tally::default();
        let last = last_request(session).filter(|_| session.may_run);
        for request in session.turns.iter().flat_map(|turn| &turn.requests) {
            let is_last = last.is_some_and(|last| std::ptr::eq(last, request));
            let tally = self.request(request, is_last, &mut verdicts);
            own.add(&tally);
        }
        own.orphaned_results += orphaned_results;
        self.report.sessions += 1;
        self.report.total.add(&own);
        self.report.note_session(name, &own);
    }

    /// The sums.
    pub fn finish(self) -> Report {
        self.report
    }

    /// One answer of the model, its calls included, under its model, day and tools.
    fn request(
        &mut self,
        request: &Request,
        is_last: bool,
        verdicts: &mut impl Iterator<Item = Verdict>,
    ) -> Tally {
        let model = request.model.as_deref().unwrap_or("unknown model");
        let whole = self.cost_of(model, &request.usage, request.asked_at_ms, request.at_ms);
        let mut tally = Tally {
            requests: 1,
            ..Tally::default()
        };
        if request.calls.is_empty() {
            tally.spent.add(&whole);
        }
        #[expect(clippy::cast_precision_loss, reason = "no request has 2^52 calls")]
        let share = whole.times(1.0 / request.calls.len().max(1) as f64);
        for call in &request.calls {
            let verdict = verdicts.next().unwrap_or_default();
            let one = call_tally(request, call, is_last, verdict, &share);
            self.report.tool(&call.tool).add(&one);
            tally.add(&one);
        }
        self.report.model(model).add(&tally);
        self.report.day(request.at_ms).add(&tally);
        tally
    }

    fn cost_of(
        &mut self,
        model: &str,
        usage: &Usage,
        asked_at_ms: Option<u64>,
        at_ms: Option<u64>,
    ) -> Cost {
        let usd = usage.cost_usd.or_else(|| self.prices.of(model, usage));
        if usd.is_none() {
            self.report.note_unpriced(model);
        }
        Cost::new(usage.tokens(), between(asked_at_ms, at_ms), usd)
    }
}

fn call_tally(
    request: &Request,
    call: &Call,
    is_last: bool,
    verdict: Verdict,
    share: &Cost,
) -> Tally {
    let result = call.result.as_ref();
    let mut spent = *share;
    spent.ms += between(request.at_ms, result.and_then(|result| result.at_ms));
    let failed = result.is_some_and(|result| result.failed || is_no(result.exit_code));
    // A call counts once: one that is part of a loop is a loop, with a result or without.
    let orphan = result.is_none() && !is_last && verdict == Verdict::Fine;
    let stopped = matches!(verdict, Verdict::Stopped | Verdict::Duplicate);
    let wasted = verdict != Verdict::Fine || orphan;
    Tally {
        calls: 1,
        failed: u64::from(failed),
        loops: u64::from(matches!(verdict, Verdict::Warned | Verdict::Stopped)),
        duplicates: u64::from(verdict == Verdict::Duplicate),
        orphans: u64::from(orphan),
        stopped: u64::from(stopped),
        stopped_that_worked: u64::from(verdict == Verdict::Stopped && result.is_some() && !failed),
        spent,
        wasted: if wasted { spent } else { Cost::default() },
        saved: if stopped { spent } else { Cost::default() },
        ..Tally::default()
    }
}

fn is_no(exit_code: Option<i32>) -> bool {
    exit_code.is_some_and(|code| code != 0)
}

fn last_request(session: &Session) -> Option<&Request> {
    session.turns.last()?.requests.last()
}

/// Clocks jump: a negative span is none, and a session that rested over night did not work.
fn between(from_ms: Option<u64>, to_ms: Option<u64>) -> f64 {
    let (Some(from), Some(to)) = (from_ms, to_ms) else {
        return 0.0;
    };
    #[expect(clippy::cast_precision_loss, reason = "bounded by an hour")]
    let span = to.saturating_sub(from).min(STEP_MS_MAX) as f64;
    span
}

/// One step of a session is not taken for longer than this: people close their laptops.
pub const STEP_MS_MAX: u64 = 60 * 60 * 1000;

#[cfg(test)]
mod tests;
