//! What a run may use up: tokens and money.

use serde::{Deserialize, Serialize};

use crate::run::RunState;

/// What a model costs and what a run may cost, in the same currency.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CostSettings {
    /// For a million tokens that it reads.
    pub input_per_million: f64,
    /// For a million tokens that it writes.
    pub output_per_million: f64,
    /// What a run may cost; none for no bound.
    pub run_max: Option<f64>,
}

/// What a run has cost so far.
#[expect(clippy::cast_precision_loss, reason = "no run has 2^52 tokens")]
pub fn cost(state: &RunState) -> f64 {
    let price = &state.settings.cost;
    state.tokens.iter().fold(0.0, |sum, used| {
        let read = used.prompt as f64 * price.input_per_million;
        let written = used.completion as f64 * price.output_per_million;
        sum + (read + written) / 1_000_000.0
    })
}

/// Why the run may not go on, when its budget is used up.
pub fn used_up(state: &RunState) -> Option<String> {
    let used = state.tokens_total();
    if let Some(most) = state.settings.tokens_max.filter(|most| used >= *most) {
        return Some(format!(
            "the run has used {used} tokens, and may use {most}"
        ));
    }
    let cost = cost(state);
    let most = state.settings.cost.run_max.filter(|most| cost >= *most)?;
    Some(format!("the run has cost {cost:.4}, and may cost {most}"))
}

/// A billionth of the currency is what money is counted in where it is added up and kept.
const NANOS: f64 = 1e9;

/// Money in billionths, never less than it was.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it saturates, and nothing costs less than nothing"
)]
pub fn nanos(cost: f64) -> u64 {
    (cost * NANOS).ceil() as u64
}

/// The money that so many billionths are.
#[expect(
    clippy::cast_precision_loss,
    reason = "a bound that large bounds nothing"
)]
pub fn from_nanos(nanos: u64) -> f64 {
    nanos as f64 / NANOS
}
