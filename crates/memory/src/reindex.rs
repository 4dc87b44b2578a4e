//! Vectors for records that have none, or have those of another model, or of another size.

use holdfast_contract::memory::{MemoryCursor, MemoryPage, MemoryResult};
use holdfast_contract::{Embedding, MemoryError, MemoryRecord};

use crate::embed::{EmbedError, Embedder, Purpose};
use crate::memory::Memory;

/// Which records get a new vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Those without one of the configured model, as it answers now.
    Missing,
    /// All of them.
    All,
}

/// What a model is asked to learn how many numbers its vectors have by now.
const SIZE_QUESTION: &str = "How long is a vector?";

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reindexed {
    /// Records that got a vector.
    pub embedded: u64,
    /// Ids of records that the model did not take, with its words.
    pub refused: Vec<(String, String)>,
}

/// Records that are to be looked at.
#[derive(Debug, Clone, Copy)]
enum Wanted {
    /// Those without a vector of the model with so many numbers.
    OtherThan(usize),
    All,
}

/// How many numbers the model's vectors have. Only it can say: a server may have another one, or
/// another setting, under the name that it had before.
async fn size_now(embedder: &dyn Embedder) -> MemoryResult<usize> {
    let asked = [SIZE_QUESTION.to_owned()];
    let vectors = embedder.embed(&asked, Purpose::Record).await;
    let vectors = vectors.map_err(|error| stopped(&error, 0))?;
    vectors
        .first()
        .map(Vec::len)
        .ok_or_else(|| MemoryError::Unavailable("the embedding model gave no vector".to_owned()))
}

impl Memory {
    /// Asks the embedding model for the vectors that are missing, batch by batch; what is done stays
    /// done when it is cut short. `tell` hears how many records have been looked at.
    pub async fn reindex(
        &self,
        scope: Scope,
        mut tell: impl FnMut(u64) + Send,
    ) -> MemoryResult<Reindexed> {
        let Some(embedder) = self.embedder.clone() else {
            return Err(MemoryError::invalid(
                "embeddings",
                "no embedding model is configured",
            ));
        };
        let mut done = Reindexed::default();
        if self.backend.count(None).await? == 0 {
            return Ok(done);
        }
        let wanted = match scope {
            Scope::Missing => Wanted::OtherThan(size_now(&*embedder).await?),
            Scope::All => Wanted::All,
        };
        let mut after = None;
        let mut seen = 0;
        loop {
            let batch = self.batch(wanted, &*embedder, after).await?;
            let Some(last) = batch.last() else {
                return Ok(done);
            };
            after = Some(MemoryCursor::behind(last));
            seen += batch.len() as u64;
            let vectors = embed_batch(&*embedder, &batch, &mut done).await?;
            done.embedded += self.backend.embed(vectors).await?;
            tell(seen);
        }
    }

    async fn batch(
        &self,
        wanted: Wanted,
        embedder: &dyn Embedder,
        after: Option<MemoryCursor>,
    ) -> MemoryResult<Vec<MemoryRecord>> {
        let limit = embedder.batch_max();
        match wanted {
            Wanted::OtherThan(dimensions) => {
                let (model, backend) = (embedder.model(), &self.backend);
                backend
                    .without_embedding(model, dimensions, after, limit)
                    .await
            }
            Wanted::All => {
                let page = MemoryPage {
                    after,
                    limit,
                    ..MemoryPage::default()
                };
                self.backend.list(&page).await
            }
        }
    }
}

/// The vectors of a batch. A model that refuses a batch may only mean one text of it, so each is
/// then asked for alone.
async fn embed_batch(
    embedder: &dyn Embedder,
    batch: &[MemoryRecord],
    done: &mut Reindexed,
) -> MemoryResult<Vec<(String, Embedding)>> {
    match embed(embedder, batch).await {
        Ok(vectors) => Ok(vectors),
        Err(error) if is_about_a_text(&error) => {
            let mut vectors = Vec::new();
            for record in batch {
                match embed(embedder, std::slice::from_ref(record)).await {
                    Ok(one) => vectors.extend(one),
                    Err(error) if is_about_a_text(&error) => {
                        done.refused.push((record.id.clone(), error.to_string()));
                    }
                    Err(error) => return Err(stopped(&error, done.embedded)),
                }
            }
            Ok(vectors)
        }
        Err(error) => Err(stopped(&error, done.embedded)),
    }
}

async fn embed(
    embedder: &dyn Embedder,
    batch: &[MemoryRecord],
) -> Result<Vec<(String, Embedding)>, EmbedError> {
    let texts: Vec<String> = batch.iter().map(|record| record.content.clone()).collect();
    let vectors = embedder.embed(&texts, Purpose::Record).await?;
    let named = batch.iter().zip(vectors).map(|(record, vector)| {
        let embedding = Embedding {
            model: embedder.model().to_owned(),
            vector,
        };
        (record.id.clone(), embedding)
    });
    Ok(named.collect())
}

/// Whether the server found fault with what was asked, rather than with who asked or when.
fn is_about_a_text(error: &EmbedError) -> bool {
    matches!(
        error,
        EmbedError::Refused {
            status: 400 | 413 | 422,
            ..
        }
    )
}

fn stopped(error: &EmbedError, embedded: u64) -> MemoryError {
    MemoryError::Unavailable(format!(
        "{error}; {embedded} records got their vectors before, and starting again goes on from there"
    ))
}
