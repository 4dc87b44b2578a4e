//! Sums.

use serde::Serialize;

/// What something took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Cost {
    /// Tokens, all kinds together.
    pub tokens: f64,
    /// Time.
    pub ms: f64,
    /// Money, as far as prices are known.
    pub usd: f64,
    /// Tokens nobody knows a price of.
    #[serde(rename = "unpricedTokens")]
    pub unpriced_tokens: f64,
}

impl Cost {
    /// Of one request.
    pub fn new(tokens: u64, ms: f64, usd: Option<f64>) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "no history has 2^52 tokens")]
        let tokens = tokens as f64;
        Self {
            tokens,
            ms,
            usd: usd.unwrap_or_default(),
            unpriced_tokens: if usd.is_some() { 0.0 } else { tokens },
        }
    }

    /// Adds another.
    pub fn add(&mut self, other: &Self) {
        self.tokens += other.tokens;
        self.ms += other.ms;
        self.usd += other.usd;
        self.unpriced_tokens += other.unpriced_tokens;
    }

    /// A share of it.
    #[must_use]
    pub fn times(&self, share: f64) -> Self {
        Self {
            tokens: self.tokens * share,
            ms: self.ms * share,
            usd: self.usd * share,
            unpriced_tokens: self.unpriced_tokens * share,
        }
    }
}

/// What happened under one model, tool or day.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tally {
    /// Answers of a model.
    pub requests: u64,
    /// Calls of tools.
    pub calls: u64,
    /// Calls that failed, and commands that returned non-zero.
    pub failed: u64,
    /// Calls that were part of a loop.
    pub loops: u64,
    /// Calls that repeated an effect.
    pub duplicates: u64,
    /// Calls without a result that are neither part of a loop nor a duplicate.
    pub orphans: u64,
    /// Results without a call.
    pub orphaned_results: u64,
    /// Calls that the guard would not have run or idempotency would have answered from a record.
    pub stopped: u64,
    /// Of those that the guard would not have run, the ones that did work.
    pub stopped_that_worked: u64,
    /// What everything took.
    pub spent: Cost,
    /// What loops, duplicates and orphans took.
    pub wasted: Cost,
    /// What the stopped calls took.
    pub saved: Cost,
}

impl Tally {
    /// Adds another.
    pub fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.calls += other.calls;
        self.failed += other.failed;
        self.loops += other.loops;
        self.duplicates += other.duplicates;
        self.orphans += other.orphans;
        self.orphaned_results += other.orphaned_results;
        self.stopped += other.stopped;
        self.stopped_that_worked += other.stopped_that_worked;
        self.spent.add(&other.spent);
        self.wasted.add(&other.wasted);
        self.saved.add(&other.saved);
    }

    /// The calls that went nowhere, each counted once: in loops, duplicates and orphans.
    pub fn trouble(&self) -> u64 {
        self.loops + self.duplicates + self.orphans
    }
}
