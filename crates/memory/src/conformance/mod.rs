//! What every memory has to do, as named checks.
//!
//! A store's tests bring a [`MemoryFactory`] and run every check of `for_each_memory_check`, one test
//! each, so that a failure has a name. The embedding model is [`Meaning`], which knows a few
//! subjects and whose answers can be predicted.

#![expect(
    clippy::missing_panics_doc,
    clippy::expect_used,
    reason = "a check says what is wrong by panicking"
)]

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use holdfast_contract::{
    Clock, Embedding, Entropy, MemoryHit, MemoryQuery, MemoryRead, MemoryRecord, MemoryType,
    MemoryWrite, NewMemory, Recall, Remembered, Trust,
};

use crate::backend::Backend;
use crate::embed::{EmbedError, Embedder, Purpose};
use crate::memory::Memory;

pub mod drill;
mod many;
mod recall;
mod records;
mod transfer;

pub use many::*;
pub use recall::*;
pub use records::*;
pub use transfer::*;

/// Calls a macro with its own arguments and the name of every check.
#[macro_export]
macro_rules! for_each_memory_check {
    ($apply:ident, $($argument:tt)*) => {
        $apply! {
            [$($argument)*]
            a_record_comes_back_as_it_was_stored
            what_is_known_word_for_word_is_not_stored_twice
            what_differs_is_another_record
            a_deleted_record_is_gone_everywhere
            listings_are_in_order_and_go_on_where_they_ended
            counts_are_by_type
            bad_records_are_refused_and_nothing_is_stored
            whole_records_are_put_in_as_they_are
            a_batch_is_put_in_whole_or_not_at_all
            words_find_records
            odd_queries_are_answered
            accents_cases_and_forms_of_a_word_do_not_matter
            beginnings_of_words_find_records_when_words_do_not
            scripts_without_blanks_are_searched
            a_search_can_be_for_one_type
            a_search_has_a_limit
            bad_queries_are_refused
            meaning_finds_what_words_do_not
            words_and_meaning_together_rank_first
            without_a_model_words_do
            a_model_that_is_away_stops_nothing
            vectors_of_another_model_are_not_compared
            a_model_whose_vectors_change_in_size_is_reindexed
            what_is_written_is_found_at_once
            trust_stays_with_what_was_stored
            an_export_comes_back_the_same
            an_export_is_one_moment
            an_import_can_be_repeated
            a_conflicting_import_keeps_what_is_there
            an_import_raises_no_trust
            a_broken_line_ends_an_import_with_its_number
            many_writers_lose_nothing
        }
    };
}

/// A clock that moves on by a millisecond whenever it is asked.
#[derive(Debug)]
pub struct Ticking(AtomicU64);

impl Ticking {
    /// A clock that begins here.
    pub fn new(now_ms: u64) -> Arc<Self> {
        Arc::new(Self(AtomicU64::new(now_ms)))
    }

    /// Moves it on.
    pub fn advance(&self, ms: u64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for Ticking {
    fn now_ms(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst)
    }
}

/// Numbers that repeat from run to run.
struct Counting(AtomicU64);

impl Entropy for Counting {
    fn next_u64(&self) -> u64 {
        // An odd multiplier spreads a counter without ever repeating itself.
        self.0
            .fetch_add(1, Ordering::SeqCst)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
}

/// A place for records, and what has to live as long as it.
pub struct Made {
    /// The place.
    pub backend: Arc<dyn Backend>,
    /// A directory, a server; dropped after it.
    pub keep: Box<dyn Any + Send + Sync>,
}

/// Makes empty places for records.
#[async_trait]
pub trait MemoryFactory: Sync {
    /// An empty one that nobody else uses.
    async fn make(&self) -> Made;
}

/// The subjects that [`Meaning`] knows, each with words that are about it.
const SUBJECTS: [&[&str]; 8] = [
    &["deploy", "release", "ship", "rollout"],
    &["invoice", "bill", "payment", "money"],
    &["cat", "kitten", "feline"],
    &["coffee", "espresso", "latte"],
    &["berlin", "germany"],
    &["doctor", "physician", "clinic"],
    &["database", "sqlite", "table"],
    &["holiday", "vacation", "beach"],
];

/// An embedding model that knows a few subjects: texts about the same are near each other, whatever
/// their words. It can be sent away.
pub struct Meaning {
    name: String,
    away: AtomicU64,
    /// How often a vector's numbers are repeated: another size, and the same neighbours.
    copies: usize,
}

impl Meaning {
    /// A model with this name.
    pub fn new(name: &str) -> Arc<Self> {
        Self::of_size(name, 1)
    }

    /// A model with this name whose vectors are so many times as long.
    pub fn of_size(name: &str, copies: usize) -> Arc<Self> {
        Arc::new(Self {
            name: name.to_owned(),
            away: AtomicU64::new(0),
            copies,
        })
    }

    /// Sends it away, or brings it back.
    pub fn set_away(&self, away: bool) {
        self.away.store(u64::from(away), Ordering::SeqCst);
    }

    /// The vector of a text.
    pub fn vector(text: &str) -> Vec<f32> {
        let lower = text.to_lowercase();
        // A little of every direction, so that no text is without one and few are quite alike.
        let mut vector: Vec<f32> = (0..SUBJECTS.len())
            .map(|place| {
                let sum: usize = lower.bytes().skip(place).step_by(7).map(usize::from).sum();
                0.01 + f32::from(u8::try_from(sum % 16).unwrap_or(0)) / 400.0
            })
            .collect();
        for (place, words) in SUBJECTS.iter().enumerate() {
            let about = |text_word: &str| words.iter().any(|word| text_word.starts_with(word));
            if lower.split(|sign: char| !sign.is_alphanumeric()).any(about) {
                vector[place] += 1.0;
            }
        }
        vector
    }
}

#[async_trait]
impl Embedder for Meaning {
    fn model(&self) -> &str {
        &self.name
    }

    fn batch_max(&self) -> usize {
        16
    }

    async fn embed(
        &self,
        texts: &[String],
        _purpose: Purpose,
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        if self.away.load(Ordering::SeqCst) != 0 {
            return Err(EmbedError::Unreachable("it was sent away".to_owned()));
        }
        let vectors = texts.iter().map(|text| Self::vector(text));
        Ok(vectors.map(|one| one.repeat(self.copies)).collect())
    }
}

/// An empty memory and what belongs to it.
pub struct Bench {
    memory: Arc<Memory>,
    backend: Arc<dyn Backend>,
    clock: Arc<Ticking>,
    model: Arc<Meaning>,
    _keep: Box<dyn Any + Send + Sync>,
}

impl Bench {
    async fn new(factory: &dyn MemoryFactory) -> Self {
        Self::build(factory, true).await
    }

    async fn without_model(factory: &dyn MemoryFactory) -> Self {
        Self::build(factory, false).await
    }

    async fn build(factory: &dyn MemoryFactory, with_model: bool) -> Self {
        let made = factory.make().await;
        let clock = Ticking::new(1_772_000_000_000);
        let model = Meaning::new("meaning-1");
        let entropy = Arc::new(Counting(AtomicU64::new(1)));
        let mut memory = Memory::new(made.backend.clone()).with_time(clock.clone(), entropy);
        if with_model {
            memory = memory.with_embedder(model.clone());
        }
        Self {
            memory: Arc::new(memory),
            backend: made.backend,
            clock,
            model,
            _keep: made.keep,
        }
    }

    async fn remember(&self, memory_type: MemoryType, content: &str) -> Remembered {
        let stored = self.memory.remember(new(memory_type, content)).await;
        stored.expect("it is remembered")
    }

    async fn facts(&self, contents: &[&str]) {
        for content in contents {
            self.remember(MemoryType::Fact, content).await;
        }
    }

    async fn search(&self, query: &MemoryQuery) -> Recall {
        self.memory.search(query).await.expect("a search")
    }

    async fn found(&self, text: &str) -> Vec<String> {
        contents(&self.search(&MemoryQuery::new(text)).await.hits)
    }

    async fn count(&self) -> u64 {
        self.memory.count(None).await.expect("a count")
    }
}

fn new(memory_type: MemoryType, content: &str) -> NewMemory {
    NewMemory {
        memory_type,
        content: content.to_owned(),
        metadata: None,
        session_id: "session-1".to_owned(),
        trust: Trust::User,
    }
}

fn contents(hits: &[MemoryHit]) -> Vec<String> {
    hits.iter().map(|hit| hit.record.content.clone()).collect()
}

fn whole(id: &str, content: &str) -> MemoryRecord {
    MemoryRecord {
        id: id.to_owned(),
        memory_type: MemoryType::Fact,
        content: content.to_owned(),
        metadata: None,
        session_id: "session-1".to_owned(),
        created_at_ms: 1_771_000_000_000,
        trust: Trust::Tool,
        embedding: Some(Embedding {
            model: "meaning-1".to_owned(),
            vector: Meaning::vector(content),
        }),
    }
}
