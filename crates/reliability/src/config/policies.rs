//! From settings to policies: the nearest setting wins, and nothing that can not be gets through.

use std::sync::Arc;

use holdfast_contract::{Effect, Tool};

use super::{
    MESSAGE_ECHO_WINDOW_MS, ReliabilityConfig, ScopeSetting, StoreKind, TIMEOUT_MS_MAX, TTL_MS_MAX,
    ToolSettings, TtlConfig, UNKNOWN_WINDOW_MS, WhitespaceSetting,
};
use crate::breaker::{BreakerKey, BreakerPolicy};
use crate::canonical::{FieldNames, Whitespace};
use crate::idempotency::key::{Access, Scope};
use crate::idempotency::transition::Lifetimes;
use crate::policy::{Configured, ContentWindows, Keep, Repeats, Switches, ToolPolicy};
use crate::policy_check::InvalidPolicy;
use crate::rate::{RateLimitOverrides, ToolLimit};
use crate::retry::{RetryBudget, RetryBudgetPolicy, RetryPolicy};

/// Tools whose repeated content is never taken for an echo: the same command or edit twice is
/// ordinary work.
const NEVER_BY_CONTENT: [&str; 4] = ["exec", "write", "edit", "read"];

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
        let chosen = self.store.kind == StoreKind::Redis;
        problems.extend(self.store.redis.problems(chosen));
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
        self.check_rates(&mut problems);
        problems
    }

    /// The retry budget that all calls share.
    pub fn retry_budget(&self) -> Result<RetryBudget, Vec<ConfigProblem>> {
        let policy = RetryBudgetPolicy::standard().with(&self.retry_budget);
        checked("reliability.retryBudget", policy).map(RetryBudget::new)
    }

    /// Throws the switches as configured.
    pub fn apply_switches(&self, switches: &Switches) {
        switches.configure(Configured {
            enabled: self.enabled,
            mode: self.mode,
            open_mode: self.open_mode,
            derive_keys: self.derive_idempotency,
        });
    }

    /// The policy of a tool.
    pub fn policy_for(&self, tool: &dyn Tool) -> Result<ToolPolicy, Vec<ConfigProblem>> {
        let nature = Nature {
            name: tool.name(),
            known_as: tool.known_as(),
            namespace: tool.namespace(),
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
            known_as: "unknown",
            namespace: "",
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
        let tool_breaker = Arc::new(BreakerKey::tool(nature.namespace, nature.name));
        let limits = self.limits(&sources, &tool_breaker, dependency.as_deref())?;
        let wait_ms = limits.iter().map(|limit| limit.limit.max_wait_ms()).min();
        Ok(ToolPolicy {
            tool: nature.name.into(),
            mode: nearest(&sources, |s| s.mode),
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
            volatile_fields: named(FieldNames::VOLATILE, &sources, |s| &s.volatile_fields),
            exact_fields: named(FieldNames::EMPTY, &sources, |s| &s.exact_fields),
            collapse_fields: named(FieldNames::EMPTY, &sources, |s| &s.collapse_fields),
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
            breaker: breaker.covering_attempt(timeout_ms + wait_ms.unwrap_or(0)),
            tool_breaker,
            dependency,
            limits,
            timeout_ms,
            payload_bytes_max: self.store.payload_bytes_max,
            read_only_when_away: self.store.read_only_when_away,
        })
    }

    /// The limits of a tool: its own, and its dependency's.
    fn limits(
        &self,
        sources: &[Source<'_>],
        tool: &BreakerKey,
        dependency: Option<&str>,
    ) -> Result<Vec<ToolLimit>, Vec<ConfigProblem>> {
        let mut limits = Vec::new();
        let mut add = |path: &str, written: RateLimitOverrides, of: &BreakerKey| {
            let limit = checked(&format!("{path}.rateLimit"), written.checked())?;
            limits.extend(limit.map(|limit| ToolLimit {
                name: of.to_string().into(),
                limit,
            }));
            Ok::<(), Vec<ConfigProblem>>(())
        };
        let merge =
            |all: RateLimitOverrides, source: &Source<'_>| all.with(&source.settings.rate_limit);
        let own = sources.iter().fold(RateLimitOverrides::default(), merge);
        let path = sources.last().map_or("", |source| &source.path);
        add(path, own, tool)?;
        if let Some(name) = dependency
            && let Some(settings) = self.dependencies.get(name)
        {
            let path = format!("reliability.dependencies.{name}");
            add(&path, settings.rate_limit, &BreakerKey::dependency(name))?;
        }
        Ok(limits)
    }

    /// What is wrong with rate limits, beyond what is wrong with each of them alone.
    fn check_rates(&self, problems: &mut Vec<ConfigProblem>) {
        let mut check = |path: String, written: &RateLimitOverrides| {
            if let Err(invalid) = written.checked() {
                problems.extend(ConfigProblem::from_policy(&path, &invalid));
            } else if written.lacks_calls() {
                let reason = "has to be given for a limit; 0 is no limit";
                problems.push(ConfigProblem::new(format!("{path}.calls"), reason));
            }
        };
        let classes = [
            ("readOnly", &self.classes.read_only),
            ("mutating", &self.classes.mutating),
        ];
        for (name, settings) in classes {
            check(
                format!("reliability.classes.{name}.rateLimit"),
                &settings.rate_limit,
            );
        }
        for (name, settings) in &self.dependencies {
            check(
                format!("reliability.dependencies.{name}.rateLimit"),
                &settings.rate_limit,
            );
        }
        for (name, settings) in &self.tools {
            let path = format!("reliability.tools.{name}.rateLimit");
            // Which class the tool is of is not known here; one that limits is enough.
            let limits = |class: &ToolSettings| class.rate_limit.calls.is_some();
            let class = [&self.classes.read_only, &self.classes.mutating]
                .into_iter()
                .find(|class| limits(class));
            let base = class.map(|class| class.rate_limit).unwrap_or_default();
            check(path, &base.with(&settings.rate_limit));
        }
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
    known_as: &'a str,
    namespace: &'a str,
    effect: Effect,
    idempotent: bool,
    forwards_key: bool,
    polls: bool,
    dependency: Option<&'a str>,
    timeout_ms: u64,
}

/// The names that all of the settings add to those that are there.
fn named(
    base: FieldNames,
    sources: &[Source<'_>],
    pick: impl Fn(&ToolSettings) -> &Vec<String>,
) -> FieldNames {
    sources.iter().fold(base, |names, source| {
        names.with(pick(source.settings).iter().cloned())
    })
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
        || NEVER_BY_CONTENT.contains(&nature.known_as)
    {
        return None;
    }
    let echo_default_ms = if nature.known_as == "message" {
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
