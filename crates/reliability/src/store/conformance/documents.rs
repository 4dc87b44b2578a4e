//! What every document store has to do.

use std::any::Any;

use serde_json::{Value, json};

use super::{Arc, ManualClock, START_MS, ok};
use crate::store::documents::{
    Created, DOCUMENT_PAGE_BYTES_MAX, Document, DocumentFilter, DocumentStore, NewDocument,
    Replaced, Replacement, all_documents,
};

/// Calls a macro with its own arguments and the name of every check of documents.
#[macro_export]
macro_rules! for_each_document_check {
    ($apply:ident, $($argument:tt)*) => {
        $apply! {
            [$($argument)*]
            a_document_is_made_once
            a_document_comes_back_as_it_was_written
            of_two_changes_one_wins
            many_changes_at_once_are_all_counted
            of_many_who_take_a_document_over_one_has_it
            what_has_expired_was_never_there
            documents_are_listed_by_kind_and_group_in_pages
            a_page_of_large_documents_is_short
            a_removed_document_is_gone
        }
    };
}

/// A document store, and what has to live as long as it.
pub struct MadeDocuments {
    /// The store.
    pub store: Arc<dyn DocumentStore>,
    /// A directory, a server; dropped after the store.
    pub keep: Box<dyn Any + Send + Sync>,
}

/// Makes empty document stores.
pub trait DocumentStoreFactory: Sync {
    /// An empty store that shows the time of `clock`.
    fn make_documents(&self, clock: Arc<ManualClock>) -> MadeDocuments;
}

struct Bench {
    store: Arc<dyn DocumentStore>,
    clock: Arc<ManualClock>,
    _keep: Box<dyn Any + Send + Sync>,
}

impl Bench {
    fn new(factory: &dyn DocumentStoreFactory) -> Self {
        let clock = ManualClock::new(START_MS);
        let made = factory.make_documents(clock.clone());
        Self {
            store: made.store,
            clock,
            _keep: made.keep,
        }
    }

    async fn make(&self, kind: &str, id: &str, group: &str, body: Value) -> Document {
        match ok(self.store.create(new(kind, id, group, body))).await {
            Created::New(document) => document,
            Created::Exists(other) => panic!("it exists: {other:?}"),
        }
    }

    async fn ids(&self, filter: DocumentFilter) -> Vec<String> {
        let found = ok(self.store.documents(&filter)).await;
        found.into_iter().map(|document| document.id).collect()
    }
}

fn new(kind: &str, id: &str, group: &str, body: Value) -> NewDocument {
    NewDocument {
        kind: kind.to_owned(),
        id: id.to_owned(),
        group: group.to_owned(),
        body,
        expires_at_ms: None,
    }
}

/// The second gets the first.
pub async fn a_document_is_made_once(factory: &dyn DocumentStoreFactory) {
    let bench = Bench::new(factory);
    let first = bench.make("note", "a", "g", json!(1)).await;
    let second = ok(bench.store.create(new("note", "a", "h", json!(2)))).await;
    assert_eq!(second, Created::Exists(first));
    // Another kind is another document.
    bench.make("other", "a", "g", json!(3)).await;
}

/// Also numbers beyond a double's, deep values and signs.
pub async fn a_document_comes_back_as_it_was_written(factory: &dyn DocumentStoreFactory) {
    let bench = Bench::new(factory);
    let big: Value = serde_json::from_str("9007199254740993123").expect("a number");
    let body =
        json!({"n": big, "text": "a\u{0}b \u{1f600} «»", "list": [null, {"x": [1.5, -0.1]}]});
    let made = bench
        .make("note", "id with / and \u{1}", "", body.clone())
        .await;
    let found = ok(bench.store.document("note", "id with / and \u{1}")).await;
    assert_eq!(found.as_ref(), Some(&made));
    assert_eq!(
        (
            made.version,
            made.created_at_ms,
            made.updated_at_ms,
            &made.body
        ),
        (1, START_MS, START_MS, &body)
    );
    assert_eq!(ok(bench.store.document("note", "b")).await, None);
}

/// The other is told how it stands now.
pub async fn of_two_changes_one_wins(factory: &dyn DocumentStoreFactory) {
    let bench = Bench::new(factory);
    let made = bench.make("note", "a", "g", json!(1)).await;
    bench.clock.advance(5);
    let first = ok(bench.store.replace(Replacement::of(&made, json!(2)))).await;
    let Replaced::Done(changed) = first else {
        panic!("not changed: {first:?}");
    };
    assert_eq!(
        (
            changed.version,
            changed.updated_at_ms,
            changed.created_at_ms
        ),
        (2, START_MS + 5, START_MS)
    );
    let second = ok(bench.store.replace(Replacement::of(&made, json!(3)))).await;
    assert_eq!(second, Replaced::Changed(changed.clone()));
    // From a place that can not wait, by the same rule.
    bench
        .store
        .replace_detached(Replacement::of(&made, json!(4)));
    let moved = Replacement {
        group: "h".to_owned(),
        ..Replacement::of(&changed, json!(5))
    };
    bench.store.replace_detached(moved);
    // A change that is waited for comes after those that are not.
    let last = ok(bench.store.replace(Replacement::of(&changed, json!(6)))).await;
    let Replaced::Changed(last) = last else {
        panic!("the detached change was lost: {last:?}");
    };
    assert_eq!(
        (last.version, last.group.as_str(), last.body),
        (3, "h", json!(5))
    );
    let other = Replacement {
        id: "b".to_owned(),
        ..Replacement::of(&made, json!(1))
    };
    assert_eq!(ok(bench.store.replace(other)).await, Replaced::Gone);
}

/// A counter that eight tasks raise by compare-and-set.
pub async fn many_changes_at_once_are_all_counted(factory: &dyn DocumentStoreFactory) {
    let bench = Bench::new(factory);
    bench.make("count", "c", "", json!(0)).await;
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let store = bench.store.clone();
            tokio::spawn(async move {
                for _ in 0..10 {
                    loop {
                        let found = ok(store.document("count", "c")).await.expect("there");
                        let next = json!(found.body.as_u64().expect("a count") + 1);
                        let change = Replacement::of(&found, next);
                        if let Replaced::Done(_) = ok(store.replace(change)).await {
                            break;
                        }
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("no panic");
    }
    let found = ok(bench.store.document("count", "c")).await.expect("there");
    assert_eq!((found.body, found.version), (json!(80), 81));
}

/// It is not found, not listed, not changed, and its place is free.
pub async fn what_has_expired_was_never_there(factory: &dyn DocumentStoreFactory) {
    let bench = Bench::new(factory);
    let short = NewDocument {
        expires_at_ms: Some(START_MS + 10),
        ..new("note", "a", "g", json!(1))
    };
    let Created::New(made) = ok(bench.store.create(short)).await else {
        panic!("not made");
    };
    bench.make("note", "b", "g", json!(1)).await;
    bench.clock.advance(9);
    assert!(ok(bench.store.document("note", "a")).await.is_some());
    assert_eq!(ok(bench.store.sweep_documents()).await, 0);
    bench.clock.advance(1);
    assert_eq!(ok(bench.store.document("note", "a")).await, None);
    assert_eq!(bench.ids(DocumentFilter::of("note")).await, ["b"]);
    let late = ok(bench.store.replace(Replacement::of(&made, json!(2)))).await;
    assert_eq!(late, Replaced::Gone);
    assert!(!ok(bench.store.remove("note", "a")).await);
    bench.make("note", "a", "h", json!(3)).await;
    assert_eq!(ok(bench.store.sweep_documents()).await, 0);
    assert_eq!(bench.ids(DocumentFilter::of("note")).await, ["a", "b"]);
}

/// It changes its group, and is found in the new one alone.
pub async fn of_many_who_take_a_document_over_one_has_it(factory: &dyn DocumentStoreFactory) {
    let bench = Bench::new(factory);
    let made = bench.make("note", "a", "nobody", json!(1)).await;
    let takers = (0..8).map(|number| {
        let change = Replacement {
            group: number.to_string(),
            ..Replacement::of(&made, json!(number))
        };
        let store = bench.store.clone();
        tokio::spawn(async move { ok(store.replace(change)).await })
    });
    let mut owners = Vec::new();
    for (number, taker) in takers.collect::<Vec<_>>().into_iter().enumerate() {
        if let Replaced::Done(document) = taker.await.expect("no panic") {
            assert_eq!(document.group, number.to_string());
            owners.push(document.group);
        }
    }
    assert_eq!(owners.len(), 1, "{owners:?}");
    for group in (0..8).map(|number| number.to_string()) {
        let found = bench.ids(DocumentFilter::of("note").group(&group)).await;
        assert_eq!(found.len(), usize::from(owners[0] == group), "{group}");
    }
    let left = bench.ids(DocumentFilter::of("note").group("nobody")).await;
    assert!(left.is_empty(), "{left:?}");
}

/// By id, so that a page can go on where the last one ended.
pub async fn documents_are_listed_by_kind_and_group_in_pages(factory: &dyn DocumentStoreFactory) {
    let bench = Bench::new(factory);
    for (id, group) in [("d", "x"), ("a", "x"), ("c", "y"), ("b", "x")] {
        bench.make("note", id, group, json!(id)).await;
    }
    bench.make("other", "aa", "x", json!(0)).await;
    assert_eq!(
        bench.ids(DocumentFilter::of("note")).await,
        ["a", "b", "c", "d"]
    );
    let of_x = DocumentFilter::of("note").group("x");
    assert_eq!(bench.ids(of_x.clone()).await, ["a", "b", "d"]);
    let page = DocumentFilter {
        limit: Some(2),
        ..of_x
    };
    assert_eq!(bench.ids(page.clone()).await, ["a", "b"]);
    let next = DocumentFilter {
        after: Some("b".to_owned()),
        ..page.clone()
    };
    assert_eq!(bench.ids(next).await, ["d"]);
    let all = ok(all_documents(&*bench.store, page)).await;
    assert_eq!(all.len(), 3);
    assert_eq!(
        bench.ids(DocumentFilter::of("nothing")).await,
        Vec::<String>::new()
    );
}

/// However many are asked for: what is large is had a few at a time.
pub async fn a_page_of_large_documents_is_short(factory: &dyn DocumentStoreFactory) {
    let bench = Bench::new(factory);
    let third = "x".repeat(DOCUMENT_PAGE_BYTES_MAX / 3);
    for id in ["a", "b", "c", "d", "e"] {
        bench.make("note", id, "g", json!(third)).await;
    }
    for filter in [
        DocumentFilter::of("note"),
        DocumentFilter::of("note").group("g"),
    ] {
        let page = ok(bench.store.documents(&filter)).await;
        assert_eq!(page.len(), 3);
        assert!(!filter.is_last(&page), "it is short, and more follow");
        let next = DocumentFilter {
            after: Some("c".to_owned()),
            ..filter.clone()
        };
        let page = ok(bench.store.documents(&next)).await;
        assert_eq!(page.len(), 2);
        assert!(next.is_last(&page));
        let all = ok(all_documents(&*bench.store, filter)).await;
        let ids: Vec<&str> = all.iter().map(|it| it.id.as_str()).collect();
        assert_eq!(ids, ["a", "b", "c", "d", "e"]);
    }
}

/// And says whether it was there.
pub async fn a_removed_document_is_gone(factory: &dyn DocumentStoreFactory) {
    let bench = Bench::new(factory);
    bench.make("note", "a", "g", json!(1)).await;
    assert!(ok(bench.store.remove("note", "a")).await);
    assert!(!ok(bench.store.remove("note", "a")).await);
    assert_eq!(ok(bench.store.document("note", "a")).await, None);
}
