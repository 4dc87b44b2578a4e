//! The class `TrustDesk`: L1, L2 and L4 for the host's sessions. Looking through a text takes milliseconds, so
//! all of it happens on a thread of Node's pool.

#![expect(
    clippy::needless_pass_by_value,
    reason = "what comes from JavaScript is a copy of its own"
)]

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdfast_contract::Trust;
use holdfast_contract::clock::{Clock, SystemClock};
use holdfast_trust::host::{HostCall, HostTrust, Verdict, advice, read_arguments};
use holdfast_trust::signal::Findings;
use holdfast_trust::{Provenance, TrustConfig};
use napi::Result;
use napi::bindgen_prelude::AsyncTask;
use napi_derive::napi;
use serde_json::{Value, json};

use crate::guard::ToolCall;
use crate::safely::{failed, run};
use crate::settings;
use crate::work::Work;

/// Who speaks to a session.
#[napi(string_enum = "camelCase")]
#[derive(Debug, PartialEq, Eq)]
pub enum HostSpeaker {
    /// The person whom the agent works for.
    Owner,
    /// Anybody else.
    Stranger,
}

/// What the host's sessions have read, one for a process.
#[napi]
pub struct TrustDesk {
    host: Arc<Mutex<HostTrust>>,
}

#[napi]
impl TrustDesk {
    /// A desk with the settings of the `trust` section, as JSON.
    #[napi(constructor)]
    pub fn new(settings: String) -> Result<Self> {
        run(|| {
            Ok(Self {
                host: Arc::new(Mutex::new(HostTrust::new(parse(&settings)?))),
            })
        })
    }

    /// Takes new settings; what was read stays read.
    #[napi]
    pub fn configure(&self, settings: String) -> Result<()> {
        run(|| {
            let config = parse(&settings)?;
            lock(&self.host).configure(config);
            Ok(())
        })
    }

    /// Takes a message from outside. The promise is JSON: `{"trust": …, "signals": …}`, the second null where
    /// nothing speaks against it.
    #[napi(ts_return_type = "Promise<string>")]
    pub fn heard(
        &self,
        session: String,
        speaker: HostSpeaker,
        source: String,
        text: String,
    ) -> AsyncTask<Work> {
        let host = self.host.clone();
        Work::task(move || {
            let trust = match speaker {
                HostSpeaker::Owner => Trust::User,
                HostSpeaker::Stranger => Trust::Untrusted,
            };
            let found = arrives(&host, &session, &source, trust, &text);
            if speaker == HostSpeaker::Owner {
                lock(&host).user_spoke(&session, SystemClock.now_ms());
            }
            Ok(said(trust, &found))
        })
    }

    /// Lets one session have read what another has.
    #[napi(ts_return_type = "Promise<string>")]
    pub fn inherit(&self, from: String, to: String) -> AsyncTask<Work> {
        let host = self.host.clone();
        Work::task(move || {
            lock(&host).inherit(&from, &to, SystemClock.now_ms());
            Ok(Value::Null)
        })
    }

    /// Whether a call may be made. The promise is JSON: `{"kind": "run", "notes": […]}`, `{"kind": "ask", "why": …}`
    /// or `{"kind": "deny", "why": …}`.
    #[napi(ts_return_type = "Promise<string>")]
    pub fn judge(&self, call: ToolCall, agent: String) -> AsyncTask<Work> {
        let host = self.host.clone();
        Work::task(move || {
            let verdict = match read_arguments(&call.tool, &call.args) {
                Ok(arguments) => {
                    let call = HostCall {
                        session: &call.session,
                        agent: &agent,
                        tool: &call.tool,
                        arguments: &arguments,
                    };
                    lock(&host).judge(&call, SystemClock.now_ms())
                }
                Err(denied) => denied,
            };
            Ok(match verdict {
                Verdict::Run(notes) => json!({"kind": "run", "notes": notes}),
                Verdict::Ask(why) => json!({"kind": "ask", "why": why}),
                Verdict::Deny(why) => json!({"kind": "deny", "why": why}),
            })
        })
    }

    /// Takes a tool's result. The promise is JSON: `{"trust": …, "signals": …, "advice": …}`, the last what the
    /// model should read besides, or null.
    #[napi(ts_return_type = "Promise<string>")]
    pub fn came_back(&self, session: String, tool: String, text: String) -> AsyncTask<Work> {
        let host = self.host.clone();
        Work::task(move || {
            let trust = lock(&host).result_trust(&tool);
            let found = arrives(&host, &session, &tool, trust, &text);
            let mut answer = said(trust, &found);
            answer["advice"] = json!(advice(&tool, trust, &found));
            Ok(answer)
        })
    }
}

/// Looks at a text and notes it. Nobody waits for the looking: the lock is taken before and after.
fn arrives(
    host: &Mutex<HostTrust>,
    session: &str,
    source: &str,
    trust: Trust,
    text: &str,
) -> Findings {
    let config = lock(host).config();
    let found = config.look(text, trust);
    let from = Provenance::of(trust, source);
    lock(host).arrived(session, &from, &found, SystemClock.now_ms());
    found
}

fn said(trust: Trust, found: &Findings) -> Value {
    let signals = (!found.is_empty()).then(|| found.summary());
    json!({"trust": trust.as_str(), "signals": signals})
}

fn parse(settings: &str) -> Result<TrustConfig> {
    let config: TrustConfig = settings::read(settings)?;
    // Which tools there are, only the host knows.
    match config.problems(|_| true).first() {
        Some((setting, why)) => Err(failed(format!("{setting}: {why}"))),
        None => Ok(config),
    }
}

/// What a panic may leave half done is forgotten sessions at worst.
fn lock(host: &Mutex<HostTrust>) -> MutexGuard<'_, HostTrust> {
    host.lock().unwrap_or_else(PoisonError::into_inner)
}
