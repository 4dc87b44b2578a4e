//! Small documents that have to outlive the process: approvals, rules, sessions.
//!
//! Each has a kind, an id within it, and a version that goes up with every change, so that of two
//! who change one at the same time exactly one wins. What a document means is its owner's affair.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{StoreFuture, StoreResult};

/// Documents a store keeps; one more is refused when none has expired.
pub const DOCUMENTS_MAX: u64 = 200_000;
/// Size of one document as JSON.
pub const DOCUMENT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Documents of one page at most.
pub const DOCUMENT_PAGE_MAX: usize = 500;
/// Size of a page's contents: the document that reaches it is the page's last.
pub const DOCUMENT_PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A document as it stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Document {
    /// What it is.
    pub kind: String,
    /// Its name within the kind.
    pub id: String,
    /// What it belongs to; documents of one kind can be listed by it.
    pub group: String,
    /// From 1, up by one with every change.
    pub version: u64,
    /// The content.
    pub body: Value,
    /// When it was made.
    pub created_at_ms: u64,
    /// When it last changed.
    pub updated_at_ms: u64,
    /// From then on it is as if it had never been.
    pub expires_at_ms: Option<u64>,
}

impl Document {
    /// What a store makes of a new document.
    pub fn first(new: &NewDocument, now_ms: u64) -> Self {
        Self {
            kind: new.kind.clone(),
            id: new.id.clone(),
            group: new.group.clone(),
            version: 1,
            body: new.body.clone(),
            created_at_ms: now_ms,
            updated_at_ms: now_ms,
            expires_at_ms: new.expires_at_ms,
        }
    }

    /// Whether its time is over.
    pub fn is_expired(&self, now_ms: u64) -> bool {
        self.expires_at_ms.is_some_and(|end_ms| end_ms <= now_ms)
    }
}

/// A document to be made.
#[derive(Debug, Clone, PartialEq)]
pub struct NewDocument {
    /// What it is.
    pub kind: String,
    /// Its name within the kind.
    pub id: String,
    /// What it belongs to.
    pub group: String,
    /// The content.
    pub body: Value,
    /// When it may be forgotten; never without.
    pub expires_at_ms: Option<u64>,
}

/// What became of a document to be made.
#[derive(Debug, Clone, PartialEq)]
pub enum Created {
    /// It is there.
    New(Document),
    /// Another one has its place.
    Exists(Document),
}

/// A change of a document, valid only for the version it was made from.
#[derive(Debug, Clone, PartialEq)]
pub struct Replacement {
    /// What it is.
    pub kind: String,
    /// Its name within the kind.
    pub id: String,
    /// The version that is replaced.
    pub version: u64,
    /// What it belongs to from now on.
    pub group: String,
    /// The new content.
    pub body: Value,
    /// When it may be forgotten.
    pub expires_at_ms: Option<u64>,
}

impl Replacement {
    /// The document with another content, all else alike.
    pub fn of(document: &Document, body: Value) -> Self {
        Self {
            kind: document.kind.clone(),
            id: document.id.clone(),
            version: document.version,
            group: document.group.clone(),
            body,
            expires_at_ms: document.expires_at_ms,
        }
    }
}

/// What became of a change.
#[derive(Debug, Clone, PartialEq)]
pub enum Replaced {
    /// It was taken.
    Done(Document),
    /// Somebody else was faster: this is how it stands.
    Changed(Document),
    /// There is no such document.
    Gone,
}

/// Which documents to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DocumentFilter {
    /// Of this kind.
    pub kind: String,
    /// Only of this group.
    pub group: Option<String>,
    /// Only ids after this one: the last of the page before.
    pub after: Option<String>,
    /// At most this many, and never more than [`DOCUMENT_PAGE_MAX`].
    pub limit: Option<usize>,
}

impl DocumentFilter {
    /// All documents of a kind, from the first.
    pub fn of(kind: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            ..Self::default()
        }
    }

    /// Only those of a group.
    #[must_use]
    pub fn group(mut self, group: &str) -> Self {
        self.group = Some(group.to_owned());
        self
    }

    pub(crate) fn page(&self) -> usize {
        self.limit
            .unwrap_or(DOCUMENT_PAGE_MAX)
            .min(DOCUMENT_PAGE_MAX)
    }

    /// Whether nothing follows this page. One that is short can also be full of large documents.
    pub fn is_last(&self, page: &[Document]) -> bool {
        page.len() < self.page() && {
            let mut bytes = PageBytes::default();
            !page.iter().any(|it| bytes.is_full_with(it))
        }
    }
}

/// Counts the bytes of a page.
#[derive(Default)]
pub(crate) struct PageBytes(usize);

impl PageBytes {
    /// Whether the page ends with a content of this size.
    pub(crate) fn is_full(&mut self, bytes: usize) -> bool {
        self.0 = self.0.saturating_add(bytes);
        self.0 >= DOCUMENT_PAGE_BYTES_MAX
    }

    pub(crate) fn is_full_with(&mut self, document: &Document) -> bool {
        self.is_full(document.body.to_string().len())
    }
}

/// Keeps documents. Every change is durable, where the store is, before it is answered.
pub trait DocumentStore: Send + Sync {
    /// Makes a document, unless one with its kind and id is there.
    fn create(&self, new: NewDocument) -> StoreFuture<'_, Created>;

    /// Looks one up.
    fn document<'a>(&'a self, kind: &'a str, id: &'a str) -> StoreFuture<'a, Option<Document>>;

    /// Changes one, if its version is still the one that was seen.
    fn replace(&self, change: Replacement) -> StoreFuture<'_, Replaced>;

    /// As [`Self::replace`], from a place that can not wait.
    fn replace_detached(&self, change: Replacement);

    /// Lists documents by id, a page at a time: [`DocumentFilter::is_last`] says whether more follow.
    fn documents<'a>(&'a self, filter: &'a DocumentFilter) -> StoreFuture<'a, Vec<Document>>;

    /// Removes one; says whether it was there.
    fn remove<'a>(&'a self, kind: &'a str, id: &'a str) -> StoreFuture<'a, bool>;

    /// Forgets what has expired; says how many.
    fn sweep_documents(&self) -> StoreFuture<'_, u64>;

    /// The store's own time as well as it is known here, where it has one. What processes of several
    /// machines compare is told by this, and not by their clocks.
    fn time_ms(&self) -> Option<u64> {
        None
    }
}

/// Lists all documents that fit, page by page.
pub async fn all_documents(
    store: &dyn DocumentStore,
    mut filter: DocumentFilter,
) -> StoreResult<Vec<Document>> {
    let mut found = Vec::new();
    loop {
        let page = store.documents(&filter).await?;
        let is_last = filter.is_last(&page);
        filter.after = page.last().map(|document| document.id.clone());
        found.extend(page);
        if is_last {
            return Ok(found);
        }
    }
}

/// Refuses a content that is too large to be kept.
pub(crate) fn check_size(body: &Value) -> StoreResult<String> {
    let text = body.to_string();
    if text.len() > DOCUMENT_BYTES_MAX {
        return Err(super::StoreError::Full(format!(
            "a document of {} bytes is larger than {DOCUMENT_BYTES_MAX}",
            text.len()
        )));
    }
    Ok(text)
}
