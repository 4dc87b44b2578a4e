//! A whole memory: a place for records, and perhaps an embedding model.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use holdfast_contract::clock::new_request_id;
use holdfast_contract::memory::{Inserted, MemoryPage, MemoryResult};
use holdfast_contract::{
    Clock, Embedding, Entropy, MemoryQuery, MemoryRead, MemoryRecord, MemoryStore, MemoryType,
    MemoryWrite, NewMemory, Recall, Remembered, SystemClock, SystemEntropy,
};

use crate::backend::{Backend, Put, RecallPlan};
use crate::check::{check_query, check_record};
use crate::embed::{Embedder, Purpose};
use crate::terms::terms;

/// How deep each ranking goes at least before the two are fused.
pub(crate) const RANKING_DEPTH_MIN: usize = 50;
/// How deep for each hit that is asked for.
const DEPTH_PER_HIT: usize = 4;
/// After a failure the embedding model is left alone this long: a search should not wait for the
/// same silence again and again.
pub(crate) const EMBEDDER_REST_MS: u64 = 30_000;

/// A memory over any [`Backend`].
pub struct Memory {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) embedder: Option<Arc<dyn Embedder>>,
    pub(crate) clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    resting_until_ms: AtomicU64,
}

impl Memory {
    /// A memory that goes by words alone.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use holdfast_contract::{MemoryQuery, MemoryRead, MemoryType, MemoryWrite, NewMemory, Trust};
    /// use holdfast_memory::{Memory, SqliteMemory, SqliteMemoryOptions};
    ///
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let dir = tempfile::tempdir().unwrap();
    /// let backend = SqliteMemory::new(dir.path(), SqliteMemoryOptions::default());
    /// let memory = Memory::new(Arc::new(backend));
    /// memory
    ///     .remember(NewMemory {
    ///         memory_type: MemoryType::Preference,
    ///         content: "Ada wants her reports as tables.".to_owned(),
    ///         metadata: None,
    ///         session_id: "main".to_owned(),
    ///         trust: Trust::User,
    ///     })
    ///     .await
    ///     .unwrap();
    /// let found = memory.search(&MemoryQuery::new("how does Ada like reports?")).await.unwrap();
    /// assert_eq!(found.hits[0].record.content, "Ada wants her reports as tables.");
    /// # });
    /// ```
    pub fn new(backend: Arc<dyn Backend>) -> Self {
        Self {
            backend,
            embedder: None,
            clock: Arc::new(SystemClock),
            entropy: Arc::new(SystemEntropy),
            resting_until_ms: AtomicU64::new(0),
        }
    }

    /// The same with an embedding model.
    #[must_use]
    pub fn with_embedder(mut self, embedder: Arc<dyn Embedder>) -> Self {
        self.embedder = Some(embedder);
        self
    }

    /// The same with another clock and other randomness.
    #[must_use]
    pub fn with_time(mut self, clock: Arc<dyn Clock>, entropy: Arc<dyn Entropy>) -> Self {
        self.clock = clock;
        self.entropy = entropy;
        self
    }

    /// The place for records, for another memory over the same.
    pub fn backend(&self) -> Arc<dyn Backend> {
        self.backend.clone()
    }

    /// One vector a text, or why there are none.
    pub(crate) async fn embed(
        &self,
        embedder: &dyn Embedder,
        texts: &[String],
        purpose: Purpose,
    ) -> Result<Vec<Embedding>, String> {
        let vectors = embedder
            .embed(texts, purpose)
            .await
            .map_err(|error| error.to_string())?;
        if vectors.len() != texts.len() {
            return Err("the embedding model answered with another number of vectors".to_owned());
        }
        Ok(vectors
            .into_iter()
            .map(|vector| Embedding {
                model: embedder.model().to_owned(),
                vector,
            })
            .collect())
    }

    /// The same for one text, unless the model has just failed.
    async fn embed_one(&self, text: &str, purpose: Purpose) -> Option<Result<Embedding, String>> {
        let embedder = self.embedder.as_ref()?;
        let now_ms = self.clock.now_ms();
        if now_ms < self.resting_until_ms.load(Ordering::Relaxed) {
            let reason = "the embedding endpoint failed a moment ago and is left alone for a while";
            return Some(Err(reason.to_owned()));
        }
        let texts = [text.to_owned()];
        let vectors = self.embed(&**embedder, &texts, purpose).await;
        let vector = vectors.and_then(|vectors| {
            let first = vectors.into_iter().next();
            first.ok_or_else(|| "the embedding model gave no vector".to_owned())
        });
        if vector.is_err() {
            self.resting_until_ms
                .store(now_ms.saturating_add(EMBEDDER_REST_MS), Ordering::Relaxed);
        }
        Some(vector)
    }

    /// Gives a record that was just stored its vector. Says why it has none, if so: the record
    /// itself is in, and an error would deny it.
    async fn embed_stored(&self, id: &str, content: &str) -> Option<String> {
        match self.embed_one(content, Purpose::Record).await? {
            Err(reason) => Some(reason),
            Ok(vector) => {
                let stored = self.backend.embed(vec![(id.to_owned(), vector)]).await;
                stored.err().map(|error| error.to_string())
            }
        }
    }
}

#[async_trait]
impl MemoryRead for Memory {
    async fn search(&self, query: &MemoryQuery) -> MemoryResult<Recall> {
        check_query(query)?;
        let (vector, mut note) = match self.embed_one(&query.text, Purpose::Query).await {
            None => (None, None),
            Some(Ok(vector)) => (Some(vector), None),
            Some(Err(reason)) => (None, Some(format!("searched by words alone: {reason}"))),
        };
        let has_vector = vector.is_some();
        let plan = RecallPlan {
            text: query.text.clone(),
            terms: terms(&query.text),
            vector,
            memory_type: query.memory_type,
            limit: query.limit,
            depth: (query.limit * DEPTH_PER_HIT).max(RANKING_DEPTH_MIN),
        };
        let found = self.backend.recall(plan).await?;
        if has_vector && found.embedded < found.total {
            note = Some(format!(
                "{} of {} records have no vector of this model and size yet and were searched by \
                 words alone; `holdfast memory reindex` makes up for it",
                found.total - found.embedded,
                found.total
            ));
        }
        Ok(Recall {
            hits: found.hits,
            // With nothing to compare it with, the query's vector found nothing either way.
            used_vectors: has_vector && found.embedded > 0,
            note,
        })
    }

    async fn get(&self, id: &str) -> MemoryResult<Option<MemoryRecord>> {
        self.backend.get(id).await
    }

    async fn list(&self, page: &MemoryPage) -> MemoryResult<Vec<MemoryRecord>> {
        self.backend.list(page).await
    }

    async fn count(&self, memory_type: Option<MemoryType>) -> MemoryResult<u64> {
        self.backend.count(memory_type).await
    }
}

#[async_trait]
impl MemoryWrite for Memory {
    async fn remember(&self, new: NewMemory) -> MemoryResult<Remembered> {
        let id = new_request_id(&*self.clock, &*self.entropy);
        let record = MemoryRecord {
            id: id.clone(),
            memory_type: new.memory_type,
            content: new.content,
            metadata: new.metadata,
            session_id: new.session_id,
            created_at_ms: self.clock.now_ms(),
            trust: new.trust,
            embedding: None,
        };
        check_record(&record)?;
        let content = record.content.clone();
        // On disk before the model is asked: whatever happens to the model, or to us, it is kept.
        if let Put::Known(id) = self.backend.remember(record).await? {
            return Ok(Remembered {
                id,
                is_new: false,
                embedding_missing: None,
            });
        }
        let embedding_missing = self.embed_stored(&id, &content).await;
        Ok(Remembered {
            id,
            is_new: true,
            embedding_missing,
        })
    }

    async fn delete(&self, id: &str) -> MemoryResult<bool> {
        self.backend.delete(id).await
    }
}

#[async_trait]
impl MemoryStore for Memory {
    async fn insert(&self, records: Vec<MemoryRecord>) -> MemoryResult<Inserted> {
        records.iter().try_for_each(check_record)?;
        self.backend.insert(records).await
    }
}
