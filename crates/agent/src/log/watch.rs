//! Turns what happens in a run into events and errors.

use std::sync::Arc;

use async_trait::async_trait;
use holdfast_contract::Clock;
use holdfast_intent::Parsed;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use super::lines::{Level, RunLog};
use super::pages::{Entry, ErrorPages};
use crate::context;
use crate::model::{ModelError, ModelReply, ModelRequest};
use crate::results::CallResult;
use crate::run::{Checkpoint, CheckpointError, Ending, Happened, Phase, RunErrorCode, RunState};

/// Where runs are written down.
#[derive(Clone)]
pub struct Watch {
    log: Arc<RunLog>,
    pages: Option<Arc<ErrorPages>>,
    clock: Arc<dyn Clock>,
}

impl Watch {
    /// Events go to the log, errors to the pages as well.
    pub fn new(log: Arc<RunLog>, pages: Option<Arc<ErrorPages>>, clock: Arc<dyn Clock>) -> Self {
        Self { log, pages, clock }
    }

    /// The whole request, for those who look for the reason of a reply.
    pub fn sends(&self, state: &RunState, request: &ModelRequest) {
        if self.log.takes(Level::Debug) {
            let fields = json!({"request": request.body});
            self.log
                .event(Level::Debug, "gpt_oss_request", of_question(state, fields));
        }
    }

    /// A server was away, and another one is asked.
    pub fn fails_over(
        &self,
        run: &str,
        iteration: u32,
        (from, to): (&str, &str),
        why: &ModelError,
    ) {
        let fields = json!({"run_id": run, "iteration": iteration, "from": from, "to": to,
                            "error": why.to_string()});
        self.log.event(Level::Warn, "gpt_oss_failover", fields);
    }

    /// A run has ended outside of its steps: somebody cancelled it, or it could not be kept.
    pub(crate) fn run_ended(&self, state: &RunState) {
        if let Some(ending) = state.ending() {
            ends(self, state, ending, &mut Seen::default());
        }
    }

    /// Nobody here goes on with a run, and why.
    pub(crate) fn run_lost(&self, run: &str, outcome: &str, why: &str) {
        let fields = json!({"run_id": run, "outcome": outcome, "error": why});
        self.log.event(Level::Warn, "executor_run_end", fields);
    }

    /// The whole reply, and what was read from it.
    pub(crate) fn hears(
        &self,
        state: &RunState,
        reply: &ModelReply,
        read: impl FnOnce() -> Parsed,
    ) {
        if !self.log.takes(Level::Debug) {
            return;
        }
        let mut said = json!({"content": reply.content, "reasoning": reply.reasoning});
        if !reply.calls.is_null() {
            // Older servers have one call, elsewhere in their message.
            let calls = reply.calls.get("tool_calls").unwrap_or(&reply.calls);
            said["calls"] = calls.clone();
        }
        self.log
            .event(Level::Debug, "gpt_oss_reply", of(state, said));
        let parsed = read();
        let fields = json!({
            "intents": parsed.intents,
            "problems": parsed.problems,
            "final": parsed.final_text,
        });
        self.log
            .event(Level::Debug, "gpt_oss_reply_read", of(state, fields));
    }

    fn page(&self, entry: &Entry<'_>) {
        if let Some(pages) = &self.pages {
            pages.add(entry);
        }
    }
}

/// One run that is watched on its way to whoever keeps it.
pub(crate) struct Watched<'a> {
    watch: Option<&'a Watch>,
    inner: &'a dyn Checkpoint,
    seen: Mutex<Seen>,
    /// The last approval that was needed, and for which tool.
    asked: Mutex<Option<(String, String)>>,
}

/// What has been seen of the run and is not told yet.
#[derive(Default)]
struct Seen {
    begun: bool,
    ended: bool,
    asked_at_ms: u64,
    /// Attempts at the answer that is waited for, and why the last one failed.
    failed: Option<(u32, String)>,
    tools: Vec<String>,
    tools_at_ms: u64,
}

impl<'a> Watched<'a> {
    pub(crate) fn new(watch: Option<&'a Watch>, inner: &'a dyn Checkpoint) -> Self {
        Self {
            watch,
            inner,
            seen: Mutex::default(),
            asked: Mutex::default(),
        }
    }

    /// The last approval that was needed, and for which tool.
    pub(crate) fn last_asked(&self) -> Option<(String, String)> {
        self.asked.lock().clone()
    }

    fn kept(&self, watch: &Watch, state: &RunState) {
        let mut seen = self.seen.lock();
        let log = &watch.log;
        if !seen.begun {
            seen.begun = true;
            begins(log, state);
        }
        if !seen.tools.is_empty() && !matches!(state.phase, Phase::Act(_)) {
            let tools = std::mem::take(&mut seen.tools).join(",");
            let total_ms = watch.clock.now_ms().saturating_sub(seen.tools_at_ms);
            let fields = json!({"tools": tools, "total_time_ms": total_ms});
            log.event(Level::Info, "tool_execution_complete", by(state, fields));
        }
        // The last step is kept by itself, and once more with the run's end.
        if let Phase::Ended(ending) = &state.phase
            && !std::mem::replace(&mut seen.ended, true)
        {
            ends(watch, state, ending, &mut seen);
        }
    }

    fn happened(&self, watch: &Watch, state: &RunState, what: Happened<'_>) {
        let mut seen = self.seen.lock();
        let log = &watch.log;
        let now_ms = watch.clock.now_ms();
        match what {
            Happened::Asks => {
                seen.asked_at_ms = now_ms;
                let fields = json!({"message_count": state.messages.len()});
                log.event(
                    Level::Info,
                    "gpt_oss_call_start",
                    of_question(state, fields),
                );
            }
            Happened::Waits { attempt, why, .. } => {
                let elapsed_ms = now_ms.saturating_sub(seen.asked_at_ms);
                let fields = json!({"error": why, "elapsed_ms": elapsed_ms, "attempt": attempt});
                log.event(
                    Level::Error,
                    "gpt_oss_call_failed",
                    of_question(state, fields),
                );
                seen.failed = Some((attempt, why.to_owned()));
            }
            Happened::Thinks { .. } | Happened::Says { .. } => {}
            Happened::Heard => heard(watch, state, &mut seen, now_ms),
            Happened::Calls {
                tool, arguments, ..
            } => {
                if seen.tools.is_empty() {
                    seen.tools_at_ms = now_ms;
                }
                seen.tools.push(tool.to_owned());
                let fields = json!({"tool": tool, "args": arguments});
                log.event(Level::Info, "tool_execution_start", by(state, fields));
            }
            Happened::NeedsApproval { tool, approval, .. } => {
                let fields = json!({"tool": tool, "approval": approval});
                log.event(Level::Info, "tool_approval_needed", by(state, fields));
            }
            Happened::Called {
                place,
                tool,
                result,
            } => {
                called(watch, state, tool, result);
                if log.takes(Level::Debug) {
                    let fields = json!({"tool": tool, "place": place, "result": result.text});
                    log.event(Level::Debug, "tool_result", by(state, fields));
                }
            }
        }
    }
}

fn called(watch: &Watch, state: &RunState, tool: &str, result: &CallResult) {
    let log = &watch.log;
    if result.ok {
        let fields = json!({"tool": tool, "result_length": result.text.chars().count()});
        log.event(Level::Info, "tool_execution_success", by(state, fields));
        return;
    }
    let fields = json!({"tool": tool, "error": result.why()});
    log.event(Level::Warn, "tool_execution_failed", by(state, fields));
    watch.page(&Entry {
        component: tool,
        error: result.why(),
        attempted_fix: "injected error into context, let model adapt",
        status: &if result.unknown {
            "outcome unknown, not repeated".to_owned()
        } else {
            let attempts = result.attempts;
            let plural = if attempts == 1 { "" } else { "s" };
            format!("failed after {attempts} attempt{plural}, told to the model")
        },
    });
}

fn begins(log: &RunLog, state: &RunState) {
    let asked = state
        .messages
        .iter()
        .rev()
        .find(|it| it.role == crate::chat::Role::User);
    let fields = json!({
        "user_prompt_length": asked.map_or(0, |it| it.content.chars().count()),
        "max_iterations": state.settings.max_iterations,
        "timeout_seconds": state.settings.run_timeout_ms / 1000,
    });
    let event = if state.iteration == 0 {
        "executor_run_start"
    } else {
        "executor_run_resume"
    };
    log.event(Level::Info, event, of(state, fields));
}

fn heard(watch: &Watch, state: &RunState, seen: &mut Seen, now_ms: u64) {
    let log = &watch.log;
    let used = state.tokens.last().copied().unwrap_or_default();
    let fields = json!({
        "tokens": used.total(),
        "finish_reason": state.context.finish,
        "elapsed_ms": now_ms.saturating_sub(seen.asked_at_ms),
    });
    log.event(Level::Info, "gpt_oss_call_complete", of(state, fields));
    if let Some((attempts, why)) = seen.failed.take() {
        watch.page(&Entry {
            component: "gpt_oss",
            error: &why,
            attempted_fix: "asked again",
            status: &format!("recovered on retry {attempts}"),
        });
    }
    let window = &state.settings.window;
    if context::usage_percent(state) >= window.truncate_at * 100.0 {
        let fields = json!({"total_tokens": state.context.asked_tokens, "limit": window.tokens});
        log.event(Level::Warn, "context_window_approaching", of(state, fields));
    }
    match &state.phase {
        Phase::Act(calls) => {
            let names: Vec<&str> = calls.iter().map(|call| call.name.as_str()).collect();
            let fields = json!({"intent_count": names.len(), "tool_names": names});
            log.event(Level::Info, "tool_intents_parsed", of(state, fields));
        }
        // What the model marked as its answer is less than all that it said.
        Phase::Ended(Ending::Answered { content, .. }) if *content != state.content => {
            log.event(
                Level::Info,
                "completion_signal_detected",
                of(state, json!({})),
            );
        }
        Phase::Ended(Ending::Answered { .. }) => {
            log.event(Level::Info, "no_tools_requested", of(state, json!({})));
        }
        Phase::Ask | Phase::Ended(_) => {}
    }
}

fn ends(watch: &Watch, state: &RunState, ending: &Ending, seen: &mut Seen) {
    let log = &watch.log;
    let elapsed_ms = watch.clock.now_ms().saturating_sub(state.begun_at_ms);
    let Ending::Failed(failed) = ending else {
        let outcome = match ending {
            Ending::Calls { .. } => "calls",
            Ending::Cancelled => "cancelled",
            Ending::Answered { .. } | Ending::Failed(_) => "answered",
        };
        let fields = json!({
            "outcome": outcome,
            "iterations": state.iteration,
            "total_tokens": state.tokens_total(),
            "elapsed_ms": elapsed_ms,
        });
        log.event(Level::Info, "executor_run_end", of(state, fields));
        return;
    };
    let (event, fields) = match failed.code {
        RunErrorCode::TimeoutExceeded => (
            "executor_timeout",
            json!({"elapsed_seconds": elapsed_ms / 1000}),
        ),
        RunErrorCode::MaxIterationsExceeded => (
            "executor_max_iterations_exceeded",
            json!({"max_iterations": state.settings.max_iterations, "total_tokens": state.tokens_total()}),
        ),
        RunErrorCode::GptOssUnreachable => (
            "gpt_oss_call_failed",
            // Of the question, not of the run.
            json!({"error": failed.message,
                   "elapsed_ms": watch.clock.now_ms().saturating_sub(seen.asked_at_ms)}),
        ),
        _ => (
            "executor_run_failed",
            json!({"code": failed.code.as_str(), "error": failed.message}),
        ),
    };
    let is_model = failed.code == RunErrorCode::GptOssUnreachable;
    let fields = if is_model {
        of_question(state, fields)
    } else {
        of(state, fields)
    };
    log.event(Level::Error, event, fields);
    let attempts = seen.failed.take().map_or(1, |(attempts, _)| attempts + 1);
    watch.page(&Entry {
        component: if is_model { "gpt_oss" } else { "executor" },
        error: &failed.to_string(),
        attempted_fix: if attempts > 1 { "asked again" } else { "none" },
        status: &if is_model {
            format!("failed after {attempts} attempts")
        } else {
            "failed".to_owned()
        },
    });
}

/// The fields of an event of a run's tools, with whose run it is: the fingerprint of a client's key.
fn by(state: &RunState, mut fields: Value) -> Value {
    fields["client"] = state.actor.as_str().into();
    of(state, fields)
}

/// The fields of an event of a question that is not answered: it belongs to the iteration that its
/// answer will belong to.
fn of_question(state: &RunState, fields: Value) -> Value {
    let mut fields = of(state, fields);
    fields["iteration"] = state.iteration.saturating_add(1).into();
    fields
}

/// The fields of an event of a run.
fn of(state: &RunState, fields: Value) -> Value {
    let mut all = Map::new();
    all.insert("run_id".to_owned(), state.id.as_str().into());
    all.insert("iteration".to_owned(), state.iteration.into());
    if let Value::Object(fields) = fields {
        all.extend(fields);
    }
    Value::Object(all)
}

#[async_trait]
impl Checkpoint for Watched<'_> {
    async fn keep(&self, state: &RunState) -> Result<(), CheckpointError> {
        self.inner.keep(state).await?;
        if let Some(watch) = self.watch {
            self.kept(watch, state);
        }
        Ok(())
    }

    fn told(&self, state: &RunState, what: Happened<'_>) {
        if let Happened::NeedsApproval { tool, approval, .. } = what {
            *self.asked.lock() = Some((approval.to_owned(), tool.to_owned()));
        }
        if let Some(watch) = self.watch {
            self.happened(watch, state, what);
        }
        self.inner.told(state, what);
    }

    async fn may_ask(&self, state: &RunState) -> Result<(), Ending> {
        self.inner.may_ask(state).await
    }

    async fn recalled(&self, session: &str, parent: Option<&str>) {
        self.inner.recalled(session, parent).await;
    }
}
