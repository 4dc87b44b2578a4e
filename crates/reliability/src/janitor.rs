//! Forgets what has expired, now and then.
//!
//! Expired records are never answered from, swept or not; sweeping only gives their room back.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;

use crate::idempotency::DedupeStores;
use crate::idempotency::record::RecordState;
use crate::observe::Event;
use crate::observe::metrics::Metrics;
use crate::runtime::Runtime;
use crate::store::{DedupeStore, RecordFilter};

/// How often a long-running process sweeps.
pub const SWEEP_EVERY_MS: u64 = 60_000;

/// Records in flight that are looked at for their leases in one round.
pub const STALE_COUNTED_MAX: usize = 4096;

/// Sweeps both stores once, and reports what they hold.
pub async fn sweep(stores: &DedupeStores, runtime: &Runtime, metrics: Option<&Metrics>) {
    sweep_one(&*stores.memory, "memory", runtime, metrics).await;
    if !Arc::ptr_eq(&stores.memory, &stores.durable) {
        sweep_one(&*stores.durable, "durable", runtime, metrics).await;
    }
}

async fn sweep_one(
    store: &dyn DedupeStore,
    name: &'static str,
    runtime: &Runtime,
    metrics: Option<&Metrics>,
) {
    if let Err(error) = store.sweep().await {
        runtime.tell(&Event::StoreTrouble {
            what: "sweep",
            error: &error,
        });
    }
    if let (Some(metrics), Ok(size)) = (metrics, store.size().await) {
        metrics.set_cache_size(name, size.records);
        if name == "durable" {
            metrics.set_cache_size("durable_inflight", size.in_flight);
            let stale = match size.in_flight {
                0 => Some(0),
                _ => stale(store, runtime).await,
            };
            if let Some(stale) = stale {
                metrics.set_cache_size("durable_stale", stale);
            }
        }
    }
}

/// Records in flight whose holder has let its lease end: nobody will finish them, and nobody has asked
/// for them since.
async fn stale(store: &dyn DedupeStore, runtime: &Runtime) -> Option<u64> {
    let filter = RecordFilter {
        state: Some(RecordState::Inflight),
        limit: Some(STALE_COUNTED_MAX),
        ..RecordFilter::default()
    };
    let running = store.list(&filter).await.ok()?;
    let now_ms = runtime.clock.now_ms();
    let stale = running.iter().filter(|it| it.lease_has_ended(now_ms));
    Some(stale.count() as u64)
}

/// Sweeps in the background until it is dropped.
pub struct Janitor {
    task: JoinHandle<()>,
}

impl Janitor {
    /// Starts sweeping. Has to be called inside a tokio runtime.
    pub fn start(
        stores: DedupeStores,
        runtime: Arc<Runtime>,
        metrics: Option<Arc<Metrics>>,
    ) -> Self {
        let task = tokio::spawn(async move {
            loop {
                tokio::time::sleep(Duration::from_millis(SWEEP_EVERY_MS)).await;
                sweep(&stores, &runtime, metrics.as_deref()).await;
            }
        });
        Self { task }
    }
}

impl Drop for Janitor {
    fn drop(&mut self) {
        self.task.abort();
    }
}
