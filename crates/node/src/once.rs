//! The class `OnceLedger`: which calls with an effect outside were made already, kept on disk.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

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
use crate::safely::failed;
use crate::work::Work;

/// The namespace of the records: a host's own tools are not ours of the same name.
const NAMESPACE: &str = "openclaw";

/// How a call that was begun ended.
#[napi(string_enum = "camelCase")]
#[derive(Debug)]
pub enum OnceEnding {
    /// It worked.
    Done,
    /// It was not let run: the claim is given back.
    NeverRan,
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
    file: Arc<LedgerFile>,
}

/// Where a ledger is. Opening one waits for the disk, and for others who have it open, so that the first work
/// for it does that.
struct LedgerFile {
    dir: PathBuf,
    store: Mutex<Option<Arc<SqliteState>>>,
}

impl LedgerFile {
    fn opened(&self) -> Result<Arc<SqliteState>> {
        // Nothing panics while it is locked that could leave it half done.
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(store) = &*store {
            return Ok(store.clone());
        }
        let clock = Arc::new(SystemClock);
        let opened = SqliteState::open(&self.dir, clock, SqliteOptions::default());
        Ok(store.insert(opened.map_err(failed)?).clone())
    }
}

#[napi]
impl OnceLedger {
    /// A ledger in a directory, which is made where it is not there, when the ledger is needed.
    #[napi(constructor)]
    pub fn new(dir: String) -> Self {
        let file = LedgerFile {
            dir: PathBuf::from(dir),
            store: Mutex::new(None),
        };
        Self {
            file: Arc::new(file),
        }
    }

    /// Claims a call; the promise is JSON: `{"kind": "granted", "claim": …}`, `{"kind": "inFlight"}`,
    /// `{"kind": "ended", "state": …, "text": …, "agoMs": …}`, or `{"kind": "conflict"}`. Without windows the
    /// call is known by its id alone, whatever other calls contain, and another call with that id is the
    /// conflict.
    #[napi(ts_return_type = "Promise<string>")]
    pub fn claim(&self, call: ToolCall, windows: Option<OnceWindows>) -> AsyncTask<Work> {
        let file = self.file.clone();
        Work::task(move || {
            let wish = wish(&call, windows.as_ref());
            let claim = block_on(file.opened()?.claim(&wish)).map_err(failed)?;
            Ok(match claim {
                Claim::Granted { .. } => json!({
                    "kind": "granted",
                    "claim": {"key": wish.key.to_string(), "owner": wish.owner},
                }),
                Claim::InFlight { .. } => json!({"kind": "inFlight"}),
                Claim::Ended(record) => ended(&record),
                Claim::Conflict { .. } => json!({"kind": "conflict"}),
            })
        })
    }

    /// Says how a claimed call ended; `claim` is what was granted, as JSON. The promise is whether it was
    /// taken.
    #[napi(ts_return_type = "Promise<string>")]
    pub fn finish(&self, claim: String, ending: OnceEnding, text: String) -> AsyncTask<Work> {
        let file = self.file.clone();
        Work::task(move || {
            let claim: Value = serde_json::from_str(&claim).map_err(failed)?;
            let part = |name: &str| claim[name].as_str().unwrap_or_default().to_owned();
            let key = part("key").parse::<StoredKey>().map_err(failed)?;
            let owner = part("owner");
            let store = file.opened()?;
            let Some(ending) = last_word(&ending, text) else {
                let taken = block_on(store.release(&key, &owner)).map_err(failed)?;
                return Ok(json!(taken.is_ok()));
            };
            let last_word = Finalisation {
                key,
                owner: owner.into(),
                ending,
                execution: Execution::default(),
                lifetimes: Lifetimes::default(),
            };
            let taken = block_on(store.finalise(last_word)).map_err(failed)?;
            Ok(json!(taken.is_ok()))
        })
    }
}

fn wish(call: &ToolCall, windows: Option<&OnceWindows>) -> ClaimRequest {
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
    let own_key = call.call_id.as_ref().filter(|_| windows.is_none());
    let source = match own_key {
        Some(id) => KeySource::Caller(id),
        None => KeySource::Computed { identity, params },
    };
    ClaimRequest {
        key: stored_key(&parts, &source),
        content: windows.map(|windows| ContentLookup {
            key: content_key(&parts, params),
            unknown_window_ms: windows.unknown_ms.into(),
            echo_window_ms: windows.echo_ms.into(),
        }),
        tool: call.tool.as_str().into(),
        idempotency_key: own_key.map_or(Cow::Borrowed("computed"), |id| Cow::Owned(id.clone())),
        request: Arc::new(RecordRequest {
            session_key: call.session.as_str().into(),
            workspace_id: None,
            actor_id: "".into(),
            request_id: request_id.clone(),
            tool_call_id: call.call_id.clone(),
            params_digest: params,
            shadow: false,
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

/// What stands on record about a call's end; nothing where there was no call.
fn last_word(ending: &OnceEnding, text: String) -> Option<Ending> {
    let error = |code: ErrorCode, message| RecordError {
        code: code.as_str().to_owned(),
        message,
        terminal: true,
        should_retriable: false,
        status: Status::Error,
    };
    Some(match ending {
        OnceEnding::NeverRan => return None,
        OnceEnding::Done => Ending::Done(ResultOutput {
            content: Arc::new(Value::String(text)),
            metadata: None,
        }),
        OnceEnding::Failed => Ending::Failed(error(ErrorCode::ExecutionFailed, text)),
        OnceEnding::Unknown => Ending::Unknown(error(ErrorCode::OutcomeUnknown, text)),
    })
}
