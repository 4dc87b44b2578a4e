//! The keys by which clients make several requests one run.
//!
//! A key is claimed when its run has its place and begins, so a claim without a run is a matter of
//! moments. One that stays so belongs to nobody: whoever claimed it does not begin that late.

use holdfast_reliability::canonical::Digest;
use holdfast_reliability::store::StoreError;
use holdfast_reliability::store::documents::{
    Created, Document, NewDocument, Replaced, Replacement,
};
use serde_json::{Value, json};

use super::store::{RunStore, RunStoreError};
use super::{RUN_KEPT_MS, RUN_KEY_CLAIM_MS};
use crate::run::{Effects, Ending, RunState};

const KEY: &str = "run-key";

/// A client's key, and what was asked with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunKey {
    id: String,
    client: String,
    request: String,
}

impl RunKey {
    /// The key of this client for this request.
    pub fn new(client: &str, key: &str, request: &Value) -> Self {
        Self {
            id: Digest::of(format!("{client}\n{key}").as_bytes()).to_string(),
            client: client.to_owned(),
            request: Digest::of(request.to_string().as_bytes()).to_string(),
        }
    }
}

/// What is known of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyClaim {
    /// An earlier request has it, and was the same.
    Same(String),
    /// An earlier request has it, and was another.
    Other,
    /// An earlier request has it, and its run is about to begin.
    Begins,
}

/// What became of the wish to have a key.
pub(super) enum Claimed {
    /// It is ours.
    Ours(Claim),
    /// It is not.
    Theirs(KeyClaim),
}

/// A key that is ours, as it stands.
pub(super) struct Claim(Document);

/// A key that an earlier request had.
enum Earlier {
    /// It still has it.
    Has(KeyClaim),
    /// It can be had.
    IsOver(Document),
}

impl RunStore {
    /// Who has a key, if anybody has.
    pub async fn key_of(&self, key: &RunKey) -> Result<Option<KeyClaim>, StoreError> {
        let Some(found) = self.documents.document(KEY, &key.id).await? else {
            return Ok(None);
        };
        Ok(match self.earlier(key, found).await? {
            Earlier::Has(claim) => Some(claim),
            Earlier::IsOver(_) => None,
        })
    }

    /// Gives a key to a run that begins at once, unless an earlier request has it.
    pub(super) async fn claim_key(&self, key: &RunKey, run: &str) -> Result<Claimed, StoreError> {
        self.announce().await?;
        let body = json!({"run": run, "request": key.request, "owner": self.name()});
        let expires_at_ms = Some(self.now_ms().saturating_add(RUN_KEPT_MS));
        let new = NewDocument {
            kind: KEY.to_owned(),
            id: key.id.clone(),
            group: key.client.clone(),
            body: body.clone(),
            expires_at_ms,
        };
        let found = match self.documents.create(new).await? {
            Created::New(document) => return Ok(Claimed::Ours(Claim(document))),
            Created::Exists(found) => found,
        };
        let over = match self.earlier(key, found).await? {
            Earlier::Has(claim) => return Ok(Claimed::Theirs(claim)),
            Earlier::IsOver(over) => over,
        };
        let mut change = Replacement::of(&over, body);
        change.expires_at_ms = expires_at_ms;
        Ok(match self.documents.replace(change).await? {
            Replaced::Done(document) => Claimed::Ours(Claim(document)),
            // Somebody else was faster; the next request finds out who.
            Replaced::Changed(_) | Replaced::Gone => Claimed::Theirs(KeyClaim::Begins),
        })
    }

    /// Gives a key back whose run did not begin. One that stays is nobody's after a moment.
    pub(super) async fn release_key(&self, claim: Claim) {
        let mut change = Replacement::of(&claim.0, claim.0.body.clone());
        change.expires_at_ms = Some(self.now_ms());
        let _ = self.documents.replace(change).await;
    }

    /// A run that ended without an answer and without an effect gives its key back: the client asks
    /// again for good reason.
    async fn earlier(&self, key: &RunKey, found: Document) -> Result<Earlier, StoreError> {
        if found.body["request"] != key.request {
            return Ok(Earlier::Has(KeyClaim::Other));
        }
        let run = found.body["run"].as_str().unwrap_or_default().to_owned();
        let is_over = match self.get(&run).await {
            Ok(run) => came_to_nothing(&run.state),
            Err(RunStoreError::Store(error)) => return Err(error),
            // It never began, or was forgotten.
            Err(_) => {
                let owner = found.body["owner"].as_str().unwrap_or_default();
                let age_ms = self.now_ms().saturating_sub(found.updated_at_ms);
                if age_ms < RUN_KEY_CLAIM_MS && self.may_begin(&run, owner).await {
                    return Ok(Earlier::Has(KeyClaim::Begins));
                }
                true
            }
        };
        Ok(if is_over {
            Earlier::IsOver(found)
        } else {
            Earlier::Has(KeyClaim::Same(run))
        })
    }

    /// Whether a run that is not kept may be about to be.
    async fn may_begin(&self, run: &str, owner: &str) -> bool {
        if owner == self.name() {
            self.holds.has(run)
        } else {
            self.is_alive(owner).await
        }
    }
}

/// Whether a run failed before it had any effect: whoever asked may ask again.
pub fn came_to_nothing(state: &RunState) -> bool {
    let failed = matches!(state.ending(), Some(Ending::Failed(_) | Ending::Cancelled));
    failed && state.effects == Effects::None
}
