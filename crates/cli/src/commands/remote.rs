//! Commands that ask a running server instead of the state directory.

use std::fmt::Write as _;
use std::process::ExitCode;

use holdfast_server::client::{Client, ClientError};
use holdfast_server::routes::admin::{BREAKERS, PATH, RECORDS};
use holdfast_server::running::Running;
use serde_json::{Map, Value, json};

use crate::app::{App, runtime};
use crate::args::server::ModeArgs;
use crate::args::{BreakerCommand, DedupeCommand, RecordArgs, State};
use crate::fail::{Failure, Outcome};
use crate::output;

use super::serve::admin_token;

/// Stands for the server that works on the state directory.
const AUTO: &str = "auto";

/// A server, asked from outside of a runtime.
struct Remote {
    client: Client,
    runtime: tokio::runtime::Runtime,
    /// Who asks.
    operator: Option<String>,
}

impl Remote {
    fn new(app: &App, server: &str, operator: Option<&str>) -> Outcome<Self> {
        let url = if server == AUTO {
            discover(app)?
        } else {
            server.to_owned()
        };
        let client = Client::new(&url, admin_token(app)?)
            .map_err(|error| Failure::usage(error.to_string()))?;
        Ok(Self {
            client,
            runtime: runtime()?,
            operator: super::operator::name(operator),
        })
    }

    fn get(&self, path: &str) -> Outcome<Value> {
        self.runtime
            .block_on(self.client.get(path))
            .map_err(|error| failure(&error))
    }

    fn act(&self, action: &Value) -> Outcome<Value> {
        let mut action = action.clone();
        if let Some(operator) = &self.operator {
            action["operator"] = json!(operator);
        }
        self.runtime
            .block_on(self.client.post(PATH, &action))
            .map_err(|error| failure(&error))
    }
}

fn failure(error: &ClientError) -> Failure {
    let is_token = matches!(error, ClientError::Refused { status, .. } if status.as_u16() == 401);
    let failure = Failure::failed(error.to_string());
    if is_token {
        failure.hint("The server has another admin token: does it use another state directory?")
    } else {
        failure
    }
}

fn discover(app: &App) -> Outcome<String> {
    let found = Running::find(&app.state_dir)
        .map_err(|error| Failure::failed(format!("servers can not be looked for: {error}")))?;
    match found.as_slice() {
        [only] => Ok(only.url.clone()),
        [] => Err(
            Failure::failed(format!("no server works on {}", app.state_dir.display()))
                .hint("`holdfast serve` starts one; --server URL names one elsewhere."),
        ),
        several => {
            let list: Vec<String> = several
                .iter()
                .map(|running| format!("{} (process {})", running.url, running.pid))
                .collect();
            Err(
                Failure::failed(format!("several servers run: {}", list.join(", ")))
                    .hint("Say which with --server URL."),
            )
        }
    }
}

/// `holdfast breaker … --server`
pub(super) fn breaker(
    app: &App,
    server: &str,
    operator: Option<&str>,
    command: BreakerCommand,
    json: bool,
) -> Outcome<ExitCode> {
    let remote = Remote::new(app, server, operator)?;
    match command {
        BreakerCommand::List => {
            let answer = remote.get(BREAKERS)?;
            if json {
                output::json(&answer["breakers"]);
            } else {
                let breakers = answer["breakers"].as_array().map_or(&[][..], Vec::as_slice);
                super::breaker::show(breakers, app.clock.now_ms());
            }
        }
        BreakerCommand::Reset { key } => {
            let answer = remote.act(&json!({"action": "reset", "breaker": key}))?;
            tell("reset", &answer, json);
        }
        BreakerCommand::ForceOpen { key, reason } => {
            let action = json!({"action": "force-open", "breaker": key, "reason": reason});
            let answer = remote.act(&action)?;
            tell("forcedOpen", &answer, json);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn tell(what: &str, answer: &Value, json: bool) {
    if json {
        output::json(&json!({what: answer[what]}));
    } else {
        super::breaker::say(what, &names(&answer["names"]));
    }
}

fn names(list: &Value) -> Vec<String> {
    let names = list.as_array().map_or(&[][..], Vec::as_slice);
    names
        .iter()
        .filter_map(|name| name.as_str().map(str::to_owned))
        .collect()
}

/// `holdfast dedupe … --server`
pub(super) fn dedupe(
    app: &App,
    server: &str,
    operator: Option<&str>,
    command: DedupeCommand,
    json: bool,
) -> Outcome<ExitCode> {
    let remote = Remote::new(app, server, operator)?;
    match command {
        DedupeCommand::List { filter, limit } => {
            if filter.state_is == Some(State::Abandoned) {
                return Err(Failure::usage("a server does not look for dead processes")
                    .hint("--state-is abandoned works on the state directory, without --server."));
            }
            let fields = fields(&filter);
            let mut path = format!("{RECORDS}?limit={limit}");
            for (name, value) in &fields {
                let value = value.as_str().unwrap_or_default();
                path = format!("{path}&{name}={}", encoded(value));
            }
            let answer = remote.get(&path)?;
            if json {
                output::json(&answer["records"]);
            } else {
                show_records(app, &answer["records"]);
                if !answer["nextOffset"].is_null() {
                    output::line(&super::dedupe::more_line(limit.get()));
                }
            }
        }
        DedupeCommand::Show { key, reveal } => {
            if reveal {
                return Err(Failure::usage("a server shows no secrets")
                    .hint("--reveal works on the state directory, without --server."));
            }
            let record = remote.get(&format!("{RECORDS}/{}", encoded(&key)))?;
            if json {
                output::json(&record);
            } else {
                output::pretty_json(&record);
            }
        }
        DedupeCommand::Clear { key, force } => {
            let answer = remote.act(&json!({"action": "clear", "key": key, "force": force}))?;
            if json {
                output::json(&answer);
            } else {
                let key = answer["key"].as_str().unwrap_or_default();
                output::line(&format!("Cleared {key}. The call may run again."));
            }
        }
        DedupeCommand::Export { .. } | DedupeCommand::Import { .. } => {
            return Err(Failure::usage("a server moves no records")
                .hint("export and import work on the store itself, without --server."));
        }
        DedupeCommand::Flush { filter, all } => {
            let mut action = fields(&filter);
            if action.is_empty() && !all {
                return Err(super::dedupe::too_wide());
            }
            action.insert("action".to_owned(), json!("flush"));
            action.insert("all".to_owned(), json!(all));
            let answer = remote.act(&Value::Object(action))?;
            if json {
                output::json(&answer);
            } else {
                let flushed = answer["flushed"].as_u64().unwrap_or_default();
                output::line(&super::dedupe::forgot(flushed));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A filter in the server's words.
pub(super) fn fields(filter: &RecordArgs) -> Map<String, Value> {
    let given = super::dedupe::filter_of(filter, None);
    let mut fields = Map::new();
    let state = given.state.map(|state| state.as_str().to_owned());
    for (name, value) in [
        ("session", given.session),
        ("tool", given.tool),
        ("state", state),
    ] {
        if let Some(value) = value {
            fields.insert(name.to_owned(), json!(value));
        }
    }
    fields
}

fn show_records(app: &App, records: &Value) {
    let records = records.as_array().map_or(&[][..], Vec::as_slice);
    if records.is_empty() {
        output::line("No records.");
        return;
    }
    let now_ms = app.clock.now_ms();
    let (unread, records): (Vec<_>, Vec<_>) = records
        .iter()
        .partition(|record| record["unreadable"].is_string());
    let rows = records.into_iter().map(|record| {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut key = text(&record["key"]);
        key.truncate(12);
        let expires_at_ms = record["expiresAtMs"].as_u64().unwrap_or_default();
        vec![
            key,
            text(&record["state"]),
            text(&record["tool"]),
            text(&record["request"]["sessionKey"]),
            text(&record["idempotencyKey"]),
            text(&record["request"]["workspaceId"]),
            output::ago(record["updatedAtMs"].as_u64().unwrap_or_default(), now_ms),
            output::duration(expires_at_ms.saturating_sub(now_ms)),
        ]
    });
    output::line(&output::table(&super::dedupe::HEADER, rows));
    for record in unread {
        output::line(&super::dedupe::unread_line(record));
    }
}

/// `holdfast mode`
pub(super) fn mode(app: &App, args: &ModeArgs, json: bool) -> Outcome<ExitCode> {
    let remote = Remote::new(
        app,
        args.remote.server.as_deref().unwrap_or(AUTO),
        args.remote.operator.as_deref(),
    )?;
    let mut action = Map::new();
    if let Some(mode) = args.mode {
        action.insert("mode".to_owned(), json!(mode.as_str()));
    }
    if let Some(mode) = args.open_mode {
        action.insert("openMode".to_owned(), json!(mode.as_str()));
    }
    if let Some(derive) = args.derive {
        action.insert("deriveIdempotency".to_owned(), json!(derive.as_str()));
    }
    let answer = if action.is_empty() {
        remote.get(PATH)?
    } else {
        action.insert("action".to_owned(), json!("mode"));
        remote.act(&Value::Object(action))?
    };
    if json {
        output::json(&answer);
        return Ok(ExitCode::SUCCESS);
    }
    let modes = &answer["modes"];
    let word = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    let apart = modes["tools"].as_object().into_iter().flatten();
    let apart: Vec<String> = apart
        .map(|(tool, mode)| format!(", but {tool} {}", word(mode)))
        .collect();
    let apart = apart.concat();
    output::line(&format!(
        "{}: mode {}, open breakers {}, computed keys {}{apart}.",
        remote.client.url(),
        word(&modes["mode"]),
        word(&modes["openMode"]),
        word(&modes["deriveIdempotency"])
    ));
    if let Some(reason) = answer["degraded"].as_str() {
        output::line(&output::red(&format!("degraded: {reason}")));
    }
    Ok(ExitCode::SUCCESS)
}

/// A text as it may stand in a path or a query.
fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            // Writing to a string can not fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}
