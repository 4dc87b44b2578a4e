//! Forgets what has expired, now and then.
//!
//! Expired records are never answered from, swept or not; sweeping only gives their room back.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;

use crate::idempotency::DedupeStores;
use crate::observe::Event;
use crate::observe::metrics::Metrics;
use crate::runtime::Runtime;
use crate::store::DedupeStore;

/// How often a long-running process sweeps.
pub const SWEEP_EVERY_MS: u64 = 60_000;

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
        }
    }
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
