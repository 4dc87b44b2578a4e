//! Where the server is and how much of it may be used.

use std::path::PathBuf;

use crate::config::redis::{
    CLUSTER_SHARDS, COMPRESS_ABOVE_BYTES, REDIS_CONNECT_MS, REDIS_KEYS_MAX, REDIS_PREFIX,
    REDIS_RESPONSE_MS, RedisConfig, RedisTopology, RedisUrl, VALUE_BYTES_MAX,
};

/// How old the copy may be before it is compared with the server.
pub const BREAKER_REFRESH_MS: u64 = 500;
/// A connection that broke a moment ago is waited for this long; after that, callers are told at
/// once that the server is away.
pub const AWAY_GRACE_MS: u64 = 300;
/// The longest wait between two attempts to connect.
pub const RECONNECT_BACKOFF_MS_MAX: u64 = 1_000;
/// How long the server's time is believed after it was measured; it is measured every ten seconds.
pub const SERVER_TIME_AGE_MS_MAX: u64 = 30_000;
/// A measurement of the server's time that took longer than this is not used.
pub const SERVER_TIME_DOUBT_MS_MAX: u64 = 500;
/// Members of the index in one step.
pub const REDIS_STEP_MAX: usize = 256;
/// The longest pause between two looks at a record that is waited for.
pub const WAITER_POLL_MS_MAX: u64 = 4_000;
/// Last words that wait for a server that is away; more are given up, and the lease settles them.
pub const WRITE_BACK_MAX: usize = 10_000;
/// Bytes of output that wait with them; beyond that it is only kept that a call was done.
pub const WRITE_BACK_BYTES_MAX: usize = 64 * 1024 * 1024;
/// How long a process that is about to end waits for a server that is away to take its last words;
/// then it says that they could not be written, and the lease settles them.
pub const LAST_WORDS_WAIT_MS_MAX: u64 = 5_000;
/// How often a last word is said to a server that answers with an error which does not pass by
/// itself, such as a missing right; then it is given up.
pub const WRITE_BACK_REFUSALS_MAX: u32 = 100;

/// How long a cleared or flushed record is known to have been forgotten on purpose, at least: a
/// holder that says its last word again within this time does not bring it back.
pub const CLEARED_MARK_MS_MIN: u64 = 60_000;

/// A smaller bound of a shard's records is kept to the record; a larger one is looked at only when
/// half of it is used.
pub const CAP_CHECK_ALWAYS_BELOW: u64 = 10_000;

/// Rounds in which one claim makes room in a full shard; a bound that was lowered is reached over
/// several claims.
pub const EVICTION_ROUNDS_MAX: u32 = 16;
/// Rounds in which nothing may go before a full shard refuses the claim.
pub const EVICTION_TRIES_MAX: u32 = 4;
/// Records of a full shard that are looked at in one round.
pub const EVICTION_SAMPLE: u32 = 64;

/// How the server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Topology {
    /// One server.
    Single,
    /// A cluster; any of its nodes will do.
    Cluster,
    /// Sentinels, which know the server that is in charge of this name.
    Sentinel {
        /// The name.
        master: String,
    },
}

/// By whose clock leases and lifetimes are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeSource {
    /// The server's, which is the same for all machines.
    Server,
    /// The caller's, for tests that own time.
    Caller,
}

/// Certificates in PEM files, read when the store is opened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsFiles {
    /// Whose certificates are believed; the system's when nothing is said.
    pub authorities: Option<PathBuf>,
    /// Our own certificate and its key, for servers that ask.
    pub own: Option<(PathBuf, PathBuf)>,
}

impl TlsFiles {
    fn of(config: &RedisConfig) -> Self {
        let path = |text: &str| (!text.is_empty()).then(|| PathBuf::from(text));
        Self {
            authorities: path(&config.ca_file),
            own: path(&config.cert_file).zip(path(&config.key_file)),
        }
    }
}

/// A server, and how it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedisOptions {
    /// Servers, nodes or sentinels: `redis://[user[:password]@]host[:port][/database]`, or
    /// `rediss://…`.
    pub addresses: Vec<RedisUrl>,
    /// What these addresses are.
    pub topology: Topology,
    /// In front of every key, so that several installations can share a server.
    pub prefix: String,
    /// Places over which records are spread. One on a single server, where it costs nothing to
    /// keep everything together; several on a cluster, where each lives on one node.
    pub shards: u16,
    /// Records; divided among the shards.
    pub keys_max: u64,
    /// How long an answer may take before the server counts as away.
    pub response_ms: u64,
    /// How long a connection may take.
    pub connect_ms: u64,
    /// A larger result is stored compressed.
    pub compress_above_bytes: usize,
    /// A result that is larger still, compressed, is not stored.
    pub value_bytes_max: usize,
    /// Replicas that have to have a claim and a last word before they count; 0 to not wait.
    pub wait_replicas: u32,
    /// For addresses that begin with `rediss://`.
    pub tls: TlsFiles,
    /// By whose clock.
    pub time: TimeSource,
    /// At most one sweep in this time, whichever process makes it; 0 for no bound.
    pub sweep_every_ms: u64,
}

impl RedisOptions {
    /// The standard settings for one server.
    pub fn single(url: impl Into<String>) -> Self {
        Self {
            addresses: vec![RedisUrl::new(url)],
            topology: Topology::Single,
            prefix: REDIS_PREFIX.to_owned(),
            shards: 1,
            keys_max: REDIS_KEYS_MAX,
            response_ms: REDIS_RESPONSE_MS,
            connect_ms: REDIS_CONNECT_MS,
            compress_above_bytes: COMPRESS_ABOVE_BYTES,
            value_bytes_max: VALUE_BYTES_MAX,
            wait_replicas: 0,
            tls: TlsFiles::default(),
            time: TimeSource::Server,
            sweep_every_ms: 5 * 60 * 1000,
        }
    }

    /// The standard settings for a cluster.
    pub fn cluster<U: Into<String>>(urls: impl IntoIterator<Item = U>) -> Self {
        Self {
            addresses: urls.into_iter().map(RedisUrl::new).collect(),
            topology: Topology::Cluster,
            shards: CLUSTER_SHARDS,
            ..Self::single("")
        }
    }

    /// What the configuration says, which was checked before.
    pub fn of(config: &RedisConfig) -> Self {
        let default_shards = match config.topology {
            RedisTopology::Cluster => CLUSTER_SHARDS,
            RedisTopology::Single | RedisTopology::Sentinel => 1,
        };
        Self {
            addresses: config.addresses(),
            topology: match config.topology {
                RedisTopology::Single => Topology::Single,
                RedisTopology::Cluster => Topology::Cluster,
                RedisTopology::Sentinel => Topology::Sentinel {
                    master: config.master.clone(),
                },
            },
            prefix: config.prefix.clone(),
            shards: if config.shards == 0 {
                default_shards
            } else {
                config.shards
            },
            keys_max: config.keys_max,
            response_ms: config.response_ms,
            connect_ms: config.connect_ms,
            compress_above_bytes: config.compress_above_bytes,
            value_bytes_max: config.value_bytes_max,
            wait_replicas: config.wait_replicas,
            tls: TlsFiles::of(config),
            ..Self::single("")
        }
    }
}
