//! Where the server is and how much of it may be used.

use std::fmt;

use redis::{ConnectionInfo, IntoConnectionInfo};

/// Default of [`RedisOptions::keys_max`].
pub const REDIS_KEYS_MAX: u64 = 2_000_000;
/// Default of [`RedisOptions::response_ms`].
pub const REDIS_RESPONSE_MS: u64 = 2_000;
/// Default of [`RedisOptions::connect_ms`].
pub const REDIS_CONNECT_MS: u64 = 2_000;
/// Default of [`RedisOptions::compress_above_bytes`].
pub const COMPRESS_ABOVE_BYTES: usize = 2 * 1024;
/// Default of [`RedisOptions::value_bytes_max`].
pub const VALUE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Default of [`RedisOptions::shards`] on a cluster.
pub const CLUSTER_SHARDS: u16 = 64;
/// More places would only make the listing slower.
pub const SHARDS_MAX: u16 = 1024;
/// Default of [`RedisOptions::prefix`].
pub const REDIS_PREFIX: &str = "holdfast";
/// Longest prefix; it is part of every key.
pub const PREFIX_BYTES_MAX: usize = 64;

/// How old the copy may be before it is compared with the server.
pub const BREAKER_REFRESH_MS: u64 = 500;
/// A connection that broke a moment ago is waited for this long; after that, callers are told at
/// once that the server is away.
pub const AWAY_GRACE_MS: u64 = 300;
/// The longest wait between two attempts to connect.
pub const RECONNECT_BACKOFF_MS_MAX: u64 = 1_000;
/// Members of the index in one step.
pub const REDIS_STEP_MAX: usize = 256;
/// The longest pause between two looks at a record that is waited for.
pub const WAITER_POLL_MS_MAX: u64 = 4_000;
/// Last words that wait for a server that is away; more are given up, and the lease settles them.
pub const WRITE_BACK_MAX: usize = 10_000;

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

/// An address that may hold a password. It is never shown with it.
#[derive(Clone, PartialEq, Eq)]
pub struct Address(String);

impl Address {
    /// Takes an address as it was written.
    pub fn new(url: impl Into<String>) -> Self {
        Self(url.into())
    }

    /// What the client needs; the error does not repeat the address.
    pub(super) fn info(&self) -> Result<ConnectionInfo, String> {
        self.0
            .as_str()
            .into_connection_info()
            .map_err(|error| format!("{self} is no Redis address: {error}"))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((scheme, rest)) = self.0.split_once("://") else {
            return f.write_str("(an address without redis://)");
        };
        // Only what follows the last @ of the authority is no credential.
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let host = authority.rsplit('@').next().unwrap_or_default();
        let path = path.split('?').next().unwrap_or_default();
        write!(f, "{scheme}://{host}{path}")
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

/// A server, and how it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedisOptions {
    /// Servers, nodes or sentinels: `redis://[user[:password]@]host[:port][/database]`.
    pub addresses: Vec<Address>,
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
    /// By whose clock.
    pub time: TimeSource,
    /// At most one sweep in this time, whichever process makes it; 0 for no bound.
    pub sweep_every_ms: u64,
}

impl RedisOptions {
    /// The standard settings for one server.
    pub fn single(url: impl Into<String>) -> Self {
        Self {
            addresses: vec![Address::new(url)],
            topology: Topology::Single,
            prefix: REDIS_PREFIX.to_owned(),
            shards: 1,
            keys_max: REDIS_KEYS_MAX,
            response_ms: REDIS_RESPONSE_MS,
            connect_ms: REDIS_CONNECT_MS,
            compress_above_bytes: COMPRESS_ABOVE_BYTES,
            value_bytes_max: VALUE_BYTES_MAX,
            wait_replicas: 0,
            time: TimeSource::Server,
            sweep_every_ms: 5 * 60 * 1000,
        }
    }

    /// The standard settings for a cluster.
    pub fn cluster<U: Into<String>>(urls: impl IntoIterator<Item = U>) -> Self {
        Self {
            addresses: urls.into_iter().map(Address::new).collect(),
            topology: Topology::Cluster,
            shards: CLUSTER_SHARDS,
            ..Self::single("")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_never_shown_with_its_password() {
        for (url, shown) in [
            ("redis://h:1/2", "redis://h:1/2"),
            ("redis://:s3cret@h:1", "redis://h:1"),
            ("rediss://u:p@w:d@h/0", "rediss://h/0"),
            ("redis://h/?password=s3cret", "redis://h/"),
            ("s3cret", "(an address without redis://)"),
        ] {
            let address = Address::new(url);
            assert_eq!(address.to_string(), shown);
            assert_eq!(format!("{address:?}"), format!("Address({shown})"));
            assert!(!format!("{:?}", RedisOptions::single(url)).contains("s3cret"));
        }
    }

    #[test]
    fn what_is_no_address_is_refused_without_repeating_it() {
        let refused = Address::new("http://u:s3cret@h").info().unwrap_err();
        assert!(!refused.contains("s3cret"), "{refused}");
    }
}
