//! A claim whose call waits for leave to start.

use std::sync::Arc;

use super::key::StoredKey;
use super::transition::{ClaimRequest, Hold, Refused};
use crate::store::{DedupeStore, StoreResult};

/// The claim of a call that waits, as the layer sees it that lets it start.
#[derive(Clone)]
pub struct HeldClaim {
    store: Arc<dyn DedupeStore>,
    key: StoredKey,
    owner: Arc<str>,
    lease_ms: u64,
}

impl HeldClaim {
    /// The claim, if it was made for a call that waits.
    pub(super) fn of(store: &Arc<dyn DedupeStore>, wish: &ClaimRequest) -> Option<Self> {
        (wish.hold == Hold::Held).then(|| Self {
            store: store.clone(),
            key: wish.key,
            owner: wish.owner.clone(),
            lease_ms: wish.lifetimes.lease_ms,
        })
    }

    /// Puts on record that the call starts now. Refused, it must not: the claim is another's.
    pub async fn begin(&self) -> StoreResult<Result<(), Refused>> {
        self.store
            .begin(&self.key, &self.owner, self.lease_ms)
            .await
    }
}
