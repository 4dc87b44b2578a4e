//! People who are asked before a call runs: slow, and in one process's memory of nothing.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;
use holdfast_contract::{
    Answer, ApprovalPrompt, Channel, ChannelLevel, Gate, Prompted, Prompter, Scope, Shows, Surface,
    ToolError,
};
use holdfast_reliability::runtime::Runtime;
use holdfast_reliability::store::StoreFuture;
use holdfast_reliability::store::documents::{
    Created, Document, DocumentFilter, DocumentStore, NewDocument, Replaced, Replacement,
};
use holdfast_reliability::store::memory::MemoryDocumentStore;
use holdfast_testkit::SeededEntropy;
use holdfast_testkit::sim::Nature;
use holdfast_toolbox::approval::Approvals;
use holdfast_toolbox::permit::{PermissionConfig, Permissions, ToolPermission};

use super::handle::{Line, at_once};

/// Longest time a person thinks.
const THINKING_MS_MAX: u64 = 3_000;

/// Whether a person is asked about every call of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum People {
    NotAsked,
    Asked,
}

impl People {
    pub(crate) fn permissions(self) -> PermissionConfig {
        let mut config = PermissionConfig::default();
        if self == Self::Asked {
            for nature in Nature::ALL {
                let asked = ToolPermission {
                    gate: Some(Gate::Required),
                    ..ToolPermission::default()
                };
                config.tools.insert(nature.name().to_owned(), asked);
            }
        }
        config
    }
}

pub(crate) fn approvals(
    line: Line,
    store: Arc<MemoryDocumentStore>,
    runtime: Arc<Runtime>,
    permissions: Arc<Permissions>,
) -> Arc<Approvals> {
    let store = Arc::new(DocumentHandle { line, store });
    Arc::new(Approvals::new(store, None, runtime, permissions))
}

/// A person who always says yes, after a while.
pub(crate) struct Person {
    pub(crate) dice: Arc<SeededEntropy>,
}

#[async_trait]
impl Prompter for Person {
    async fn prompt(&self, _: &ApprovalPrompt) -> Result<Prompted, ToolError> {
        let ms = self.dice.below(THINKING_MS_MAX);
        tokio::time::sleep(Duration::from_millis(ms)).await;
        Ok(Prompted::Answered {
            by: "person".to_owned(),
            answer: Answer::Approve { scope: Scope::Once },
        })
    }

    async fn tell(&self, _: &ApprovalPrompt) -> Result<(), ToolError> {
        Ok(())
    }
}

#[async_trait]
impl Channel for Person {
    fn name(&self) -> &str {
        "person"
    }

    fn level(&self) -> ChannelLevel {
        ChannelLevel::Elevated
    }

    fn surface(&self) -> Surface {
        Surface {
            tables: Shows::No,
            headings: Shows::No,
            message_chars_max: 1,
        }
    }

    async fn send(&self, _: &str, _: Option<&str>) -> Result<(), ToolError> {
        Ok(())
    }
}

/// A process's handle on the documents.
struct DocumentHandle {
    line: Line,
    store: Arc<MemoryDocumentStore>,
}

impl DocumentStore for DocumentHandle {
    fn create(&self, new: NewDocument) -> StoreFuture<'_, Created> {
        async move {
            self.line
                .carry("ask", || at_once(self.store.create(new)))
                .await?
        }
        .boxed()
        .into()
    }

    fn document<'a>(&'a self, kind: &'a str, id: &'a str) -> StoreFuture<'a, Option<Document>> {
        async move {
            self.line
                .carry("look", || at_once(self.store.document(kind, id)))
                .await?
        }
        .boxed()
        .into()
    }

    fn replace(&self, change: Replacement) -> StoreFuture<'_, Replaced> {
        async move {
            self.line
                .carry("change", || at_once(self.store.replace(change)))
                .await?
        }
        .boxed()
        .into()
    }

    fn replace_detached(&self, change: Replacement) {
        // A killed process withdraws nothing.
        if !self.line.process.is_dead() && !self.line.process.is_cut_off() {
            self.store.replace_detached(change);
        }
    }

    fn documents<'a>(&'a self, filter: &'a DocumentFilter) -> StoreFuture<'a, Vec<Document>> {
        async move {
            self.line
                .carry("list", || at_once(self.store.documents(filter)))
                .await?
        }
        .boxed()
        .into()
    }

    fn remove<'a>(&'a self, kind: &'a str, id: &'a str) -> StoreFuture<'a, bool> {
        self.store.remove(kind, id)
    }

    fn sweep_documents(&self) -> StoreFuture<'_, u64> {
        self.store.sweep_documents()
    }
}
