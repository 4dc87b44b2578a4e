//! Tools that fail in every class, before and after their effect.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use holdfast_contract::{Effect, ToolContext, ToolError, ToolResult};
use holdfast_testkit::{Does, SeededEntropy};
use parking_lot::Mutex;
use serde_json::{Value, json};

/// What a tool says when it panics.
pub(crate) const PANIC: &str = "a tool that panics";

/// What really happened, and how often.
pub(crate) type Ledger = Arc<Mutex<BTreeMap<String, u64>>>;

pub(crate) struct Flaky {
    pub(crate) effect: Effect,
    pub(crate) chance: SeededEntropy,
    pub(crate) faults_percent: u64,
    pub(crate) ledger: Ledger,
}

impl Flaky {
    fn happens(&self, text: &str) {
        if self.effect != Effect::None {
            *self.ledger.lock().entry(text.to_owned()).or_default() += 1;
        }
    }

    async fn fails(&self, text: &str) -> Result<ToolResult, ToolError> {
        match self.chance.below(9) {
            // Nothing has happened yet.
            0 => Err(ToolError::http(503, None, "busy")),
            1 => Err(ToolError::http(
                429,
                Some(self.chance.below(2_000)),
                "slowly",
            )),
            2 => Err(ToolError::transport("ECONNREFUSED", "refused")),
            3 => Err(ToolError::failed("no such thing")),
            4 => Err(ToolError::http(404, None, "not found")),
            // It has happened, and nobody hears of it.
            5 => {
                self.happens(text);
                Err(ToolError::http(500, None, "broken"))
            }
            6 => {
                self.happens(text);
                Err(ToolError::transport("ECONNRESET", "reset"))
            }
            7 => {
                self.happens(text);
                std::future::pending().await
            }
            _ => {
                self.happens(text);
                std::panic::panic_any(PANIC)
            }
        }
    }
}

#[async_trait]
impl Does for Flaky {
    async fn run(&self, params: &Value, _: &ToolContext) -> Result<ToolResult, ToolError> {
        let text = params["text"].as_str().unwrap_or_default();
        tokio::time::sleep(Duration::from_millis(self.chance.below(500))).await;
        if self.chance.chance(self.faults_percent) {
            return self.fails(text).await;
        }
        self.happens(text);
        let length = usize::try_from(self.chance.below(6_000)).unwrap_or(0);
        Ok(ToolResult::new(json!("word ".repeat(length)), ""))
    }
}
