//! Records in and out.

use holdfast_contract::memory::{
    MEMORY_CONTENT_BYTES_MAX, MEMORY_METADATA_BYTES_MAX, MemoryCursor, MemoryOrder, MemoryPage,
};
use holdfast_contract::{
    MemoryError, MemoryQuery, MemoryRead, MemoryStore, MemoryType, MemoryWrite, NewMemory, Trust,
};
use serde_json::{Map, Value, json};

use super::{Bench, MemoryFactory, new, whole};

fn metadata(value: Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(map) => Some(map),
        _ => None,
    }
}

/// Everything that was said about a record, and what the store added, comes back.
pub async fn a_record_comes_back_as_it_was_stored(factory: &dyn MemoryFactory) {
    let bench = Bench::new(factory).await;
    let content = "Zoë said: \"naïve\" 🦀\n\tand a NUL \0 and 東京 — so be it.";
    let said = NewMemory {
        metadata: metadata(
            json!({"project": "holdfast", "big": 9_007_199_254_740_993_u64,
            "nested": {"a": [1, null, true]}, "quote": "it's"}),
        ),
        trust: Trust::Tool,
        ..new(MemoryType::Identity, content)
    };
    let stored = bench.memory.remember(said.clone()).await.expect("stored");
    assert!(stored.is_new && stored.embedding_missing.is_none());
    let found = bench.memory.get(&stored.id).await.expect("a look");
    let found = found.expect("it is there");
    assert_eq!(found.content, content);
    assert_eq!(found.metadata, said.metadata);
    assert_eq!(
        (found.memory_type, found.trust),
        (MemoryType::Identity, Trust::Tool)
    );
    assert_eq!(found.session_id, "session-1");
    assert!(found.created_at_ms >= 1_772_000_000_000);
    let embedding = found.embedding.expect("a vector");
    assert_eq!(embedding.vector, super::Meaning::vector(content));
    assert_eq!(bench.memory.get("nobody").await.expect("a look"), None);
}

/// Repeating changes nothing and names the record that is there.
pub async fn what_is_known_word_for_word_is_not_stored_twice(factory: &dyn MemoryFactory) {
    let bench = Bench::new(factory).await;
    let first = bench
        .remember(MemoryType::Fact, "The build takes 4 minutes.")
        .await;
    let again = bench
        .remember(MemoryType::Fact, "The build takes 4 minutes.")
        .await;
    assert!(first.is_new && !again.is_new);
    assert_eq!(first.id, again.id);
    assert_eq!(bench.count().await, 1);
    // Forgotten is forgotten: the same words may come again.
    assert!(bench.memory.delete(&first.id).await.expect("deleted"));
    assert!(
        bench
            .remember(MemoryType::Fact, "The build takes 4 minutes.")
            .await
            .is_new
    );
}

/// Another type, other metadata, another trust: each makes another record.
pub async fn what_differs_is_another_record(factory: &dyn MemoryFactory) {
    let bench = Bench::new(factory).await;
    let base = new(MemoryType::Fact, "Tea at five.");
    let others = [
        base.clone(),
        NewMemory {
            memory_type: MemoryType::Preference,
            ..base.clone()
        },
        NewMemory {
            metadata: metadata(json!({"a": 1})),
            ..base.clone()
        },
        NewMemory {
            metadata: metadata(json!({"a": 2})),
            ..base.clone()
        },
        NewMemory {
            trust: Trust::Untrusted,
            ..base.clone()
        },
        NewMemory {
            content: "Tea at six.".to_owned(),
            ..base
        },
    ];
    for other in others.clone() {
        assert!(bench.memory.remember(other).await.expect("stored").is_new);
    }
    assert_eq!(bench.count().await, others.len() as u64);
}

/// A deleted record is in no search, listing or count, by words or by meaning.
pub async fn a_deleted_record_is_gone_everywhere(factory: &dyn MemoryFactory) {
    let bench = Bench::new(factory).await;
    bench
        .facts(&["The kitten sleeps.", "The invoice is due."])
        .await;
    let gone = bench.remember(MemoryType::Fact, "A feline hunts.").await;
    assert_eq!(bench.found("cat").await[..2].len(), 2);
    assert!(bench.memory.delete(&gone.id).await.expect("deleted"));
    assert!(!bench.memory.delete(&gone.id).await.expect("looked for"));
    assert_eq!(bench.memory.get(&gone.id).await.expect("a look"), None);
    assert_eq!(bench.count().await, 2);
    for query in ["cat", "feline hunts"] {
        assert!(
            !bench
                .found(query)
                .await
                .contains(&"A feline hunts.".to_owned())
        );
    }
}

/// Oldest first, one moment by id, page after page without gaps or doubles.
pub async fn listings_are_in_order_and_go_on_where_they_ended(factory: &dyn MemoryFactory) {
    let bench = Bench::without_model(factory).await;
    let mut records = Vec::new();
    for (id, at_ms) in [("b", 5), ("a", 5), ("z", 1), ("m", 9), ("Ä", 5), ("c", 0)] {
        let mut record = whole(id, &format!("number {id}"));
        record.created_at_ms = at_ms;
        records.push(record);
    }
    bench.memory.insert(records).await.expect("put in");
    let forward = ["c", "z", "a", "b", "Ä", "m"];
    assert_eq!(pages(&bench, MemoryOrder::OldestFirst).await, forward);
    let mut backward = pages(&bench, MemoryOrder::NewestFirst).await;
    backward.reverse();
    assert_eq!(backward, forward);
}

async fn pages(bench: &Bench, order: MemoryOrder) -> Vec<String> {
    let mut seen = Vec::new();
    let mut after: Option<MemoryCursor> = None;
    loop {
        let page = MemoryPage {
            after,
            order,
            limit: 2,
            ..MemoryPage::default()
        };
        let found = bench.memory.list(&page).await.expect("a page");
        let Some(last) = found.last() else {
            return seen;
        };
        assert!(found.len() <= 2);
        after = Some(MemoryCursor::behind(last));
        seen.extend(found.into_iter().map(|record| record.id));
    }
}

/// In all and of each type, also after a deletion.
pub async fn counts_are_by_type(factory: &dyn MemoryFactory) {
    let bench = Bench::without_model(factory).await;
    assert_eq!(bench.count().await, 0);
    bench.facts(&["one", "two"]).await;
    let decision = bench.remember(MemoryType::Decision, "three").await;
    let of = |wanted| bench.memory.count(Some(wanted));
    assert_eq!(of(MemoryType::Fact).await.expect("a count"), 2);
    assert_eq!(of(MemoryType::Decision).await.expect("a count"), 1);
    assert_eq!(of(MemoryType::Identity).await.expect("a count"), 0);
    bench.memory.delete(&decision.id).await.expect("deleted");
    assert_eq!(of(MemoryType::Decision).await.expect("a count"), 0);
    let page = MemoryPage {
        memory_type: Some(MemoryType::Fact),
        limit: 10,
        ..MemoryPage::default()
    };
    assert_eq!(bench.memory.list(&page).await.expect("a page").len(), 2);
}

/// Nothing to remember, and too much of it.
pub async fn bad_records_are_refused_and_nothing_is_stored(factory: &dyn MemoryFactory) {
    let bench = Bench::new(factory).await;
    let base = new(MemoryType::Fact, "fine");
    let long = "x".repeat(MEMORY_CONTENT_BYTES_MAX + 1);
    let wide = metadata(json!({"a": "x".repeat(MEMORY_METADATA_BYTES_MAX)}));
    let cases = [
        (
            "content",
            NewMemory {
                content: " \n".to_owned(),
                ..base.clone()
            },
        ),
        (
            "content",
            NewMemory {
                content: long,
                ..base.clone()
            },
        ),
        (
            "metadata",
            NewMemory {
                metadata: wide,
                ..base.clone()
            },
        ),
        (
            "session_id",
            NewMemory {
                session_id: String::new(),
                ..base.clone()
            },
        ),
    ];
    for (field, bad) in cases {
        let refused = bench.memory.remember(bad).await;
        assert!(
            matches!(&refused, Err(MemoryError::Invalid { field: named, .. }) if *named == field),
            "{field}: {refused:?}"
        );
    }
    assert_eq!(bench.count().await, 0);
    let largest = NewMemory {
        content: "x".repeat(MEMORY_CONTENT_BYTES_MAX),
        ..base
    };
    assert!(
        bench
            .memory
            .remember(largest)
            .await
            .expect("it fits")
            .is_new
    );
}

/// With their own ids, times and vectors; again, they change nothing.
pub async fn whole_records_are_put_in_as_they_are(factory: &dyn MemoryFactory) {
    let bench = Bench::new(factory).await;
    let records = vec![whole("one", "A kitten."), whole("two", "A beach.")];
    let first = bench.memory.insert(records.clone()).await.expect("put in");
    assert_eq!(
        (first.added, first.unchanged, first.conflicting.len()),
        (2, 0, 0)
    );
    for record in &records {
        let found = bench.memory.get(&record.id).await.expect("a look");
        assert_eq!(found.as_ref(), Some(record));
    }
    let again = bench
        .memory
        .insert(records.clone())
        .await
        .expect("put in again");
    assert_eq!((again.added, again.unchanged), (0, 2));
    let mut other = records[0].clone();
    "A dog.".clone_into(&mut other.content);
    let refused = bench.memory.insert(vec![other]).await.expect("looked at");
    assert_eq!(refused.conflicting, ["one"]);
    let kept = bench
        .memory
        .get("one")
        .await
        .expect("a look")
        .expect("there");
    assert_eq!(kept.content, "A kitten.");
    assert_eq!(bench.count().await, 2);
    // One without a vector gains one from an equal record that has it.
    let mut bare = whole("three", "A latte.");
    let vector = bare.embedding.take();
    bench
        .memory
        .insert(vec![bare.clone()])
        .await
        .expect("put in");
    bare.embedding.clone_from(&vector);
    bench.memory.insert(vec![bare]).await.expect("put in");
    let found = bench
        .memory
        .get("three")
        .await
        .expect("a look")
        .expect("there");
    assert_eq!(found.embedding, vector);
    let found = bench.search(&MemoryQuery::new("vacation")).await;
    assert_eq!(found.hits[0].record.id, "two");
}

/// One bad record, and none is in.
pub async fn a_batch_is_put_in_whole_or_not_at_all(factory: &dyn MemoryFactory) {
    let bench = Bench::new(factory).await;
    let mut bad = whole("bad", "A table.");
    if let Some(embedding) = &mut bad.embedding {
        embedding.vector = vec![0.0; 8];
    }
    let refused = bench
        .memory
        .insert(vec![whole("good", "A cat."), bad])
        .await;
    assert!(
        matches!(refused, Err(MemoryError::Invalid { .. })),
        "{refused:?}"
    );
    assert_eq!(bench.count().await, 0);
    assert_eq!(bench.found("cat").await, Vec::<String>::new());
}
