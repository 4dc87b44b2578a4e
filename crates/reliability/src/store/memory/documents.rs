//! Documents in this process's memory.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use holdfast_contract::Clock;
use parking_lot::Mutex;

use crate::store::documents::{
    Created, DOCUMENTS_MAX, Document, DocumentFilter, DocumentStore, NewDocument, PageBytes,
    Replaced, Replacement, check_size,
};
use crate::store::{StoreError, StoreFuture, StoreResult};

type Name = (String, String);

/// The documents of one process.
pub struct MemoryDocumentStore {
    clock: Arc<dyn Clock>,
    held: Mutex<BTreeMap<Name, Document>>,
}

impl MemoryDocumentStore {
    /// An empty store.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            held: Mutex::default(),
        }
    }

    fn create_now(&self, new: &NewDocument) -> StoreResult<Created> {
        check_size(&new.body)?;
        let now_ms = self.clock.now_ms();
        let name = (new.kind.clone(), new.id.clone());
        let mut held = self.held.lock();
        if let Some(found) = held.get(&name)
            && !found.is_expired(now_ms)
        {
            return Ok(Created::Exists(found.clone()));
        }
        if held.len() as u64 >= DOCUMENTS_MAX {
            held.retain(|_, document| !document.is_expired(now_ms));
        }
        if held.len() as u64 >= DOCUMENTS_MAX {
            return Err(StoreError::Full(format!("{DOCUMENTS_MAX} documents")));
        }
        let document = Document::first(new, now_ms);
        held.insert(name, document.clone());
        Ok(Created::New(document))
    }

    fn replace_now(&self, change: Replacement) -> StoreResult<Replaced> {
        check_size(&change.body)?;
        let now_ms = self.clock.now_ms();
        let mut held = self.held.lock();
        let found = held
            .get_mut(&(change.kind, change.id))
            .filter(|found| !found.is_expired(now_ms));
        Ok(match found {
            None => Replaced::Gone,
            Some(found) if found.version != change.version => Replaced::Changed(found.clone()),
            Some(found) => {
                found.version += 1;
                found.group = change.group;
                found.body = change.body;
                found.updated_at_ms = now_ms;
                found.expires_at_ms = change.expires_at_ms;
                Replaced::Done(found.clone())
            }
        })
    }
}

impl DocumentStore for MemoryDocumentStore {
    fn create(&self, new: NewDocument) -> StoreFuture<'_, Created> {
        StoreFuture::ready(self.create_now(&new))
    }

    fn document<'a>(&'a self, kind: &'a str, id: &'a str) -> StoreFuture<'a, Option<Document>> {
        let now_ms = self.clock.now_ms();
        let held = self.held.lock();
        let found = held
            .get(&(kind.to_owned(), id.to_owned()))
            .filter(|found| !found.is_expired(now_ms))
            .cloned();
        StoreFuture::ready(Ok(found))
    }

    fn replace(&self, change: Replacement) -> StoreFuture<'_, Replaced> {
        StoreFuture::ready(self.replace_now(change))
    }

    fn replace_detached(&self, change: Replacement) {
        // There is nobody left to tell: a change that came too late is not needed.
        let _ = self.replace_now(change);
    }

    fn documents<'a>(&'a self, filter: &'a DocumentFilter) -> StoreFuture<'a, Vec<Document>> {
        let now_ms = self.clock.now_ms();
        let from = (
            filter.kind.clone(),
            filter.after.clone().unwrap_or_default(),
        );
        let start = match filter.after {
            Some(_) => Bound::Excluded(from),
            None => Bound::Included(from),
        };
        let mut bytes = PageBytes::default();
        let mut found = Vec::new();
        let held = self.held.lock();
        let fitting = held
            .range((start, Bound::Unbounded))
            .map(|(_, document)| document)
            .take_while(|document| document.kind == filter.kind)
            .filter(|document| !document.is_expired(now_ms))
            .filter(|document| filter.group.as_ref().is_none_or(|it| *it == document.group))
            .take(filter.page());
        for document in fitting {
            found.push(document.clone());
            if bytes.is_full_with(document) {
                break;
            }
        }
        StoreFuture::ready(Ok(found))
    }

    fn remove<'a>(&'a self, kind: &'a str, id: &'a str) -> StoreFuture<'a, bool> {
        let now_ms = self.clock.now_ms();
        let removed = self.held.lock().remove(&(kind.to_owned(), id.to_owned()));
        StoreFuture::ready(Ok(removed.is_some_and(|was| !was.is_expired(now_ms))))
    }

    fn sweep_documents(&self) -> StoreFuture<'_, u64> {
        let now_ms = self.clock.now_ms();
        let mut held = self.held.lock();
        let before = held.len();
        held.retain(|_, document| !document.is_expired(now_ms));
        StoreFuture::ready(Ok((before - held.len()) as u64))
    }
}
