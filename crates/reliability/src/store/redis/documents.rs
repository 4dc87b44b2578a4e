//! Documents that all processes share: approvals, rules and what sessions have read.
//!
//! All of them live in one place of a cluster, because a listing has to see them in order and a
//! step has to be atomic: there are far fewer of them than records of calls.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use parking_lot::Mutex;
use redis::Value;
use tokio::sync::Notify;

use super::link::{jitter, surprise};
use super::write_back::AGAIN_MS;
use super::{RedisState, Shared};
use crate::canonical::Digest;
use crate::config::redis::{DETACHED_CHANGES_MAX, DOCUMENT_SWEEP_BATCH};
use crate::store::documents::{
    Created, DOCUMENTS_MAX, Document, DocumentFilter, DocumentStore, NewDocument, Replaced,
    Replacement, check_size,
};
use crate::store::{StoreError, StoreFuture, StoreResult};

/// Changes from places that can not wait. Whoever comes after them in this process waits until they
/// are sent, so that it sees them; while they can not be sent, nobody sees anything.
#[derive(Default)]
pub(super) struct Detached {
    /// Each with its number. The one under way stays first until the server has answered it.
    queue: Mutex<VecDeque<(u64, Replacement)>>,
    numbers: AtomicU64,
    turn: tokio::sync::Mutex<()>,
    /// How often the server could not be reached.
    failed: AtomicU64,
    arrived: Notify,
}

impl Detached {
    fn push(&self, change: Replacement) {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let mut queue = self.queue.lock();
        if queue.len() >= DETACHED_CHANGES_MAX {
            queue.pop_front();
        }
        queue.push_back((number, change));
        drop(queue);
        self.arrived.notify_one();
    }

    fn is_empty(&self) -> bool {
        self.queue.lock().is_empty()
    }

    /// Sends what waits, in the order in which it came. Whoever sends may go away in the middle: the
    /// next one sends the same change again, which a server that has taken it does not take twice. So
    /// does one that the server did not hear.
    async fn send<F>(&self, send: impl Fn(Replacement) -> F) -> StoreResult<()>
    where
        F: Future<Output = StoreResult<Replaced>>,
    {
        if self.is_empty() {
            return Ok(());
        }
        let failed = self.failed.load(Ordering::Relaxed);
        let _turn = self.turn.lock().await;
        if !self.is_empty() && self.failed.load(Ordering::Relaxed) != failed {
            // Whoever was before us has just tried: not everybody waits for a server that is away.
            let why = "a change from before can not be sent".to_owned();
            return Err(StoreError::Unavailable(why));
        }
        loop {
            let first = self.queue.lock().front().cloned();
            let Some((number, change)) = first else {
                return Ok(());
            };
            if let Err(error @ StoreError::Unavailable(_)) = send(change).await {
                self.failed.fetch_add(1, Ordering::Relaxed);
                return Err(error);
            }
            // Taken, too late for what stands there now, or too large to be ever taken.
            let mut queue = self.queue.lock();
            // It may have been given up meanwhile for a newer one.
            if queue.front().is_some_and(|(first, _)| *first == number) {
                queue.pop_front();
            }
        }
    }
}

/// What a step answered: how it ended, and the document as it stands then.
struct Answer {
    ended: i64,
    document: Option<Document>,
}

/// Its name among all. A kind is a word of ours and has no zero in it.
fn name(kind: &str, id: &str) -> String {
    format!("{kind}\0{id}")
}

/// What members of a group begin with. A group is foreign text, so a hash stands for it.
fn group_begins(kind: &str, group: &str) -> String {
    format!("{kind}\0{}\0", Digest::of(group.as_bytes()))
}

fn over(expires_at_ms: Option<u64>) -> String {
    expires_at_ms.map_or_else(String::new, |at_ms| at_ms.to_string())
}

impl Shared {
    /// Sends what waits.
    async fn send_detached(&self) -> StoreResult<()> {
        let send = |change| self.replace_document(change);
        self.detached.send(send).await
    }

    async fn document_step(&self, step: &str, args: &[&str]) -> StoreResult<Value> {
        let keys =
            ["documents", "document-groups", "document-ends"].map(|it| self.names.single(it));
        let keys = keys.each_ref().map(String::as_bytes);
        let now_ms = self.link.script_time_ms().to_string();
        let base = self.names.single("document:");
        let mut all: Vec<&[u8]> = vec![now_ms.as_bytes(), step.as_bytes(), base.as_bytes()];
        all.extend(args.iter().map(|arg| arg.as_bytes()));
        let mut lane = self.link.lane().await?;
        let script = &self.scripts.document;
        let answer = self.link.eval_on(&mut lane, script, &keys, &all).await?;
        if matches!(step, "create" | "replace" | "remove") {
            self.link.replicated(&mut lane).await?;
        }
        Ok(answer)
    }

    async fn create_document(&self, new: NewDocument) -> StoreResult<Created> {
        let body = check_size(&new.body)?;
        let place = group_begins(&new.kind, &new.group) + &new.id;
        let args: [&str; 6] = [
            &name(&new.kind, &new.id),
            &place,
            &new.group,
            &body,
            &over(new.expires_at_ms),
            &DOCUMENTS_MAX.to_string(),
        ];
        let answer = self.document_step("create", &args).await?;
        let answer = read_answer(&new.kind, &new.id, answer)?;
        match (answer.ended, answer.document) {
            (1, Some(document)) => Ok(Created::New(document)),
            (0, Some(document)) => Ok(Created::Exists(document)),
            (-1, _) => Err(StoreError::Full(format!("{DOCUMENTS_MAX} documents"))),
            _ => Err(surprise("a document")),
        }
    }

    async fn replace_document(&self, change: Replacement) -> StoreResult<Replaced> {
        let body = check_size(&change.body)?;
        let place = group_begins(&change.kind, &change.group) + &change.id;
        let args: [&str; 6] = [
            &name(&change.kind, &change.id),
            &place,
            &change.group,
            &body,
            &over(change.expires_at_ms),
            &change.version.to_string(),
        ];
        let answer = self.document_step("replace", &args).await?;
        let answer = read_answer(&change.kind, &change.id, answer)?;
        match (answer.ended, answer.document) {
            (1, Some(document)) => Ok(Replaced::Done(document)),
            (0, Some(document)) => Ok(Replaced::Changed(document)),
            (-1, _) => Ok(Replaced::Gone),
            _ => Err(surprise("a document")),
        }
    }

    async fn list_documents(&self, filter: &DocumentFilter) -> StoreResult<Vec<Document>> {
        let (set, begins) = match &filter.group {
            Some(group) => ("group", group_begins(&filter.kind, group)),
            None => ("name", name(&filter.kind, "")),
        };
        // One byte up: behind everything that begins so.
        let behind = format!("{}\u{1}", &begins[..begins.len() - 1]);
        let from = match &filter.after {
            Some(id) => format!("({begins}{id}"),
            None => format!("[{begins}"),
        };
        let args: [&str; 6] = [
            set,
            &from,
            &format!("({behind}"),
            &filter.page().to_string(),
            &name(&filter.kind, ""),
            &begins.len().to_string(),
        ];
        if filter.page() == 0 {
            return Ok(Vec::new());
        }
        let Value::Array(rows) = self.document_step("list", &args).await? else {
            return Err(surprise("a list of documents"));
        };
        rows.into_iter()
            .map(|row| match row {
                Value::Array(mut parts) if parts.len() == 2 => {
                    let told = parts.pop().unwrap_or(Value::Nil);
                    let id = text(parts.pop().unwrap_or(Value::Nil))?;
                    read_document(&filter.kind, &id, told)
                }
                _ => Err(surprise("a list of documents")),
            })
            .collect()
    }
}

/// Sends changes from places that can not wait, for as long as the store lives.
pub(super) async fn run(shared: Arc<Shared>) {
    loop {
        if shared.detached.is_empty() {
            shared.detached.arrived.notified().await;
            continue;
        }
        shared.link.up().await;
        if shared.send_detached().await.is_err() {
            tokio::time::sleep(Duration::from_millis(jitter(AGAIN_MS))).await;
        }
    }
}

fn read_answer(kind: &str, id: &str, answer: Value) -> StoreResult<Answer> {
    let Value::Array(parts) = answer else {
        return Err(surprise("a document"));
    };
    let mut parts = parts.into_iter();
    let Some(Value::Int(ended)) = parts.next() else {
        return Err(surprise("a document"));
    };
    let told = parts.next().map(|told| read_document(kind, id, told));
    Ok(Answer {
        ended,
        document: told.transpose()?,
    })
}

fn text(value: Value) -> StoreResult<String> {
    match value {
        Value::BulkString(bytes) => String::from_utf8(bytes).map_err(|_| surprise("a text")),
        _ => Err(surprise("a text")),
    }
}

fn number(value: Value) -> StoreResult<u64> {
    text(value)?.parse().map_err(|_| surprise("a number"))
}

fn read_document(kind: &str, id: &str, told: Value) -> StoreResult<Document> {
    let Value::Array(parts) = told else {
        return Err(surprise("a document"));
    };
    let [group, version, body, created, updated, over] =
        <[Value; 6]>::try_from(parts).map_err(|_| surprise("a document"))?;
    let over = text(over)?;
    let body = text(body)?;
    Ok(Document {
        kind: kind.to_owned(),
        id: id.to_owned(),
        group: text(group)?,
        version: number(version)?,
        body: serde_json::from_str(&body).map_err(|_| surprise("a document's content"))?,
        created_at_ms: number(created)?,
        updated_at_ms: number(updated)?,
        expires_at_ms: match over.as_str() {
            "" => None,
            at_ms => Some(at_ms.parse().map_err(|_| surprise("a time"))?),
        },
    })
}

impl DocumentStore for RedisState {
    fn create(&self, new: NewDocument) -> StoreFuture<'_, Created> {
        async move {
            self.shared.send_detached().await?;
            self.shared.create_document(new).await
        }
        .boxed()
        .into()
    }

    fn document<'a>(&'a self, kind: &'a str, id: &'a str) -> StoreFuture<'a, Option<Document>> {
        async move {
            self.shared.send_detached().await?;
            let answer = self.shared.document_step("get", &[&name(kind, id)]).await?;
            Ok(read_answer(kind, id, answer)?.document)
        }
        .boxed()
        .into()
    }

    fn replace(&self, change: Replacement) -> StoreFuture<'_, Replaced> {
        async move {
            self.shared.send_detached().await?;
            self.shared.replace_document(change).await
        }
        .boxed()
        .into()
    }

    fn replace_detached(&self, change: Replacement) {
        self.shared.detached.push(change);
    }

    fn documents<'a>(&'a self, filter: &'a DocumentFilter) -> StoreFuture<'a, Vec<Document>> {
        async move {
            self.shared.send_detached().await?;
            self.shared.list_documents(filter).await
        }
        .boxed()
        .into()
    }

    fn remove<'a>(&'a self, kind: &'a str, id: &'a str) -> StoreFuture<'a, bool> {
        async move {
            self.shared.send_detached().await?;
            let answer = self
                .shared
                .document_step("remove", &[&name(kind, id)])
                .await?;
            Ok(read_answer(kind, id, answer)?.ended == 1)
        }
        .boxed()
        .into()
    }

    fn sweep_documents(&self) -> StoreFuture<'_, u64> {
        async move {
            let mut forgotten = 0;
            loop {
                let answer = self.shared.document_step("sweep", &[]).await?;
                let batch = read_answer("", "", answer)?.ended.unsigned_abs();
                forgotten += batch;
                if batch < DOCUMENT_SWEEP_BATCH as u64 {
                    return Ok(forgotten);
                }
            }
        }
        .boxed()
        .into()
    }

    fn time_ms(&self) -> Option<u64> {
        Some(self.shared.link.now_ms())
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use serde_json::json;

    use super::*;

    fn change(id: &str) -> Replacement {
        Replacement {
            kind: "note".to_owned(),
            id: id.to_owned(),
            version: 1,
            group: String::new(),
            body: json!({}),
            expires_at_ms: None,
        }
    }

    #[tokio::test]
    async fn a_sender_that_goes_away_loses_no_change() {
        let detached = Detached::default();
        detached.push(change("a"));
        detached.push(change("b"));
        {
            let gone = std::pin::pin!(detached.send(|_| std::future::pending()));
            let mut context = Context::from_waker(Waker::noop());
            assert!(matches!(gone.poll(&mut context), Poll::Pending));
        }
        let written = Mutex::new(Vec::new());
        let send = |one: Replacement| {
            written.lock().push(one.id);
            std::future::ready(Ok(Replaced::Gone))
        };
        detached.send(send).await.unwrap();
        assert_eq!(*written.lock(), ["a", "b"]);
        detached.send(send).await.unwrap();
        assert_eq!(written.lock().len(), 2, "each once");
    }

    #[tokio::test]
    async fn a_change_that_the_server_did_not_hear_is_sent_again() {
        let detached = Detached::default();
        detached.push(change("a"));
        detached.push(change("too large"));
        detached.push(change("b"));
        let away = |_| std::future::ready(Err(StoreError::Unavailable("away".to_owned())));
        for _ in 0..3 {
            assert!(detached.send(away).await.is_err());
        }
        let written = Mutex::new(Vec::new());
        let send = |one: Replacement| {
            let full = one.id == "too large";
            written.lock().push(one.id);
            std::future::ready(if full {
                Err(StoreError::Full("too large".to_owned()))
            } else {
                Ok(Replaced::Gone)
            })
        };
        detached.send(send).await.unwrap();
        assert_eq!(*written.lock(), ["a", "too large", "b"]);
        assert!(detached.is_empty());
    }

    #[tokio::test]
    async fn who_waited_for_one_that_failed_does_not_try_as_well() {
        let detached = Detached::default();
        detached.push(change("a"));
        let tried = AtomicU64::new(0);
        let away = |_| async {
            tokio::task::yield_now().await;
            tried.fetch_add(1, Ordering::Relaxed);
            Err(StoreError::Unavailable("away".to_owned()))
        };
        let (one, two, three) = tokio::join!(
            detached.send(away),
            detached.send(away),
            detached.send(away)
        );
        assert!(one.is_err() && two.is_err() && three.is_err());
        assert_eq!(tried.load(Ordering::Relaxed), 1);
        assert!(detached.send(away).await.is_err());
        assert_eq!(tried.load(Ordering::Relaxed), 2, "later it is tried again");
    }

    #[tokio::test]
    async fn a_change_that_is_given_up_while_it_is_sent_takes_no_other_with_it() {
        let detached = Detached::default();
        detached.push(change("first"));
        let written = Mutex::new(Vec::new());
        let send = |one: Replacement| {
            if one.id == "first" {
                for number in 0..DETACHED_CHANGES_MAX {
                    detached.push(change(&number.to_string()));
                }
            }
            written.lock().push(one.id);
            std::future::ready(Ok(Replaced::Gone))
        };
        detached.send(send).await.unwrap();
        assert_eq!(written.lock().len(), DETACHED_CHANGES_MAX + 1);
    }
}
