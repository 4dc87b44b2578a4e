//! Puts a session together, entry by entry.

use std::collections::HashMap;
use std::fmt::Write;

use serde_json::Value;

use crate::limits::ESTIMATED_TOKENS_MAX;

use super::{Call, Counted, Outcome, RESULT_TEXT_BYTES_MAX, Request, Session, Turn, Usage};

/// A token is about this many bytes of English or code.
const BYTES_PER_TOKEN: u64 = 4;

/// Where an answer stands in the session.
#[derive(Clone, Copy)]
struct Spot {
    turn: usize,
    request: usize,
}

/// Where a call stands in the session.
#[derive(Clone, Copy)]
struct Place {
    spot: Spot,
    call: usize,
}

/// Which answer an entry belongs to.
#[derive(Clone, Copy, Default)]
pub(super) enum Joins<'a> {
    /// One of its own.
    #[default]
    Nothing,
    /// The one before it, if nothing else came between.
    Before,
    /// The one with this id.
    Id(&'a str),
}

/// See the [module](self).
#[derive(Default)]
pub(super) struct Builder {
    session: Session,
    /// Calls whose result has not come yet, by id.
    open: HashMap<String, Place>,
    /// Calls of the last answer that have no id, as Ollama has them, in their order.
    unnamed: Vec<Place>,
    /// Where each answer stands that has an id: some hosts write one answer as several entries,
    /// with results between them.
    answers: HashMap<String, Spot>,
    /// The answer that calls are added to.
    current: Option<Spot>,
    /// Whether nothing came since the last entry of the current answer.
    is_answering: bool,
    /// Bytes of the conversation so far, which the next request reads.
    bytes: u64,
    last_at_ms: Option<u64>,
    /// The model that entries without one of their own belong to.
    model: Option<String>,
}

/// What one entry says about a model's answer.
#[derive(Default)]
pub(super) struct Answer<'a> {
    /// Which answer the entry belongs to.
    pub(super) joins: Joins<'a>,
    /// When it was there.
    pub(super) at_ms: Option<u64>,
    /// Which model.
    pub(super) model: Option<&'a str>,
    /// What it cost, when the entry says so.
    pub(super) usage: Option<Usage>,
    /// How long the entry is.
    pub(super) bytes: u64,
}

impl Builder {
    /// A person said something.
    pub(super) fn turn(&mut self, at_ms: Option<u64>, bytes: u64) {
        // Several messages before the first answer are one turn.
        if self.session.turns.last().is_none_or(has_requests) {
            self.session.turns.push(Turn::default());
        }
        self.passed(at_ms, bytes);
        self.is_answering = false;
    }

    /// Anything else that the model reads.
    pub(super) fn passed(&mut self, at_ms: Option<u64>, bytes: u64) {
        self.bytes += bytes;
        self.last_at_ms = at_ms.or(self.last_at_ms);
    }

    /// The model from here on.
    pub(super) fn model(&mut self, model: &str) {
        self.model = Some(model.to_owned());
    }

    /// The model answered, or one more entry of the same answer.
    pub(super) fn answer(&mut self, answer: &Answer<'_>) {
        let joined = match answer.joins {
            Joins::Nothing => None,
            Joins::Before => self.current.filter(|_| self.is_answering),
            Joins::Id(id) => self.answers.get(id).copied(),
        };
        self.current = joined.or_else(|| self.begin_request(answer));
        self.is_answering = true;
        let estimated = Usage {
            // Hosts leave out what no model could read.
            input: (self.bytes / BYTES_PER_TOKEN).min(ESTIMATED_TOKENS_MAX),
            output: answer.bytes / BYTES_PER_TOKEN,
            ..Usage::default()
        };
        if let Some(request) = self.current_request() {
            match answer.usage {
                // The last entry of an answer knows the most.
                Some(usage) => request.usage = usage,
                None if joined.is_some() => {}
                None => request.usage = estimated,
            }
            request.at_ms = answer.at_ms.or(request.at_ms);
        }
        self.passed(answer.at_ms, answer.bytes);
    }

    /// What the last answer cost, where the host says so in an entry of its own.
    pub(super) fn usage(&mut self, usage: Usage) {
        if let Some(request) = self.current_request() {
            request.usage = usage;
        }
    }

    /// The current answer asked for a call.
    pub(super) fn call(&mut self, id: &str, tool: &str, arguments: Value) {
        let Some(spot) = self.current else { return };
        let Some(request) = self.current_request() else {
            return;
        };
        request.calls.push(Call {
            id: id.to_owned(),
            tool: tool.trim().to_owned(),
            arguments,
            result: None,
        });
        let call = request.calls.len() - 1;
        let place = Place { spot, call };
        if id.is_empty() {
            self.unnamed.push(place);
        } else {
            self.open.insert(id.to_owned(), place);
        }
    }

    /// A call came back: the one with this id, else the first without an id whose tool has this name.
    /// A result nobody asked for is the checker's business.
    pub(super) fn result(&mut self, id: &str, mut outcome: Outcome) {
        let bytes = outcome.text.len() as u64;
        self.passed(outcome.at_ms, bytes);
        shorten(&mut outcome.text);
        let place = self.open.remove(id).or_else(|| self.take_unnamed(id));
        if let Some(place) = place {
            let Spot { turn, request } = place.spot;
            let request = &mut self.session.turns[turn].requests[request];
            request.calls[place.call].result = Some(outcome);
        }
        self.is_answering = false;
    }

    fn take_unnamed(&mut self, tool: &str) -> Option<Place> {
        let turns = &self.session.turns;
        let is_meant = |place: &Place| {
            let Spot { turn, request } = place.spot;
            tool.is_empty() || turns[turn].requests[request].calls[place.call].tool == tool
        };
        let at = self.unnamed.iter().position(is_meant)?;
        Some(self.unnamed.remove(at))
    }

    /// The session.
    pub(super) fn finish(mut self) -> Session {
        self.session.may_run = self.session.turns.last().is_some_and(has_requests);
        self.session.turns.retain(has_requests);
        self.session
    }

    fn begin_request(&mut self, answer: &Answer<'_>) -> Option<Spot> {
        if self.session.turns.is_empty() {
            self.session.turns.push(Turn::default());
        }
        self.unnamed.clear();
        let turn = self.session.turns.len() - 1;
        let requests = &mut self.session.turns.last_mut()?.requests;
        requests.push(Request {
            at_ms: answer.at_ms,
            asked_at_ms: self.last_at_ms,
            model: answer
                .model
                .map(str::to_owned)
                .or_else(|| self.model.clone()),
            usage: Usage::default(),
            calls: Vec::new(),
        });
        let request = requests.len() - 1;
        let spot = Spot { turn, request };
        if let Joins::Id(id) = answer.joins {
            self.answers.insert(id.to_owned(), spot);
        }
        Some(spot)
    }

    fn current_request(&mut self) -> Option<&mut Request> {
        let Spot { turn, request } = self.current?;
        self.session.turns.get_mut(turn)?.requests.get_mut(request)
    }
}

fn has_requests(turn: &Turn) -> bool {
    !turn.requests.is_empty()
}

/// Two long results that differ behind the cut still differ: their lengths are part of the text.
fn shorten(text: &mut String) {
    if text.len() <= RESULT_TEXT_BYTES_MAX {
        return;
    }
    let whole = text.len();
    let mut end = RESULT_TEXT_BYTES_MAX;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    // Writing to a string can not fail.
    let _ = write!(text, "… ({whole} bytes)");
}

impl Usage {
    /// Tokens as a provider counted them.
    pub fn recorded(input: u64, output: u64, cache_read: u64, cache_write: u64) -> Self {
        Self {
            input,
            output,
            cache_read,
            cache_write,
            cost_usd: None,
            counted: Counted::Recorded,
        }
    }
}
