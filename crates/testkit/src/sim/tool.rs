//! Tools that act on the simulated world and fail in every way there is.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use holdfast_contract::{
    Effect, PermissionTier, Reconciled, Tool, ToolContext, ToolError, ToolResult,
};
use serde_json::{Value, json};

use super::world::{RunEnd, World};
use crate::SeededEntropy;

/// The message of every panic that the simulation means.
pub const SIMULATED_PANIC: &str = "simulated panic of a tool";

/// What kind of tool it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Nature {
    /// Must not be repeated, and nobody can find out whether it happened.
    Pay,
    /// Must not be repeated; equal content shortly after is an echo; can be found out about.
    Message,
    /// Must not be repeated; can be found out about.
    Append,
    /// Can be repeated.
    Put,
    /// Has no effect.
    Look,
}

impl Nature {
    /// Every kind.
    pub const ALL: [Self; 5] = [
        Self::Pay,
        Self::Message,
        Self::Append,
        Self::Put,
        Self::Look,
    ];

    /// The tool's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pay => "pay",
            Self::Message => "message",
            Self::Append => "append",
            Self::Put => "put",
            Self::Look => "look",
        }
    }

    /// Whether a second effect would do harm.
    pub const fn is_unsafe(self) -> bool {
        matches!(self, Self::Pay | Self::Message | Self::Append)
    }

    const fn effect(self) -> Effect {
        match self {
            Self::Pay | Self::Message | Self::Put => Effect::External,
            Self::Append => Effect::Workspace,
            Self::Look => Effect::None,
        }
    }
}

/// How the world treats tools during one schedule; percentages of executions.
#[derive(Debug, Clone, Copy)]
pub struct Weather {
    /// Refused before anything happened: 429, 503, connection refused.
    pub refused: u64,
    /// Lost on the way: the effect may have happened.
    pub lost: u64,
    /// Never answers.
    pub hangs: u64,
    /// Panics.
    pub panics: u64,
    /// Says that the call is wrong.
    pub wrong: u64,
    /// Executions take up to this long.
    pub latency_ms_max: u64,
    /// The tools' own time limit.
    pub timeout_ms: u64,
    /// Whether tools that can say what happened do so.
    pub reconciles: bool,
}

/// One of the simulated tools. `content` says what the call is about, `clientTs` (which is no part
/// of any key) which delivery it is.
pub struct SimTool {
    nature: Nature,
    weather: Weather,
    world: Arc<World>,
    dice: Arc<SeededEntropy>,
}

enum End {
    Answer,
    Fail(RunEnd, ToolError),
    Hang,
    Panic,
}

impl SimTool {
    /// A tool under this weather.
    pub fn new(
        nature: Nature,
        weather: Weather,
        world: Arc<World>,
        dice: Arc<SeededEntropy>,
    ) -> Self {
        Self {
            nature,
            weather,
            world,
            dice,
        }
    }

    fn refusal(&self) -> ToolError {
        match self.dice.below(3) {
            0 => ToolError::transport("ECONNREFUSED", "refused"),
            1 => ToolError::http(429, Some(self.dice.below(3_000)), "slow down"),
            _ => ToolError::http(503, None, "not now"),
        }
    }

    fn loss(&self) -> ToolError {
        match self.dice.below(4) {
            0 => ToolError::transport("ECONNRESET", "reset"),
            1 => ToolError::http(500, None, "broken"),
            2 => ToolError::http(504, None, "no answer"),
            _ => ToolError::timed_out(Duration::from_secs(1)),
        }
    }

    fn mistake(&self) -> ToolError {
        match self.dice.below(3) {
            0 => ToolError::invalid(Some("/content"), "no such thing"),
            1 => ToolError::http(404, None, "not found"),
            _ => ToolError::failed("it does not work"),
        }
    }

    /// How this execution ends, and whether the effect happens on the way.
    fn draw(&self) -> (End, bool) {
        let weather = &self.weather;
        let mut roll = self.dice.below(100);
        let mut falls = |percent: u64| {
            let hit = roll < percent;
            roll = roll.wrapping_sub(percent);
            hit
        };
        if falls(weather.refused) {
            return (End::Fail(RunEnd::NoEffect, self.refusal()), false);
        }
        if falls(weather.wrong) {
            return (End::Fail(RunEnd::NoEffect, self.mistake()), false);
        }
        let effect = self.dice.chance(60);
        if falls(weather.lost) {
            return (End::Fail(RunEnd::InDoubt, self.loss()), effect);
        }
        if falls(weather.hangs) {
            return (End::Hang, effect);
        }
        if falls(weather.panics) {
            return (End::Panic, effect);
        }
        (End::Answer, true)
    }

    async fn pause(&self, up_to_ms: u64) {
        let ms = self.dice.below(up_to_ms + 1);
        if ms > 0 {
            tokio::time::sleep(Duration::from_millis(ms)).await;
        }
    }
}

#[async_trait]
impl Tool for SimTool {
    fn name(&self) -> &str {
        self.nature.name()
    }

    fn description(&self) -> &str {
        "Acts on a simulated world."
    }

    fn parameters_schema(&self) -> Value {
        json!({ "type": "object" })
    }

    fn permission_tier(&self) -> PermissionTier {
        PermissionTier::ReadOnly
    }

    fn effect(&self) -> Effect {
        self.nature.effect()
    }

    fn is_idempotent(&self) -> bool {
        !self.nature.is_unsafe()
    }

    fn default_timeout_ms(&self) -> u64 {
        self.weather.timeout_ms
    }

    #[expect(
        clippy::panic,
        reason = "a tool that panics is one of the things to simulate"
    )]
    async fn execute(&self, params: &Value, ctx: &ToolContext) -> Result<ToolResult, ToolError> {
        let delivery = params["clientTs"].as_u64().unwrap_or(u64::MAX);
        let content = params["content"].as_u64().unwrap_or(u64::MAX);
        let key = ctx.call.idempotency_key.as_deref().unwrap_or_default();
        let run = self.world.begin(delivery);
        let (end, happens) = self.draw();
        self.pause(self.weather.latency_ms_max).await;
        let mut number = u64::MAX;
        if happens {
            number = run.take_effect(content, key);
            self.pause(self.weather.latency_ms_max / 2).await;
        }
        match end {
            End::Answer => {
                run.end(RunEnd::Answered);
                Ok(super::world::output(number))
            }
            End::Fail(end, error) => {
                run.end(end);
                Err(error)
            }
            End::Hang => std::future::pending().await,
            End::Panic => {
                run.end(RunEnd::InDoubt);
                panic!("{SIMULATED_PANIC}")
            }
        }
    }

    async fn reconcile(&self, _params: &Value, ctx: &ToolContext) -> Reconciled {
        let can = matches!(self.nature, Nature::Message | Nature::Append);
        if !can || !self.weather.reconciles {
            return Reconciled::CanNotTell;
        }
        self.pause(200).await;
        self.world
            .reconcile(ctx.call.idempotency_key.as_deref().unwrap_or_default())
    }
}
