//! What a model is asked, and how patiently.

use std::borrow::Cow;

use holdfast_intent::Strategy;
use holdfast_reliability::retry::{Classified, Evidence, RetryOverrides, RetryPolicy};
use holdfast_toolbox::declare;
use serde_json::{Value, json};

use super::offer::Offer;
use super::returning::Mode;
use super::state::{Ending, Phase, RunError, RunErrorCode, RunState};
use super::{MODEL_RETRY_AFTER_MS, MODEL_RETRY_BASE_MS};
use crate::chat::Message;
use crate::context;
use crate::model::{ModelError, ModelRequest, Reports};
use crate::prompt;

/// What the model is told with the last question that its run has left.
const LAST_REPLY: &str =
    "This is your last reply in this task: no result of a further call would reach you.";

/// How it says its answer then.
fn last_words(strategy: Strategy) -> String {
    let how = match strategy {
        Strategy::GuidedJson => "Set \"done\" to true and put your answer into \"answer\"",
        _ => "Write `Final Answer:` and then your answer",
    };
    format!("{LAST_REPLY} {how}, and say what is not done.")
}

/// Whether no question follows this one. A run of one question begins with its last.
fn is_last_question(state: &RunState) -> bool {
    let last = state.settings.max_iterations.saturating_sub(1);
    state.mode == Mode::Loop && last > 0 && state.iteration == last
}

/// How long and how often an answer is asked for.
pub(super) fn patience(state: &RunState) -> RetryPolicy {
    let standard = RetryPolicy::standard();
    let slower = RetryOverrides {
        max_attempts: Some(state.settings.model_attempts_max),
        base_ms: Some(MODEL_RETRY_BASE_MS),
        // The run's own time is the bound.
        max_elapsed_ms: Some(state.settings.run_timeout_ms),
        ..RetryOverrides::default()
    };
    standard.with(&slower).unwrap_or(standard)
}

/// A server that is away may come back; one that refused will refuse again. It is left alone for
/// as long as it asks for, and at least for `rest_ms`: a model server that starts anew takes its time,
/// and three questions within a second would all be lost.
pub(super) fn classified(error: &ModelError, rest_ms: u64) -> Classified {
    Classified {
        code: Cow::Borrowed("model_unavailable"),
        retriable: error.may_pass(),
        evidence: Evidence::NoEffect,
        counts_for_breaker: false,
        retry_after_ms: Some(error.retry_after_ms().unwrap_or(0).max(rest_ms)),
    }
}

/// What the model is asked next.
pub(super) fn request(state: &mut RunState, offer: &Offer<'_>) -> Result<ModelRequest, ModelError> {
    let (strategy, _) = state.settings.strategies();
    let mut passed_on = state.passed_on.clone();
    let mut prompt = None;
    if !offer.is_empty() {
        prompt = prompt::of(offer.registry, &state.settings);
        if let Some(text) = &mut prompt {
            // A server that forces a format on every reply would leave no room for calls.
            let format = passed_on.remove("response_format");
            let format = format.as_ref().and_then(prompt::answer_format);
            for more in Offer::demand(&state.mode)
                .map(str::to_owned)
                .into_iter()
                .chain(format)
            {
                text.push_str("\n\n");
                text.push_str(&more);
            }
        }
    }
    let tools = if strategy == Strategy::Native && !offer.is_empty() {
        declare::openai(offer.registry)
    } else {
        Value::Null
    };
    let fitting = context::prepare(state, prompt.as_deref(), &tools)?;
    let settings = &state.settings;
    let mut placed = prompt::placed(prompt, settings.prompt_place, &fitting);
    if !offer.is_empty() && is_last_question(state) {
        let (strategy, _) = settings.strategies();
        prompt::join_user(&mut placed, &last_words(strategy));
    }
    let messages: Vec<Value> = placed.iter().map(Message::to_wire).collect();
    let mut body = json!({
        // As the client named it, for whoever has several; its server is told its own name.
        "model": state.model,
        "messages": messages,
        "temperature": settings.temperature,
        "max_tokens": settings.max_tokens,
    });
    if let Some(top_p) = settings.top_p {
        body["top_p"] = json!(top_p);
    }
    if !tools.is_null() {
        body["tools"] = tools;
        if let Mode::Return(client) = &state.mode {
            client.wishes(&mut body);
        }
    }
    if !offer.is_empty() {
        passed_on.extend(prompt::structured(offer.registry, settings));
    }
    for (field, value) in passed_on {
        body[field] = value;
    }
    Ok(ModelRequest {
        body,
        timeout_ms: settings.call_timeout_ms,
        reports: Reports::default(),
    })
}

/// Whether the model could be asked again with what its calls return, however short that is. If not, no
/// call is made: its effect would stay, and nobody would hear of it.
pub(super) fn room_for_results(state: &RunState, offer: &Offer<'_>) -> Result<(), ModelError> {
    if context::has_room(state) {
        return Ok(());
    }
    request(&mut state.clone(), offer).map(|_| ())
}

/// The run ends with an error of its model's server.
pub(super) fn failed(state: &mut RunState, error: ModelError) {
    state.note_not_made();
    // Who refuses will refuse again; only what may pass is worth coming again for.
    let lasts = !error.may_pass();
    let passes = (!lasts).then_some(MODEL_RETRY_AFTER_MS);
    let retry_after_ms = error.retry_after_ms().or(passes);
    let failed = match error {
        ModelError::TooLong(why) => RunError::new(RunErrorCode::ContextWindowExceeded, why),
        error => RunError::new(RunErrorCode::GptOssUnreachable, error.to_string()),
    };
    state.phase = Phase::Ended(Ending::Failed(RunError {
        retry_after_ms,
        lasts,
        ..failed
    }));
}
