//! `reliability.store.redis:` in the configuration.

use std::fmt::{self, Write as _};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use super::ConfigProblem;

/// An address that may hold a password. It is never shown with it, also not by `config show`.
#[derive(Clone, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct RedisUrl(String);

impl RedisUrl {
    /// Takes an address as it was written.
    pub fn new(url: impl Into<String>) -> Self {
        Self(url.into())
    }

    /// The whole address. For the client only: it may hold a password.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// The same with a password, unless it has credentials of its own.
    #[must_use]
    pub fn with_password(&self, password: &str) -> Self {
        match self.0.split_once("://") {
            Some((scheme, rest)) if !rest.contains('@') => {
                let mut encoded = String::new();
                for byte in password.bytes() {
                    // Everything that could mean something in an address.
                    let _ = if byte.is_ascii_alphanumeric() {
                        write!(encoded, "{}", char::from(byte))
                    } else {
                        write!(encoded, "%{byte:02X}")
                    };
                }
                Self(format!("{scheme}://:{encoded}@{rest}"))
            }
            _ => self.clone(),
        }
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return Ok(());
        }
        let Some((scheme, rest)) = self.0.split_once("://") else {
            return f.write_str("(an address without redis://)");
        };
        // Only what follows the last @ is no credential; a password may hold any character.
        let host = rest.rsplit('@').next().unwrap_or_default();
        let host = host.split('?').next().unwrap_or_default();
        write!(f, "{scheme}://{host}")
    }
}

impl fmt::Debug for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedisUrl({self})")
    }
}

impl Serialize for RedisUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// What the addresses are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RedisTopology {
    /// One server.
    #[default]
    Single,
    /// Nodes of a cluster; some of them are enough.
    Cluster,
    /// Sentinels, which know the server in charge.
    Sentinel,
}

/// A Redis or Valkey server that all processes share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct RedisConfig {
    /// `redis://[user[:password]@]host[:port][/database]`, or `rediss://…` for TLS. A password is
    /// better kept in `HOLDFAST_REDIS_URL` or `HOLDFAST_REDIS_PASSWORD`.
    pub url: RedisUrl,
    /// Further nodes of a cluster, or sentinels.
    pub nodes: Vec<RedisUrl>,
    /// `single`, `cluster` or `sentinel`.
    pub topology: RedisTopology,
    /// The name that the sentinels know the server by.
    pub master: String,
    /// In front of every key, so that several installations can share a server.
    pub prefix: String,
    /// Places over which a cluster's records are spread; 0 for 1 on a single server and 64 on a
    /// cluster. Can not be changed for a prefix that is in use.
    pub shards: u16,
    /// Records at most.
    #[schemars(range(min = 1))]
    pub keys_max: u64,
    /// How long an answer may take before the server counts as away.
    #[schemars(range(min = 10))]
    pub response_ms: u64,
    /// How long a connection may take.
    #[schemars(range(min = 10))]
    pub connect_ms: u64,
    /// A larger result is stored compressed.
    pub compress_above_bytes: usize,
    /// A result that is larger still, compressed, is not stored; duplicates get `output_too_large`.
    #[schemars(range(min = 1))]
    pub value_bytes_max: usize,
    /// Replicas that have to have a claim before its call runs, and its result before it is
    /// answered; 0 to not wait. Not with a cluster.
    pub wait_replicas: u32,
    /// Whose certificates are believed with `rediss://`: a PEM file; the system's by default.
    pub ca_file: String,
    /// Our own certificate for servers that ask for one, a PEM file.
    pub cert_file: String,
    /// Its key, a PEM file.
    pub key_file: String,
    /// Whether retries also have to fit into one budget of all processes, counted by
    /// `reliability.retryBudget`.
    pub share_retry_budget: bool,
    /// Whether rate limits are counted over all processes, or by each one for itself.
    pub share_rate_limits: bool,
}

impl Default for RedisConfig {
    fn default() -> Self {
        Self {
            url: RedisUrl::new("redis://127.0.0.1:6379/"),
            nodes: Vec::new(),
            topology: RedisTopology::Single,
            master: String::new(),
            prefix: REDIS_PREFIX.to_owned(),
            shards: 0,
            keys_max: REDIS_KEYS_MAX,
            response_ms: REDIS_RESPONSE_MS,
            connect_ms: REDIS_CONNECT_MS,
            compress_above_bytes: COMPRESS_ABOVE_BYTES,
            value_bytes_max: VALUE_BYTES_MAX,
            wait_replicas: 0,
            ca_file: String::new(),
            cert_file: String::new(),
            key_file: String::new(),
            share_retry_budget: false,
            share_rate_limits: true,
        }
    }
}

/// Default of `keysMax`.
pub const REDIS_KEYS_MAX: u64 = 2_000_000;
/// Default of `responseMs`.
pub const REDIS_RESPONSE_MS: u64 = 2_000;
/// Default of `connectMs`.
pub const REDIS_CONNECT_MS: u64 = 2_000;
/// Expired documents that one step forgets.
pub const DOCUMENT_SWEEP_BATCH: usize = 500;
/// Changes of documents from places that can not wait, and that are not sent yet; for one more the
/// oldest is given up.
pub const DETACHED_CHANGES_MAX: usize = 1_024;
/// Default of `compressAboveBytes`.
pub const COMPRESS_ABOVE_BYTES: usize = 2 * 1024;
/// Default of `valueBytesMax`.
pub const VALUE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Default of `shards` on a cluster.
pub const CLUSTER_SHARDS: u16 = 64;
/// More places would only make listing slower.
pub const SHARDS_MAX: u16 = 1024;
/// Default of `prefix`.
pub const REDIS_PREFIX: &str = "holdfast";
/// Longest prefix; it is part of every key.
pub const PREFIX_BYTES_MAX: usize = 64;
/// Longest wait for an answer or a connection that can be configured.
pub const REDIS_WAIT_MS_MAX: u64 = 60_000;

impl RedisConfig {
    /// Everything that is wrong with the values; `chosen` when they are to be used.
    pub fn problems(&self, chosen: bool) -> Vec<ConfigProblem> {
        let mut problems = Vec::new();
        let mut problem = |field: &str, reason: String| {
            let path = format!("reliability.store.redis.{field}");
            problems.push(ConfigProblem::new(path, reason));
        };
        for (field, value) in [
            ("responseMs", self.response_ms),
            ("connectMs", self.connect_ms),
        ] {
            if !(10..=REDIS_WAIT_MS_MAX).contains(&value) {
                problem(
                    field,
                    format!("must be from 10 to {REDIS_WAIT_MS_MAX}, is {value}"),
                );
            }
        }
        if self.keys_max == 0 {
            problem("keysMax", "has to be at least 1".to_owned());
        }
        if self.value_bytes_max == 0 {
            problem("valueBytesMax", "has to be at least 1".to_owned());
        }
        if self.shards > SHARDS_MAX {
            problem(
                "shards",
                format!("must be at most {SHARDS_MAX}, is {}", self.shards),
            );
        }
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
        if self.prefix.is_empty()
            || self.prefix.len() > PREFIX_BYTES_MAX
            || !self.prefix.bytes().all(plain)
        {
            let reason =
                format!("has to be 1 to {PREFIX_BYTES_MAX} letters, digits, or any of -_.:");
            problem("prefix", reason);
        }
        if self.topology == RedisTopology::Sentinel && self.master.is_empty() {
            problem("master", "sentinels have to be asked for a name".to_owned());
        }
        if self.topology == RedisTopology::Cluster && self.wait_replicas > 0 {
            let reason = "is not offered with a cluster: use min-replicas-to-write there";
            problem("waitReplicas", reason.to_owned());
        }
        if self.cert_file.is_empty() != self.key_file.is_empty() {
            let reason = "a certificate needs its key, and a key its certificate";
            problem("certFile", reason.to_owned());
        }
        if chosen {
            for (index, url) in self.addresses().iter().enumerate() {
                if let Err(reason) = check_url(url) {
                    problem(if index == 0 { "url" } else { "nodes" }, reason);
                }
            }
            if cfg!(not(feature = "redis")) {
                problem(
                    "url",
                    "this binary was built without Redis: build it with `--features redis`"
                        .to_owned(),
                );
            }
        }
        problems
    }

    /// All addresses that were given.
    pub fn addresses(&self) -> Vec<RedisUrl> {
        std::iter::once(&self.url)
            .chain(&self.nodes)
            .filter(|url| !url.is_empty())
            .cloned()
            .collect()
    }
}

#[cfg(feature = "redis")]
fn check_url(url: &RedisUrl) -> Result<(), String> {
    crate::store::redis::check_address(url)
}

#[cfg(not(feature = "redis"))]
#[expect(
    clippy::unnecessary_wraps,
    reason = "with Redis built in, an address may be wrong"
)]
fn check_url(_: &RedisUrl) -> Result<(), String> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_never_shown_with_its_password() {
        for (url, shown) in [
            ("redis://h:1/2", "redis://h:1/2"),
            ("redis://:s3cret@h:1", "redis://h:1"),
            ("rediss://u:s3cr/e@t:s3cret@h/0", "rediss://h/0"),
            ("redis://h/?password=s3cret", "redis://h/"),
            ("s3cret", "(an address without redis://)"),
        ] {
            let config = RedisConfig {
                url: RedisUrl::new(url),
                ..RedisConfig::default()
            };
            assert_eq!(config.url.to_string(), shown);
            assert!(!format!("{config:?}").contains("s3cr"));
            assert!(!serde_json::to_string(&config).unwrap().contains("s3cr"));
        }
    }

    #[test]
    fn a_password_from_elsewhere_is_added_and_not_shown() {
        let url = RedisUrl::new("redis://h:1/2").with_password("p@s/s:w%d");
        assert_eq!(url.reveal(), "redis://:p%40s%2Fs%3Aw%25d@h:1/2");
        assert_eq!(url.to_string(), "redis://h:1/2");
        let own = RedisUrl::new("redis://u:own@h").with_password("other");
        assert_eq!(own.reveal(), "redis://u:own@h");
    }

    #[test]
    fn every_problem_is_named_and_no_password_with_it() {
        let wrong = RedisConfig {
            url: RedisUrl::new("http://u:s3cret@h"),
            prefix: "a b".to_owned(),
            response_ms: 0,
            keys_max: 0,
            shards: 5_000,
            topology: RedisTopology::Sentinel,
            ..RedisConfig::default()
        };
        let problems: Vec<String> = wrong
            .problems(true)
            .iter()
            .map(ToString::to_string)
            .collect();
        for field in ["url", "prefix", "responseMs", "keysMax", "shards", "master"] {
            let path = format!("redis.{field}");
            assert!(
                problems.iter().any(|one| one.contains(&path)),
                "{problems:?}"
            );
        }
        assert!(!problems.concat().contains("s3cret"));
        assert!(RedisConfig::default().problems(true).is_empty());
    }
}
