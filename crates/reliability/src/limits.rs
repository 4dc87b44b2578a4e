//! The limits of this crate, for the reference page.

use holdfast_contract::Limit;

/// The table.
pub const LIMITS: &[Limit] = &[
    Limit {
        name: "BREAKERS_MAX",
        value: crate::breaker::BREAKERS_MAX as u64,
        meaning: "circuit breakers kept; one more is refused as a full store",
        setting: None,
    },
    Limit {
        name: "RATE_CALLS_MAX",
        value: crate::rate::RATE_CALLS_MAX as u64,
        meaning: "largest `calls` of a rate limit",
        setting: None,
    },
    Limit {
        name: "RATE_WINDOW_MS_DEFAULT",
        value: crate::rate::RATE_WINDOW_MS_DEFAULT,
        meaning: "window of a rate limit",
        setting: Some("reliability.tools.NAME.rateLimit.windowMs"),
    },
    Limit {
        name: "RATE_WINDOW_MS_MAX",
        value: crate::rate::RATE_WINDOW_MS_MAX,
        meaning: "longest window of a rate limit",
        setting: None,
    },
    Limit {
        name: "RATE_WAIT_MS_MAX",
        value: crate::rate::RATE_WAIT_MS_MAX,
        meaning: "longest wait for a place under a rate limit that can be configured",
        setting: None,
    },
    Limit {
        name: "LIMITS_PER_CALL_MAX",
        value: crate::rate::LIMITS_PER_CALL_MAX as u64,
        meaning: "rate limits of one call: its tool's and its dependency's",
        setting: None,
    },
    Limit {
        name: "DOCUMENTS_MAX",
        value: crate::store::documents::DOCUMENTS_MAX,
        meaning: "approvals, rules and sessions kept; one more is refused as a full store",
        setting: None,
    },
    Limit {
        name: "DOCUMENT_BYTES_MAX",
        value: crate::store::documents::DOCUMENT_BYTES_MAX as u64,
        meaning: "size of one of them",
        setting: None,
    },
    Limit {
        name: "DOCUMENT_PAGE_MAX",
        value: crate::store::documents::DOCUMENT_PAGE_MAX as u64,
        meaning: "of them in one page of a listing",
        setting: None,
    },
    Limit {
        name: "PAYLOAD_BYTES_MAX",
        value: crate::config::PAYLOAD_BYTES_MAX as u64,
        meaning: "size of a recorded output; the record of a larger one answers `output_too_large`",
        setting: Some("reliability.store.payloadBytesMax"),
    },
    Limit {
        name: "TIMEOUT_MS_MAX",
        value: crate::config::TIMEOUT_MS_MAX,
        meaning: "longest time limit of one attempt that can be configured",
        setting: None,
    },
    Limit {
        name: "TTL_MS_MAX",
        value: crate::config::TTL_MS_MAX,
        meaning: "longest time to live of a record that can be configured",
        setting: None,
    },
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
    Limit {
        name: "ATTRIBUTION_QUEUE_MAX",
        value: crate::guard::attribution_log::ATTRIBUTION_QUEUE_MAX as u64,
        meaning: "attribution lines waiting to be written; more are dropped and counted",
        setting: None,
    },
    Limit {
        name: "ATTRIBUTION_QUEUE_BYTES_MAX",
        value: crate::guard::attribution_log::ATTRIBUTION_QUEUE_BYTES_MAX as u64,
        meaning: "bytes of the texts in those lines; more are dropped and counted",
        setting: None,
    },
    Limit {
        name: "ATTRIBUTION_LOG_BYTES_MAX",
        value: crate::guard::attribution_log::ATTRIBUTION_LOG_BYTES_MAX,
        meaning: "size at which the attribution log is rotated",
        setting: None,
    },
    Limit {
        name: "ATTRIBUTION_LOGS_KEPT",
        value: crate::guard::attribution_log::ATTRIBUTION_LOGS_KEPT as u64,
        meaning: "rotated attribution logs kept",
        setting: None,
    },
    Limit {
        name: "LOG_QUEUE_MAX",
        value: crate::observe::queued::LOG_QUEUE_MAX as u64,
        meaning: "log lines to standard error waiting for a reader; more are dropped, counted and said",
        setting: None,
    },
    Limit {
        name: "LOG_LAST_LINES_MS",
        value: crate::observe::queued::LOG_LAST_LINES_MS,
        meaning: "how long a process that ends waits for its last log lines to be read",
        setting: None,
    },
    Limit {
        name: "ARGS_BYTES_MAX",
        value: crate::guard::ARGS_BYTES_MAX as u64,
        meaning: "arguments in one attribution line; more is cut",
        setting: None,
    },
    Limit {
        name: "ERROR_BYTES_MAX",
        value: crate::guard::ERROR_BYTES_MAX as u64,
        meaning: "error text in one attribution line; more is cut",
        setting: None,
    },
    Limit {
        name: "SIGNATURE_BYTES_MAX",
        value: crate::guard::SIGNATURE_BYTES_MAX as u64,
        meaning: "error text that counts for telling two failures apart",
        setting: None,
    },
    Limit {
        name: "CALLS_KEPT_MAX",
        value: crate::guard::CALLS_KEPT_MAX as u64,
        meaning: "distinct successful calls remembered in a turn; the oldest go first",
        setting: None,
    },
    Limit {
        name: "OUTCOMES_KEPT_MAX",
        value: crate::guard::OUTCOMES_KEPT_MAX as u64,
        meaning: "distinct outputs remembered for one call of a turn",
        setting: None,
    },
    Limit {
        name: "FAILURES_KEPT_MAX",
        value: crate::guard::FAILURES_KEPT_MAX as u64,
        meaning: "distinct failures remembered in a turn",
        setting: None,
    },
    Limit {
        name: "FORMS_KEPT_MAX",
        value: crate::guard::FORMS_KEPT_MAX as u64,
        meaning: "spellings remembered of one failing call",
        setting: None,
    },
    Limit {
        name: "VALIDATION_TOOLS_KEPT_MAX",
        value: crate::guard::VALIDATION_TOOLS_KEPT_MAX as u64,
        meaning: "tools whose validation attempts are counted in a turn",
        setting: None,
    },
    Limit {
        name: "FORGIVE_AFTER_MAX",
        value: crate::guard::FORGIVE_AFTER_MAX as u64,
        meaning: "largest value of `forgiveAfter`",
        setting: None,
    },
    Limit {
        name: "TURNS_MAX",
        value: crate::guard::TURNS_MAX as u64,
        meaning: "turns kept; the one that was idle longest goes first",
        setting: None,
    },
    Limit {
        name: "IMPLICIT_TURN_IDLE_MS",
        value: crate::guard::IMPLICIT_TURN_IDLE_MS,
        meaning: "a pause this long ends the turn of a caller that names none",
        setting: None,
    },
    Limit {
        name: "TURN_IDLE_MS_MAX",
        value: crate::guard::TURN_IDLE_MS_MAX,
        meaning: "a turn that was not touched for this long is forgotten",
        setting: None,
    },
    Limit {
        name: "HOOK_OUTPUT_BYTES_MAX",
        value: crate::hooks::command::HOOK_OUTPUT_BYTES_MAX,
        meaning: "output of a hook command; more is an error",
        setting: None,
    },
    Limit {
        name: "HOOK_TIMEOUT_MS",
        value: crate::hooks::command::HOOK_TIMEOUT_MS,
        meaning: "time limit of a hook command",
        setting: Some("hooks.admit[].timeoutMs"),
    },
    Limit {
        name: "DUPLICATE_WAIT_MS_MAX",
        value: crate::idempotency::layer::DUPLICATE_WAIT_MS_MAX,
        meaning: "wait of a duplicate that has no deadline of its own",
        setting: None,
    },
    Limit {
        name: "DEADLINE_GRACE_MS",
        value: crate::deadline::DEADLINE_GRACE_MS,
        meaning: "how long after the caller's deadline the loop guard may still note down that the call was cut off",
        setting: None,
    },
    Limit {
        name: "SWEEP_EVERY_MS",
        value: crate::janitor::SWEEP_EVERY_MS,
        meaning: "how often a long-running process forgets what has expired; `holdfast call` does it once after its answer",
        setting: None,
    },
    Limit {
        name: "JOURNAL_CALLS_MAX",
        value: crate::journal::JOURNAL_CALLS_MAX,
        meaning: "calls kept for `holdfast explain`; the oldest go first",
        setting: None,
    },
    Limit {
        name: "JOURNAL_ARGS_BYTES_MAX",
        value: crate::journal::JOURNAL_ARGS_BYTES_MAX as u64,
        meaning: "arguments of one call in the journal; more is cut",
        setting: None,
    },
    Limit {
        name: "JOURNAL_MESSAGE_BYTES_MAX",
        value: crate::journal::JOURNAL_MESSAGE_BYTES_MAX as u64,
        meaning: "a message in the journal; more is cut",
        setting: None,
    },
    Limit {
        name: "METRIC_TOOLS_MAX",
        value: crate::observe::metrics::METRIC_TOOLS_MAX as u64,
        meaning: "values of the `tool` label; further tools are counted as `other`",
        setting: None,
    },
    Limit {
        name: "METRIC_REASONS_MAX",
        value: crate::observe::metrics::METRIC_REASONS_MAX as u64,
        meaning: "values of the `reason` label; further codes are counted as `other`",
        setting: None,
    },
    Limit {
        name: "RETRY_AFTER_MS_MAX",
        value: crate::retry::RETRY_AFTER_MS_MAX,
        meaning: "longest `Retry-After` that is believed",
        setting: None,
    },
    Limit {
        name: "FORCED_OPEN_RETRY_AFTER_MS",
        value: crate::breaker::FORCED_OPEN_RETRY_AFTER_MS,
        meaning: "when to ask again for a tool whose breaker an operator holds open",
        setting: None,
    },
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
    Limit {
        name: "BUSY_WAIT_MS",
        value: crate::store::sqlite::BUSY_WAIT_MS,
        meaning: "wait for another process that holds the database; then `store_unavailable`",
        setting: None,
    },
    Limit {
        name: "DETACHED_QUEUE_MAX",
        value: crate::store::sqlite::queue::DETACHED_QUEUE_MAX as u64,
        meaning: "store operations of dropped calls waiting to be written; more are given up, and the lease settles them",
        setting: None,
    },
    Limit {
        name: "WRITE_QUEUE_MAX",
        value: crate::store::sqlite::queue::WRITE_QUEUE_MAX as u64,
        meaning: "store operations waiting to be written; further callers wait",
        setting: None,
    },
    Limit {
        name: "SPARE_LOCKS_MAX",
        value: crate::store::sqlite::locks::SPARE_LOCKS_MAX as u64,
        meaning: "lock files kept open for the next durable claims",
        setting: None,
    },
    Limit {
        name: "WRITE_BATCH_MAX",
        value: crate::store::sqlite::queue::WRITE_BATCH_MAX as u64,
        meaning: "store operations in one transaction",
        setting: None,
    },
    Limit {
        name: "READERS_MAX",
        value: crate::store::sqlite::reader::READERS_MAX as u64,
        meaning: "reading connections; further readers wait",
        setting: None,
    },
    Limit {
        name: "TIMEOUT_GRACE_MS",
        value: crate::timeout::TIMEOUT_GRACE_MS,
        meaning: "how long after its time limit a tool that does not keep it is cut off",
        setting: None,
    },
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
    Limit {
        name: "REDIS_WAIT_MS_MAX",
        value: crate::config::redis::REDIS_WAIT_MS_MAX,
        meaning: "longest of these two waits that can be configured",
        setting: None,
    },
    Limit {
        name: "DOCUMENT_SWEEP_BATCH",
        value: crate::config::redis::DOCUMENT_SWEEP_BATCH as u64,
        meaning: "expired documents that one step on Redis forgets",
        setting: None,
    },
    Limit {
        name: "DETACHED_CHANGES_MAX",
        value: crate::config::redis::DETACHED_CHANGES_MAX as u64,
        meaning: "changes of documents that wait to be sent to Redis; for one more the oldest is given up",
        setting: None,
    },
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
    Limit {
        name: "SHARDS_MAX",
        value: crate::config::redis::SHARDS_MAX as u64,
        meaning: "most such places that can be configured",
        setting: None,
    },
    Limit {
        name: "PREFIX_BYTES_MAX",
        value: crate::config::redis::PREFIX_BYTES_MAX as u64,
        meaning: "length of the prefix of all keys in Redis",
        setting: None,
    },
    #[cfg(feature = "redis")]
    Limit {
        name: "SERVER_TIME_AGE_MS_MAX",
        value: crate::store::redis::options::SERVER_TIME_AGE_MS_MAX,
        meaning: "how long a measurement of the Redis server's time is believed; without one a claim takes a script",
        setting: None,
    },
    #[cfg(feature = "redis")]
    Limit {
        name: "SERVER_TIME_DOUBT_MS_MAX",
        value: crate::store::redis::options::SERVER_TIME_DOUBT_MS_MAX,
        meaning: "longest measurement of the Redis server's time that is believed",
        setting: None,
    },
    #[cfg(feature = "redis")]
    Limit {
        name: "AWAY_GRACE_MS",
        value: crate::store::redis::options::AWAY_GRACE_MS,
        meaning: "wait for a connection to Redis that broke a moment ago; after that calls are told at once",
        setting: None,
    },
    #[cfg(feature = "redis")]
    Limit {
        name: "RECONNECT_BACKOFF_MS_MAX",
        value: crate::store::redis::options::RECONNECT_BACKOFF_MS_MAX,
        meaning: "longest wait between two attempts to connect to Redis",
        setting: None,
    },
    #[cfg(feature = "redis")]
    Limit {
        name: "WAITER_POLL_MS_MAX",
        value: crate::store::redis::options::WAITER_POLL_MS_MAX,
        meaning: "longest pause between two looks at a record in Redis that is waited for, should a message be lost",
        setting: None,
    },
    #[cfg(feature = "redis")]
    Limit {
        name: "BREAKER_REFRESH_MS",
        value: crate::store::redis::options::BREAKER_REFRESH_MS,
        meaning: "how often a copy of the breakers in Redis is compared, should a message be lost",
        setting: None,
    },
    #[cfg(feature = "redis")]
    Limit {
        name: "REDIS_STEP_MAX",
        value: crate::store::redis::options::REDIS_STEP_MAX as u64,
        meaning: "members of the index in Redis looked at in one step",
        setting: None,
    },
    #[cfg(feature = "redis")]
    Limit {
        name: "CAP_CHECK_ALWAYS_BELOW",
        value: crate::store::redis::options::CAP_CHECK_ALWAYS_BELOW,
        meaning: "a smaller bound of a shard of Redis is kept to the record; a larger one is looked at when half of it is used",
        setting: None,
    },
    #[cfg(feature = "redis")]
    Limit {
        name: "EVICTION_ROUNDS_MAX",
        value: crate::store::redis::options::EVICTION_ROUNDS_MAX as u64,
        meaning: "rounds in which one claim makes room in a full shard of Redis",
        setting: None,
    },
    #[cfg(feature = "redis")]
    Limit {
        name: "EVICTION_TRIES_MAX",
        value: crate::store::redis::options::EVICTION_TRIES_MAX as u64,
        meaning: "rounds in which nothing may go before a full shard of Redis refuses a claim",
        setting: None,
    },
    #[cfg(feature = "redis")]
    Limit {
        name: "EVICTION_SAMPLE",
        value: crate::store::redis::options::EVICTION_SAMPLE as u64,
        meaning: "records of a full shard of Redis that are looked at in one round",
        setting: None,
    },
    #[cfg(feature = "redis")]
    Limit {
        name: "CLEARED_MARK_MS_MIN",
        value: crate::store::redis::options::CLEARED_MARK_MS_MIN,
        meaning: "how long Redis knows, at least, that a record was cleared or flushed, so that its holder does not bring it back",
        setting: None,
    },
    #[cfg(feature = "redis")]
    Limit {
        name: "WRITE_BACK_MAX",
        value: crate::store::redis::options::WRITE_BACK_MAX as u64,
        meaning: "results that wait for a Redis that is away; more are given up, and the lease settles them",
        setting: None,
    },
    #[cfg(feature = "redis")]
    Limit {
        name: "WRITE_BACK_BYTES_MAX",
        value: crate::store::redis::options::WRITE_BACK_BYTES_MAX as u64,
        meaning: "bytes of output that wait for a Redis that is away; beyond that it is only kept that a call was done",
        setting: None,
    },
    #[cfg(feature = "redis")]
    Limit {
        name: "LAST_WORDS_WAIT_MS_MAX",
        value: crate::store::redis::options::LAST_WORDS_WAIT_MS_MAX,
        meaning: "how long `holdfast call` and a server that ends wait for a Redis that is away to take what is to be recorded",
        setting: None,
    },
    #[cfg(feature = "redis")]
    Limit {
        name: "WRITE_BACK_REFUSALS_MAX",
        value: crate::store::redis::options::WRITE_BACK_REFUSALS_MAX as u64,
        meaning: "times that a result is offered to a Redis that answers with an error which does not pass by itself",
        setting: None,
    },
];
