//! The limits of the store in Redis.

use holdfast_contract::limit::{Limit, limit};

/// The table.
pub const REDIS_LIMITS: &[Limit] = &[
    limit(
        "SERVER_TIME_AGE_MS_MAX",
        crate::store::redis::options::SERVER_TIME_AGE_MS_MAX,
        "how long a measurement of the Redis server's time is believed; without one a claim takes a script",
    ),
    limit(
        "SERVER_TIME_DOUBT_MS_MAX",
        crate::store::redis::options::SERVER_TIME_DOUBT_MS_MAX,
        "longest measurement of the Redis server's time that is believed",
    ),
    limit(
        "AWAY_GRACE_MS",
        crate::store::redis::options::AWAY_GRACE_MS,
        "wait for a connection to Redis that broke a moment ago; after that calls are told at once",
    ),
    limit(
        "RECONNECT_BACKOFF_MS_MAX",
        crate::store::redis::options::RECONNECT_BACKOFF_MS_MAX,
        "longest wait between two attempts to connect to Redis",
    ),
    limit(
        "WAITER_POLL_MS_MAX",
        crate::store::redis::options::WAITER_POLL_MS_MAX,
        "longest pause between two looks at a record in Redis that is waited for, should a message be lost",
    ),
    limit(
        "BREAKER_REFRESH_MS",
        crate::store::redis::options::BREAKER_REFRESH_MS,
        "how often a copy of the breakers in Redis is compared, should a message be lost",
    ),
    limit(
        "REDIS_STEP_MAX",
        crate::store::redis::options::REDIS_STEP_MAX as u64,
        "members of the index in Redis looked at in one step",
    ),
    limit(
        "CAP_CHECK_ALWAYS_BELOW",
        crate::store::redis::options::CAP_CHECK_ALWAYS_BELOW,
        "a smaller bound of a shard of Redis is kept to the record; a larger one is looked at when half of it is used",
    ),
    limit(
        "EVICTION_ROUNDS_MAX",
        crate::store::redis::options::EVICTION_ROUNDS_MAX as u64,
        "rounds in which one claim makes room in a full shard of Redis",
    ),
    limit(
        "EVICTION_TRIES_MAX",
        crate::store::redis::options::EVICTION_TRIES_MAX as u64,
        "rounds in which nothing may go before a full shard of Redis refuses a claim",
    ),
    limit(
        "EVICTION_SAMPLE",
        crate::store::redis::options::EVICTION_SAMPLE as u64,
        "records of a full shard of Redis that are looked at in one round",
    ),
    limit(
        "CLEARED_MARK_MS_MIN",
        crate::store::redis::options::CLEARED_MARK_MS_MIN,
        "how long Redis knows, at least, that a record was cleared or flushed, so that its holder does not bring it back",
    ),
    limit(
        "WRITE_BACK_MAX",
        crate::store::redis::options::WRITE_BACK_MAX as u64,
        "results that wait for a Redis that is away; more are given up, and the lease settles them",
    ),
    limit(
        "WRITE_BACK_BYTES_MAX",
        crate::store::redis::options::WRITE_BACK_BYTES_MAX as u64,
        "bytes of output that wait for a Redis that is away; beyond that it is only kept that a call was done",
    ),
    limit(
        "LAST_WORDS_WAIT_MS_MAX",
        crate::store::redis::options::LAST_WORDS_WAIT_MS_MAX,
        "how long `holdfast call` and a server that ends wait for a Redis that is away to take what is to be recorded",
    ),
    limit(
        "WRITE_BACK_REFUSALS_MAX",
        crate::store::redis::options::WRITE_BACK_REFUSALS_MAX as u64,
        "times that a result is offered to a Redis that answers with an error which does not pass by itself",
    ),
];
