//! The recovery drill: many records with vectors and a few planted answers. Export, delete the
//! whole memory, import: the counts match, the bytes match, and the answers are found.

use std::fs;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use holdfast_contract::{
    Embedding, MemoryQuery, MemoryRead, MemoryRecord, MemoryStore, MemoryType, Trust,
};

use crate::backend::Backend;
use crate::embed::{EmbedError, Embedder, Purpose};
use crate::memory::Memory;
use crate::transfer;

/// Records that are put in at once.
const BATCH: usize = 5_000;
const DIMENSIONS: usize = 48;
const MODEL: &str = "planted";
const NOW_MS: u64 = 1_772_270_130_123;

/// What is planted: the record, a question that shares words with it, and one that only means it.
const PLANTED: &[(&str, &str, &str)] = &[
    (
        "The signing key of the quarterly payroll lives in the grey safe.",
        "where is the payroll signing key kept",
        "location of salary credentials",
    ),
    (
        "Marguerite is allergic to hazelnuts, also in traces.",
        "what is Marguerite allergic to",
        "food that makes her ill",
    ),
    (
        "Rollbacks of the ledger service need a second pair of eyes.",
        "who has to approve ledger rollbacks",
        "undoing a bookkeeping release",
    ),
    (
        "深夜の作業は火曜日だけ許可されている",
        "深夜の作業",
        "when may we work at night",
    ),
];

/// Numbers that are spread and repeat from run to run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        // The generator of Steele, Lea and Flood.
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut number = self.0;
        number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        number ^ (number >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).expect("it works")
    }

    fn vector(&mut self) -> Vec<f32> {
        let mut part =
            || f32::from(i16::try_from(self.below(2001)).expect("it works") - 1000) / 1000.0;
        (0..DIMENSIONS).map(|_| part()).collect()
    }
}

/// Near the vector of the planted record with this number, and not on it.
fn planted_vector(number: usize, shift: f32) -> Vec<f32> {
    let mut vector = Numbers(900 + number as u64).vector();
    for part in vector.iter_mut().step_by(5) {
        *part += shift;
    }
    vector
}

/// A model that knows the planted questions, and takes everything else for noise.
struct Planted;

#[async_trait]
impl Embedder for Planted {
    fn model(&self) -> &str {
        MODEL
    }

    fn batch_max(&self) -> usize {
        64
    }

    async fn embed(
        &self,
        texts: &[String],
        _purpose: Purpose,
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        let vector = |text: &String| {
            let known = PLANTED
                .iter()
                .position(|(_, words, meaning)| text == words || text == meaning);
            match known {
                Some(number) => planted_vector(number, 0.2),
                None => Numbers(text.len() as u64).vector(),
            }
        };
        Ok(texts.iter().map(vector).collect())
    }
}

fn records(count: usize) -> impl Iterator<Item = MemoryRecord> {
    let mut numbers = Numbers(7);
    (0..count).map(move |place| {
        let apart = count / PLANTED.len();
        let planted = (place % apart == apart / 2).then_some(place / apart);
        let content = match planted {
            Some(number) => PLANTED[number].0.to_owned(),
            None => sentence(&mut numbers, place),
        };
        // Some have none, as after an outage of the model.
        let vector = match planted {
            Some(number) => Some(planted_vector(number, 0.0)),
            None => (place % 50 != 0).then(|| numbers.vector()),
        };
        MemoryRecord {
            id: format!("{:08x}-{place:06}", numbers.next() >> 32),
            memory_type: MemoryType::ALL[place % 4],
            content,
            metadata: (place % 3 == 0).then(|| {
                serde_json::from_str(&format!("{{\"place\":{place}}}")).expect("it works")
            }),
            session_id: format!("session-{}", place % 97),
            created_at_ms: 1_700_000_000_000 + numbers.next() % 1_000_000_000,
            trust: Trust::ALL[place % 4],
            embedding: vector.map(|vector| Embedding {
                model: MODEL.to_owned(),
                vector,
            }),
        }
    })
}

fn sentence(numbers: &mut Numbers, place: usize) -> String {
    const WHO: &[&str] = &[
        "Ada", "Grace", "Linus", "Barbara", "Ken", "Radia", "Alan", "Edsger",
    ];
    const DOES: &[&str] = &[
        "prefers",
        "decided on",
        "rejected",
        "asked for",
        "works on",
        "owns",
    ];
    const WHAT: &[&str] = &[
        "the signing service",
        "dark themes",
        "a weekly report",
        "the ledger",
        "short answers",
        "the Frankfurt region",
        "night releases",
        "paper invoices",
        "the payroll export",
    ];
    let who = WHO[numbers.below(WHO.len())];
    let does = DOES[numbers.below(DOES.len())];
    let what = WHAT[numbers.below(WHAT.len())];
    let other = WHAT[numbers.below(WHAT.len())];
    format!("{who} {does} {what} rather than {other} in ticket {place}.")
}

async fn export(memory: &Memory, file: &Path) -> u64 {
    let mut snapshot = memory.snapshot().await.expect("it works");
    let mut out = std::io::BufWriter::new(fs::File::create(file).expect("it works"));
    transfer::export(&mut *snapshot, "agent-7", NOW_MS, &mut out, |_| ()).expect("it works")
}

async fn planted_answers_are_found(memory: &Memory) {
    for (content, words, meaning) in PLANTED {
        let found = memory
            .search(&MemoryQuery::new(*words))
            .await
            .expect("it works");
        assert!(found.used_vectors);
        assert_eq!(&found.hits[0].record.content, content, "{words}");
        // Nearest of all vectors. Records that have a word of the question may stand beside it.
        let found = memory
            .search(&MemoryQuery::new(*meaning))
            .await
            .expect("it works");
        let hit = found.hits.iter().find(|hit| &hit.record.content == content);
        let rank = hit.and_then(|hit| hit.vector_rank);
        assert_eq!(rank, Some(1), "{meaning}: {:#?}", found.hits);
    }
    // By words alone as well.
    let by_words = Memory::new(memory.backend());
    for (content, words, _) in PLANTED {
        let found = by_words
            .search(&MemoryQuery::new(*words))
            .await
            .expect("it works");
        assert!(!found.used_vectors);
        assert_eq!(&found.hits[0].record.content, content, "{words}");
    }
}

/// Puts `count` records into a memory in `dir`, exports it, deletes it, and imports it again.
/// `open` opens the place for records in a directory, which is removed as a whole in between.
pub async fn export_delete_import_is_identical(
    dir: &Path,
    count: usize,
    open: impl Fn(&Path) -> Arc<dyn Backend>,
) {
    let open = |dir: &Path| Memory::new(open(dir)).with_embedder(Arc::new(Planted));
    let state = dir.join("state");
    let (first, second) = (dir.join("first"), dir.join("second"));
    let memory = open(&state);
    let mut batch = Vec::new();
    for record in records(count) {
        batch.push(record);
        if batch.len() == BATCH {
            put(&memory, std::mem::take(&mut batch)).await;
        }
    }
    put(&memory, batch).await;
    let mut counts = Vec::new();
    for kind in MemoryType::ALL {
        counts.push(memory.count(Some(kind)).await.expect("a count"));
    }
    assert_eq!(memory.count(None).await.expect("a count"), count as u64);
    planted_answers_are_found(&memory).await;
    assert_eq!(export(&memory, &first).await, count as u64);
    drop(memory);
    fs::remove_dir_all(&state).expect("the memory is deleted");

    let memory = open(&state);
    assert_eq!(memory.count(None).await.expect("a count"), 0);
    let source = BufReader::new(fs::File::open(&first).expect("the export"));
    let done = transfer::import(&memory, source, Trust::System, |_| ()).await;
    let done = done.expect("an import");
    assert_eq!((done.added, done.unchanged), (count as u64, 0));
    for (kind, expected) in MemoryType::ALL.into_iter().zip(counts) {
        let found = memory.count(Some(kind)).await.expect("a count");
        assert_eq!(found, expected);
    }
    planted_answers_are_found(&memory).await;
    export(&memory, &second).await;
    // Compared as bytes, and not printed when they differ: they may be a hundred megabytes.
    let bytes = |file: &Path| fs::read(file).expect("an export");
    assert!(bytes(&first) == bytes(&second), "the exports differ");
}

async fn put(memory: &Memory, batch: Vec<MemoryRecord>) {
    memory.insert(batch).await.expect("the records are put in");
}
