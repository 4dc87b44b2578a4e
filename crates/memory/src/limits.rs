//! The limits of this crate, for the reference page.

use holdfast_contract::Limit;

/// The table.
pub const LIMITS: &[Limit] = &[
    Limit {
        name: "MEMORY_RECORDS_MAX",
        value: crate::sqlite::MEMORY_RECORDS_MAX,
        meaning: "records in one memory; one more is refused, and nothing is forgotten to make room",
        setting: Some("memory.recordsMax"),
    },
    Limit {
        name: "MEMORY_READERS_MAX",
        value: crate::sqlite::MEMORY_READERS_MAX as u64,
        meaning: "searches of one process that look at the memory at the same time; more wait",
        setting: None,
    },
    Limit {
        name: "MEMORY_BUSY_WAIT_MS",
        value: crate::sqlite::MEMORY_BUSY_WAIT_MS,
        meaning: "wait for a memory that another process writes to",
        setting: None,
    },
    Limit {
        name: "REMOVED_VECTORS_MAX",
        value: crate::sqlite::REMOVED_VECTORS_MAX.unsigned_abs(),
        meaning: "removed vectors that other processes are told of one by one; one that missed more reads all vectors again",
        setting: None,
    },
    Limit {
        name: "RANKING_DEPTH_MIN",
        value: crate::memory::RANKING_DEPTH_MIN as u64,
        meaning: "places of each ranking that are fused, at least; four for each hit asked for",
        setting: None,
    },
    Limit {
        name: "QUERY_WORDS_MAX",
        value: crate::terms::QUERY_WORDS_MAX as u64,
        meaning: "words of a memory search that are looked for; more are left out",
        setting: None,
    },
    Limit {
        name: "EMBEDDER_REST_MS",
        value: crate::memory::EMBEDDER_REST_MS,
        meaning: "time that a failed embedding endpoint is left alone by one process",
        setting: None,
    },
    Limit {
        name: "EMBEDDING_TIMEOUT_MS",
        value: crate::embed::EMBEDDING_TIMEOUT_MS,
        meaning: "time of one request to the embedding endpoint; then the record is kept without a vector, or the search goes by words alone",
        setting: Some("memory.embeddings.timeoutMs"),
    },
    Limit {
        name: "EMBEDDING_BATCH_DEFAULT",
        value: crate::embed::EMBEDDING_BATCH_DEFAULT as u64,
        meaning: "texts in one request to the embedding endpoint",
        setting: Some("memory.embeddings.batchSize"),
    },
    Limit {
        name: "EMBEDDING_BATCH_MAX",
        value: crate::embed::EMBEDDING_BATCH_MAX as u64,
        meaning: "texts in one request to the embedding endpoint that can be configured",
        setting: None,
    },
    Limit {
        name: "EMBEDDING_RESPONSE_BYTES_MAX",
        value: crate::embed::EMBEDDING_RESPONSE_BYTES_MAX as u64,
        meaning: "answer of the embedding endpoint; a larger one is not used",
        setting: None,
    },
    Limit {
        name: "EXPORT_LINE_BYTES_MAX",
        value: crate::transfer::EXPORT_LINE_BYTES_MAX as u64,
        meaning: "one line of an export; a longer one ends the import with its number",
        setting: None,
    },
    Limit {
        name: "IMPORT_BATCH",
        value: crate::transfer::IMPORT_BATCH as u64,
        meaning: "records that an import puts in at once: all of them or none",
        setting: None,
    },
];
