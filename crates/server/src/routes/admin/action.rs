//! What an operator can do, by the names of the specification.

use holdfast_reliability::admin::{self, ALL_BREAKERS, FoundBreaker, find_breakers};
use holdfast_reliability::breaker::{BreakerKey, BreakerOp, BreakerPolicy, NO_REASON};
use holdfast_reliability::idempotency::key::StoredKey;
use holdfast_reliability::idempotency::record::RecordState;
use holdfast_reliability::observe::{CircuitCause, Event};
use holdfast_reliability::policy::{DeriveKeys, Mode};
use holdfast_reliability::store::{ClearIf, Cleared, DedupeStore, RecordFilter, StoreResult};
use holdfast_toolbox::stack::ToolStack;
use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Found, find, store_refusal};
use crate::limits::ADMIN_WORDS_BYTES_MAX;
use crate::respond::Refusal;
use crate::server::Server;

/// One action. The `action` field names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    tag = "action",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
pub enum Action {
    /// Holds a breaker open until it is reset.
    ForceOpen {
        /// The breaker's key, or a tool's name.
        breaker: String,
        /// Why, for those who meet it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Closes a breaker at once.
    Reset {
        /// The breaker's key, the name of a tool or of a host, or `all`.
        breaker: String,
    },
    /// Forgets the ended records that fit; running calls stay.
    Flush {
        /// Only of this session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<String>,
        /// Only of this tool.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool: Option<String>,
        /// Only in this state.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(extend("enum" = ["inflight", "done", "failed", "cancelled", "unknown", null]))]
        state: Option<String>,
        /// Really all of them, when nothing narrows it.
        #[serde(default)]
        all: bool,
    },
    /// Forgets one record, so that the call may run again.
    Clear {
        /// The stored key, its first digits, or the key that the caller gave.
        key: String,
        /// Also while the call is running.
        #[serde(default)]
        force: bool,
    },
    /// Switches this process's reliability layers.
    Mode {
        /// `enforce` (or `enabled`), `shadow` or `off`: what guard, idempotency, retry, breaker and rate limits
        /// may do at most.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(extend("enum" = ["enforce", "enabled", "on", "shadow", "off", null]))]
        mode: Option<String>,
        /// The same for open breakers alone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(extend("enum" = ["enforce", "enabled", "on", "shadow", "off", null]))]
        open_mode: Option<String>,
        /// `on` or `off`: whether keys are computed for calls that bring none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(extend("enum" = ["on", "off", null]))]
        derive_idempotency: Option<String>,
    },
}

/// An action, and who says they ask for it.
pub(super) struct Asked {
    pub(super) action: Action,
    pub(super) operator: Option<String>,
}

/// Reads an action.
pub(super) fn read(body: &[u8]) -> Result<Asked, String> {
    let mut value: Value = serde_json::from_slice(body)
        .map_err(|error| format!("The body is not valid JSON: {error}"))?;
    let operator = match value
        .as_object_mut()
        .map(|fields| fields.remove("operator"))
    {
        None => return Err("The body has to be a JSON object".to_owned()),
        Some(None | Some(Value::Null)) => None,
        Some(Some(Value::String(name))) if name.len() <= ADMIN_WORDS_BYTES_MAX => Some(name),
        Some(Some(_)) => {
            return Err(format!(
                "operator has to be a text of at most {ADMIN_WORDS_BYTES_MAX} bytes"
            ));
        }
    };
    let action =
        Action::deserialize(value).map_err(|error| format!("That is no action: {error}"))?;
    Ok(Asked { action, operator })
}

/// Does it; says what was done.
pub(super) async fn perform(server: &Server, action: Action) -> Result<Value, Refusal> {
    match action {
        Action::ForceOpen { breaker, reason } => {
            let key = breaker_key(server, &breaker).await?;
            let mut reason = reason.unwrap_or_else(|| NO_REASON.to_owned());
            if reason.len() > ADMIN_WORDS_BYTES_MAX {
                let end = (0..=ADMIN_WORDS_BYTES_MAX)
                    .rev()
                    .find(|end| reason.is_char_boundary(*end));
                reason.truncate(end.unwrap_or(0));
            }
            apply(server, &key, BreakerOp::ForceOpen { reason }).await?;
            let found = [FoundBreaker::from(key)];
            Ok(json!({"forcedOpen": keys(&found), "names": names(&found)}))
        }
        Action::Reset { breaker } => {
            // A tool's name closes the breakers of its parts too.
            let found = find_breakers(&*server.stores.breakers, &breaker).await;
            let mut found = found.map_err(|error| store_refusal(server, &error))?;
            if breaker != ALL_BREAKERS {
                if found.is_empty() {
                    found.push(breaker_key(server, &breaker).await?.into());
                }
                refuse_if_held(server, &found)?;
            }
            for it in &found {
                apply(server, &it.key, BreakerOp::Reset).await?;
            }
            Ok(json!({"reset": keys(&found), "names": names(&found)}))
        }
        Action::Flush {
            session,
            tool,
            state,
            all,
        } => flush(server, session, tool, state, all).await,
        Action::Clear { key, force } => clear(server, &key, force).await,
        Action::Mode {
            mode,
            open_mode,
            derive_idempotency,
        } => switch(
            &server.stack,
            mode.as_deref(),
            open_mode.as_deref(),
            derive_idempotency.as_deref(),
        ),
    }
}

fn keys(found: &[FoundBreaker]) -> Vec<String> {
    found.iter().map(|it| it.key.to_string()).collect()
}

fn names(found: &[FoundBreaker]) -> Vec<&str> {
    found.iter().map(|it| it.name.as_str()).collect()
}

/// A reset must not be told as done where the configuration holds the breaker open all the same.
fn refuse_if_held(server: &Server, found: &[FoundBreaker]) -> Result<(), Refusal> {
    let held = server.stack.policies().held_open();
    match admin::first_held(found, &held) {
        Some(told) => Err(Refusal::new(StatusCode::CONFLICT, "held_open", told)),
        None => Ok(()),
    }
}

async fn apply(server: &Server, key: &BreakerKey, op: BreakerOp) -> Result<(), Refusal> {
    // Forcing and resetting need no settings; any policy will do.
    let policy = BreakerPolicy::standard();
    let applied = server.stores.breakers.apply(key, op, &policy).await;
    let outcome = applied.map_err(|error| store_refusal(server, &error))?;
    if let Some(transition) = &outcome.transition {
        // Logs and metrics hear of it like of any other change.
        let runtime = server.stack.runtime();
        runtime.tell(&Event::Circuit {
            key,
            part: None,
            transition,
            cause: CircuitCause::Operator,
        });
    }
    Ok(())
}

/// A breaker's own key, or the name of a tool, called or not.
async fn breaker_key(server: &Server, name: &str) -> Result<BreakerKey, Refusal> {
    let known = admin::find_breaker(&*server.stores.breakers, name).await;
    if let Some(key) = known.map_err(|error| store_refusal(server, &error))? {
        return Ok(key);
    }
    if server.stack.registry().get(name).is_some() {
        return Ok((*server.stack.policies().get(name).tool_breaker).clone());
    }
    Err(Refusal::new(
        StatusCode::NOT_FOUND,
        "not_found",
        "There is no such breaker; keys look like tool:NAMESPACE/NAME, dependency:NAME or global",
    ))
}

async fn flush(
    server: &Server,
    session: Option<String>,
    tool: Option<String>,
    state: Option<String>,
    all: bool,
) -> Result<Value, Refusal> {
    let state = state
        .map(|text| record_state(&text))
        .transpose()
        .map_err(Refusal::invalid)?;
    let filter = RecordFilter {
        session,
        tool,
        state,
        ..RecordFilter::default()
    };
    if filter == RecordFilter::default() && !all {
        return Err(Refusal::invalid(
            "This would forget every ended call, so that each could run again; narrow it by session, tool or state, or say \"all\": true",
        ));
    }
    let stores = &server.stores.dedupe;
    let mut flushed = 0;
    let both = [&stores.durable, &stores.memory];
    let distinct = if std::sync::Arc::ptr_eq(both[0], both[1]) {
        1
    } else {
        2
    };
    for store in &both[..distinct] {
        flushed += store
            .flush(&filter)
            .await
            .map_err(|error| store_refusal(server, &error))?;
    }
    Ok(json!({"flushed": flushed}))
}

async fn clear(server: &Server, key: &str, force: bool) -> Result<Value, Refusal> {
    let stores = &server.stores.dedupe;
    let key = match find(server, key).await? {
        Found::Record(record) => record.key,
        Found::Unread(unread) if unread.is_in_flight() && !force => return Err(running()),
        // Nothing but the key is needed to forget it.
        Found::Unread(unread) => {
            let cleared = stores.durable.clear(&unread.key, ClearIf::There).await;
            let cleared = cleared.map_err(|error| store_refusal(server, &error))?;
            let key = unread.key.to_string();
            return Ok(json!({"cleared": cleared == Cleared::Forgotten, "key": key}));
        }
    };
    let mut cleared = false;
    for store in [&stores.durable, &stores.memory] {
        cleared |= clear_in(&**store, &key, force)
            .await
            .map_err(|error| store_refusal(server, &error))??;
    }
    Ok(json!({"cleared": cleared, "key": key.to_string()}))
}

/// Clears what was looked at and nothing that came after it, unless that does not matter.
async fn clear_in(
    store: &dyn DedupeStore,
    key: &StoredKey,
    force: bool,
) -> StoreResult<Result<bool, Refusal>> {
    let cleared = match store.get(key).await? {
        _ if force => store.clear(key, ClearIf::There).await?,
        None => Cleared::NotThere,
        Some(record) if record.state == RecordState::Inflight => {
            return Ok(Err(running()));
        }
        Some(record) => store.clear(key, ClearIf::Unchanged(&record)).await?,
    };
    Ok(match cleared {
        Cleared::Forgotten => Ok(true),
        Cleared::NotThere => Ok(false),
        Cleared::Changed => Err(Refusal::new(
            StatusCode::CONFLICT,
            "record_changed",
            "The record changed while it was looked at, and was left alone; look again",
        )),
    })
}

fn running() -> Refusal {
    Refusal::new(
        StatusCode::CONFLICT,
        "in_flight",
        "The call is running, and clearing it would let it run twice; say \"force\": true when you know that it is gone",
    )
}

fn switch(
    stack: &ToolStack,
    mode: Option<&str>,
    open_mode: Option<&str>,
    derive: Option<&str>,
) -> Result<Value, Refusal> {
    let parsed = |text: Option<&str>| text.map(mode_word).transpose();
    let (mode, open_mode) = (
        parsed(mode).map_err(Refusal::invalid)?,
        parsed(open_mode).map_err(Refusal::invalid)?,
    );
    let derive = match derive {
        None => None,
        Some("on") => Some(DeriveKeys::On),
        Some("off") => Some(DeriveKeys::Off),
        Some(_) => return Err(Refusal::invalid("deriveIdempotency has to be on or off")),
    };
    if mode.is_none() && open_mode.is_none() && derive.is_none() {
        return Err(Refusal::invalid(
            "Say which: mode, openMode or deriveIdempotency",
        ));
    }
    // Everything was understood before anything is changed.
    let before = stack.modes();
    let runtime = stack.runtime();
    if let Some(mode) = mode {
        runtime.switches.set_mode(mode);
    }
    if let Some(open_mode) = open_mode {
        runtime.switches.set_open_mode(open_mode);
    }
    if let Some(derive) = derive {
        runtime.switches.set_derive_keys(derive);
    }
    Ok(json!({"before": before, "modes": stack.modes()}))
}

fn mode_word(text: &str) -> Result<Mode, String> {
    match text {
        "enforce" | "enabled" | "on" => Ok(Mode::Enforce),
        "shadow" => Ok(Mode::Shadow),
        "off" => Ok(Mode::Off),
        _ => Err("A mode is enforce, shadow or off".to_owned()),
    }
}

const STATES: [RecordState; 5] = [
    RecordState::Inflight,
    RecordState::Done,
    RecordState::Failed,
    RecordState::Cancelled,
    RecordState::Unknown,
];

/// The states of records by their names.
pub(crate) fn record_states() -> [&'static str; 5] {
    STATES.map(RecordState::as_str)
}

pub(super) fn record_state(text: &str) -> Result<RecordState, String> {
    STATES
        .into_iter()
        .find(|state| state.as_str() == text)
        .ok_or_else(|| "A state is inflight, done, failed, cancelled or unknown".to_owned())
}
