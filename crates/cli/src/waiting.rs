//! Tells a person at a terminal what a duplicate waits for.

use std::io::IsTerminal;
use std::time::Duration;

use holdfast_contract::Clock;
use holdfast_reliability::idempotency::DedupeStores;
use holdfast_reliability::idempotency::key::StoredKey;
use holdfast_reliability::idempotency::record::{RecordState, SharedRecord};
use holdfast_reliability::observe::{Event, Observer};
use tokio::sync::watch;

use crate::output;

/// A shorter wait is not worth a line.
const SAY_AFTER: Duration = Duration::from_secs(1);

/// Sees when a call begins to wait for another with its key.
pub(crate) struct WaitWatch(watch::Sender<Option<StoredKey>>);

impl WaitWatch {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(None))
    }

    /// Says what is waited for, once it takes a while. Ends then, or never.
    pub(crate) async fn tell(&self, stores: &DedupeStores, clock: &dyn Clock) {
        if !std::io::stderr().is_terminal() {
            return;
        }
        let mut seen = self.0.subscribe();
        let Ok(key) = seen.wait_for(Option::is_some).await.map(|key| *key) else {
            return;
        };
        tokio::time::sleep(SAY_AFTER).await;
        let Some(key) = key else { return };
        for store in [&stores.durable, &stores.memory] {
            if let Ok(Some(record)) = store.get(&key).await
                && record.state == RecordState::Inflight
            {
                say(&record, clock);
                return;
            }
        }
    }
}

fn say(record: &SharedRecord, clock: &dyn Clock) {
    let since = output::ago(record.created_at_ms, clock.now_ms());
    output::note(&format!(
        "waiting for the call with this key that began {since} (request {}); Ctrl-C stops waiting, not the call",
        record.request.request_id
    ));
}

impl Observer for WaitWatch {
    fn observe(&self, event: &Event<'_>) {
        if let Event::Waits { key, .. } = event {
            self.0.send_replace(Some(**key));
        }
    }
}
