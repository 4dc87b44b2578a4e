//! The class `OnceLedger`: which calls with an effect outside were made already, kept on disk.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use futures_executor::block_on;
use holdfast_contract::clock::{Clock, SystemClock, SystemEntropy, new_request_id};
use holdfast_contract::{ErrorCode, ResultOutput, Status};
use holdfast_reliability::canonical::{CanonicalOptions, digest};
use holdfast_reliability::idempotency::key::{
    Identity, KeyParts, KeySource, Origin, Place, Scope, StoredKey, content_key, stored_key,
};
use holdfast_reliability::idempotency::record::{
    Execution, RecordError, RecordRequest, RecordState, SharedRecord,
};
use holdfast_reliability::idempotency::transition::{
    ClaimRequest, ContentLookup, Ending, Finalisation, Hold, Lifetimes, OnRetriableFailure,
};
use holdfast_reliability::retry::RepeatSafety;
use holdfast_reliability::store::sqlite::{SqliteOptions, SqliteState};
use holdfast_reliability::store::{Claim, DedupeStore};
use napi::Result;
use napi::bindgen_prelude::AsyncTask;
use napi_derive::napi;
use serde_json::{Value, json};

use crate::arguments;
use crate::guard::ToolCall;
use crate::safely::{failed, run};
use crate::work::Work;

/// The namespace of the records: a host's own tools are not ours of the same name.
const NAMESPACE: &str = "openclaw";

/// How a call that was begun ended.
#[napi(string_enum = "camelCase")]
#[derive(Debug)]
pub enum OnceEnding {
    /// It worked.
    Done,
    /// It failed, and certainly had no effect.
    Failed,
    /// Nobody knows whether it had its effect.
    Unknown,
}

/// How long an earlier call with the same content answers for a new one.
#[napi(object, object_to_js = false)]
pub struct OnceWindows {
    /// One whose outcome is unknown.
    pub unknown_ms: u32,
    /// One that worked.
    pub echo_ms: u32,
}

/// The ledger of one process.
#[napi]
pub struct OnceLedger {
    store: Arc<SqliteState>,
}

#[napi]
impl OnceLedger {
    /// Opens the ledger in a directory, which is made where it is not there.
    #[napi(constructor)]
    pub fn new(dir: String) -> Result<Self> {
        run(|| {
            let clock = Arc::new(SystemClock);
            let store = SqliteState::open(&PathBuf::from(dir), clock, SqliteOptions::default());
            Ok(Self {
                store: store.map_err(failed)?,
            })
        })
    }

    /// Claims a call; the promise is JSON: `{"kind": "granted", "claim": …}`, `{"kind": "inFlight"}`, or
    /// `{"kind": "ended", "state": …, "text": …, "agoMs": …}`.
    #[napi(ts_return_type = "Promise<string>")]
    pub fn claim(&self, call: ToolCall, windows: OnceWindows) -> AsyncTask<Work> {
        let store = self.store.clone();
        Work::task(move || {
            let wish = wish(&call, &windows);
            let claim = block_on(store.claim(&wish)).map_err(failed)?;
            Ok(match claim {
                Claim::Granted { .. } => json!({
                    "kind": "granted",
                    "claim": {"key": wish.key.to_string(), "owner": wish.owner},
                }),
                Claim::InFlight { .. } => json!({"kind": "inFlight"}),
                Claim::Ended(record) => ended(&record),
                // The digest is part of the key, so that a key has one digest.
                Claim::Conflict { .. } => return Err(failed("two calls have one key")),
            })
        })
    }

    /// Says how a claimed call ended; `claim` is what was granted, as JSON. The promise is whether it was
    /// taken.
    #[napi(ts_return_type = "Promise<string>")]
    pub fn finish(&self, claim: String, ending: OnceEnding, text: String) -> AsyncTask<Work> {
        let store = self.store.clone();
        Work::task(move || {
            let claim: Value = serde_json::from_str(&claim).map_err(failed)?;
            let part = |name: &str| claim[name].as_str().unwrap_or_default().to_owned();
            let last_word = Finalisation {
                key: part("key").parse::<StoredKey>().map_err(failed)?,
                owner: part("owner").into(),
                ending: last_word(&ending, text),
                execution: Execution::default(),
                lifetimes: Lifetimes::default(),
            };
            let taken = block_on(store.finalise(last_word)).map_err(failed)?;
            Ok(json!(taken.is_ok()))
        })
    }
}

fn wish(call: &ToolCall, windows: &OnceWindows) -> ClaimRequest {
    let params = digest(&arguments::whole(&call.args), &CanonicalOptions::EXACT);
    let parts = KeyParts {
        scope: Scope::SESSION,
        tenant: None,
        workspace: None,
        namespace: NAMESPACE,
        tool: &call.tool,
        session: &call.session,
        actor: "",
    };
    let request_id = new_request_id(&SystemClock, &SystemEntropy);
    let identity = match (&call.turn, &call.call_id) {
        (Some(turn), Some(id)) => Identity::Step(Origin::Run(turn), Place::ToolCall(id)),
        _ => Identity::Request(&request_id),
    };
    ClaimRequest {
        key: stored_key(&parts, &KeySource::Computed { identity, params }),
        content: Some(ContentLookup {
            key: content_key(&parts, params),
            unknown_window_ms: windows.unknown_ms.into(),
            echo_window_ms: windows.echo_ms.into(),
        }),
        tool: call.tool.as_str().into(),
        idempotency_key: Cow::Borrowed("computed"),
        request: Arc::new(RecordRequest {
            session_key: call.session.as_str().into(),
            workspace_id: None,
            actor_id: "".into(),
            request_id: request_id.clone(),
            tool_call_id: call.call_id.clone(),
            params_digest: params,
        }),
        owner: request_id.into(),
        lifetimes: Lifetimes::default(),
        repeat: RepeatSafety::Unsafe,
        on_retriable_failure: OnRetriableFailure::Replay,
        hold: Hold::None,
    }
}

fn ended(record: &SharedRecord) -> Value {
    let text = match record.state {
        RecordState::Done => record
            .payload
            .as_ref()
            .map(|output| text_of(&output.content)),
        _ => record.error.as_ref().map(|error| error.message.clone()),
    };
    json!({
        "kind": "ended",
        "state": record.state.as_str(),
        "text": text,
        "agoMs": SystemClock.now_ms().saturating_sub(record.created_at_ms),
    })
}

fn text_of(content: &Value) -> String {
    content
        .as_str()
        .map_or_else(|| content.to_string(), str::to_owned)
}

fn last_word(ending: &OnceEnding, text: String) -> Ending {
    let error = |code: ErrorCode, message| RecordError {
        code: code.as_str().to_owned(),
        message,
        terminal: true,
        should_retriable: false,
        status: Status::Error,
    };
    match ending {
        OnceEnding::Done => Ending::Done(ResultOutput {
            content: Arc::new(Value::String(text)),
            metadata: None,
        }),
        OnceEnding::Failed => Ending::Failed(error(ErrorCode::ExecutionFailed, text)),
        OnceEnding::Unknown => Ending::Unknown(error(ErrorCode::OutcomeUnknown, text)),
    }
}
