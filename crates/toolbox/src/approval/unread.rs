//! Requests that this version can not read.
//!
//! A newer one that shares the state may have written them. Nothing is done with them here, and nothing
//! else waits for them.

use std::collections::BTreeMap;

use holdfast_reliability::store::documents::Document;
use holdfast_reliability::store::{StoreError, StoreResult};
use parking_lot::Mutex;

use super::service::{APPROVALS_OPEN_MAX, Approvals, KIND, Seen};

/// Those that were told of, and why they can not be read.
#[derive(Default)]
pub(super) struct Unread(Mutex<BTreeMap<String, String>>);

impl Approvals {
    /// The requests that could not be read so far, and why.
    pub fn unread(&self) -> BTreeMap<String, String> {
        self.unread.0.lock().clone()
    }

    /// A request as it stands, if it can be read. It is told of otherwise, once: it is found again and
    /// again.
    pub(super) fn readable(&self, document: Document) -> Option<Seen> {
        let id = document.id.clone();
        let error = match self.known(document) {
            Ok(seen) => return Some(seen),
            Err(error) => error,
        };
        // The store is there: what is wrong is this request.
        let why = match &error {
            StoreError::Unavailable(why) | StoreError::Full(why) => why.clone(),
        };
        let is_new = {
            let mut told = self.unread.0.lock();
            if told.len() >= APPROVALS_OPEN_MAX && !told.contains_key(&id) {
                told.clear();
            }
            told.insert(id, why).is_none()
        };
        if is_new {
            self.tell_trouble(&error);
        }
        None
    }

    /// The same by its name.
    pub(super) async fn seen_if_readable(&self, id: &str) -> StoreResult<Option<Seen>> {
        let found = self.store.document(KIND, id).await?;
        Ok(found.and_then(|document| self.readable(document)))
    }
}
