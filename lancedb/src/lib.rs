//! What agents remember, in `LanceDB`: the second store behind `holdfast_memory::Memory`.
//!
//! | module | what it does |
//! |---|---|
//! | `place` | the dataset in a directory: opened, locked for writers, kept in shape, made durable |
//! | `rows` | records become rows of an Arrow batch, and rows records |
//! | `words` | the text that the full-text index sees |
//! | `read` | search and listings |
//! | `write` | records and vectors in, one commit a step |
//! | `snapshot` | everything as it was at one moment |
//!
//! One table holds everything, so that each step is one commit: a record with its text, and a
//! column of vectors for every embedding model that was ever used. Readers see one version of the
//! table and wait for nobody; writers of all processes take turns behind one file lock. The store
//! has a runtime of its own, because a snapshot is read by callers that block.

use std::future::Future;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use holdfast_contract::memory::{Inserted, MemoryCursor, MemoryPage, MemoryResult};
use holdfast_contract::{Embedding, MemoryError, MemoryRecord, MemoryType};
use holdfast_memory::Backend;
use holdfast_memory::backend::{Put, RecallPlan, Recalled, Snapshot};

mod place;
mod read;
mod rows;
mod snapshot;
mod words;
mod write;

pub use place::{MEMORY_DIR, MEMORY_LOCK_FILE};

use place::Place;

/// The memory of one state directory, in `LanceDB`.
#[derive(Clone)]
pub struct LanceMemory {
    place: Arc<Place>,
}

impl LanceMemory {
    /// The memory in this directory. Nothing is opened or created before it is needed.
    pub fn new(state_dir: &Path, records_max: u64) -> Self {
        Self {
            place: Arc::new(Place::new(state_dir, records_max)),
        }
    }

    /// Works on the store's own runtime. What was begun is ended also when the caller goes away.
    async fn run<T, F>(&self, work: impl FnOnce(Arc<Place>) -> F) -> MemoryResult<T>
    where
        T: Send + 'static,
        F: Future<Output = MemoryResult<T>> + Send + 'static,
    {
        let task = self.place.runtime()?.spawn(work(self.place.clone()));
        task.await.unwrap_or_else(|error| Err(cut_short(&error)))
    }
}

fn cut_short(error: &tokio::task::JoinError) -> MemoryError {
    MemoryError::Unavailable(format!("the work was cut short: {error}"))
}

#[async_trait]
impl Backend for LanceMemory {
    async fn recall(&self, plan: RecallPlan) -> MemoryResult<Recalled> {
        self.run(|place| async move { read::recall(&place.view().await?, &plan).await })
            .await
    }

    async fn get(&self, id: &str) -> MemoryResult<Option<MemoryRecord>> {
        let id = id.to_owned();
        self.run(|place| async move {
            let mut found = read::by_ids(&place.view().await?, &[&id]).await?;
            Ok(found.remove(&id))
        })
        .await
    }

    async fn list(&self, page: &MemoryPage) -> MemoryResult<Vec<MemoryRecord>> {
        let page = page.clone();
        self.run(|place| async move { read::list(&place.view().await?, &page).await })
            .await
    }

    async fn count(&self, memory_type: Option<MemoryType>) -> MemoryResult<u64> {
        self.run(|place| async move { read::count(&place.view().await?, memory_type).await })
            .await
    }

    async fn remember(&self, record: MemoryRecord) -> MemoryResult<Put> {
        self.run(|place| async move { write::remember(&place, record).await })
            .await
    }

    async fn insert(&self, records: Vec<MemoryRecord>) -> MemoryResult<Inserted> {
        self.run(|place| async move { write::insert(&place, records).await })
            .await
    }

    async fn delete(&self, id: &str) -> MemoryResult<bool> {
        let id = id.to_owned();
        self.run(|place| async move { write::delete(&place, &id).await })
            .await
    }

    async fn without_embedding(
        &self,
        model: &str,
        after: Option<MemoryCursor>,
        limit: usize,
    ) -> MemoryResult<Vec<MemoryRecord>> {
        let model = model.to_owned();
        self.run(|place| async move {
            read::without_embedding(&place.view().await?, &model, after.as_ref(), limit).await
        })
        .await
    }

    async fn embed(&self, vectors: Vec<(String, Embedding)>) -> MemoryResult<u64> {
        self.run(|place| async move { write::embed(&place, vectors).await })
            .await
    }

    async fn snapshot(&self) -> MemoryResult<Box<dyn Snapshot>> {
        self.run(|place| async move {
            let snapshot = snapshot::LanceSnapshot::begin(place).await?;
            Ok(Box::new(snapshot) as Box<dyn Snapshot>)
        })
        .await
    }
}
