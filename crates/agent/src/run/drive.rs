//! Drives a run: asks, acts, and keeps what was reached.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::{Either, join_all, select};
use holdfast_contract::{ToolCallEnvelope, ToolStep};
use holdfast_intent::{Parser, ToolSet, ToolSpec};
use holdfast_reliability::retry::{RetryOverrides, RetryPolicy, backoff_window_ms};
use holdfast_toolbox::declare;
use holdfast_toolbox::stack::ToolStack;
use serde_json::{Value, json};
use std::pin::pin;
use std::time::Duration;

use super::state::{Ending, Phase, PlannedCall, RunErrorCode, RunState};
use super::step;
use crate::chat::{Message, Role};
use crate::model::{Model, ModelError, ModelReply, ModelRequest};
use crate::prompt;
use crate::results::CallResult;

/// Attempts at one answer of the model: the first, and after 1 s, 2 s and 4 s.
const MODEL_ATTEMPTS_MAX: u32 = 4;
/// Longest wait before the first repetition; doubled each time.
const MODEL_RETRY_BASE_MS: u64 = 1000;

/// Why a checkpoint could not be kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the run can not be kept: {0}")]
pub struct CheckpointError(pub String);

/// Keeps a run after each of its steps.
#[async_trait]
pub trait Checkpoint: Send + Sync {
    /// Keeps it. An error ends the run: what is not kept may not go on.
    async fn keep(&self, state: &RunState) -> Result<(), CheckpointError>;
}

/// Keeps nothing, for a run that nobody wants to resume.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoCheckpoint;

#[async_trait]
impl Checkpoint for NoCheckpoint {
    async fn keep(&self, _: &RunState) -> Result<(), CheckpointError> {
        Ok(())
    }
}

/// A model and its tools.
pub struct Loop {
    model: Arc<dyn Model>,
    stack: Arc<ToolStack>,
    tools: ToolSet,
    retry: RetryPolicy,
}

impl Loop {
    /// Puts them together.
    pub fn new(model: Arc<dyn Model>, stack: Arc<ToolStack>) -> Self {
        let specs = stack.registry().iter().map(|found| ToolSpec {
            mutating: found.tool.effect().is_mutating(),
            ..ToolSpec::new(found.tool.name(), found.schema.clone())
        });
        let tools = ToolSet::new(specs.collect());
        let standard = RetryPolicy::standard();
        let slower = RetryOverrides {
            max_attempts: Some(MODEL_ATTEMPTS_MAX),
            base_ms: Some(MODEL_RETRY_BASE_MS),
            ..RetryOverrides::default()
        };
        let retry = standard.with(&slower).unwrap_or(standard);
        Self {
            model,
            stack,
            tools,
            retry,
        }
    }

    /// Goes on with a run until it has ended. A run that was kept by another process goes on where
    /// it was: calls that have ended are not made again, and one that was under way is answered
    /// from its record.
    pub async fn go_on(
        &self,
        mut state: RunState,
        kept: &dyn Checkpoint,
    ) -> Result<RunState, CheckpointError> {
        let (primary, fallback) = state.settings.strategies();
        let parser = Parser::new(self.tools.clone()).with_strategies(primary, fallback);
        kept.keep(&state).await?;
        while !matches!(state.phase, Phase::Ended(_)) {
            let left_ms = state.deadline_at_ms().saturating_sub(self.now_ms());
            let stepped = {
                let step = pin!(self.step(&mut state, &parser, kept));
                let time_up = pin!(tokio::time::sleep(Duration::from_millis(left_ms)));
                match select(step, time_up).await {
                    Either::Left((stepped, _)) => Some(stepped),
                    Either::Right(_) => None,
                }
            };
            match stepped {
                Some(done) => done?,
                None => step::timed_out(&mut state),
            }
            kept.keep(&state).await?;
        }
        Ok(state)
    }

    fn now_ms(&self) -> u64 {
        self.stack.runtime().clock.now_ms()
    }

    async fn step(
        &self,
        state: &mut RunState,
        parser: &Parser,
        kept: &dyn Checkpoint,
    ) -> Result<(), CheckpointError> {
        match state.phase.clone() {
            Phase::Ask => match self.ask(state).await {
                Ok(reply) => step::heard(state, &reply, parser),
                Err(error) => failed(state, error),
            },
            Phase::Act(calls) => self.act(state, &calls, kept).await?,
            Phase::Ended(_) => {}
        }
        Ok(())
    }

    async fn ask(&self, state: &RunState) -> Result<ModelReply, ModelError> {
        let request = self.request(state);
        let mut attempt = 1;
        loop {
            let error = match self.model.complete(&request).await {
                Ok(reply) => return Ok(reply),
                Err(error) => error,
            };
            let again = matches!(error, ModelError::Unavailable(_));
            if !again || attempt >= self.retry.max_attempts() {
                return Err(error);
            }
            let wait_ms = backoff_window_ms(attempt, &self.retry);
            tokio::time::sleep(Duration::from_millis(wait_ms)).await;
            attempt += 1;
        }
    }

    fn request(&self, state: &RunState) -> ModelRequest {
        let settings = &state.settings;
        let (strategy, _) = settings.strategies();
        let prompt = prompt::system(self.stack.registry(), strategy);
        let messages: Vec<Value> = with_prompt(prompt, &state.messages)
            .iter()
            .map(Message::to_wire)
            .collect();
        let mut body = json!({
            "messages": messages,
            "temperature": settings.temperature,
            "max_tokens": settings.max_tokens,
        });
        if let Some(top_p) = settings.top_p {
            body["top_p"] = json!(top_p);
        }
        if strategy == holdfast_intent::Strategy::Native {
            body["tools"] = declare::openai(self.stack.registry());
        }
        ModelRequest {
            body,
            timeout_ms: settings.call_timeout_ms,
        }
    }

    /// Runs what has no result yet: side by side where nothing changes anything, else in order.
    async fn act(
        &self,
        state: &mut RunState,
        calls: &[PlannedCall],
        kept: &dyn Checkpoint,
    ) -> Result<(), CheckpointError> {
        let open: Vec<usize> = (0..calls.len())
            .filter(|place| calls[*place].result.is_none())
            .collect();
        if open.iter().all(|place| !calls[*place].mutating) {
            let running = open
                .iter()
                .map(|place| self.call(state, *place, &calls[*place]));
            let results = join_all(running).await;
            for (place, result) in open.into_iter().zip(results) {
                step::acted(state, place, result);
            }
            return Ok(());
        }
        for place in open {
            let result = self.call(state, place, &calls[place]).await;
            step::acted(state, place, result);
            kept.keep(state).await?;
        }
        Ok(())
    }

    async fn call(&self, state: &RunState, place: usize, call: &PlannedCall) -> CallResult {
        let answer = self.stack.call(envelope(state, place, call)).await;
        CallResult::of(&answer, &state.settings)
    }
}

/// The same for every process that goes on with the run: the place in the run is the identity.
fn envelope(state: &RunState, place: usize, call: &PlannedCall) -> ToolCallEnvelope {
    let step = ToolStep {
        iteration: u64::from(state.iteration),
        index: place as u64,
    };
    let mut envelope = ToolCallEnvelope::new(
        format!("{}-{}-{}", state.id, step.iteration, step.index),
        call.name.clone(),
        call.arguments.clone(),
        state.session.clone(),
        state.actor.clone(),
    );
    envelope.tool_call_id.clone_from(&call.call_id);
    envelope.target.run_id = Some(state.id.clone());
    envelope.target.turn_id = Some(state.id.clone());
    envelope.target.model_id = Some(state.model.clone());
    envelope.payload.tool_step = Some(step);
    envelope.control.deadline_at_ms = Some(state.deadline_at_ms());
    envelope
}

/// The prompt joins the client's own system message, where there is one: many servers take one only.
fn with_prompt(prompt: Option<String>, messages: &[Message]) -> Vec<Message> {
    let mut all = messages.to_vec();
    let Some(prompt) = prompt else { return all };
    match all.first_mut().filter(|first| first.role == Role::System) {
        Some(first) => first.content = format!("{}\n\n{prompt}", first.content),
        None => all.insert(0, Message::text(Role::System, prompt)),
    }
    all
}

fn failed(state: &mut RunState, error: ModelError) {
    match error {
        ModelError::TooLong(why) => state.fail(RunErrorCode::ContextWindowExceeded, why),
        ModelError::Unavailable(why) | ModelError::Refused(why) => {
            state.fail(RunErrorCode::GptOssUnreachable, why);
        }
    }
}

impl RunState {
    /// Ends a run that nobody waits for any more.
    pub fn cancel(&mut self) {
        if !matches!(self.phase, Phase::Ended(_)) {
            self.phase = Phase::Ended(Ending::Cancelled);
        }
    }
}
