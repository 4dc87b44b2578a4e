//! The limits of this crate, for the reference page.

use holdfast_contract::limit::{Limit, limit};

#[cfg(feature = "redis")]
mod redis;

#[cfg(feature = "redis")]
pub use redis::REDIS_LIMITS;

/// The table.
pub const LIMITS: &[Limit] = &[
    limit(
        "BREAKERS_MAX",
        crate::breaker::BREAKERS_MAX as u64,
        "circuit breakers kept; one more is refused as a full store",
    ),
    limit(
        "PARTS_PER_TOOL_MAX",
        crate::breaker::PARTS_PER_TOOL_MAX as u64,
        "circuit breakers of one tool that reaches many hosts; hosts beyond that share one",
    ),
    limit(
        "PART_NAMES_MAX",
        crate::breaker::PART_NAMES_MAX as u64,
        "hosts that a circuit breaker names, the last ones asked",
    ),
    limit(
        "RATE_CALLS_MAX",
        crate::rate::RATE_CALLS_MAX as u64,
        "largest `calls` of a rate limit",
    ),
    Limit {
        name: "RATE_WINDOW_MS_DEFAULT",
        value: crate::rate::RATE_WINDOW_MS_DEFAULT,
        meaning: "window of a rate limit",
        setting: Some("reliability.tools.NAME.rateLimit.windowMs"),
    },
    limit(
        "RATE_WINDOW_MS_MAX",
        crate::rate::RATE_WINDOW_MS_MAX,
        "longest window of a rate limit",
    ),
    limit(
        "RATE_WAIT_MS_MAX",
        crate::rate::RATE_WAIT_MS_MAX,
        "longest wait for a place under a rate limit that can be configured",
    ),
    limit(
        "LIMITS_PER_CALL_MAX",
        crate::rate::LIMITS_PER_CALL_MAX as u64,
        "rate limits of one call: its tool's and its dependency's",
    ),
    limit(
        "DOCUMENTS_MAX",
        crate::store::documents::DOCUMENTS_MAX,
        "approvals, rules and sessions kept; one more is refused as a full store",
    ),
    limit(
        "DOCUMENT_BYTES_MAX",
        crate::store::documents::DOCUMENT_BYTES_MAX as u64,
        "size of one of them",
    ),
    limit(
        "DOCUMENT_PAGE_BYTES_MAX",
        crate::store::documents::DOCUMENT_PAGE_BYTES_MAX as u64,
        "size of a page's documents: the one that reaches it is the page's last",
    ),
    limit(
        "DOCUMENT_PAGE_MAX",
        crate::store::documents::DOCUMENT_PAGE_MAX as u64,
        "of them in one page of a listing",
    ),
    Limit {
        name: "PAYLOAD_BYTES_MAX",
        value: crate::config::PAYLOAD_BYTES_MAX as u64,
        meaning: "size of a recorded output; the record of a larger one answers `output_too_large`",
        setting: Some("reliability.store.payloadBytesMax"),
    },
    limit(
        "TIMEOUT_MS_MAX",
        crate::config::TIMEOUT_MS_MAX,
        "longest time limit of one attempt that can be configured",
    ),
    limit(
        "TTL_MS_MAX",
        crate::config::TTL_MS_MAX,
        "longest time to live of a record that can be configured",
    ),
    Limit {
        name: "UNKNOWN_WINDOW_MS",
        value: crate::config::UNKNOWN_WINDOW_MS,
        meaning: "window in which a running or unknown external call answers for an equal one under a new id",
        setting: Some("reliability.tools.NAME.unknownWindowMs"),
    },
    Limit {
        name: "MESSAGE_ECHO_WINDOW_MS",
        value: crate::config::MESSAGE_ECHO_WINDOW_MS,
        meaning: "window in which a finished `message` answers for an equal one",
        setting: Some("reliability.tools.message.echoWindowMs"),
    },
    limit(
        "CUT_OFF_COUNTS_AFTER_MS",
        crate::breaker::CUT_OFF_COUNTS_AFTER_MS,
        "an attempt that its caller's deadline cuts off counts as a failure for the breaker once it has waited this long",
    ),
    limit(
        "HOOK_GRACE_MS",
        crate::hooks::HOOK_GRACE_MS,
        "time after the caller's deadline in which observing hooks are still told of it",
    ),
    limit(
        "ATTRIBUTION_QUEUE_MAX",
        crate::guard::attribution_log::ATTRIBUTION_QUEUE_MAX as u64,
        "attribution lines waiting to be written; more are dropped and counted",
    ),
    limit(
        "ATTRIBUTION_QUEUE_BYTES_MAX",
        crate::guard::attribution_log::ATTRIBUTION_QUEUE_BYTES_MAX as u64,
        "bytes of the texts in those lines; more are dropped and counted",
    ),
    limit(
        "ATTRIBUTION_LOG_BYTES_MAX",
        crate::guard::attribution_log::ATTRIBUTION_LOG_BYTES_MAX,
        "size at which the attribution log is rotated",
    ),
    limit(
        "ATTRIBUTION_LOGS_KEPT",
        crate::guard::attribution_log::ATTRIBUTION_LOGS_KEPT as u64,
        "rotated attribution logs kept",
    ),
    limit(
        "LOG_QUEUE_MAX",
        crate::observe::queued::LOG_QUEUE_MAX as u64,
        "log lines to standard error waiting for a reader; more are dropped, counted and said",
    ),
    limit(
        "LOG_LAST_LINES_MS",
        crate::observe::queued::LOG_LAST_LINES_MS,
        "how long a process that ends waits for its last log lines to be read",
    ),
    limit(
        "ARGS_BYTES_MAX",
        crate::guard::ARGS_BYTES_MAX as u64,
        "arguments in one attribution line; more is cut",
    ),
    limit(
        "ERROR_BYTES_MAX",
        crate::guard::ERROR_BYTES_MAX as u64,
        "error text in one attribution line; more is cut",
    ),
    limit(
        "SIGNATURE_BYTES_MAX",
        crate::guard::SIGNATURE_BYTES_MAX as u64,
        "error text that counts for telling two failures apart",
    ),
    limit(
        "CALLS_KEPT_MAX",
        crate::guard::CALLS_KEPT_MAX as u64,
        "distinct successful calls remembered in a turn; the oldest go first",
    ),
    limit(
        "OUTCOMES_KEPT_MAX",
        crate::guard::OUTCOMES_KEPT_MAX as u64,
        "distinct outputs remembered for one call of a turn",
    ),
    limit(
        "VARYING_WINDOW_MS",
        crate::guard::VARYING_WINDOW_MS,
        "time within which results of one call that always differ are counted",
    ),
    limit(
        "FAILURES_KEPT_MAX",
        crate::guard::FAILURES_KEPT_MAX as u64,
        "distinct failures remembered in a turn",
    ),
    limit(
        "FORMS_KEPT_MAX",
        crate::guard::FORMS_KEPT_MAX as u64,
        "spellings remembered of one failing call",
    ),
    limit(
        "ANSWERS_KEPT_MAX",
        crate::guard::ANSWERS_KEPT_MAX as u64,
        "answers of one turn that are remembered by the ids of their calls; the oldest is forgotten, and its record answers on",
    ),
    limit(
        "VALIDATION_TOOLS_KEPT_MAX",
        crate::guard::VALIDATION_TOOLS_KEPT_MAX as u64,
        "tools whose validation attempts are counted in a turn",
    ),
    limit(
        "FORGIVE_AFTER_MAX",
        crate::guard::FORGIVE_AFTER_MAX as u64,
        "largest value of `forgiveAfter`",
    ),
    limit(
        "TURNS_MAX",
        crate::guard::TURNS_MAX as u64,
        "turns kept; the one that was idle longest goes first",
    ),
    limit(
        "IMPLICIT_TURN_IDLE_MS",
        crate::guard::IMPLICIT_TURN_IDLE_MS,
        "a pause this long ends the turn of a caller that names none",
    ),
    limit(
        "TURN_IDLE_MS_MAX",
        crate::guard::TURN_IDLE_MS_MAX,
        "a turn that was not touched for this long is forgotten",
    ),
    limit(
        "HOOK_OUTPUT_BYTES_MAX",
        crate::hooks::command::HOOK_OUTPUT_BYTES_MAX,
        "output of a hook command; more is an error",
    ),
    Limit {
        name: "HOOK_TIMEOUT_MS",
        value: crate::hooks::command::HOOK_TIMEOUT_MS,
        meaning: "time limit of a hook command",
        setting: Some("hooks.admit[].timeoutMs"),
    },
    limit(
        "DUPLICATE_WAIT_MS_MAX",
        crate::idempotency::layer::DUPLICATE_WAIT_MS_MAX,
        "wait of a duplicate that has no deadline of its own",
    ),
    limit(
        "HELD_LEASE_MS_MAX",
        crate::idempotency::HELD_LEASE_MS_MAX,
        "how long a process may be silent whose call waits for a person, before whoever asks the same goes on with its request",
    ),
    limit(
        "RENEW_AGAIN_MS",
        crate::idempotency::RENEW_AGAIN_MS,
        "how soon a renewal is tried again that failed, or was refused because somebody has the claim of a call that waits",
    ),
    limit(
        "RENEW_AGAIN_TIMES_MAX",
        crate::idempotency::RENEW_AGAIN_TIMES_MAX as u64,
        "how often in a row; then at the usual pace, and a claim that somebody has is given up; a quarter of it where another call sends the same content",
    ),
    limit(
        "DEADLINE_GRACE_MS",
        crate::deadline::DEADLINE_GRACE_MS,
        "how long after the caller's deadline the loop guard may still note down that the call was cut off",
    ),
    limit(
        "SWEEP_EVERY_MS",
        crate::janitor::SWEEP_EVERY_MS,
        "how often a long-running process forgets what has expired; `holdfast call` does it once after its answer",
    ),
    limit(
        "STALE_COUNTED_MAX",
        crate::janitor::STALE_COUNTED_MAX as u64,
        "records in flight that a sweep looks at for `durable_stale`",
    ),
    limit(
        "REPEATS_REMEMBERED_MAX",
        crate::observe::repeats::REPEATS_REMEMBERED_MAX as u64,
        "contents of external calls that are remembered to count repeats; the oldest are forgotten",
    ),
    limit(
        "JOURNAL_CALLS_MAX",
        crate::journal::JOURNAL_CALLS_MAX,
        "calls kept for `holdfast explain`; the oldest go first",
    ),
    limit(
        "JOURNAL_ARGS_BYTES_MAX",
        crate::journal::JOURNAL_ARGS_BYTES_MAX as u64,
        "arguments of one call in the journal; more is cut",
    ),
    limit(
        "JOURNAL_MESSAGE_BYTES_MAX",
        crate::journal::JOURNAL_MESSAGE_BYTES_MAX as u64,
        "a message in the journal; more is cut",
    ),
    limit(
        "METRIC_TOOLS_MAX",
        crate::observe::metrics::METRIC_TOOLS_MAX as u64,
        "values of the `tool` label; further tools are counted as `other`",
    ),
    limit(
        "METRIC_MODELS_MAX",
        crate::observe::runs::METRIC_MODELS_MAX as u64,
        "models and model servers that are labels of their own; further ones are counted as `other`",
    ),
    limit(
        "METRIC_REASONS_MAX",
        crate::observe::metrics::METRIC_REASONS_MAX as u64,
        "values of the `reason` label; further codes are counted as `other`",
    ),
    limit(
        "RETRY_AFTER_MS_MAX",
        crate::retry::RETRY_AFTER_MS_MAX,
        "longest `Retry-After` that is believed",
    ),
    limit(
        "FORCED_OPEN_RETRY_AFTER_MS",
        crate::breaker::FORCED_OPEN_RETRY_AFTER_MS,
        "when to ask again for a tool whose breaker an operator holds open",
    ),
    Limit {
        name: "MEMORY_KEYS_MAX",
        value: crate::store::memory::MEMORY_KEYS_MAX as u64,
        meaning: "records in memory; then the least recently used ended one goes, or the call is refused",
        setting: Some("reliability.store.memoryKeysMax"),
    },
    Limit {
        name: "MEMORY_BYTES_MAX",
        value: crate::store::memory::MEMORY_BYTES_MAX as u64,
        meaning: "bytes of records in memory, likewise",
        setting: Some("reliability.store.memoryBytesMax"),
    },
    Limit {
        name: "SQLITE_KEYS_MAX",
        value: crate::store::sqlite::SQLITE_KEYS_MAX,
        meaning: "records on disk; then the oldest ended one goes, or the call is refused",
        setting: Some("reliability.store.diskKeysMax"),
    },
    Limit {
        name: "SQLITE_BYTES_MAX",
        value: crate::store::sqlite::SQLITE_BYTES_MAX,
        meaning: "bytes of records on disk, likewise",
        setting: Some("reliability.store.diskBytesMax"),
    },
    limit(
        "BUSY_WAIT_MS",
        crate::store::sqlite::BUSY_WAIT_MS,
        "wait for another process that holds the database; then `store_unavailable`",
    ),
    limit(
        "DETACHED_QUEUE_MAX",
        crate::store::sqlite::queue::DETACHED_QUEUE_MAX as u64,
        "store operations of dropped calls waiting to be written; more are given up, and the lease settles them",
    ),
    limit(
        "WRITE_QUEUE_MAX",
        crate::store::sqlite::queue::WRITE_QUEUE_MAX as u64,
        "store operations waiting to be written; further callers wait",
    ),
    limit(
        "SPARE_LOCKS_MAX",
        crate::store::sqlite::locks::SPARE_LOCKS_MAX as u64,
        "lock files kept open for the next durable claims",
    ),
    limit(
        "WRITE_BATCH_MAX",
        crate::store::sqlite::queue::WRITE_BATCH_MAX as u64,
        "store operations in one transaction",
    ),
    limit(
        "READERS_MAX",
        crate::store::sqlite::reader::READERS_MAX as u64,
        "reading connections; further readers wait",
    ),
    limit(
        "TIMEOUT_GRACE_MS",
        crate::timeout::TIMEOUT_GRACE_MS,
        "how long before the end of its time limit a tool is to end by itself; a fifth of a limit below 5 s",
    ),
    Limit {
        name: "REDIS_KEYS_MAX",
        value: crate::config::redis::REDIS_KEYS_MAX,
        meaning: "records in Redis; then the oldest ended one of a sample goes, or the call is refused",
        setting: Some("reliability.store.redis.keysMax"),
    },
    Limit {
        name: "REDIS_RESPONSE_MS",
        value: crate::config::redis::REDIS_RESPONSE_MS,
        meaning: "wait for an answer of Redis; then it counts as away",
        setting: Some("reliability.store.redis.responseMs"),
    },
    Limit {
        name: "REDIS_CONNECT_MS",
        value: crate::config::redis::REDIS_CONNECT_MS,
        meaning: "wait for a connection to Redis",
        setting: Some("reliability.store.redis.connectMs"),
    },
    limit(
        "REDIS_WAIT_MS_MAX",
        crate::config::redis::REDIS_WAIT_MS_MAX,
        "longest of these two waits that can be configured",
    ),
    limit(
        "DOCUMENT_SWEEP_BATCH",
        crate::config::redis::DOCUMENT_SWEEP_BATCH as u64,
        "expired documents that one step on Redis forgets",
    ),
    limit(
        "DETACHED_CHANGES_MAX",
        crate::config::redis::DETACHED_CHANGES_MAX as u64,
        "changes of documents that wait to be sent to Redis; for one more the oldest is given up",
    ),
    Limit {
        name: "COMPRESS_ABOVE_BYTES",
        value: crate::config::redis::COMPRESS_ABOVE_BYTES as u64,
        meaning: "size from which a result is compressed in Redis",
        setting: Some("reliability.store.redis.compressAboveBytes"),
    },
    Limit {
        name: "VALUE_BYTES_MAX",
        value: crate::config::redis::VALUE_BYTES_MAX as u64,
        meaning: "size of a compressed result in Redis; the record of a larger one answers `output_too_large`",
        setting: Some("reliability.store.redis.valueBytesMax"),
    },
    Limit {
        name: "CLUSTER_SHARDS",
        value: crate::config::redis::CLUSTER_SHARDS as u64,
        meaning: "places over which the records of a cluster are spread",
        setting: Some("reliability.store.redis.shards"),
    },
    limit(
        "SHARDS_MAX",
        crate::config::redis::SHARDS_MAX as u64,
        "most such places that can be configured",
    ),
    limit(
        "PREFIX_BYTES_MAX",
        crate::config::redis::PREFIX_BYTES_MAX as u64,
        "length of the prefix of all keys in Redis",
    ),
];
