//! The settings of the stack as they are written; [`policies`] makes a tool's policy of them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::breaker::BreakerOverrides;
use crate::policy::{DeriveKeys, Keep, Mode, OnKeyConflict};
use crate::rate::RateLimitOverrides;
use crate::retry::{RetryBudgetOverrides, RetryOverrides};

pub mod policies;
pub mod redis;

pub use policies::ConfigProblem;

/// The default of `payloadBytesMax`: a larger output is not recorded.
pub const PAYLOAD_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The longest time limit of one attempt.
pub const TIMEOUT_MS_MAX: u64 = 60 * 60 * 1000;
/// The longest time to live of a record.
pub const TTL_MS_MAX: u64 = 365 * 24 * 60 * 60 * 1000;
/// The default window in which a running or unknown external call answers for its echo.
pub const UNKNOWN_WINDOW_MS: u64 = 10 * 60 * 1000;
/// The default window in which a finished `message` answers for its echo.
pub const MESSAGE_ECHO_WINDOW_MS: u64 = 30 * 1000;

/// `reliability:` in the configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ReliabilityConfig {
    /// `false` takes guard, idempotency, retry, breaker and rate limits out.
    pub enabled: bool,
    /// `enforce`, `shadow` or `off` for those.
    pub mode: Mode,
    /// What an open breaker does: `enforce`, `shadow` or `off`.
    pub open_mode: Mode,
    /// Whether keys are computed for calls that bring none.
    pub derive_idempotency: DeriveKeys,
    /// What a key with other arguments means.
    pub on_key_conflict: OnKeyConflict,
    /// Retry, for all tools.
    pub retry: RetryOverrides,
    /// The retry budget of the process.
    pub retry_budget: RetryBudgetOverrides,
    /// The breaker, for all tools.
    pub breaker: BreakerOverrides,
    /// How long records are kept.
    pub ttl: TtlConfig,
    /// The record store.
    pub store: StoreConfig,
    /// Settings of the two classes of tools.
    pub classes: Classes,
    /// Settings of single tools, by name.
    pub tools: BTreeMap<String, ToolSettings>,
    /// Settings of what several tools depend on, by name.
    pub dependencies: BTreeMap<String, DependencySettings>,
}

impl Default for ReliabilityConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            mode: Mode::default(),
            open_mode: Mode::default(),
            derive_idempotency: DeriveKeys::default(),
            on_key_conflict: OnKeyConflict::default(),
            retry: RetryOverrides::default(),
            retry_budget: RetryBudgetOverrides::default(),
            breaker: BreakerOverrides::default(),
            ttl: TtlConfig::default(),
            store: StoreConfig::default(),
            classes: Classes::default(),
            tools: BTreeMap::new(),
            dependencies: BTreeMap::new(),
        }
    }
}

/// How long records are kept, and how long a holder may be silent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct TtlConfig {
    /// A success: 24 h.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub done_ms: Option<u64>,
    /// A failure: 5 min.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_ms: Option<u64>,
    /// A cancelled call: 5 min.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancelled_ms: Option<u64>,
    /// An unknown outcome: 24 h.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown_ms: Option<u64>,
    /// A holder's lease: 120 s, renewed at a third.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_ms: Option<u64>,
}

/// Which store keeps records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum StoreKind {
    /// The embedded durable store.
    #[default]
    Sqlite,
    /// This process's memory only.
    Memory,
    /// A Redis server that several machines share.
    Redis,
}

/// What becomes of a read-only call whose record can not be kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum WhenAway {
    /// It runs without a record.
    #[default]
    Run,
    /// It is refused, like calls with effects.
    Refuse,
}

/// The record store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct StoreConfig {
    /// Where records are kept.
    pub kind: StoreKind,
    /// Where records of read-only calls are kept.
    pub read_only: Keep,
    /// Records in memory at most.
    #[schemars(range(min = 1))]
    pub memory_keys_max: usize,
    /// Bytes of records in memory at most.
    #[schemars(range(min = 1))]
    pub memory_bytes_max: usize,
    /// Records on disk at most.
    #[schemars(range(min = 1))]
    pub disk_keys_max: u64,
    /// Bytes of records on disk at most.
    #[schemars(range(min = 1))]
    pub disk_bytes_max: u64,
    /// A larger output is not recorded; duplicates get `output_too_large`.
    #[schemars(range(min = 1))]
    pub payload_bytes_max: usize,
    /// What becomes of a read-only call while the store is away: `run` or `refuse`.
    pub read_only_when_away: WhenAway,
    /// The server behind `kind: redis`.
    pub redis: redis::RedisConfig,
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self {
            kind: StoreKind::default(),
            read_only: Keep::Memory,
            memory_keys_max: crate::store::memory::MEMORY_KEYS_MAX,
            memory_bytes_max: crate::store::memory::MEMORY_BYTES_MAX,
            disk_keys_max: crate::store::sqlite::SQLITE_KEYS_MAX,
            disk_bytes_max: crate::store::sqlite::SQLITE_BYTES_MAX,
            payload_bytes_max: PAYLOAD_BYTES_MAX,
            read_only_when_away: WhenAway::default(),
            redis: redis::RedisConfig::default(),
        }
    }
}

/// Settings of the two classes of tools.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Classes {
    /// Tools without effects.
    pub read_only: ToolSettings,
    /// Tools with effects.
    pub mutating: ToolSettings,
}

/// Whether whitespace in the arguments matters to a computed key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum WhitespaceSetting {
    /// It does.
    Exact,
    /// Runs of it count as one space.
    Collapse,
}

/// How far a tool's keys reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ScopeSetting {
    /// One session.
    Session,
    /// All sessions; read-only tools only.
    Global,
}

/// Settings of a class or a tool. What is absent comes from the class, then from the top.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ToolSettings {
    /// `enforce`, `shadow` or `off`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// Time limit of one attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Retry.
    pub retry: RetryOverrides,
    /// Breaker.
    pub breaker: BreakerOverrides,
    /// How often the tool may be called; a limit of a class is one for each of its tools.
    pub rate_limit: RateLimitOverrides,
    /// Time to live.
    pub ttl: TtlConfig,
    /// Arguments that do not identify the call, besides `clientTs`, `retryCount`, `traceparent`.
    pub volatile_fields: Vec<String>,
    /// Whether whitespace matters to a computed key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub whitespace: Option<WhitespaceSetting>,
    /// Arguments in which whitespace matters whatever `whitespace` says, with all that is in them.
    pub exact_fields: Vec<String>,
    /// Arguments in which it does not, whatever `whitespace` says. A name in both lists is exact.
    pub collapse_fields: Vec<String>,
    /// How far keys reach.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<ScopeSetting>,
    /// Where records are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep: Option<Keep>,
    /// What a key with other arguments means.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_key_conflict: Option<OnKeyConflict>,
    /// Equal content within this window of a running or unknown call is its echo; 0 for never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown_window_ms: Option<u64>,
    /// Equal content within this window of a finished call is its echo; 0 for never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub echo_window_ms: Option<u64>,
    /// The dependency whose breaker and rate limit the tool shares.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dependency: Option<String>,
}

/// Settings of what is behind several tools.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct DependencySettings {
    /// How often all of them together may be called.
    pub rate_limit: RateLimitOverrides,
}
