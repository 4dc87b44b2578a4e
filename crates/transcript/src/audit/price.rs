//! What tokens cost.
//!
//! List prices, in US dollars for a million tokens, of the models people run most. They change, and
//! people have prices of their own, so a file can replace any of them.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::history::Usage;

/// Said wherever money is shown.
const LIST_SOURCE: &str = "built-in list prices, which change: `--prices FILE` takes your own";
const OWN_SOURCE: &str = "your own prices, and built-in list prices for what they leave out";
const PER: f64 = 1_000_000.0;

/// US dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Price {
    /// Read anew.
    pub input: f64,
    /// Written.
    pub output: f64,
    /// Read from a cache; half of `input` unless given, which is the dearest that is usual.
    #[serde(default)]
    pub cache_read: Option<f64>,
    /// Put into a cache; as `input` unless given.
    #[serde(default)]
    pub cache_write: Option<f64>,
}

impl Price {
    const fn of(input: f64, output: f64) -> Self {
        Self {
            input,
            output,
            cache_read: None,
            cache_write: None,
        }
    }

    /// With the shares of `input` that a family takes for reading from a cache and writing to it.
    const fn cached(self, read: f64, write: f64) -> Self {
        Self {
            cache_read: Some(self.input * read),
            cache_write: Some(self.input * write),
            ..self
        }
    }

    /// A tenth for what is in the cache, a quarter more for putting it there.
    const fn claude(input: f64, output: f64) -> Self {
        Self::of(input, output).cached(0.1, 1.25)
    }

    fn is_below_zero(&self) -> bool {
        [
            Some(self.input),
            Some(self.output),
            self.cache_read,
            self.cache_write,
        ]
        .into_iter()
        .flatten()
        .any(|price| price < 0.0)
    }

    fn cost(&self, usage: &Usage) -> f64 {
        let cache_read = self.cache_read.unwrap_or(self.input / 2.0);
        let cache_write = self.cache_write.unwrap_or(self.input);
        (tokens(usage.input) * self.input
            + tokens(usage.output) * self.output
            + tokens(usage.cache_read) * cache_read
            + tokens(usage.cache_write) * cache_write)
            / PER
    }
}

#[expect(clippy::cast_precision_loss, reason = "no request has 2^52 tokens")]
fn tokens(count: u64) -> f64 {
    count as f64
}

/// A part of a model's name, and what it costs. The longest part that fits wins.
const LIST: &[(&str, Price)] = &[
    ("claude-3-haiku", Price::claude(0.25, 1.25)),
    ("claude-3-5-haiku", Price::claude(0.8, 4.0)),
    ("claude-haiku", Price::claude(1.0, 5.0)),
    ("claude-3-5-sonnet", Price::claude(3.0, 15.0)),
    ("claude-3-7-sonnet", Price::claude(3.0, 15.0)),
    ("claude-sonnet", Price::claude(3.0, 15.0)),
    ("claude-opus", Price::claude(5.0, 25.0)),
    ("claude-opus-4-0", Price::claude(15.0, 75.0)),
    ("claude-opus-4-1", Price::claude(15.0, 75.0)),
    ("claude-opus-4-2025", Price::claude(15.0, 75.0)),
    ("claude-3-opus", Price::claude(15.0, 75.0)),
    ("gpt-4o", Price::of(2.5, 10.0)),
    ("gpt-4o-mini", Price::of(0.15, 0.6)),
    ("gpt-4.1", Price::of(2.0, 8.0).cached(0.25, 1.0)),
    ("gpt-4.1-mini", Price::of(0.4, 1.6).cached(0.25, 1.0)),
    ("gpt-4.1-nano", Price::of(0.1, 0.4).cached(0.25, 1.0)),
    ("gpt-5", Price::of(1.25, 10.0).cached(0.1, 1.0)),
    ("gpt-5-mini", Price::of(0.25, 2.0).cached(0.1, 1.0)),
    ("gpt-5-nano", Price::of(0.05, 0.4).cached(0.1, 1.0)),
    ("o3", Price::of(2.0, 8.0).cached(0.25, 1.0)),
    ("o3-mini", Price::of(1.1, 4.4)),
    ("o3-pro", Price::of(20.0, 80.0)),
    ("gpt-5-pro", Price::of(15.0, 120.0)),
    ("o4-mini", Price::of(1.1, 4.4).cached(0.25, 1.0)),
    ("gemini-2.5-pro", Price::of(1.25, 10.0).cached(0.1, 1.0)),
    ("gemini-2.5-flash", Price::of(0.3, 2.5).cached(0.1, 1.0)),
    ("deepseek", Price::of(0.28, 0.42).cached(0.1, 1.0)),
    ("kimi-k2", Price::of(0.6, 2.5).cached(0.1, 1.0)),
    ("glm-4", Price::of(0.6, 2.2)),
    ("minimax-m2", Price::of(0.3, 1.2)),
    ("gpt-oss-120b", Price::of(0.15, 0.6)),
    ("gpt-oss-20b", Price::of(0.07, 0.3)),
];

/// A price list that can not be used.
#[derive(Debug, thiserror::Error)]
pub enum PriceError {
    /// It is not one.
    #[error("the price list can not be read: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// A price can not be.
    #[error("the price of {0:?} is below zero")]
    BelowZero(String),
}

/// What every model costs.
#[derive(Debug, Clone)]
pub struct Prices {
    own: BTreeMap<String, Price>,
}

impl Prices {
    /// The list prices.
    pub fn list() -> Self {
        Self {
            own: BTreeMap::new(),
        }
    }

    /// Prices from a file (`{"part of a model's name": {"input": 3, "output": 15}}`), before those
    /// of the list.
    pub fn parse(json: &str) -> Result<Self, PriceError> {
        let own: BTreeMap<String, Price> = serde_json::from_str(json)?;
        if let Some((name, _)) = own.iter().find(|(_, price)| price.is_below_zero()) {
            return Err(PriceError::BelowZero(name.clone()));
        }
        Ok(Self {
            own: own
                .into_iter()
                .map(|(name, price)| (name.to_lowercase(), price))
                .collect(),
        })
    }

    /// Where the prices are from, for people.
    pub fn source(&self) -> &'static str {
        if self.own.is_empty() {
            LIST_SOURCE
        } else {
            OWN_SOURCE
        }
    }

    /// What a request cost, when the model has a price.
    pub fn of(&self, model: &str, usage: &Usage) -> Option<f64> {
        let model = model.to_lowercase().replace('_', "-");
        let own = longest(
            self.own.iter().map(|(name, price)| (name.as_str(), price)),
            &model,
        );
        let price =
            own.or_else(|| longest(LIST.iter().map(|(name, price)| (*name, price)), &model))?;
        Some(price.cost(usage))
    }
}

fn longest<'a>(
    prices: impl Iterator<Item = (&'a str, &'a Price)>,
    model: &str,
) -> Option<&'a Price> {
    prices
        .filter(|(name, _)| stands_in(model, name))
        .max_by_key(|(name, _)| name.len())
        .map(|(_, price)| price)
}

/// `o3` stands in `openai/o3-2025`, and not in `foo3`.
fn stands_in(model: &str, name: &str) -> bool {
    model.match_indices(name).any(|(at, _)| {
        let before = model[..at].chars().next_back();
        before.is_none_or(|sign| !sign.is_ascii_alphanumeric())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_name_wins_and_a_part_of_a_word_does_not_count() {
        let usage = Usage::recorded(1_000_000, 0, 0, 0);
        let price = |model: &str| Prices::list().of(model, &usage);
        assert_eq!(price("gpt-4o-2024-08-06"), Some(2.5));
        assert_eq!(price("openai/gpt-4o-mini"), Some(0.15));
        assert_eq!(price("anthropic/claude-opus-4-1-20250805"), Some(15.0));
        assert_eq!(price("us.anthropic.claude-opus-4-5"), Some(5.0));
        assert_eq!(price("claude-opus-4-20250514"), Some(15.0));
        assert_eq!(price("o3-mini-2025"), Some(1.1));
        assert_eq!(price("foo3"), None);
        assert_eq!(price("loop-read"), None);
    }

    #[test]
    fn own_prices_come_first() {
        let prices = Prices::parse(r#"{"GPT": {"input": 1, "output": 2, "cacheRead": 0.5}}"#)
            .expect("a price list");
        let usage = Usage::recorded(1_000_000, 1_000_000, 1_000_000, 1_000_000);
        assert_eq!(prices.of("gpt-4o", &usage), Some(1.0 + 2.0 + 0.5 + 1.0));
        assert!(Prices::parse(r#"{"x": {"inptu": 1}}"#).is_err());
        assert!(Prices::parse(r#"{"x": {"input": -1, "output": 1}}"#).is_err());
    }
}
