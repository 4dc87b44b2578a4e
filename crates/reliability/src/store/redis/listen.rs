//! The one subscription of a process: changed records, and breakers that changed their state.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use redis::Msg;

use super::Shared;
use super::layout::key_of_member;
use super::link::jitter;
use super::options::RECONNECT_BACKOFF_MS_MAX;

/// The first wait between two attempts to listen.
const BACKOFF_MS_MIN: u64 = 20;

/// Listens, and listens again whenever the connection breaks.
pub(super) async fn listen(shared: Arc<Shared>) {
    let mut backoff_ms = BACKOFF_MS_MIN;
    for turn in 0.. {
        if listen_once(&shared, turn).await.is_some() {
            backoff_ms = BACKOFF_MS_MIN;
        }
        tokio::time::sleep(Duration::from_millis(jitter(backoff_ms))).await;
        backoff_ms = (backoff_ms * 2).min(RECONNECT_BACKOFF_MS_MAX);
    }
}

async fn listen_once(shared: &Arc<Shared>, turn: usize) -> Option<()> {
    let mut pubsub = shared.link.plan().listen(turn).await.ok()?;
    pubsub.subscribe(&shared.records_channel).await.ok()?;
    pubsub.subscribe(&shared.breakers_channel).await.ok()?;
    // Whatever was said before this moment was not heard.
    shared.waiters.look_soon();
    shared.breakers.refresh_soon();
    let mut messages = pubsub.into_on_message();
    while let Some(message) = messages.next().await {
        hear(shared, &message);
    }
    Some(())
}

fn hear(shared: &Shared, message: &Msg) {
    let payload = message.get_payload_bytes();
    if message.get_channel_name() == shared.breakers_channel {
        shared.breakers.refresh_soon();
        return;
    }
    let Some(key) = key_of_member(payload) else {
        return;
    };
    let version = payload
        .get(32..40)
        .and_then(|bytes| bytes.try_into().ok())
        .map(u64::from_le_bytes);
    shared.waiters.wake(&key, version);
}
