//! A stack in use, and what goes with it.

use std::path::PathBuf;
use std::sync::Arc;

use holdfast_agent::subagents::Subagents;
use holdfast_confine::{ConfinementConfig, Kernel};
use holdfast_contract::{Channel, OwnPlace, SessionContext};
use holdfast_memory::Memory;
use holdfast_reliability::janitor;
use holdfast_reliability::observe::metrics::Metrics;
use holdfast_reliability::store::documents::DocumentStore;
use holdfast_toolbox::approval::Approvals;
use holdfast_toolbox::git::GitKeeper;
use holdfast_toolbox::stack::{Sessions, Stores, ToolStack};
use holdfast_toolbox::tools;

use crate::records::{self, Shared};
use crate::telemetry::Traces;
use crate::waiting::WaitWatch;

/// A stack and what has to be kept alive, or read, beside it.
pub(crate) struct Running {
    pub(crate) stack: Arc<ToolStack>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) approvals: Arc<Approvals>,
    pub(crate) documents: Arc<dyn DocumentStore>,
    pub(crate) stores: Stores,
    /// What keeps the records, in a word for people.
    pub(crate) store_name: &'static str,
    pub(crate) shared: Option<Arc<Shared>>,
    pub(crate) waits: Arc<WaitWatch>,
    pub(crate) traces: Option<Traces>,
    /// Where runs of a model may begin others.
    pub(crate) subagents: Option<Arc<Subagents>>,
    /// Sets aside what git would run later.
    pub(crate) git: Arc<GitKeeper>,
}

impl Running {
    /// Tells a person at a terminal what a duplicate waits for.
    pub(crate) async fn say_what_is_waited_for(&self) {
        let clock = &*self.stack.runtime().clock;
        self.waits.tell(&self.stores.dedupe, clock).await;
    }

    /// Waits, within a bound, until a store that is away has what is to be recorded; says how many
    /// records it does not have.
    pub(crate) async fn written_back(&self) -> usize {
        self.approvals.settled().await;
        match &self.shared {
            Some(shared) => records::written_back(shared).await,
            None => 0,
        }
    }

    /// Forgets what has expired. A short-lived process does it once, after its answer.
    pub(crate) async fn tidy(&self) {
        janitor::sweep(
            &self.stores.dedupe,
            self.stack.runtime(),
            Some(&self.metrics),
        )
        .await;
        for documents in self.all_documents() {
            // What could not be swept now is swept by the next one.
            let _ = documents.sweep_documents().await;
        }
    }

    /// The documents of this machine, and those that it shares with others.
    pub(crate) fn all_documents(&self) -> Vec<Arc<dyn DocumentStore>> {
        let mut all = vec![self.documents.clone()];
        if let Some(shared) = &self.shared {
            all.push(shared.clone());
        }
        all
    }

    /// Sends the spans that wait, within a bound, and looks at what ended with this process. No call may
    /// follow.
    pub(crate) fn finish(&self) {
        self.git.settle();
        if let Some(traces) = &self.traces {
            traces.finish();
        }
    }
}

/// Shared directories in whose place sessions see their own.
pub(crate) fn own_places(config: &ConfinementConfig) -> Vec<OwnPlace> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    tools::own_places(config, Kernel::probe(), home.as_deref())
}

/// The contexts of sessions that no tree knows: each may do what its workspace allows.
pub(crate) fn mains(
    workspace: PathBuf,
    channel: Arc<dyn Channel>,
    memory: Arc<Memory>,
    reserved: Vec<PathBuf>,
    own_places: Vec<OwnPlace>,
) -> Sessions {
    Arc::new(move |envelope| {
        let target = &envelope.target;
        let agent = target.agent_id.as_deref().unwrap_or("cli");
        let session = SessionContext::main(&target.session_key, agent, workspace.clone())
            .with_channel(channel.clone())
            .with_memory(&memory);
        Arc::new(SessionContext {
            reserved: reserved.clone(),
            own_places: own_places.clone(),
            ..session
        })
    })
}
