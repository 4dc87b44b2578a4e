//! Makes a history fit into a window: a pure function over messages.
//!
//! Three steps, each taken only when the one before was not enough: old results are shortened, old
//! rounds are left out, the last results are shortened. The rules, the task and the last round are
//! always there, and a call is never parted from its result.

use super::note;
use crate::chat::{Message, Role};
use crate::results::{BATCH_HEAD, cut_within};
use crate::tokens;

/// Characters of an old result that stay when space is short.
pub const OLD_RESULT_CHARS: usize = 400;

/// How much room there is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Budget {
    /// What the model can hold, in tokens.
    pub window: u64,
    /// Tokens of it that are never used.
    pub reserve: u64,
    /// Tokens that its answer may take.
    pub completion: u64,
    /// Tokens of what goes along with the history: the prompt, the tools, the frame.
    pub fixed: u64,
    /// Old results are shortened from this share of the room on.
    pub truncate_at: f64,
    /// Old rounds are left out from this share of the room on.
    pub compact_at: f64,
    /// What the server counts for a thousand tokens that we count; never below a thousand.
    pub scale_permille: u64,
}

impl Budget {
    /// What may be used at all.
    pub fn available(&self) -> u64 {
        self.window.saturating_sub(self.reserve)
    }

    /// What a question may take, so that its answer fits too.
    pub fn prompt_max(&self) -> u64 {
        self.available().saturating_sub(self.completion)
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "a share of a window, which no double loses"
    )]
    fn share(&self, part: f64) -> u64 {
        ((self.available() as f64 * part.clamp(0.0, 1.0)) as u64).min(self.prompt_max())
    }

    /// What a history of so many tokens takes, as the server will count it.
    pub fn total(&self, history: u64) -> u64 {
        let all = self.fixed.saturating_add(history);
        all.saturating_mul(self.scale_permille.max(1000))
            .div_ceil(1000)
    }
}

/// A history that fits.
#[derive(Debug, Clone, PartialEq)]
pub struct Fitted {
    /// The messages.
    pub messages: Vec<Message>,
    /// Where the task is now.
    pub task: usize,
    /// What the question takes in all.
    pub tokens: u64,
    /// Results that were shortened.
    pub shortened: usize,
    /// Messages that were left out.
    pub left_out: usize,
}

/// The history does not fit, whatever is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the question takes {tokens} tokens ({fixed} of them for the prompt and the tools), and {most} fit into the \
     context window of {window}: the rest is kept for the answer and in reserve"
)]
pub struct TooLong {
    /// What it takes at least.
    pub tokens: u64,
    /// What of that goes along with every history.
    pub fixed: u64,
    /// What there is for it.
    pub most: u64,
    /// What the model can hold.
    pub window: u64,
}

/// Makes the history fit. `task` is the message that says what is to be done.
pub fn fit(messages: Vec<Message>, task: usize, budget: &Budget) -> Result<Fitted, TooLong> {
    let mut work = Work {
        counts: tokens::messages(&messages),
        messages,
        task,
        budget,
        shortened: 0,
        left_out: 0,
    };
    let (low, high) = (
        budget.share(budget.truncate_at),
        budget.share(budget.compact_at),
    );
    if work.total() > low {
        let old = 0..work.last_round();
        work.shorten(old, low);
    }
    if work.total() > high {
        work.leave_out(low.min(high));
    }
    if work.total() > budget.prompt_max() {
        let last = work.last_round()..work.messages.len();
        work.shorten(last, budget.prompt_max());
    }
    work.done()
}

struct Work<'a> {
    messages: Vec<Message>,
    counts: Vec<u64>,
    task: usize,
    budget: &'a Budget,
    shortened: usize,
    left_out: usize,
}

impl Work<'_> {
    fn total(&self) -> u64 {
        self.budget.total(self.history())
    }

    /// The tokens of all messages.
    fn history(&self) -> u64 {
        let counts = self.counts.iter();
        counts.fold(0, |sum, it| sum.saturating_add(*it))
    }

    /// Where the last round begins: with the last thing that the model said about the task.
    fn last_round(&self) -> usize {
        let about_task = self.messages.get(self.task..).unwrap_or_default();
        let said = about_task.iter().rposition(|it| it.role == Role::Assistant);
        self.task + said.unwrap_or(0)
    }

    /// Whether a message carries results of calls.
    fn is_result(&self, place: usize) -> bool {
        let message = &self.messages[place];
        match message.role {
            Role::Tool => true,
            Role::User => place > self.task && message.content.starts_with(BATCH_HEAD),
            Role::System | Role::Assistant => false,
        }
    }

    /// Shortens results, the oldest first, until so many tokens are reached.
    fn shorten(&mut self, places: std::ops::Range<usize>, enough: u64) {
        let mut sum = self.history();
        for place in places {
            if self.budget.total(sum) <= enough {
                return;
            }
            if !self.is_result(place) {
                continue;
            }
            let message = &self.messages[place];
            let content = cut_within(&message.content, OLD_RESULT_CHARS);
            let shorter = Message {
                content,
                ..message.clone()
            };
            let count = tokens::messages(std::slice::from_ref(&shorter))[0];
            if count < self.counts[place] {
                sum = sum.saturating_sub(self.counts[place] - count);
                self.counts[place] = count;
                self.messages[place] = shorter;
                self.shortened += 1;
            }
        }
    }

    /// Leaves out old rounds, the oldest first, and says so in a note where the first was.
    fn leave_out(&mut self, enough: u64) {
        let mut out = vec![false; self.messages.len()];
        let mut left = self.history();
        let goal = enough.saturating_sub(note::NOTE_TOKENS_ABOUT);
        for round in self.old_rounds() {
            if self.budget.total(left) <= goal {
                break;
            }
            for place in round {
                out[place] = true;
                left = left.saturating_sub(self.counts[place]);
            }
        }
        let Some(first) = out.iter().position(|it| *it) else {
            return;
        };
        let gone: Vec<&Message> = self.of(&out).collect();
        let note = note::about(&gone);
        let cost = tokens::messages(std::slice::from_ref(&note))[0];
        let saved: u64 = self
            .counts
            .iter()
            .zip(&out)
            .filter(|it| *it.1)
            .map(|it| it.0)
            .sum();
        if cost >= saved {
            return;
        }
        self.left_out = gone.len();
        self.replace(&out, first, note, cost);
    }

    fn of<'a>(&'a self, out: &'a [bool]) -> impl Iterator<Item = &'a Message> {
        self.messages
            .iter()
            .zip(out)
            .filter(|it| *it.1)
            .map(|it| it.0)
    }

    fn replace(&mut self, out: &[bool], first: usize, note: Message, cost: u64) {
        let old = std::mem::take(&mut self.messages)
            .into_iter()
            .zip(std::mem::take(&mut self.counts));
        let mut note = Some(note);
        let mut task_now = 0;
        for (place, (message, count)) in old.enumerate() {
            if place == first
                && let Some(note) = note.take()
            {
                self.messages.push(note);
                self.counts.push(cost);
            }
            if place == self.task {
                task_now = self.messages.len();
            }
            if !out[place] {
                self.messages.push(message);
                self.counts.push(count);
            }
        }
        self.task = task_now;
    }

    /// What may be left out, in pieces that belong together: what the model said, and all that it
    /// was answered.
    fn old_rounds(&self) -> Vec<Vec<usize>> {
        let mut rounds: Vec<Vec<usize>> = Vec::new();
        let mut is_open = false;
        for place in 0..self.last_round() {
            let message = &self.messages[place];
            let stays =
                message.role == Role::System || place == self.task || note::is_note(message);
            if stays {
                is_open = false;
                continue;
            }
            let answers =
                message.role == Role::Tool || (message.role == Role::User && place > self.task);
            match rounds.last_mut().filter(|_| answers && is_open) {
                Some(round) => round.push(place),
                None => rounds.push(vec![place]),
            }
            is_open = answers || message.role == Role::Assistant;
        }
        rounds
    }

    fn done(self) -> Result<Fitted, TooLong> {
        let (tokens, most) = (self.total(), self.budget.prompt_max());
        if tokens > most {
            return Err(TooLong {
                tokens,
                fixed: self.budget.total(0),
                most,
                window: self.budget.window,
            });
        }
        Ok(Fitted {
            messages: self.messages,
            task: self.task,
            tokens,
            shortened: self.shortened,
            left_out: self.left_out,
        })
    }
}

#[cfg(test)]
#[path = "fit_tests.rs"]
mod tests;
