//! Keeps what each session has read, and what holds it.

use std::collections::HashMap;
use std::sync::Arc;

use holdfast_contract::{SessionContext, Trust};
use holdfast_reliability::observe::Event;
use holdfast_reliability::runtime::Runtime;
use holdfast_reliability::store::documents::{
    Created, Document, DocumentFilter, DocumentStore, NewDocument, Replaced, Replacement,
    all_documents,
};
use holdfast_reliability::store::{StoreError, StoreResult};
use holdfast_trust::session::Arrived;
use holdfast_trust::signal::Findings;
use holdfast_trust::{Provenance, SessionTrust, TrustConfig, TrustMode};
use parking_lot::Mutex;
use serde_json::{Value, json};

const KIND: &str = "trust";
/// Between the parts of a session's id in the store.
const SEPARATOR: char = '\u{1f}';
/// How long it is known what a session has read, after the last time it read something.
pub const SESSION_TRUST_KEPT_MS: u64 = 24 * 60 * 60 * 1000;
/// Sessions of which a process knows without looking that they have read something already.
pub const SESSIONS_KNOWN_MAX: usize = 1_024;
/// Sessions for which a process keeps what a store that is away does not take. What more of them
/// read counts for all sessions, for as long as a record would be kept.
pub const SESSIONS_UNRECORDED_MAX: usize = 4_096;
/// How long it knows that: somebody may clear it meanwhile.
pub const KNOWN_MS: u64 = 30_000;
/// Rounds of compare-and-set on one session before giving up.
const ROUNDS_MAX: usize = 64;

/// Who speaks to a session from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    /// The person the agent works for.
    User,
    /// Anybody else: a mail, a group chat, a webhook.
    Stranger,
    /// A tool, in a conversation that somebody else hands on.
    Tool,
    /// The model, in such a conversation.
    Model,
}

impl Speaker {
    /// The provenance of what they say.
    pub fn provenance(self) -> Provenance {
        match self {
            Self::User => Provenance::of(Trust::User, "user"),
            Self::Stranger => Provenance::of(Trust::Untrusted, "inbound"),
            // Nobody here has seen which tool that was.
            Self::Tool => Provenance::of(Trust::Untrusted, "history"),
            Self::Model => Provenance::of(Trust::Tool, "model"),
        }
    }
}

/// What this process knows of a session without looking.
#[derive(Debug, Default)]
struct Known {
    /// On record for sure, and when that was seen.
    recorded: Option<(Provenance, u64)>,
    /// What could not be put on record; it counts all the same.
    unrecorded: Option<SessionTrust>,
}

/// What each session has read, in one store.
pub struct TrustBook {
    config: TrustConfig,
    store: Arc<dyn DocumentStore>,
    runtime: Arc<Runtime>,
    known: Mutex<HashMap<String, Known>>,
    /// What sessions have read that are too many to be kept apart, and until when it counts.
    of_all: Mutex<Option<(SessionTrust, u64)>>,
}

impl TrustBook {
    /// The book in this store.
    pub fn new(config: TrustConfig, store: Arc<dyn DocumentStore>, runtime: Arc<Runtime>) -> Self {
        Self {
            config,
            store,
            runtime,
            known: Mutex::default(),
            of_all: Mutex::default(),
        }
    }

    /// The settings.
    pub fn config(&self) -> &TrustConfig {
        &self.config
    }

    fn now_ms(&self) -> u64 {
        self.runtime.clock.now_ms()
    }

    /// What a session has read.
    pub async fn session(&self, session: &SessionContext) -> StoreResult<SessionTrust> {
        let id = id_of(session);
        let document = self.store.document(KIND, &id).await?;
        let stored = document.map(|it| read(&it)).transpose()?;
        let stored = stored.unwrap_or_default();
        Ok(stored.joined(&self.unrecorded(session)))
    }

    /// What this process knows of a session without its store.
    pub fn unrecorded(&self, session: &SessionContext) -> SessionTrust {
        let own = self.waiting(&id_of(session)).unwrap_or_default();
        let now_ms = self.now_ms();
        match &*self.of_all.lock() {
            Some((all, until_ms)) if now_ms < *until_ms => own.joined(all),
            _ => own,
        }
    }

    fn waiting(&self, id: &str) -> Option<SessionTrust> {
        let known = self.known.lock();
        known.get(id).and_then(|known| known.unrecorded.clone())
    }

    /// Notes that a text has come into a session. What can not be put on record is kept in this
    /// process: a store that is away makes nothing trusted.
    pub async fn arrived(
        &self,
        session: &SessionContext,
        provenance: &Provenance,
        findings: &Findings,
    ) {
        let id = id_of(session);
        let now_ms = self.now_ms();
        let signals = &self.config.signals;
        let hold_at = (signals.mode == TrustMode::Enforce).then_some(signals.hold_at);
        let holds = hold_at.is_some_and(|at| findings.confidence() >= at);
        if !holds && self.is_recorded(&id, provenance, now_ms) {
            return;
        }
        let arrived = Arrived {
            provenance,
            findings,
            hold_at,
            hold_ms: signals.hold_ms,
            now_ms,
        };
        let changed = self.change(&id, &session.session_id, |known| known.with(&arrived));
        match changed.await {
            Ok(recorded) => self.note_recorded(&id, recorded.provenance, now_ms),
            Err(error) => {
                self.runtime.tell(&Event::StoreTrouble {
                    what: "trust",
                    error: &error,
                });
                self.note_unrecorded(&id, &arrived);
            }
        }
    }

    /// Takes a message from outside: notes it, and when the user speaks, ends what was held.
    pub async fn heard(
        &self,
        session: &SessionContext,
        speaker: Speaker,
        text: &str,
    ) -> StoreResult<Findings> {
        let provenance = speaker.provenance();
        let findings = self.config.look(text, provenance.trust());
        self.arrived(session, &provenance, &findings).await;
        if speaker == Speaker::User {
            let now_ms = self.now_ms();
            let id = id_of(session);
            let spoke = |known: SessionTrust| known.user_spoke(now_ms);
            if let Err(error) = self.change(&id, &session.session_id, spoke).await {
                let mut known = self.known.lock();
                if let Some(known) = known.get_mut(&id) {
                    known.unrecorded = known.unrecorded.take().map(spoke);
                }
                return Err(error);
            }
        }
        Ok(findings)
    }

    /// Lets one session have read what another has: a child what its parent tells it, a parent what
    /// its child gives back.
    pub async fn inherit(&self, from: &SessionContext, to: &SessionContext) -> StoreResult<()> {
        let read = self.session(from).await?;
        let now_ms = self.now_ms();
        if self.session(to).await?.provenance.holds(&read.provenance) && read.held(now_ms).is_none()
        {
            return Ok(());
        }
        let change = |known: SessionTrust| known.with_session(&read, now_ms);
        self.change(&id_of(to), &to.session_id, change).await?;
        Ok(())
    }

    /// Every session of this name, with its agent and workspace, for people to look at.
    pub async fn sessions(&self, name: Option<&str>) -> StoreResult<Vec<(String, SessionTrust)>> {
        let mut filter = DocumentFilter::of(KIND);
        if let Some(name) = name {
            filter = filter.group(name);
        }
        let found = all_documents(&*self.store, filter).await?;
        found
            .iter()
            .map(|it| Ok((it.id.clone(), read(it)?)))
            .collect()
    }

    /// Forgets what the sessions of this name have read: for a person who knows that it is no longer
    /// before the model. Says how many there were.
    pub async fn clear(&self, name: &str) -> StoreResult<usize> {
        let found = self.sessions(Some(name)).await?;
        for (id, _) in &found {
            self.store.remove(KIND, id).await?;
            self.known.lock().remove(id);
        }
        // What never came on record is forgotten too.
        let mut known = self.known.lock();
        known.retain(|id, _| id.split(SEPARATOR).nth(1) != Some(name));
        Ok(found.len())
    }

    /// Counts a call of a tool; says how many came before it within the minute.
    pub async fn count(&self, session: &SessionContext, tool: &str) -> StoreResult<u32> {
        let now_ms = self.now_ms();
        let mut before = 0;
        self.change(&id_of(session), &session.session_id, |known| {
            let (next, count) = known.counted(tool, now_ms);
            before = count;
            next
        })
        .await?;
        Ok(before)
    }

    fn is_recorded(&self, id: &str, provenance: &Provenance, now_ms: u64) -> bool {
        let known = self.known.lock();
        // While something waits for the store, every arrival is a chance to put it on record.
        let known = known.get(id).filter(|known| known.unrecorded.is_none());
        let recorded = known.and_then(|known| known.recorded.as_ref());
        recorded.is_some_and(|(recorded, at_ms)| {
            recorded.holds(provenance) && now_ms.saturating_sub(*at_ms) < KNOWN_MS
        })
    }

    fn note_recorded(&self, id: &str, provenance: Provenance, now_ms: u64) {
        let mut known = self.known.lock();
        if known.len() >= SESSIONS_KNOWN_MAX && !known.contains_key(id) {
            // Only what has to be kept stays; the rest is looked up again.
            known.retain(|_, it| it.unrecorded.is_some());
        }
        if known.len() < SESSIONS_UNRECORDED_MAX || known.contains_key(id) {
            let known = known.entry(id.to_owned()).or_default();
            known.recorded = Some((provenance, now_ms));
        }
    }

    /// What a store that is away does not take stays here; what is too much for that is not
    /// forgotten either, but counts for every session.
    fn note_unrecorded(&self, id: &str, arrived: &Arrived<'_>) {
        let mut known = self.known.lock();
        if known.len() >= SESSIONS_UNRECORDED_MAX && !known.contains_key(id) {
            known.retain(|_, it| it.unrecorded.is_some());
        }
        if known.len() >= SESSIONS_UNRECORDED_MAX && !known.contains_key(id) {
            let mut of_all = self.of_all.lock();
            let before = of_all.take().map(|(all, _)| all).unwrap_or_default();
            let until_ms = arrived.now_ms.saturating_add(SESSION_TRUST_KEPT_MS);
            *of_all = Some((before.with(arrived), until_ms));
            return;
        }
        let known = known.entry(id.to_owned()).or_default();
        let before = known.unrecorded.take().unwrap_or_default();
        known.unrecorded = Some(before.with(arrived));
    }

    /// What waits for the store is on record now, unless more has come meanwhile.
    fn settle(&self, id: &str, recorded: Option<&SessionTrust>) {
        let mut known = self.known.lock();
        if let Some(known) = known.get_mut(id)
            && known.unrecorded.as_ref() == recorded
        {
            known.unrecorded = None;
        }
    }

    /// Changes one session by a rule, and puts on record what could not be before. It stays with
    /// this process until that is done, so nobody who asks meanwhile misses it.
    async fn change(
        &self,
        id: &str,
        name: &str,
        mut rule: impl FnMut(SessionTrust) -> SessionTrust,
    ) -> StoreResult<SessionTrust> {
        let waiting = self.waiting(id);
        let changed = self.replace(id, name, |stored| match &waiting {
            Some(more) => rule(stored.joined(more)),
            None => rule(stored),
        });
        let changed = changed.await?;
        self.settle(id, waiting.as_ref());
        Ok(changed)
    }

    /// Changes what is on record; of several changes at once each is made on the one before.
    async fn replace(
        &self,
        id: &str,
        name: &str,
        mut rule: impl FnMut(SessionTrust) -> SessionTrust,
    ) -> StoreResult<SessionTrust> {
        let now_ms = self.now_ms();
        let expires_at_ms = Some(now_ms.saturating_add(SESSION_TRUST_KEPT_MS));
        // A session that goes on reading the same is not forgotten in the midst of it.
        let kept_long = now_ms.saturating_add(SESSION_TRUST_KEPT_MS / 2);
        for _ in 0..ROUNDS_MAX {
            let Some(document) = self.store.document(KIND, id).await? else {
                let next = rule(SessionTrust::default());
                // A session that has heard nobody but its user is as every session begins.
                if next == SessionTrust::default() {
                    return Ok(next);
                }
                let new = NewDocument {
                    kind: KIND.to_owned(),
                    id: id.to_owned(),
                    group: name.to_owned(),
                    body: json!(next),
                    expires_at_ms,
                };
                match self.store.create(new).await? {
                    Created::New(_) => return Ok(next),
                    Created::Exists(_) => continue,
                }
            };
            let next = rule(read(&document)?);
            let body: Value = json!(next);
            let stays = document
                .expires_at_ms
                .is_none_or(|end_ms| end_ms > kept_long);
            if body == document.body && stays {
                return Ok(next);
            }
            let mut change = Replacement::of(&document, body);
            change.expires_at_ms = expires_at_ms;
            if let Replaced::Done(_) = self.store.replace(change).await? {
                return Ok(next);
            }
        }
        let why = format!("too many change what the session {name:?} has read at once");
        Err(StoreError::Unavailable(why))
    }
}

/// Sessions of two agents, or in two workspaces, are two even under one name.
fn id_of(session: &SessionContext) -> String {
    format!(
        "{}{SEPARATOR}{}{SEPARATOR}{}",
        session.agent_id,
        session.session_id,
        session.workspace_root.display()
    )
}

fn read(document: &Document) -> StoreResult<SessionTrust> {
    serde_json::from_value(document.body.clone()).map_err(|error| {
        StoreError::Unavailable(format!("what a session has read can not be read: {error}"))
    })
}
