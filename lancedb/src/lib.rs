//! What agents remember, in `LanceDB`: the second store behind `holdfast_memory::Memory`.
//!
//! | module | what it does |
//! |---|---|
//! | `place` | the dataset in a directory: opened, written by one at a time, kept in shape, made durable |
//! | `queue` | whose turn it is to write, among all processes |
//! | `rows` | records become rows of an Arrow batch, and rows records |
//! | `words` | the text that the full-text index sees |
//! | `read` | search and listings |
//! | `write` | records and vectors in, one commit a step |
//! | `snapshot` | everything as it was at one moment |
//!
//! One table holds everything, so that each step is one commit: a record with its text, and a
//! column of vectors for every embedding model that was ever used. Readers see one version of the
//! table and wait for nobody; writers of all processes take turns by file locks. The store has a runtime of its own, because a snapshot is read by callers that block.

use std::future::Future;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use holdfast_contract::memory::{Inserted, MemoryCursor, MemoryPage, MemoryResult};
use holdfast_contract::{Embedding, MemoryError, MemoryRecord, MemoryType};
use holdfast_memory::Backend;
use holdfast_memory::backend::{Put, RecallPlan, Recalled, Snapshot};

mod place;
mod queue;
mod read;
mod rows;
mod snapshot;
mod words;
mod write;

pub use place::MEMORY_DIR;
pub use queue::{MEMORY_GATE_FILE, MEMORY_LOCK_FILE};

use lancedb::Table;
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

    /// Looks at the table as it is now. Where there is none, there is nothing to be found.
    async fn look<T, F>(&self, look: impl FnOnce(Table) -> F + Send + 'static) -> MemoryResult<T>
    where
        T: Default + Send + 'static,
        F: Future<Output = MemoryResult<T>> + Send + 'static,
    {
        self.run(|place| async move {
            match place.view().await? {
                Some(table) => look(table).await,
                None => Ok(T::default()),
            }
        })
        .await
    }
}

fn cut_short(error: &tokio::task::JoinError) -> MemoryError {
    MemoryError::Unavailable(format!("the work was cut short: {error}"))
}

#[async_trait]
impl Backend for LanceMemory {
    async fn recall(&self, plan: RecallPlan) -> MemoryResult<Recalled> {
        self.look(|table| async move { read::recall(&table, &plan).await })
            .await
    }

    async fn get(&self, id: &str) -> MemoryResult<Option<MemoryRecord>> {
        let id = id.to_owned();
        self.look(|table| async move {
            let mut found = read::by_ids(&table, &[&id]).await?;
            Ok(found.remove(&id))
        })
        .await
    }

    async fn list(&self, page: &MemoryPage) -> MemoryResult<Vec<MemoryRecord>> {
        let page = page.clone();
        self.look(|table| async move { read::list(&table, &page).await })
            .await
    }

    async fn count(&self, memory_type: Option<MemoryType>) -> MemoryResult<u64> {
        self.look(move |table| async move { read::count(&table, memory_type).await })
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
        dimensions: usize,
        after: Option<MemoryCursor>,
        limit: usize,
    ) -> MemoryResult<Vec<MemoryRecord>> {
        let model = model.to_owned();
        self.look(move |table| async move {
            read::without_embedding(&table, &model, dimensions, after.as_ref(), limit).await
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
