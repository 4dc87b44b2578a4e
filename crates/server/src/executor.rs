//! What the routes to the model share: its runs, their defaults and limits.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use holdfast_agent::model::Model;
use holdfast_agent::run::RunState;
use holdfast_agent::runs::Runs;
use holdfast_agent::settings::RunSettings;
use holdfast_contract::clock::new_request_id;
use holdfast_reliability::store::StoreResult;
use parking_lot::RwLock;
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::Instant;

use crate::access::Client;
use crate::limits::{MODEL_PROBE_EVERY_MS, REQUESTS_WINDOW_MS};
use crate::repeats::Repeats;
use crate::windows::Windows;

/// Whether tools of an `OpenClaw` gateway are offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gateway {
    /// They are.
    Configured,
    /// They are not.
    Absent,
}

impl Gateway {
    /// The word for those who watch.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Configured => "configured",
            Self::Absent => "not configured",
        }
    }
}

/// What becomes of a model's calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Calls {
    /// They run here, with our tools.
    Run,
    /// They go back to the client.
    Returned,
}

/// The names that there always are.
pub const STANDARD: [(&str, Calls); 3] = [
    ("gpt-oss", Calls::Run),
    ("executor", Calls::Run),
    ("gpt-oss-tools", Calls::Returned),
];
/// How the names end of further models that return their calls.
pub const RETURNS: &str = "-tools";

/// A model that clients can ask, by the name that they use.
#[derive(Debug, Clone, PartialEq)]
pub struct Served {
    /// The name.
    pub name: String,
    /// What becomes of its calls.
    pub calls: Calls,
    /// What a request that says nothing gets, and what no request can go beyond.
    pub settings: RunSettings,
}

impl Served {
    /// The standard names, then those that were configured. Who has no settings of its own has the
    /// common ones.
    pub fn all(common: &RunSettings, own: &BTreeMap<String, RunSettings>) -> Vec<Self> {
        let served = |name: &str, calls| Self {
            name: name.to_owned(),
            calls,
            settings: own.get(name).unwrap_or(common).clone(),
        };
        let standard = STANDARD.iter().map(|(name, calls)| served(name, *calls));
        let is_new = |name: &&String| STANDARD.iter().all(|(known, _)| known != name);
        let more = own.keys().filter(is_new).map(|name| {
            let returns = name.ends_with(RETURNS);
            served(name, if returns { Calls::Returned } else { Calls::Run })
        });
        standard.chain(more).collect()
    }
}

/// What can be exchanged while it works.
pub struct ModelLimits {
    /// Their servers.
    pub model: Arc<dyn Model>,
    /// The rules of runs that no client asked for: those of subagents.
    pub common: RunSettings,
    /// The models that clients can ask.
    pub models: Vec<Served>,
    /// Requests of one client within a minute.
    pub requests_per_minute_max: u32,
}

/// What an executor is made of.
pub struct ExecutorParts {
    /// The runs, with their model and tools.
    pub runs: Arc<Runs>,
    /// The models that clients can ask.
    pub models: Vec<Served>,
    /// Requests of one client within a minute.
    pub requests_per_minute_max: u32,
    /// Whether a gateway's tools are offered.
    pub gateway: Gateway,
}

/// Runs for clients.
pub struct Executor {
    pub(crate) runs: Arc<Runs>,
    models: RwLock<Arc<[Served]>>,
    pub(crate) gateway: Gateway,
    rates: Windows<String>,
    /// What clients may ask again by themselves.
    pub(crate) repeats: Repeats,
    /// Held while asking, so that a crowd of probes asks once.
    reached: AsyncMutex<Option<(Instant, Reached)>>,
}

/// Whether the model's server is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reached {
    Connected,
    Unreachable,
}

impl Executor {
    /// Puts one together.
    pub fn new(parts: ExecutorParts) -> Self {
        let window = Duration::from_millis(REQUESTS_WINDOW_MS);
        Self {
            runs: parts.runs,
            models: RwLock::new(parts.models.into()),
            gateway: parts.gateway,
            rates: Windows::new(window, parts.requests_per_minute_max),
            repeats: Repeats::default(),
            reached: AsyncMutex::default(),
        }
    }

    /// The models that clients can ask now.
    pub(crate) fn models(&self) -> Arc<[Served]> {
        self.models.read().clone()
    }

    /// From now on these. A run that has begun goes on by its own, on its own servers.
    pub(crate) fn exchange(&self, limits: ModelLimits) {
        // Before the names: a new one has its server when it is first asked for.
        self.runs.exchange(limits.model, limits.common);
        *self.models.write() = limits.models.into();
        self.rates.exchange(limits.requests_per_minute_max);
    }

    /// Counts a request of a client; says how long it has to wait when there were too many.
    pub(crate) fn count(&self, client: &Client) -> Result<(), Duration> {
        self.rates.take(client.counted_as())
    }

    /// Goes on with the runs that were left unfinished, and knows the requests again that began them;
    /// says with how many.
    pub(crate) async fn resume_runs(&self) -> StoreResult<usize> {
        let now_ms = self.now_ms();
        let know = |state: &RunState| {
            let age = Duration::from_millis(now_ms.saturating_sub(state.begun_at_ms));
            if let Some(request) = state.request {
                self.repeats.known_again(request, &state.id, age);
            }
        };
        self.runs.resume_each(know).await
    }

    /// A name for a new run.
    pub(crate) fn new_id(&self) -> String {
        let runtime = self.runs.agent().stack().runtime();
        format!("run-{}", new_request_id(&*runtime.clock, &*runtime.entropy))
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.runs.agent().stack().runtime().clock.now_ms()
    }

    /// Whether the model's server is there, at most a moment ago.
    pub(crate) async fn reached(&self) -> Reached {
        let mut last = self.reached.lock().await;
        if let Some((at, found)) = *last
            && at.elapsed() < Duration::from_millis(MODEL_PROBE_EVERY_MS)
        {
            return found;
        }
        let found = match self.runs.agent().model().reach().await {
            Ok(()) => Reached::Connected,
            Err(_) => Reached::Unreachable,
        };
        *last = Some((Instant::now(), found));
        found
    }
}

/// The part of the window that the last answer took, in percent with one decimal.
pub(crate) fn context_usage_percent(state: &RunState) -> f64 {
    let used = state.tokens.last().map_or(0, |tokens| tokens.total());
    let limit = state.settings.window.tokens.max(1);
    let per_mille = used.saturating_mul(1000) / limit;
    f64::from(u32::try_from(per_mille).unwrap_or(u32::MAX)) / 10.0
}
