//! The settings of each tool, worked out once when it is registered.
//!
//! On the hot path nothing looks anything up in a configuration: a call carries its
//! [`ToolPolicy`].

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use parking_lot::{Mutex, RwLock};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::admin::HeldOpen;
use crate::breaker::{BreakerKey, BreakerPolicy};
use crate::canonical::{FieldNames, Whitespace};
use crate::config::WhenAway;
use crate::idempotency::key::Scope;
use crate::idempotency::transition::Lifetimes;
use crate::rate::ToolLimit;
use crate::retry::RetryPolicy;

/// What a reliability layer does about what it finds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Mode {
    /// It acts.
    #[default]
    Enforce,
    /// It computes and logs what it would have done, in a keyspace of its own, and changes nothing.
    Shadow,
    /// It stands aside.
    Off,
}

impl Mode {
    /// Its name in configurations.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::Shadow => "shadow",
            Self::Off => "off",
        }
    }
}

/// The mode of each of the layers that can be switched. Permission, schema and confinement are not
/// among them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LayerModes {
    /// The loop guard.
    pub guard: Mode,
    /// Idempotency.
    pub idempotency: Mode,
    /// Retry, with the codes to retry on or never.
    pub retry: Mode,
    /// The circuit breaker.
    pub breaker: Mode,
    /// What the breaker does about a call when it is open; it counts in any case.
    pub open: Mode,
    /// The rate limits.
    pub rate: Mode,
}

impl LayerModes {
    /// All alike.
    pub const fn all(mode: Mode) -> Self {
        Self {
            guard: mode,
            idempotency: mode,
            retry: mode,
            breaker: mode,
            open: mode,
            rate: mode,
        }
    }
}

/// Whether keys are computed for calls that bring none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum DeriveKeys {
    /// They are.
    #[default]
    On,
    /// Only calls with a key of their own are deduplicated.
    Off,
}

/// What to do about a key that comes back with other arguments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum OnKeyConflict {
    /// Refuse: `idempotency_key_conflict`.
    #[default]
    Reject,
    /// Treat it as another key.
    Independent,
}

/// Which store keeps a tool's records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Keep {
    /// This process's memory.
    Memory,
    /// The durable store: the claim is on disk before the tool starts.
    #[default]
    Durable,
}

/// Windows of the second look-up by content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContentWindows {
    /// For a running or unknown call.
    pub unknown_ms: u64,
    /// For a finished one; 0 for never.
    pub echo_ms: u64,
}

/// What running a call a second time does, by the tool's nature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeats {
    /// Nothing: it is read-only, or twice equals once.
    Harmless,
    /// Nothing as long as the call has a key, which the downstream honours.
    HarmlessWithKey,
    /// Perhaps the effect a second time.
    Harmful,
}

/// Everything the layers need to know about one tool.
#[derive(Debug, Clone)]
pub struct ToolPolicy {
    /// The tool's name.
    pub tool: Arc<str>,
    /// The mode set for this tool or its class, which is set apart by it from all others.
    pub mode: Option<Mode>,
    /// Whether repeating a call can change anything.
    pub mutating: bool,
    /// What a second run does.
    pub repeats: Repeats,
    /// Whether identical calls are its ordinary use.
    pub polls: bool,
    /// How far its keys reach.
    pub scope: Scope,
    /// Whether whitespace in arguments matters to a computed key.
    pub whitespace: Whitespace,
    /// Arguments in which it matters in any case.
    pub exact_fields: FieldNames,
    /// Arguments in which it does not.
    pub collapse_fields: FieldNames,
    /// Arguments that do not identify the call.
    pub volatile_fields: FieldNames,
    /// What a key conflict means.
    pub on_key_conflict: OnKeyConflict,
    /// The second look-up, for tools that have one.
    pub content_windows: Option<ContentWindows>,
    /// Where its records are kept.
    pub keep: Keep,
    /// How long records are kept.
    pub lifetimes: Lifetimes,
    /// Retry, with the codes to retry on or never.
    pub retry: RetryPolicy,
    /// Breaker.
    pub breaker: BreakerPolicy,
    /// The breaker of the tool alone, ready to be asked for at every attempt.
    pub tool_breaker: Arc<BreakerKey>,
    /// The dependency behind it.
    pub dependency: Option<String>,
    /// How often it may be called: its own limit and its dependency's, where there are any.
    pub limits: Vec<ToolLimit>,
    /// Time limit of one attempt.
    pub timeout_ms: u64,
    /// A larger output is not recorded.
    pub payload_bytes_max: usize,
    /// What becomes of a read-only call while the store is away.
    pub read_only_when_away: WhenAway,
}

impl ToolPolicy {
    /// The tool's breaker, where the configuration holds it open.
    pub fn held_open(&self) -> Option<HeldOpen> {
        Some(HeldOpen {
            key: (*self.tool_breaker).clone(),
            reason: self.breaker.forced_open()?.to_owned(),
        })
    }
}

/// The switches that can be thrown while the process runs.
#[derive(Debug, Default)]
pub struct Switches {
    /// What the layers do for tools that are not set apart: `reliability.mode`.
    mode: AtomicMode,
    /// What they may do at most, set apart or not: `TOOL_RELIABILITY_ENABLED=false` is `Off`, and
    /// an operator's word counts for every tool.
    at_most: AtomicMode,
    /// `TOOL_RELIABILITY_OPEN_MODE`.
    open_mode: AtomicMode,
    /// `TOOL_RELIABLE_DERIVE_IDEMPOTENCY`: 0 on, 1 off.
    derive_off: AtomicU8,
    /// What was configured last: only what changes in it turns a switch that an operator may have
    /// turned since.
    configured: Mutex<Option<Configured>>,
}

/// The switches as a configuration sets them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Configured {
    /// `reliability.enabled`: `false` is the kill switch.
    pub enabled: bool,
    /// `reliability.mode`.
    pub mode: Mode,
    /// `reliability.openMode`.
    pub open_mode: Mode,
    /// `reliability.deriveIdempotency`.
    pub derive_keys: DeriveKeys,
}

#[derive(Debug, Default)]
struct AtomicMode(AtomicU8);

impl AtomicMode {
    fn get(&self) -> Mode {
        match self.0.load(Ordering::Relaxed) {
            0 => Mode::Enforce,
            1 => Mode::Shadow,
            _ => Mode::Off,
        }
    }

    fn set(&self, mode: Mode) {
        let number = match mode {
            Mode::Enforce => 0,
            Mode::Shadow => 1,
            Mode::Off => 2,
        };
        self.0.store(number, Ordering::Relaxed);
    }
}

impl Switches {
    /// Takes guard, idempotency, retry, breaker and rate limits out, or puts them back.
    pub fn set_enabled(&self, enabled: bool) {
        self.set_mode(if enabled { Mode::Enforce } else { Mode::Off });
    }

    /// Whether the four layers are in.
    pub fn enabled(&self) -> bool {
        self.mode() != Mode::Off
    }

    /// Turns the switches to what is configured: at the start all of them, later those whose setting
    /// is another than before. What an operator turned stays, where nobody wrote anything new.
    pub fn configure(&self, new: Configured) {
        let old = self.configured.lock().replace(new);
        let is_new = |same: fn(&Configured, &Configured) -> bool| {
            old.as_ref().is_none_or(|old| !same(old, &new))
        };
        if is_new(|a, b| (a.enabled, a.mode) == (b.enabled, b.mode)) {
            self.mode.set(new.mode);
            let at_most = if new.enabled {
                Mode::Enforce
            } else {
                Mode::Off
            };
            self.at_most.set(at_most);
        }
        if is_new(|a, b| a.open_mode == b.open_mode) {
            self.set_open_mode(new.open_mode);
        }
        if is_new(|a, b| a.derive_keys == b.derive_keys) {
            self.set_derive_keys(new.derive_keys);
        }
    }

    /// Sets what the layers do, and may do at most. A tool that is configured to less stays there.
    pub fn set_mode(&self, mode: Mode) {
        self.mode.set(mode);
        self.at_most.set(mode);
    }

    /// What the layers do for tools that are not set apart.
    pub fn mode(&self) -> Mode {
        weaker(self.mode.get(), self.at_most.get())
    }

    /// Sets what an open breaker does.
    pub fn set_open_mode(&self, mode: Mode) {
        self.open_mode.set(mode);
    }

    /// What an open breaker does.
    pub fn open_mode(&self) -> Mode {
        self.open_mode.get()
    }

    /// Sets whether keys are computed.
    pub fn set_derive_keys(&self, derive: DeriveKeys) {
        self.derive_off
            .store(u8::from(derive == DeriveKeys::Off), Ordering::Relaxed);
    }

    /// Whether keys are computed.
    pub fn derive_keys(&self) -> DeriveKeys {
        if self.derive_off.load(Ordering::Relaxed) == 0 {
            DeriveKeys::On
        } else {
            DeriveKeys::Off
        }
    }

    /// The modes of a call to a tool with this policy.
    pub fn modes_for(&self, policy: &ToolPolicy) -> LayerModes {
        let own = policy.mode.unwrap_or_else(|| self.mode.get());
        let mut modes = LayerModes::all(weaker(own, self.at_most.get()));
        modes.open = weaker(modes.breaker, self.open_mode());
        // One that only says so is the live one still: it counts what enforcing would count.
        if modes.open == Mode::Off {
            modes.breaker = Mode::Off;
        }
        modes
    }
}

/// The mode that interferes less.
fn weaker(a: Mode, b: Mode) -> Mode {
    match (a, b) {
        (Mode::Off, _) | (_, Mode::Off) => Mode::Off,
        (Mode::Shadow, _) | (_, Mode::Shadow) => Mode::Shadow,
        (Mode::Enforce, Mode::Enforce) => Mode::Enforce,
    }
}

/// What the switches come to, for those who look.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Modes {
    /// What guard, idempotency, retry, breaker and rate limits do.
    pub mode: Mode,
    /// What an open breaker does.
    pub open_mode: Mode,
    /// Whether keys are computed.
    pub derive_idempotency: DeriveKeys,
    /// The tools for which the layers do something else, each with what they do.
    pub tools: BTreeMap<String, Mode>,
}

impl std::fmt::Display for Modes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let keys = match self.derive_idempotency {
            DeriveKeys::On => "on",
            DeriveKeys::Off => "off",
        };
        let (mode, open) = (self.mode.as_str(), self.open_mode.as_str());
        write!(f, "mode {mode}, open breakers {open}, computed keys {keys}")?;
        for (tool, mode) in &self.tools {
            write!(f, ", but {tool} {}", mode.as_str())?;
        }
        Ok(())
    }
}

/// The policies of all registered tools.
#[derive(Debug)]
pub struct PolicyTable {
    by_tool: RwLock<HashMap<Arc<str>, Arc<ToolPolicy>>>,
    /// For names nobody registered: the call ends before anything runs, but it is still counted.
    unknown: Arc<ToolPolicy>,
}

impl PolicyTable {
    /// A table that knows no tool.
    pub fn new(unknown: ToolPolicy) -> Self {
        Self {
            by_tool: RwLock::default(),
            unknown: Arc::new(unknown),
        }
    }

    /// Adds or replaces a tool's policy.
    pub fn insert(&self, policy: ToolPolicy) {
        self.by_tool
            .write()
            .insert(policy.tool.clone(), Arc::new(policy));
    }

    /// What the switches come to for these tools.
    pub fn modes(&self, switches: &Switches) -> Modes {
        let by_tool = self.by_tool.read();
        let tools = by_tool.iter().map(|(tool, policy)| {
            let mode = switches.modes_for(policy).idempotency;
            (tool.to_string(), mode)
        });
        Modes {
            mode: switches.mode(),
            open_mode: switches.open_mode(),
            derive_idempotency: switches.derive_keys(),
            tools: tools.filter(|(_, mode)| *mode != switches.mode()).collect(),
        }
    }

    /// The breakers that the configuration holds open.
    pub fn held_open(&self) -> Vec<HeldOpen> {
        let by_tool = self.by_tool.read();
        let mut held: Vec<HeldOpen> = by_tool.values().filter_map(|it| it.held_open()).collect();
        held.sort_by(|a, b| a.key.cmp(&b.key));
        held
    }

    /// The policy of a tool.
    pub fn get(&self, tool: &str) -> Arc<ToolPolicy> {
        self.by_tool
            .read()
            .get(tool.trim())
            .unwrap_or(&self.unknown)
            .clone()
    }
}
