//! Redis (or Valkey) as the store that several machines share.
//!
//! | module | what it does |
//! |---|---|
//! | `options`, `plan` | where the server is, and how it is connected to: single, Sentinel, Cluster |
//! | `link`, `server_time` | the connection that all share, made again when it breaks; the time at its end |
//! | `layout`, `lua/` | how a record is packed, and the atomic steps |
//! | `claim`, `dedupe`, `upkeep` | the records of intents; listing and forgetting them in bounded steps |
//! | `granted` | the claims of this process, put back when a server has lost them |
//! | `waiters`, `listen` | duplicates that wait, woken by one subscription per process |
//! | `write_back` | last words for a server that is away |
//! | `breakers`, `budget`, `rate`, `documents` | what else is shared |
//!
//! Time is the server's, so clocks of machines that disagree do not end each other's leases. A
//! claim is one round trip, and so is a last word. Whatever goes wrong is an error and never a
//! grant.

use std::sync::Arc;
use std::time::Duration;

use holdfast_contract::Clock;
use redis::Value;
use tokio::runtime::Runtime;

use self::breakers::Breakers;
use self::granted::GrantedClaims;
use self::layout::{Names, Sizes};
use self::link::{Link, Script, surprise};
use self::options::{EVICTION_ROUNDS_MAX, EVICTION_SAMPLE, EVICTION_TRIES_MAX};
use self::upkeep::Counts;
use self::waiters::Waiters;
use self::write_back::WriteBack;
use super::{Degraded, StoreError, StoreResult};
use crate::config::redis::{DOCUMENT_SWEEP_BATCH, RedisUrl};
use crate::idempotency::key::StoredKey;
use crate::store::documents::DOCUMENT_PAGE_BYTES_MAX;

mod breakers;
mod budget;
mod claim;
mod dedupe;
mod documents;
mod granted;
mod layout;
mod link;
mod listen;
pub mod options;
mod plan;
mod rate;
mod server_time;
mod upkeep;
mod waiters;
mod write_back;

pub use budget::RedisRetryBudget;
pub use options::{RedisOptions, TimeSource, Topology};
pub use rate::RedisRateLimits;

/// Says what is wrong with an address, without repeating it.
pub(crate) fn check_address(url: &RedisUrl) -> Result<(), String> {
    plan::info(url).map(|_| ())
}

/// How long the drop of a store waits for its last words.
const CLOSE_WAIT: Duration = Duration::from_secs(3);

/// The line of `finalise.lua` without which it takes everybody's last word.
#[cfg(any(test, feature = "conformance"))]
const FINALISE_COMPARE: &str =
    "if string.sub(head, 59) ~= owner or not (was == 'i' or (was == 'u' and state ~= 'u')) then";

/// The atomic steps.
struct Scripts {
    claim: Script,
    finalise: Script,
    renew: Script,
    remove: Script,
    sweep: Script,
    scan: Script,
    sample: Script,
    forget: Script,
    restore: Script,
    bring_back: Script,
    compare: Script,
    budget: Script,
    document: Script,
    rate: Script,
}

/// A script with its limits written in: an argument would be sent with every claim.
fn with_limits(text: &str) -> String {
    text.replace("EVICTION_ROUNDS_MAX", &EVICTION_ROUNDS_MAX.to_string())
        .replace("EVICTION_TRIES_MAX", &EVICTION_TRIES_MAX.to_string())
        .replace("EVICTION_SAMPLE", &EVICTION_SAMPLE.to_string())
        .replace("SWEEP_BATCH", &DOCUMENT_SWEEP_BATCH.to_string())
        .replace("PAGE_BYTES_MAX", &DOCUMENT_PAGE_BYTES_MAX.to_string())
}

impl Scripts {
    fn new() -> Self {
        Self {
            claim: Script::new(with_limits(include_str!("lua/claim.lua"))),
            finalise: Script::new(include_str!("lua/finalise.lua")),
            renew: Script::new(include_str!("lua/renew.lua")),
            remove: Script::new(include_str!("lua/remove.lua")),
            sweep: Script::new(include_str!("lua/sweep.lua")),
            scan: Script::new(include_str!("lua/scan.lua")),
            sample: Script::new(include_str!("lua/sample.lua")),
            forget: Script::new(include_str!("lua/forget.lua")),
            restore: Script::new(include_str!("lua/restore.lua")),
            bring_back: Script::new(include_str!("lua/bring_back.lua")),
            compare: Script::new(include_str!("lua/compare.lua")),
            budget: Script::new(include_str!("lua/budget.lua")),
            document: Script::new(with_limits(include_str!("lua/document.lua"))),
            rate: Script::new(include_str!("lua/rate.lua")),
        }
    }
}

/// What the tasks of a store share.
struct Shared {
    link: Arc<Link>,
    names: Names,
    scripts: Scripts,
    clock: Arc<dyn Clock>,
    sizes: Sizes,
    keys_max_per_shard: u64,
    counts: Counts,
    sweep_every_ms: u64,
    records_channel: String,
    breakers_channel: String,
    waiters: Waiters,
    granted: GrantedClaims,
    write_back: WriteBack,
    breakers: Breakers,
    detached: documents::Detached,
}

impl Shared {
    /// The version of a record that is in flight; `None` when there is none.
    async fn running_version(&self, key: &StoredKey) -> StoreResult<Option<u64>> {
        let mut cmd = redis::cmd("GETRANGE");
        cmd.arg(self.names.of(key).record).arg(0).arg(9);
        let Value::BulkString(head) = self.link.send(&cmd).await? else {
            return Err(surprise("GETRANGE"));
        };
        let version = head.get(2..10).and_then(|bytes| bytes.try_into().ok());
        Ok(version.filter(|_| head[0] == b'i').map(u64::from_le_bytes))
    }
}

/// How well a Redis store is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedisHealth {
    /// Set while the server, or a part of it, is away.
    pub degraded: Option<Degraded>,
    /// Last words that wait for it.
    pub write_backs_waiting: usize,
    /// Last words that were given up, because too many waited or the server kept refusing them.
    pub write_backs_lost: u64,
}

/// The shared state: records of intents, breakers and the rest, for as many processes as there are.
pub struct RedisState {
    shared: Arc<Shared>,
    /// Connections live here and not in a caller's runtime, which may end before its last word.
    runtime: Option<Runtime>,
}

impl RedisState {
    /// Starts connecting, and returns at once: a server that is away is told to those who ask for
    /// something. Only what can never work is an error here.
    pub fn open(options: &RedisOptions, clock: Arc<dyn Clock>) -> StoreResult<Arc<Self>> {
        Self::open_with(options, clock, Scripts::new())
    }

    /// A store that takes everybody's last word, for tests of what has to notice it.
    #[cfg(any(test, feature = "conformance"))]
    pub fn open_without_compare(
        options: &RedisOptions,
        clock: Arc<dyn Clock>,
    ) -> StoreResult<Arc<Self>> {
        let mut scripts = Scripts::new();
        let whole = include_str!("lua/finalise.lua");
        let without = whole.replacen(FINALISE_COMPARE, "if false then", 1);
        if without == whole {
            let why = "finalise.lua compares in other words now".to_owned();
            return Err(StoreError::Unavailable(why));
        }
        scripts.finalise = Script::new(without);
        Self::open_with(options, clock, scripts)
    }

    fn open_with(
        options: &RedisOptions,
        clock: Arc<dyn Clock>,
        scripts: Scripts,
    ) -> StoreResult<Arc<Self>> {
        let names = Names::new(&options.prefix, options.shards);
        let link = Arc::new(Link::new(options, names.single("meta"), clock.clone())?);
        // After what may fail: a runtime can not be dropped inside another one.
        let unusable = |error: std::io::Error| {
            StoreError::Unavailable(format!("no runtime for Redis: {error}"))
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("holdfast-redis")
            .enable_all()
            .build()
            .map_err(unusable)?;
        let shared = Arc::new(Shared {
            records_channel: names.single("changed"),
            breakers_channel: names.single("breaker-changed"),
            breakers: Breakers::new(names.single("breakers")),
            link: link.clone(),
            scripts,
            clock,
            sizes: Sizes {
                compress_above_bytes: options.compress_above_bytes,
                value_bytes_max: options.value_bytes_max,
            },
            keys_max_per_shard: (options.keys_max / u64::from(options.shards.max(1))).max(1),
            counts: Counts::new(options.shards),
            sweep_every_ms: options.sweep_every_ms,
            names,
            waiters: Waiters::default(),
            granted: GrantedClaims::default(),
            write_back: WriteBack::default(),
            detached: documents::Detached::default(),
        });
        runtime.spawn(link.keep_up());
        runtime.spawn(listen::listen(shared.clone()));
        runtime.spawn(waiters::poll(shared.clone()));
        runtime.spawn(write_back::run(shared.clone()));
        runtime.spawn(documents::run(shared.clone()));
        runtime.spawn(upkeep::keep_counting(shared.clone()));
        runtime.spawn(breakers::keep_fresh(shared.clone()));
        Ok(Arc::new(Self {
            shared,
            runtime: Some(runtime),
        }))
    }

    /// How well it is.
    pub fn health(&self) -> RedisHealth {
        let (write_backs_waiting, write_backs_lost) = self.shared.write_back.count();
        RedisHealth {
            degraded: self.shared.link.degraded(),
            write_backs_waiting,
            write_backs_lost,
        }
    }

    /// Is told whenever the server goes away and comes back.
    pub fn on_health(&self, listener: impl Fn(Option<&Degraded>) + Send + Sync + 'static) {
        self.shared.link.on_change(Box::new(listener));
    }

    /// Is told whenever a last word is given up because the server keeps answering with an error.
    pub fn on_given_up(&self, listener: impl Fn(&StoreError) + Send + Sync + 'static) {
        self.shared.write_back.on_given_up(Box::new(listener));
    }

    /// Waits until the server has every last word of this process, or for `at_most`; says how many
    /// it does not have.
    pub async fn written_back(&self, at_most: Duration) -> usize {
        let shared = self.shared.clone();
        if shared.write_back.count().0 > 0 {
            let waiting = tokio::task::spawn_blocking(move || shared.write_back.drain(at_most));
            // It only waits, and does not fail.
            let _ = waiting.await;
        }
        self.shared.write_back.count().0
    }

    /// Waits until there is a connection, or for `at_most`; says whether there is one.
    pub async fn connected(&self, at_most: Duration) -> bool {
        let _ = tokio::time::timeout(at_most, self.shared.link.up()).await;
        self.shared.link.is_up()
    }
}

/// The store's time, by which leases end, as well as it is known here.
impl Clock for RedisState {
    fn now_ms(&self) -> u64 {
        self.shared.link.now_ms()
    }
}

impl Drop for RedisState {
    fn drop(&mut self) {
        // What can not be said to a server that is away is settled by the lease.
        let at_most = if self.shared.link.is_up() {
            CLOSE_WAIT
        } else {
            Duration::ZERO
        };
        self.shared.write_back.drain(at_most);
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
