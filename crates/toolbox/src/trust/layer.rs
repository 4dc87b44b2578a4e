//! Asks before a call whether its tool may, and looks at what comes back.

use std::collections::HashMap;
use std::sync::Arc;

use holdfast_contract::{Effect, ErrorCode, HostRule, Reason, ResultOutput, Tool, Trust};
use holdfast_reliability::call::{Call, Entry, Failure, Judged, Reply};
use holdfast_reliability::execute::TRUST_FIELD;
use holdfast_reliability::observe::Event;
use holdfast_reliability::policy::Mode;
use holdfast_reliability::runtime::Runtime;
use holdfast_reliability::service::Service;
use holdfast_reliability::store::StoreError;
use holdfast_trust::signal::{Findings, scan, scan_value};
use holdfast_trust::{
    Facts, Hold, Manifest, OnHold, Provenance, SessionTrust, TrustMode, Violation, check, host_rule,
};
use serde_json::{Map, Value, json};

use super::{HELD_BY_SIGNAL, INPUT_TRUST, TrustBook};
use crate::approval::model::digest_of_value;
use crate::permit::deny;
use crate::registry::Registry;

/// The member of a result's metadata that says what speaks against it.
const SIGNALS_FIELD: &str = "signals";

/// What is known of a tool.
struct Rules {
    manifest: Manifest,
    /// The manifest's hosts, for wherever the tool is sent on to.
    hosts: Option<HostRule>,
    is_held: bool,
    acts: bool,
}

/// Why a call does not go on.
enum Stop {
    /// No, and why.
    Denied(String),
    /// What has to be known can not be looked up.
    Trouble(StoreError),
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Self::Trouble(error)
    }
}

/// Vouches for calls: their tools' manifests cover them, and nothing in their session speaks
/// against them. Never switched off by the reliability switches.
pub struct Vouch<S> {
    inner: S,
    book: Option<Arc<TrustBook>>,
    rules: HashMap<String, Rules>,
    runtime: Arc<Runtime>,
}

impl<S: Service> Vouch<S> {
    /// Wraps everything that acts. Without a book it stands aside.
    pub fn new(
        inner: S,
        book: Option<Arc<TrustBook>>,
        registry: &Registry,
        runtime: Arc<Runtime>,
    ) -> Self {
        let mut rules = HashMap::new();
        if let Some(book) = &book {
            for found in registry.iter() {
                let tool = &*found.tool;
                rules.insert(tool.name().to_owned(), rules_of(book, tool));
            }
        }
        Self {
            inner,
            book,
            rules,
            runtime,
        }
    }

    /// What has to be known of the session before this call, if anything.
    async fn session(
        &self,
        book: &TrustBook,
        call: &Call,
        rules: &Rules,
    ) -> Result<Option<SessionTrust>, StoreError> {
        let config = book.config();
        let strict = config.capabilities.input_trust == TrustMode::Enforce;
        if !rules.is_held && !rules.acts && !strict {
            return Ok(None);
        }
        match book.session(&call.session).await {
            Err(error) if strict => Err(error),
            // What is recorded can not be told, so what this process knows counts. A store that is
            // away refuses what acts already, further in, unless somebody has switched that off.
            Err(error) => {
                self.runtime.tell(&Event::StoreTrouble {
                    what: "trust",
                    error: &error,
                });
                Ok(Some(book.unrecorded(&call.session)))
            }
            Ok(known) => Ok(Some(known)),
        }
    }

    /// Refuses, or notes down what a person has to answer first.
    async fn before(&self, book: &TrustBook, call: &mut Call, rules: &Rules) -> Result<(), Stop> {
        let known = self.session(book, call, rules).await?;
        let counted = match rules.manifest.limits.calls_per_minute_max {
            None => 0,
            Some(_) => book.count(&call.session, &call.envelope.tool_name).await?,
        };
        if let Some(known) = &known {
            call.input_trust = known.trust();
        }
        let violations = check(&Facts {
            manifest: &rules.manifest,
            grants: book.config().grants(&call.session.agent_id),
            arguments: &call.envelope.payload.params,
            input_trust: known.as_ref().map_or(Trust::System, SessionTrust::trust),
            calls_last_minute: counted,
        });
        self.judge(book, call, &violations)?;
        call.hosts.clone_from(&rules.hosts);
        let now_ms = self.runtime.clock.now_ms();
        if !rules.is_held || call.entry != Entry::New {
            return Ok(());
        }
        // One reason for each: a yes about one text is none about another.
        for hold in known.iter().flat_map(|known| known.standing(now_ms)) {
            hold_up(book, call, hold, now_ms)?;
        }
        Ok(())
    }

    fn judge(
        &self,
        book: &TrustBook,
        call: &mut Call,
        violations: &[Violation],
    ) -> Result<(), Stop> {
        let config = &book.config().capabilities;
        let tool = call.envelope.tool_name.clone();
        for violation in violations {
            let is_trust = matches!(violation, Violation::InputTrust { .. });
            let mode = if is_trust {
                config.input_trust
            } else {
                config.mode
            };
            let why = format!("capabilities of {tool}: {violation}");
            match mode {
                TrustMode::Audit => {
                    call.explain(format!("would have been refused by the {why}"));
                    if !is_trust {
                        self.runtime.tell(&Event::Blocked {
                            call,
                            code: ErrorCode::PermissionDenied.as_str(),
                            why: &why,
                            mode: Mode::Shadow,
                        });
                    }
                }
                TrustMode::Enforce if !is_trust => {
                    return Err(Stop::Denied(format!("refused by the {why}")));
                }
                // A person who approves these arguments makes them the user's own.
                TrustMode::Enforce if call.entry == Entry::New => {
                    let digest = digest_of_value(&call.envelope.payload.params);
                    let reason = Reason::new(INPUT_TRUST, &*tool, why).bound_to(digest);
                    call.concerns.push(reason);
                }
                TrustMode::Enforce | TrustMode::Off => {}
            }
        }
        Ok(())
    }

    fn trouble(&self, call: &mut Call, error: &StoreError) -> Reply {
        self.runtime.tell(&Event::StoreTrouble {
            what: "trust",
            error,
        });
        let code = match error {
            StoreError::Full(_) => ErrorCode::StoreFull,
            StoreError::Unavailable(_) => ErrorCode::StoreUnavailable,
        };
        call.explain(error.to_string());
        Failure::before_start(code, error.to_string(), Judged::Neutral).into()
    }

    /// Tags what comes back, and notes it down for the session.
    async fn after(&self, book: &TrustBook, call: &Call, rules: &Rules, reply: &mut Reply) {
        if reply.outcome.is_err() && !call.started.is_set() {
            // Our own words.
            return;
        }
        let trust = match &reply.outcome {
            Ok(output) => said_trust(output).unwrap_or(rules.manifest.result_trust()),
            Err(_) => rules.manifest.result_trust(),
        };
        let looks = book.config().signals.mode != TrustMode::Off;
        let findings = match &reply.outcome {
            _ if !looks => Findings::default(),
            Ok(output) => scan_value(&output.content, trust),
            // What a tool had until it failed reaches the model too.
            Err(failure) => match failure
                .besides
                .as_deref()
                .and_then(|it| it.details.as_ref())
            {
                Some(details) => scan_value(&json!([failure.message, details]), trust),
                None => scan(&failure.message, trust),
            },
        };
        if !findings.is_empty() {
            self.runtime.tell(&Event::Signals {
                call,
                summary: &findings.summary(),
            });
        }
        if let Ok(output) = &mut reply.outcome {
            tag(output, trust, &findings);
        }
        let provenance = Provenance::of(trust, &call.envelope.tool_name);
        book.arrived(&call.session, &provenance, &findings).await;
    }
}

fn rules_of(book: &TrustBook, tool: &dyn Tool) -> Rules {
    let config = book.config();
    let manifest = config.manifest(tool.name(), tool.effect());
    Rules {
        is_held: config.is_held(tool.name(), &manifest),
        acts: tool.effect() != Effect::None,
        hosts: (config.capabilities.mode == TrustMode::Enforce)
            .then(|| host_rule(&manifest))
            .flatten(),
        manifest,
    }
}

/// Makes a held call wait for a person, or refuses it.
fn hold_up(book: &TrustBook, call: &mut Call, hold: &Hold, now_ms: u64) -> Result<(), Stop> {
    let tool = call.envelope.tool_name.clone();
    let text = hold.why(&tool, now_ms);
    if book.config().signals.on_hold == OnHold::Deny {
        return Err(Stop::Denied(text));
    }
    let subject = format!("{tool} after content from {}", hold.source);
    let reason = Reason::new(HELD_BY_SIGNAL, subject, text).bound_to(&*hold.id);
    call.concerns.push(reason);
    Ok(())
}

/// What a tool, or the record of its call, says about this one result.
fn said_trust(output: &ResultOutput) -> Option<Trust> {
    let said = output.metadata.as_ref()?.get(TRUST_FIELD)?.as_str()?;
    Trust::from_name(said)
}

/// Says how far a result is trusted where that is less than a tool's own word, and what speaks
/// against it. Not in its words: they are before the model already.
fn tag(output: &mut ResultOutput, trust: Trust, findings: &Findings) {
    if trust >= Trust::Tool && findings.is_empty() {
        return;
    }
    let metadata = output.metadata.get_or_insert_with(Map::new);
    metadata.insert(TRUST_FIELD.to_owned(), Value::from(trust.as_str()));
    if !findings.is_empty() {
        let found = findings.found.iter();
        let found = found.map(|it| json!({"kind": it.kind, "confidence": it.confidence}));
        metadata.insert(SIGNALS_FIELD.to_owned(), found.collect());
    }
}

impl<S: Service> Service for Vouch<S> {
    async fn call(&self, call: &mut Call) -> Reply {
        let rules = call.tool.as_ref().map(|tool| tool.name());
        let rules = rules.and_then(|name| self.rules.get(name));
        let (Some(book), Some(rules)) = (&self.book, rules) else {
            return self.inner.call(call).await;
        };
        match self.before(book, call, rules).await {
            Ok(()) => {}
            Err(Stop::Denied(why)) => return deny(call, &self.runtime, why),
            Err(Stop::Trouble(error)) => return self.trouble(call, &error),
        }
        let mut reply = self.inner.call(call).await;
        self.after(book, call, rules, &mut reply).await;
        reply
    }
}
