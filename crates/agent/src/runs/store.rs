//! Keeps runs after each of their steps, as documents of the state.

use std::collections::HashMap;
use std::sync::Arc;

use holdfast_contract::Clock;
use holdfast_reliability::canonical::Digest;
use holdfast_reliability::store::StoreError;
use holdfast_reliability::store::documents::{
    Created, Document, DocumentFilter, DocumentStore, NewDocument, Replaced, Replacement,
};
use parking_lot::Mutex as SyncMutex;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::owner::Owner;
use super::{RUN_KEPT_MS, RUN_OPEN_KEPT_MS};
use crate::run::{CheckpointError, Effects, Ending, RUN_FORMAT, RunState};

/// The documents' kinds, and the groups of runs.
const RUN: &str = "run";
const KEY: &str = "run-key";
const OPEN: &str = "open";
/// Those of subagents are apart: they are given up where the others are gone on with.
const OPEN_CHILD: &str = "open-child";
const ENDED: &str = "ended";

/// Where a run is looked for.
fn group(state: &RunState) -> &'static str {
    match (state.ending(), &state.parent) {
        (Some(_), _) => ENDED,
        (None, Some(_)) => OPEN_CHILD,
        (None, None) => OPEN,
    }
}

/// A run as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeptRun {
    /// The process that works on it, or worked on it last.
    pub owner: String,
    /// Who asked for it.
    pub client: String,
    /// The directory that its tools work in.
    pub workspace: String,
    /// When it was last kept.
    #[serde(skip)]
    pub kept_at_ms: u64,
    /// Whether a person stopped it: then only a person goes on with it.
    #[serde(default)]
    pub set_aside: bool,
    /// How far it is.
    pub state: RunState,
}

/// Why a run can not be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunStoreError {
    /// There is none.
    #[error("there is no run {0}")]
    NotFound(String),
    /// Another process works on it.
    #[error("another process works on run {0}")]
    Busy(String),
    /// It works in another directory.
    #[error("run {0} works in {1}")]
    Elsewhere(String, String),
    /// It has ended.
    #[error("run {0} has ended")]
    Ended(String),
    /// It was written by a version that this one does not understand.
    #[error("run {0} can not be read: {1}")]
    Unreadable(String, String),
    /// The state is away or full.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A page of runs.
#[derive(Debug, Clone, PartialEq)]
pub struct RunPage {
    /// Those that were looked for.
    pub runs: Vec<KeptRun>,
    /// The next page comes after this one, if there may be a next page.
    pub next: Option<String>,
}

/// What became of a key that a client gave its run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyClaim {
    /// It is this run's.
    Ours,
    /// An earlier request has it, and was the same.
    Same(String),
    /// An earlier request has it, and was another.
    Other,
    /// An earlier request has it, and its run is about to begin.
    Begins,
}

/// Keeps runs.
pub struct RunStore {
    documents: Arc<dyn DocumentStore>,
    /// The documents' clock, by which they expire.
    clock: Arc<dyn Clock>,
    /// The clock of the loop, by which runs measure their own time.
    loop_clock: Arc<dyn Clock>,
    owner: Owner,
    workspace: String,
    /// Runs of this process that begin or are worked on, and by how many they are held so.
    beginning: Arc<SyncMutex<HashMap<String, usize>>>,
}

/// A run that is about to be kept or is worked on, until this is dropped.
pub struct Beginning {
    run: String,
    all: Arc<SyncMutex<HashMap<String, usize>>>,
}

impl Drop for Beginning {
    fn drop(&mut self) {
        let mut all = self.all.lock();
        if let Some(count) = all.get_mut(&self.run) {
            *count -= 1;
            if *count == 0 {
                all.remove(&self.run);
            }
        }
    }
}

impl RunStore {
    /// Keeps them here, as runs of this process, whose tools work in this directory.
    pub fn new(
        documents: Arc<dyn DocumentStore>,
        clock: Arc<dyn Clock>,
        owner: Owner,
        workspace: impl Into<String>,
    ) -> Self {
        Self {
            documents,
            loop_clock: clock.clone(),
            clock,
            owner,
            workspace: workspace.into(),
            beginning: Arc::default(),
        }
    }

    /// The same, for runs that measure their time by another clock than the documents'.
    #[must_use]
    pub fn with_loop_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.loop_clock = clock;
        self
    }

    /// Says that a run begins. To be had before its key is claimed, and held until it is kept: who
    /// finds the key meanwhile does not take it for that of a run that never began.
    pub fn begins(&self, run: &str) -> Beginning {
        *self.beginning.lock().entry(run.to_owned()).or_default() += 1;
        Beginning {
            run: run.to_owned(),
            all: self.beginning.clone(),
        }
    }

    fn is_held(&self, run: &str) -> bool {
        self.beginning.lock().contains_key(run)
    }

    /// Whether a run that is not kept may be about to be.
    async fn may_begin(&self, run: &str, owner: &str) -> bool {
        if owner == self.owner.name() {
            self.is_held(run)
        } else {
            self.owner.is_other_alive(owner).await
        }
    }

    pub(super) fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    /// Keeps a run that begins.
    pub(super) async fn begin(&self, state: &RunState, client: &str) -> Result<Kept, StoreError> {
        self.owner.announce().await?;
        let new = NewDocument {
            kind: RUN.to_owned(),
            id: state.id.clone(),
            group: group(state).to_owned(),
            body: self.body(state, client),
            expires_at_ms: Some(self.now_ms().saturating_add(RUN_OPEN_KEPT_MS)),
        };
        match self.documents.create(new).await? {
            Created::New(document) => Ok(Kept::of(&document, client, state)),
            Created::Exists(_) => Err(StoreError::Unavailable(format!(
                "a run named {} is there already",
                state.id
            ))),
        }
    }

    /// Takes up a run whose process is gone, or that was left unfinished.
    pub(super) async fn take_up(&self, id: &str) -> Result<(RunState, Kept), RunStoreError> {
        self.owner.announce().await?;
        let (document, mut run) = self.find(id).await?;
        if run.state.ending().is_some() {
            return Err(RunStoreError::Ended(id.to_owned()));
        }
        if run.workspace != self.workspace {
            return Err(RunStoreError::Elsewhere(id.to_owned(), run.workspace));
        }
        // Who begins or works on it here has held it since before it was kept.
        let is_held_here = run.owner == self.owner.name() && self.is_held(id);
        if is_held_here || self.owner.is_other_alive(&run.owner).await {
            return Err(RunStoreError::Busy(id.to_owned()));
        }
        let kept_at_ms = document.body["kept_at_ms"].as_u64();
        let ago_ms = self.now_ms().saturating_sub(document.updated_at_ms);
        run.state.take_up(
            kept_at_ms.unwrap_or(document.updated_at_ms),
            ago_ms,
            self.loop_clock.now_ms(),
        );
        let mut change = Replacement::of(&document, self.body(&run.state, &run.client));
        change.expires_at_ms = Some(self.now_ms().saturating_add(RUN_OPEN_KEPT_MS));
        match self.documents.replace(change).await? {
            Replaced::Done(document) => {
                let kept = Kept::of(&document, &run.client, &run.state);
                Ok((run.state, kept))
            }
            // Of two who take it up one is faster.
            Replaced::Changed(_) => Err(RunStoreError::Busy(id.to_owned())),
            Replaced::Gone => Err(RunStoreError::NotFound(id.to_owned())),
        }
    }

    /// Ends a run that nobody works on.
    pub(super) async fn cancel(&self, id: &str) -> Result<RunState, RunStoreError> {
        let (mut state, kept) = self.take_up(id).await?;
        state.cancel();
        let failed = |error: CheckpointError| StoreError::Unavailable(error.0);
        kept.write(self, &state).await.map_err(failed)?;
        Ok(state)
    }

    /// Notes that a person stopped a run that this process has let go of.
    pub async fn set_aside(&self, id: &str) -> Result<(), RunStoreError> {
        let (document, _) = self.find(id).await?;
        let mut body = document.body.clone();
        body["set_aside"] = json!(true);
        let mut change = Replacement::of(&document, body);
        change.expires_at_ms = document.expires_at_ms;
        // Somebody who was faster goes on with it, which is as good.
        self.documents.replace(change).await?;
        Ok(())
    }

    /// A run as it was last kept.
    pub async fn get(&self, id: &str) -> Result<KeptRun, RunStoreError> {
        self.find(id).await.map(|(_, run)| run)
    }

    /// Runs in the order in which they began, after this one. What can not be read is left out.
    pub async fn list(&self, after: Option<&str>, limit: usize) -> Result<RunPage, StoreError> {
        let filter = DocumentFilter {
            limit: Some(limit),
            ..DocumentFilter::of(RUN)
        };
        self.page(filter, after).await
    }

    /// The runs of this directory that were left unfinished and that no living process works on,
    /// after this one; not those of subagents. Of all runs only unfinished ones are looked at.
    pub async fn abandoned(&self, after: Option<&str>) -> Result<RunPage, StoreError> {
        self.nobodys(OPEN, after).await
    }

    /// The same for runs of subagents.
    pub(super) async fn abandoned_children(
        &self,
        after: Option<&str>,
    ) -> Result<RunPage, StoreError> {
        self.nobodys(OPEN_CHILD, after).await
    }

    async fn nobodys(&self, group: &str, after: Option<&str>) -> Result<RunPage, StoreError> {
        let filter = DocumentFilter::of(RUN).group(group);
        let mut page = self.page(filter, after).await?;
        let mut found = Vec::new();
        for run in page.runs {
            if run.workspace == self.workspace
                && run.owner != self.owner.name()
                && !self.owner.is_other_alive(&run.owner).await
            {
                found.push(run);
            }
        }
        page.runs = found;
        Ok(page)
    }

    async fn page(
        &self,
        mut filter: DocumentFilter,
        after: Option<&str>,
    ) -> Result<RunPage, StoreError> {
        filter.after = after.map(str::to_owned);
        let page = self.documents.documents(&filter).await?;
        let last = page.last().filter(|_| !filter.is_last(&page));
        Ok(RunPage {
            next: last.map(|document| document.id.clone()),
            runs: page.iter().filter_map(|it| read(it).ok()).collect(),
        })
    }

    /// Gives a client's key to a run, unless an earlier request has it. A run that ended without an
    /// answer and without an effect gives its key back: the client asks again for good reason.
    pub async fn claim_key(
        &self,
        client: &str,
        key: &str,
        request: &Value,
        run: &str,
    ) -> Result<KeyClaim, StoreError> {
        let id = Digest::of(format!("{client}\n{key}").as_bytes()).to_string();
        let asked = Digest::of(request.to_string().as_bytes()).to_string();
        self.owner.announce().await?;
        let body = json!({"run": run, "request": asked, "owner": self.owner.name()});
        let new = NewDocument {
            kind: KEY.to_owned(),
            id,
            group: client.to_owned(),
            body: body.clone(),
            expires_at_ms: Some(self.now_ms().saturating_add(RUN_KEPT_MS)),
        };
        let found = match self.documents.create(new).await? {
            Created::New(_) => return Ok(KeyClaim::Ours),
            Created::Exists(found) => found,
        };
        if found.body["request"] != asked {
            return Ok(KeyClaim::Other);
        }
        let earlier = found.body["run"].as_str().unwrap_or_default().to_owned();
        let is_over = match self.get(&earlier).await {
            Ok(run) => gives_key_back(&run.state),
            Err(RunStoreError::Store(error)) => return Err(error),
            // It never began, or was forgotten.
            Err(_) => {
                let owner = found.body["owner"].as_str().unwrap_or_default();
                if self.may_begin(&earlier, owner).await {
                    return Ok(KeyClaim::Begins);
                }
                true
            }
        };
        if !is_over {
            return Ok(KeyClaim::Same(earlier));
        }
        match self
            .documents
            .replace(Replacement::of(&found, body))
            .await?
        {
            Replaced::Done(_) => Ok(KeyClaim::Ours),
            // Somebody else was faster; the next request finds out who.
            Replaced::Changed(_) | Replaced::Gone => Ok(KeyClaim::Begins),
        }
    }

    async fn find(&self, id: &str) -> Result<(Document, KeptRun), RunStoreError> {
        let found = self.documents.document(RUN, id).await?;
        let document = found.ok_or_else(|| RunStoreError::NotFound(id.to_owned()))?;
        let run = read(&document)?;
        Ok((document, run))
    }

    fn body(&self, state: &RunState, client: &str) -> Value {
        json!({"owner": self.owner.name(), "client": client, "workspace": self.workspace,
               "kept_at_ms": self.loop_clock.now_ms(), "state": state})
    }
}

fn read(document: &Document) -> Result<KeptRun, RunStoreError> {
    let unreadable = |why: String| RunStoreError::Unreadable(document.id.clone(), why);
    if document.body["state"]["format"] != json!(RUN_FORMAT) {
        return Err(unreadable("it is of another version".to_owned()));
    }
    let run: KeptRun = serde_json::from_value(document.body.clone())
        .map_err(|error| unreadable(error.to_string()))?;
    Ok(KeptRun {
        kept_at_ms: document.updated_at_ms,
        ..run
    })
}

fn gives_key_back(state: &RunState) -> bool {
    let failed = matches!(state.ending(), Some(Ending::Failed(_) | Ending::Cancelled));
    failed && state.effects == Effects::None
}

/// One run's place in the store.
pub(super) struct Kept {
    client: String,
    /// The version that is ours to replace, and what it holds. Held while it is being replaced.
    last: Arc<Mutex<(u64, RunState)>>,
}

impl Kept {
    fn of(document: &Document, client: &str, state: &RunState) -> Self {
        Self {
            client: client.to_owned(),
            last: Arc::new(Mutex::new((document.version, state.clone()))),
        }
    }

    /// The run as it was last kept.
    pub(super) async fn last(&self) -> RunState {
        self.last.lock().await.1.clone()
    }

    /// Keeps the run, if it has changed and is still ours. A write goes on when nobody waits for it
    /// any more, and the next one waits for it: the store carries out what it was told.
    pub(super) async fn write(
        &self,
        store: &RunStore,
        state: &RunState,
    ) -> Result<(), CheckpointError> {
        let mut last = self.last.clone().lock_owned().await;
        if last.1 == *state {
            return Ok(());
        }
        let ended = state.ending().is_some();
        let kept_ms = if ended { RUN_KEPT_MS } else { RUN_OPEN_KEPT_MS };
        let change = Replacement {
            kind: RUN.to_owned(),
            id: state.id.clone(),
            version: last.0,
            group: group(state).to_owned(),
            body: store.body(state, &self.client),
            expires_at_ms: Some(store.now_ms().saturating_add(kept_ms)),
        };
        let (documents, state) = (store.documents.clone(), state.clone());
        let writing = tokio::spawn(async move {
            match documents.replace(change).await {
                Ok(Replaced::Done(document)) => {
                    *last = (document.version, state);
                    Ok(())
                }
                Ok(Replaced::Changed(_)) => Err("another process has taken it up".to_owned()),
                Ok(Replaced::Gone) => Err("it was removed".to_owned()),
                Err(error) => Err(error.to_string()),
            }
        });
        let written = writing
            .await
            .map_err(|error| CheckpointError(error.to_string()))?;
        written.map_err(CheckpointError)
    }
}
