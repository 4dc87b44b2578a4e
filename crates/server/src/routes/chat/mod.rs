//! `POST /v1/chat/completions`: the model with its tools, in the words of the chat completions API.
//!
//! | file | what it does |
//! |---|---|
//! | `request` | reads what clients send, and names what is wrong with it |
//! | `answer` | a run's end as a completion or an error |
//! | `stream` | the same, as it comes |
//! | `error` | errors in the shape that clients know |

mod answer;
mod error;
mod request;
mod stream;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use axum::response::Response;
use holdfast_agent::run::{Mode, RunState, Telling};
use holdfast_agent::runs::{
    Keeping, KeyClaim, Listener, Outcome, ResumeError, RunKey, RunStoreError, Started,
    came_to_nothing,
};
use http::HeaderMap;
use http::header::HeaderName;
use tokio::time::{Instant, sleep};

use crate::access::Client;
use crate::executor::Executor;
use crate::limits::{
    BODY_BYTES_MAX, RETRY_AFTER_S, RUN_BEGINS_LOOK_MS, RUN_BEGINS_MS_MAX, RUN_KEY_BYTES_MAX,
};
use crate::repeats::{Repeats, Try};
use crate::respond::whole_seconds;
use crate::server::{Peer, Server};

pub(crate) use answer::{calls_shown, left_out, status_word};
pub(crate) use error::ChatError;
use request::{Asked, Delivery, Usage};

/// The path.
pub const PATH: &str = "/v1/chat/completions";
const RUN_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Where an answer comes from.
pub(super) enum Source {
    /// A run of this process.
    Live(Listener),
    /// One that has ended.
    Ended(Box<RunState>),
}

pub(super) async fn handle(server: Arc<Server>, request: Request) -> Response {
    // Boxed, because it holds a whole run: whoever routes requests would hold as much for each.
    match Box::pin(answer(&server, request)).await {
        Ok(response) => response,
        Err(error) => error.respond(&server),
    }
}

async fn answer(server: &Arc<Server>, request: Request) -> Result<Response, ChatError> {
    let executor = server.executor.as_ref().ok_or_else(ChatError::no_model)?;
    let client = client_of(server, &request)?;
    executor.count(&client).map_err(|wait| {
        let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        ChatError::too_many(
            "Too many requests of this client within a minute",
            whole_seconds(wait_ms),
        )
    })?;
    let named = Named {
        key: run_key(request.headers())?,
        attempt: Try::of(request.headers()),
    };
    let body = server.read_json(request, BODY_BYTES_MAX).await?;
    let asked = Asked::read(&body, &executor.models())?;
    let (delivery, extra) = (asked.delivery, asked.notes.clone());
    let source = Box::pin(begin(executor, &client, asked, &named)).await?;
    // Held until the run has its place: what waits in line is bounded like what is being read.
    drop(body);
    Ok(match delivery {
        Delivery::Whole => whole(source, &extra).await?,
        Delivery::Stream(usage) => stream::respond(server, source, usage, extra),
    })
}

/// Who asks.
pub(super) fn client_of(server: &Server, request: &Request) -> Result<Client, ChatError> {
    let Some(Peer(peer)) = request.extensions().get::<Peer>().copied() else {
        return Err(ChatError::invalid("The peer is not known"));
    };
    Ok(server.gate.client(request.headers(), peer.ip())?)
}

/// A key that makes several requests one run.
fn run_key(headers: &HeaderMap) -> Result<Option<String>, ChatError> {
    let Some(value) = headers.get(RUN_KEY) else {
        return Ok(None);
    };
    let text = value.to_str().map(str::trim).unwrap_or_default();
    if text.is_empty() || text.len() > RUN_KEY_BYTES_MAX {
        return Err(ChatError::invalid(format!(
            "Idempotency-Key: between 1 and {RUN_KEY_BYTES_MAX} signs of ASCII"
        )));
    }
    Ok(Some(text.to_owned()))
}

/// By what a request can be known again.
struct Named {
    /// What the client calls it.
    key: Option<String>,
    /// Which try of the client's it is.
    attempt: Option<Try>,
}

/// Begins a run, or finds the one that the request belongs to.
async fn begin(
    executor: &Arc<Executor>,
    client: &Client,
    asked: Asked,
    named: &Named,
) -> Result<Source, ChatError> {
    let name = client.name();
    let id = executor.new_id();
    let key = named.key.as_ref();
    let key = key.map(|key| RunKey::new(&name, key, &asked.digest));
    // What returns its calls has no effects that could happen twice.
    let repeatable = named
        .attempt
        .filter(|_| key.is_none() && matches!(asked.mode, Mode::Loop))
        .map(|attempt| (attempt, Repeats::request(&name, &asked.digest)));
    if let Some((Try::Again, request)) = &repeatable
        && let Some(earlier) = executor.repeats.run_of(request)
        && let Some(source) = repeated(executor, &earlier).await?
    {
        return Ok(source);
    }
    // A single reply without effects is not worth a write to disk, unless it has to be found again.
    let keeping = match asked.mode {
        Mode::Return(_) => Keeping::Passing,
        Mode::Loop => Keeping::Durable,
    };
    let mut state = RunState::new(
        id,
        asked.model,
        asked.messages,
        asked.settings,
        executor.now_ms(),
    );
    state.actor.clone_from(&name);
    state.mode = asked.mode;
    state.passed_on = asked.passed_on;
    state.request = repeatable.map(|(_, request)| request);
    if let Delivery::Stream(_) = asked.delivery {
        state.telling = Telling::AsItComes;
    }
    let Some(key) = key else {
        let begun = executor.runs.start(state, &name, keeping).await?;
        if let Some((_, request)) = repeatable {
            executor.repeats.began(request, begun.run());
        }
        return Ok(Source::Live(begun));
    };
    // Boxed: what most requests never do should not make all of them larger.
    Box::pin(begin_keyed(executor, state, &name, &key)).await
}

/// The same with a client's key. Of several requests that come at once one begins its run, and the
/// others wait the moment until it has.
async fn begin_keyed(
    executor: &Arc<Executor>,
    state: RunState,
    client: &str,
    key: &RunKey,
) -> Result<Source, ChatError> {
    let mut by = None;
    loop {
        let started = executor
            .runs
            .start_keyed(state.clone(), client, key.clone());
        let mut known = match started.await? {
            Started::Begun(listener) => return Ok(Source::Live(listener)),
            Started::Known(known) => Some(known),
        };
        // From here on: before, it may have stood in line for its own place.
        let patience = Duration::from_millis(RUN_BEGINS_MS_MAX);
        let by = *by.get_or_insert_with(|| Instant::now() + patience);
        while known == Some(KeyClaim::Begins) && Instant::now() < by {
            sleep(Duration::from_millis(RUN_BEGINS_LOOK_MS)).await;
            known = executor.runs.store().key_of(key).await?;
        }
        match known {
            Some(KeyClaim::Same(earlier)) => return earlier_run(executor, &earlier).await,
            Some(KeyClaim::Other) => return Err(ChatError::key_conflict()),
            Some(KeyClaim::Begins) => {
                let message = "A request with this Idempotency-Key is about to begin";
                return Err(ChatError::too_many(message, RETRY_AFTER_S));
            }
            // Whoever had it gave it back.
            None => {}
        }
    }
}

/// The run that an earlier try of the same request began, unless it came to nothing.
async fn repeated(executor: &Arc<Executor>, id: &str) -> Result<Option<Source>, ChatError> {
    if let Some(listener) = executor.runs.attach(id) {
        return Ok(Some(Source::Live(listener)));
    }
    match executor.runs.store().get(id).await {
        Ok(run) if came_to_nothing(&run.state) => Ok(None),
        Ok(_) => earlier_run(executor, id).await.map(Some),
        Err(RunStoreError::NotFound(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// A run that an earlier request began.
async fn earlier_run(executor: &Arc<Executor>, id: &str) -> Result<Source, ChatError> {
    if let Some(listener) = executor.runs.attach(id) {
        return Ok(Source::Live(listener));
    }
    let run = executor.runs.store().get(id).await?;
    // What is over needs no place.
    if run.state.ending().is_some() {
        return Ok(Source::Ended(Box::new(run.state)));
    }
    if !run.goes_on_by_itself() {
        return Err(ChatError::not_running(id));
    }
    match executor.runs.resume(id).await {
        Ok(listener) => Ok(Source::Live(listener)),
        Err(ResumeError::Store(RunStoreError::Ended(_))) => {
            let run = executor.runs.store().get(id).await?;
            Ok(Source::Ended(Box::new(run.state)))
        }
        Err(ResumeError::Store(error)) => Err(error.into()),
        Err(ResumeError::Start(error)) => Err(error.into()),
    }
}

/// The answer in one piece.
async fn whole(source: Source, extra: &answer::Notes) -> Result<Response, ChatError> {
    let mut listener = match source {
        Source::Ended(state) => return answer::respond(&state, extra),
        Source::Live(listener) => listener,
    };
    match &*listener.outcome().await {
        Outcome::Ended(state) => answer::respond(state, extra),
        Outcome::Left => Err(ChatError::leaving(listener.run())),
        Outcome::Lost(why) => Err(ChatError::lost(listener.run(), why)),
    }
}

/// A run as it comes, for a client that was cut off from it.
pub(super) fn streamed(server: &Arc<Server>, source: Source) -> Response {
    stream::respond(server, source, Usage::Shown, answer::Notes::default())
}
