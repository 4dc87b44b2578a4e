//! Keeps runs after each of their steps, as documents of the state.

use std::sync::Arc;

use holdfast_contract::Clock;
use holdfast_reliability::store::StoreError;
use holdfast_reliability::store::documents::{
    Created, Document, DocumentFilter, DocumentStore, NewDocument, Replaced, Replacement,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::hold::{Hold, Holds};
use super::kept::Kept;
use super::owner::Owner;
use super::{RUN_KEPT_MS, RUN_OPEN_KEPT_MS, RUN_TAKE_UPS_MAX};
use crate::run::{RUN_FORMAT, RunState};

/// The documents' kind, and the groups of runs.
pub(super) const RUN: &str = "run";
const OPEN: &str = "open";
/// Those of subagents are apart: they are given up where the others are gone on with.
const OPEN_CHILD: &str = "open-child";
const ENDED: &str = "ended";

/// Where a run is looked for.
pub(super) fn group(state: &RunState) -> &'static str {
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

impl KeptRun {
    /// Whether it is gone on with without anybody asking for it: not when a person stopped it, and
    /// not when it never comes any further.
    pub fn goes_on_by_itself(&self) -> bool {
        !self.set_aside && self.state.take_ups < RUN_TAKE_UPS_MAX
    }
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

/// Keeps runs.
pub struct RunStore {
    pub(super) documents: Arc<dyn DocumentStore>,
    /// The documents' clock, by which they expire.
    clock: Arc<dyn Clock>,
    /// The clock of the loop, by which runs measure their own time.
    loop_clock: Arc<dyn Clock>,
    owner: Owner,
    workspace: String,
    /// Runs that somebody of this process has in hand.
    pub(super) holds: Holds,
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
            holds: Holds::default(),
        }
    }

    /// The same, for runs that measure their time by another clock than the documents'.
    #[must_use]
    pub fn with_loop_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.loop_clock = clock;
        self
    }

    /// The name of this process, as an owner.
    pub(super) fn name(&self) -> &str {
        self.owner.name()
    }

    pub(super) async fn is_alive(&self, other: &str) -> bool {
        self.owner.is_other_alive(other).await
    }

    /// To be done before anything here is this process's: others see it from then on.
    pub(super) async fn announce(&self) -> Result<(), StoreError> {
        self.owner.announce().await
    }

    pub(super) fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    /// Keeps a run that begins. To be had again when the state did not answer: what is there of
    /// this process is what was written the first time.
    pub(super) async fn begin(
        &self,
        hold: &Arc<Hold>,
        state: &RunState,
        client: &str,
    ) -> Result<Kept, StoreError> {
        let document = match self.documents.create(self.new_run(state, client)).await? {
            Created::New(document) => document,
            Created::Exists(document) if self.is_ours(&document) => document,
            Created::Exists(_) => {
                let why = format!("a run named {} is there already", state.id);
                return Err(StoreError::Full(why));
            }
        };
        Ok(Kept::of(hold.clone(), &document, client, state))
    }

    /// Sees to it that a run has ended, whatever is kept of it: one that may or may not have begun
    /// never will, and one that goes on goes on no longer.
    pub(super) async fn entomb(&self, ended: &RunState, client: &str) -> Result<(), StoreError> {
        let document = match self.documents.create(self.new_run(ended, client)).await? {
            Created::New(_) => return Ok(()),
            Created::Exists(document) => document,
        };
        let Ok(mut run) = read(&document) else {
            return Ok(());
        };
        // Whoever else has it, or has ended it, was faster.
        if !self.is_ours(&document) || run.state.ending().is_some() {
            return Ok(());
        }
        run.state.cancel();
        match self.documents.replace(self.change(&document, &run)).await? {
            Replaced::Done(_) | Replaced::Gone => Ok(()),
            Replaced::Changed(_) => Err(StoreError::Unavailable("it has changed".to_owned())),
        }
    }

    /// Takes a run in hand that nobody works on.
    async fn claim(&self, id: &str) -> Result<(Arc<Hold>, Document, KeptRun), RunStoreError> {
        let busy = || RunStoreError::Busy(id.to_owned());
        let hold = self.holds.take(id).ok_or_else(busy)?;
        self.announce().await?;
        let (document, run) = self.find(id).await?;
        if run.state.ending().is_some() {
            return Err(RunStoreError::Ended(id.to_owned()));
        }
        if run.workspace != self.workspace {
            return Err(RunStoreError::Elsewhere(id.to_owned(), run.workspace));
        }
        if self.is_alive(&run.owner).await {
            return Err(busy());
        }
        Ok((Arc::new(hold), document, run))
    }

    /// Writes a claimed run, unless somebody was faster.
    async fn write_claimed(
        &self,
        document: &Document,
        run: &KeptRun,
    ) -> Result<Document, RunStoreError> {
        let id = &run.state.id;
        match self.documents.replace(self.change(document, run)).await? {
            Replaced::Done(document) => Ok(document),
            // Of two who take it up one is faster.
            Replaced::Changed(_) => Err(RunStoreError::Busy(id.clone())),
            Replaced::Gone => Err(RunStoreError::NotFound(id.clone())),
        }
    }

    /// Takes up a run whose process is gone, or that was left unfinished.
    pub(super) async fn take_up(&self, id: &str) -> Result<(RunState, Kept), RunStoreError> {
        let (hold, document, mut run) = self.claim(id).await?;
        let kept_at_ms = document.body["kept_at_ms"].as_u64();
        let ago_ms = self.now_ms().saturating_sub(document.updated_at_ms);
        run.state.take_up(
            kept_at_ms.unwrap_or(document.updated_at_ms),
            ago_ms,
            self.loop_clock.now_ms(),
        );
        let document = self.write_claimed(&document, &run).await?;
        let kept = Kept::of(hold, &document, &run.client, &run.state);
        Ok((run.state, kept))
    }

    /// Ends a run that nobody works on.
    pub(super) async fn cancel(&self, id: &str) -> Result<RunState, RunStoreError> {
        let (_hold, document, mut run) = self.claim(id).await?;
        run.state.cancel();
        self.write_claimed(&document, &run).await?;
        Ok(run.state)
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

    /// A run of this process that is kept nowhere, as if it were.
    pub(super) fn unkept(&self, client: String, state: RunState) -> KeptRun {
        KeptRun {
            owner: self.name().to_owned(),
            client,
            workspace: self.workspace.clone(),
            kept_at_ms: state.begun_at_ms,
            set_aside: false,
            state,
        }
    }

    /// Whether there is such a run, ended or not. One that can not be looked for may be there.
    pub async fn is_known(&self, id: &str) -> bool {
        !matches!(self.documents.document(RUN, id).await, Ok(None))
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
            // One of this process that nobody here has in hand was lost on the way.
            let is_held = run.owner == self.name() && self.holds.has(&run.state.id);
            if run.workspace == self.workspace && !is_held && !self.is_alive(&run.owner).await {
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

    async fn find(&self, id: &str) -> Result<(Document, KeptRun), RunStoreError> {
        let found = self.documents.document(RUN, id).await?;
        let document = found.ok_or_else(|| RunStoreError::NotFound(id.to_owned()))?;
        let run = read(&document)?;
        Ok((document, run))
    }

    fn is_ours(&self, document: &Document) -> bool {
        document.body["owner"] == self.name()
    }

    fn new_run(&self, state: &RunState, client: &str) -> NewDocument {
        NewDocument {
            kind: RUN.to_owned(),
            id: state.id.clone(),
            group: group(state).to_owned(),
            body: self.body(state, client),
            expires_at_ms: Some(self.kept_until_ms(state)),
        }
    }

    fn change(&self, document: &Document, run: &KeptRun) -> Replacement {
        Replacement {
            group: group(&run.state).to_owned(),
            expires_at_ms: Some(self.kept_until_ms(&run.state)),
            ..Replacement::of(document, self.body(&run.state, &run.client))
        }
    }

    pub(super) fn kept_until_ms(&self, state: &RunState) -> u64 {
        let kept_ms = match state.ending() {
            Some(_) => RUN_KEPT_MS,
            None => RUN_OPEN_KEPT_MS,
        };
        self.now_ms().saturating_add(kept_ms)
    }

    pub(super) fn body(&self, state: &RunState, client: &str) -> Value {
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
