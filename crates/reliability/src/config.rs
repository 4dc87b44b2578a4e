//! The settings of the stack as they are written, and how they become a tool's policy.

use std::collections::BTreeMap;

use holdfast_contract::{Effect, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::breaker::{BreakerOverrides, BreakerPolicy};
use crate::canonical::{FieldNames, Whitespace};
use crate::idempotency::key::{Access, Scope};
use crate::idempotency::transition::Lifetimes;
use crate::policy::{
    ContentWindows, DeriveKeys, Keep, Mode, OnKeyConflict, Repeats, Switches, ToolPolicy,
};
use crate::policy_check::InvalidPolicy;
use crate::retry::{
    RetryBudget, RetryBudgetOverrides, RetryBudgetPolicy, RetryOverrides, RetryPolicy,
};

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

/// Tools whose repeated content is never taken for an echo: the same command or edit twice is
/// ordinary work.
const NEVER_BY_CONTENT: [&str; 4] = ["exec", "write", "edit", "read"];

/// `reliability:` in the configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ReliabilityConfig {
    /// `false` takes guard, idempotency, retry and breaker out.
    pub enabled: bool,
    /// `enforce`, `shadow` or `off` for those four.
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
}

/// The record store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self {
            kind: StoreKind::default(),
            read_only: Keep::Memory,
            memory_keys_max: crate::store::memory::MEMORY_KEYS_MAX,
            memory_bytes_max: crate::store::memory::MEMORY_BYTES_MAX,
            disk_keys_max: 1_000_000,
            disk_bytes_max: 4 * 1024 * 1024 * 1024,
            payload_bytes_max: PAYLOAD_BYTES_MAX,
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
    /// Time to live.
    pub ttl: TtlConfig,
    /// Arguments that do not identify the call, besides `clientTs`, `retryCount`, `traceparent`.
    pub volatile_fields: Vec<String>,
    /// Whether whitespace matters to a computed key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub whitespace: Option<WhitespaceSetting>,
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
    /// The dependency whose breaker the tool shares.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dependency: Option<String>,
}

/// A setting that can not be: where it stands and what is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {reason}")]
pub struct ConfigProblem {
    /// The setting, as a dotted path.
    pub path: String,
    /// What is wrong with it.
    pub reason: String,
}

impl ConfigProblem {
    /// A problem at `path`.
    pub fn new(path: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            reason: reason.into(),
        }
    }

    fn from_policy(path: &str, invalid: &InvalidPolicy) -> Vec<Self> {
        invalid
            .problems()
            .iter()
            .map(|problem| Self::new(format!("{path}.{}", problem.field), problem.reason.clone()))
            .collect()
    }
}

/// One place settings come from, with its path for messages.
struct Source<'a> {
    path: String,
    settings: &'a ToolSettings,
}

impl ReliabilityConfig {
    /// Everything that is wrong with it, whether or not such a tool exists.
    pub fn problems(&self) -> Vec<ConfigProblem> {
        let mut problems = Vec::new();
        if let Err(invalid) = RetryPolicy::standard().with(&self.retry) {
            problems.extend(ConfigProblem::from_policy("reliability.retry", &invalid));
        }
        if let Err(invalid) = BreakerPolicy::standard().with(&self.breaker) {
            problems.extend(ConfigProblem::from_policy("reliability.breaker", &invalid));
        }
        if let Err(invalid) = RetryBudgetPolicy::standard().with(&self.retry_budget) {
            problems.extend(ConfigProblem::from_policy(
                "reliability.retryBudget",
                &invalid,
            ));
        }
        check_ttl("reliability.ttl", &self.ttl, &mut problems);
        for (name, value) in [
            ("memoryKeysMax", self.store.memory_keys_max),
            ("memoryBytesMax", self.store.memory_bytes_max),
            ("payloadBytesMax", self.store.payload_bytes_max),
        ] {
            if value == 0 {
                problems.push(ConfigProblem::new(
                    format!("reliability.store.{name}"),
                    "has to be at least 1",
                ));
            }
        }
        let classes = [
            ("readOnly", &self.classes.read_only),
            ("mutating", &self.classes.mutating),
        ];
        for (name, settings) in classes {
            check_settings(
                &format!("reliability.classes.{name}"),
                settings,
                &mut problems,
            );
        }
        for (name, settings) in &self.tools {
            check_settings(
                &format!("reliability.tools.{name}"),
                settings,
                &mut problems,
            );
        }
        problems
    }

    /// Throws the switches as configured.
    pub fn apply_switches(&self, switches: &Switches) {
        switches.set_enabled(self.enabled);
        switches.set_open_mode(self.open_mode);
        switches.set_derive_keys(self.derive_idempotency);
    }

    /// The retry budget that all calls share.
    pub fn retry_budget(&self) -> Result<RetryBudget, Vec<ConfigProblem>> {
        let policy = RetryBudgetPolicy::standard().with(&self.retry_budget);
        checked("reliability.retryBudget", policy).map(RetryBudget::new)
    }

    /// The policy of a tool.
    pub fn policy_for(&self, tool: &dyn Tool) -> Result<ToolPolicy, Vec<ConfigProblem>> {
        let nature = Nature {
            name: tool.name(),
            effect: tool.effect(),
            idempotent: tool.is_idempotent(),
            forwards_key: tool.forwards_idempotency_key(),
            polls: tool.polls(),
            dependency: tool.dependency(),
            timeout_ms: tool.default_timeout_ms(),
        };
        self.policy(&nature)
    }

    /// The policy of calls to tools that do not exist.
    pub fn policy_for_unknown(&self) -> Result<ToolPolicy, Vec<ConfigProblem>> {
        self.policy(&Nature {
            name: "unknown",
            effect: Effect::None,
            idempotent: true,
            forwards_key: false,
            polls: false,
            dependency: None,
            timeout_ms: 1000,
        })
    }

    fn policy(&self, nature: &Nature<'_>) -> Result<ToolPolicy, Vec<ConfigProblem>> {
        let mutating = nature.effect.is_mutating();
        let sources = self.sources(nature.name, mutating);
        let mut retry = checked(
            "reliability.retry",
            RetryPolicy::standard().with(&self.retry),
        )?;
        let base = if mutating {
            BreakerPolicy::mutating()
        } else {
            BreakerPolicy::read_only()
        };
        let mut breaker = checked("reliability.breaker", base.with(&self.breaker))?;
        let mut lifetimes = merged(Lifetimes::default(), &self.ttl);
        for source in &sources {
            retry = checked(
                &format!("{}.retry", source.path),
                retry.with(&source.settings.retry),
            )?;
            breaker = checked(
                &format!("{}.breaker", source.path),
                breaker.with(&source.settings.breaker),
            )?;
            lifetimes = merged(lifetimes, &source.settings.ttl);
        }
        let timeout_ms = nearest(&sources, |s| s.timeout_ms).unwrap_or(nature.timeout_ms);
        let dependency = nearest(&sources, |s| s.dependency.clone())
            .or_else(|| nature.dependency.map(str::to_owned));
        Ok(ToolPolicy {
            tool: nature.name.to_owned(),
            mode: nearest(&sources, |s| s.mode).unwrap_or(self.mode),
            mutating,
            repeats: if !mutating || nature.idempotent {
                Repeats::Harmless
            } else if nature.forwards_key {
                Repeats::HarmlessWithKey
            } else {
                Repeats::Harmful
            },
            polls: nature.polls,
            scope: scope_of(&sources, mutating)?,
            whitespace: match nearest(&sources, |s| s.whitespace) {
                Some(WhitespaceSetting::Exact) => Whitespace::Exact,
                // A search query does not mind; file content and commands do.
                None if mutating => Whitespace::Exact,
                Some(WhitespaceSetting::Collapse) | None => Whitespace::Collapse,
            },
            volatile_fields: sources.iter().fold(FieldNames::VOLATILE, |names, source| {
                names.with(source.settings.volatile_fields.iter().cloned())
            }),
            on_key_conflict: nearest(&sources, |s| s.on_key_conflict)
                .unwrap_or(self.on_key_conflict),
            content_windows: content_windows(nature, &sources),
            keep: nearest(&sources, |s| s.keep).unwrap_or(if mutating {
                Keep::Durable
            } else {
                self.store.read_only
            }),
            lifetimes,
            retry,
            // A probe must not lose its place while its attempt may still be running.
            breaker: breaker.covering_attempt(timeout_ms),
            dependency,
            timeout_ms,
            payload_bytes_max: self.store.payload_bytes_max,
        })
    }

    /// Where a tool's settings come from, the nearest last.
    fn sources(&self, tool: &str, mutating: bool) -> Vec<Source<'_>> {
        let (class, settings) = if mutating {
            ("mutating", &self.classes.mutating)
        } else {
            ("readOnly", &self.classes.read_only)
        };
        let mut sources = vec![Source {
            path: format!("reliability.classes.{class}"),
            settings,
        }];
        if let Some(settings) = self.tools.get(tool) {
            sources.push(Source {
                path: format!("reliability.tools.{tool}"),
                settings,
            });
        }
        sources
    }
}

/// What a tool says about itself.
struct Nature<'a> {
    name: &'a str,
    effect: Effect,
    idempotent: bool,
    forwards_key: bool,
    polls: bool,
    dependency: Option<&'a str>,
    timeout_ms: u64,
}

/// The nearest setting wins: the tool's, else the class's.
fn nearest<T>(sources: &[Source<'_>], pick: impl Fn(&ToolSettings) -> Option<T>) -> Option<T> {
    sources
        .iter()
        .rev()
        .find_map(|source| pick(source.settings))
}

fn checked<T>(path: &str, policy: Result<T, InvalidPolicy>) -> Result<T, Vec<ConfigProblem>> {
    policy.map_err(|invalid| ConfigProblem::from_policy(path, &invalid))
}

fn merged(base: Lifetimes, changes: &TtlConfig) -> Lifetimes {
    Lifetimes {
        done_ms: changes.done_ms.unwrap_or(base.done_ms),
        failed_ms: changes.failed_ms.unwrap_or(base.failed_ms),
        cancelled_ms: changes.cancelled_ms.unwrap_or(base.cancelled_ms),
        unknown_ms: changes.unknown_ms.unwrap_or(base.unknown_ms),
        lease_ms: changes.lease_ms.unwrap_or(base.lease_ms),
    }
}

fn scope_of(sources: &[Source<'_>], mutating: bool) -> Result<Scope, Vec<ConfigProblem>> {
    let access = if mutating {
        Access::Mutating
    } else {
        Access::ReadOnly
    };
    for source in sources.iter().rev() {
        match source.settings.scope {
            Some(ScopeSetting::Global) => {
                return Scope::global(access).map_err(|error| {
                    vec![ConfigProblem::new(
                        format!("{}.scope", source.path),
                        error.to_string(),
                    )]
                });
            }
            Some(ScopeSetting::Session) => return Ok(Scope::SESSION),
            None => {}
        }
    }
    Ok(Scope::SESSION)
}

/// The second look-up is for effects in the outside world that can not be repeated safely.
fn content_windows(nature: &Nature<'_>, sources: &[Source<'_>]) -> Option<ContentWindows> {
    if nature.effect != Effect::External
        || nature.idempotent
        || NEVER_BY_CONTENT.contains(&nature.name)
    {
        return None;
    }
    let echo_default_ms = if nature.name == "message" {
        MESSAGE_ECHO_WINDOW_MS
    } else {
        0
    };
    let windows = ContentWindows {
        unknown_ms: nearest(sources, |s| s.unknown_window_ms).unwrap_or(UNKNOWN_WINDOW_MS),
        echo_ms: nearest(sources, |s| s.echo_window_ms).unwrap_or(echo_default_ms),
    };
    (windows.unknown_ms > 0 || windows.echo_ms > 0).then_some(windows)
}

fn check_settings(path: &str, settings: &ToolSettings, problems: &mut Vec<ConfigProblem>) {
    if let Err(invalid) = RetryPolicy::standard().with(&settings.retry) {
        problems.extend(ConfigProblem::from_policy(
            &format!("{path}.retry"),
            &invalid,
        ));
    }
    if let Err(invalid) = BreakerPolicy::standard().with(&settings.breaker) {
        problems.extend(ConfigProblem::from_policy(
            &format!("{path}.breaker"),
            &invalid,
        ));
    }
    check_ttl(&format!("{path}.ttl"), &settings.ttl, problems);
    if let Some(timeout_ms) = settings.timeout_ms
        && !(1..=TIMEOUT_MS_MAX).contains(&timeout_ms)
    {
        let reason = format!("has to be between 1 and {TIMEOUT_MS_MAX}");
        problems.push(ConfigProblem::new(format!("{path}.timeoutMs"), reason));
    }
}

fn check_ttl(path: &str, ttl: &TtlConfig, problems: &mut Vec<ConfigProblem>) {
    for (name, value) in [
        ("doneMs", ttl.done_ms),
        ("failedMs", ttl.failed_ms),
        ("cancelledMs", ttl.cancelled_ms),
        ("unknownMs", ttl.unknown_ms),
        ("leaseMs", ttl.lease_ms),
    ] {
        if let Some(value) = value
            && !(1..=TTL_MS_MAX).contains(&value)
        {
            let reason = format!("has to be between 1 and {TTL_MS_MAX}");
            problems.push(ConfigProblem::new(format!("{path}.{name}"), reason));
        }
    }
}
