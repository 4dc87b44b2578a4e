//! Search.

use std::sync::Arc;

use holdfast_contract::memory::{MEMORY_HITS_MAX, MEMORY_QUERY_BYTES_MAX};
use holdfast_contract::{
    MemoryError, MemoryQuery, MemoryRead, MemoryType, MemoryWrite, NewMemory, Trust,
};

use super::{Bench, Meaning, MemoryFactory, contents, new};
use crate::memory::Memory;
use crate::reindex::Scope;

/// Any of the words finds a record; more of them find it first.
pub async fn words_find_records(factory: &dyn MemoryFactory) {
    let bench = Bench::without_model(factory).await;
    bench
        .facts(&[
            "The staging server runs in Frankfurt.",
            "Ada prefers tea.",
            "The staging deploy key is rotated in Frankfurt on Mondays.",
        ])
        .await;
    assert_eq!(bench.found("tea").await, ["Ada prefers tea."]);
    assert_eq!(
        bench.found("what does Ada drink, tea?").await[0],
        "Ada prefers tea."
    );
    assert_eq!(bench.found("staging").await.len(), 2);
    assert_eq!(
        bench.found("when is the staging deploy key rotated?").await[0],
        "The staging deploy key is rotated in Frankfurt on Mondays."
    );
    assert_eq!(bench.found("nothing like it").await, Vec::<String>::new());
}

/// Whatever a model writes is looked for and never understood as anything else.
pub async fn odd_queries_are_answered(factory: &dyn MemoryFactory) {
    let bench = Bench::without_model(factory).await;
    bench
        .facts(&["The word NEAR is a word.", "Quotes \" and stars * happen."])
        .await;
    let odd = [
        "\"",
        "\"\"",
        "'",
        "*",
        "NEAR(",
        "AND",
        "a OR",
        "NOT",
        "col:x",
        "{a b}:c",
        "^a",
        "-",
        "+",
        "(",
        ")",
        "\\",
        "%",
        "_",
        ";--",
        "\u{0}",
        "🦀",
        "\u{301}",
        "\u{200b}",
        "x*",
        "**",
        "a\"b",
        "SELECT * FROM memories",
        "?1",
        ":a",
        "\u{feff}",
        "é",
        "﷽",
        "\u{1F468}\u{200d}\u{1F469}",
    ];
    for query in odd {
        let found = bench.memory.search(&MemoryQuery::new(query)).await;
        assert!(found.is_ok(), "{query:?}: {found:?}");
    }
    assert_eq!(bench.found("NEAR").await, ["The word NEAR is a word."]);
    assert_eq!(
        bench.found("\"NEAR\" AND (").await,
        ["The word NEAR is a word."]
    );
    assert_eq!(
        bench.found("memories; stars").await,
        ["Quotes \" and stars * happen."]
    );
}

/// A person does not remember how it was written.
pub async fn accents_cases_and_forms_of_a_word_do_not_matter(factory: &dyn MemoryFactory) {
    let bench = Bench::without_model(factory).await;
    bench
        .facts(&["Zoë ordered a crème brûlée.", "We deployed on Friday."])
        .await;
    for query in ["zoe", "ZOË", "Zoe\u{308}", "creme", "BRULEE"] {
        assert_eq!(
            bench.found(query).await,
            ["Zoë ordered a crème brûlée."],
            "{query}"
        );
    }
    for query in ["deploy", "deploying", "deploys"] {
        assert_eq!(
            bench.found(query).await,
            ["We deployed on Friday."],
            "{query}"
        );
    }
}

/// `auth` finds `authentication`, behind what has the word itself.
pub async fn beginnings_of_words_find_records_when_words_do_not(factory: &dyn MemoryFactory) {
    let bench = Bench::without_model(factory).await;
    bench
        .facts(&[
            "The authentication service is slow.",
            "Use auth with care.",
            "An autumn day.",
        ])
        .await;
    assert_eq!(
        bench.found("auth").await,
        ["Use auth with care.", "The authentication service is slow."]
    );
    assert_eq!(
        bench.found("authen*").await,
        ["The authentication service is slow."]
    );
    assert_eq!(bench.found("au").await, Vec::<String>::new());
}

/// Han, Kana and Thai are found by parts of what was written.
pub async fn scripts_without_blanks_are_searched(factory: &dyn MemoryFactory) {
    let bench = Bench::without_model(factory).await;
    bench
        .facts(&[
            "会議は東京で火曜日に行う",
            "用户喜欢深色主题",
            "ประชุมวันจันทร์",
        ])
        .await;
    assert_eq!(bench.found("東京").await, ["会議は東京で火曜日に行う"]);
    assert_eq!(bench.found("深色").await, ["用户喜欢深色主题"]);
    assert_eq!(bench.found("京").await, ["会議は東京で火曜日に行う"]);
    assert_eq!(bench.found("จันทร์").await, ["ประชุมวันจันทร์"]);
}

/// By words and by meaning.
pub async fn a_search_can_be_for_one_type(factory: &dyn MemoryFactory) {
    let bench = Bench::new(factory).await;
    for kind in MemoryType::ALL {
        bench
            .remember(kind, &format!("{} about the cat", kind.as_str()))
            .await;
        bench
            .remember(kind, &format!("{} about a feline", kind.as_str()))
            .await;
    }
    for kind in MemoryType::ALL {
        let query = MemoryQuery {
            memory_type: Some(kind),
            ..MemoryQuery::new("cat")
        };
        let found = bench.search(&query).await.hits;
        assert_eq!(found.len(), 2, "{kind:?}");
        assert!(found.iter().all(|hit| hit.record.memory_type == kind));
        assert_eq!(
            found[0].record.content,
            format!("{} about the cat", kind.as_str())
        );
    }
}

/// Ten unless it says otherwise.
pub async fn a_search_has_a_limit(factory: &dyn MemoryFactory) {
    let bench = Bench::new(factory).await;
    for number in 0..15 {
        bench
            .remember(
                MemoryType::Fact,
                &format!("Fact {number} about the database."),
            )
            .await;
    }
    assert_eq!(bench.found("database").await.len(), 10);
    for limit in [1, 3, 15] {
        let query = MemoryQuery {
            limit,
            ..MemoryQuery::new("database")
        };
        assert_eq!(bench.search(&query).await.hits.len(), limit);
    }
    let found = bench.search(&MemoryQuery::new("database")).await.hits;
    assert!(found.is_sorted_by(|a, b| a.score >= b.score));
}

/// Nothing, too much, too many.
pub async fn bad_queries_are_refused(factory: &dyn MemoryFactory) {
    let bench = Bench::new(factory).await;
    let long = "x".repeat(MEMORY_QUERY_BYTES_MAX + 1);
    let cases = [
        ("query", MemoryQuery::new("")),
        ("query", MemoryQuery::new(" \n ")),
        ("query", MemoryQuery::new(long)),
        (
            "limit",
            MemoryQuery {
                limit: 0,
                ..MemoryQuery::new("a")
            },
        ),
        (
            "limit",
            MemoryQuery {
                limit: MEMORY_HITS_MAX + 1,
                ..MemoryQuery::new("a")
            },
        ),
    ];
    for (field, query) in cases {
        let refused = bench.memory.search(&query).await;
        assert!(
            matches!(&refused, Err(MemoryError::Invalid { field: named, .. }) if *named == field),
            "{field}: {refused:?}"
        );
    }
}

/// No word in common, and still the first.
pub async fn meaning_finds_what_words_do_not(factory: &dyn MemoryFactory) {
    let bench = Bench::new(factory).await;
    bench
        .facts(&[
            "The kitten sleeps upstairs.",
            "An espresso before nine.",
            "The clinic is closed.",
        ])
        .await;
    let found = bench.search(&MemoryQuery::new("physician")).await;
    assert!(found.used_vectors);
    assert_eq!(found.note, None);
    assert_eq!(found.hits[0].record.content, "The clinic is closed.");
    assert_eq!(found.hits[0].vector_rank, Some(1));
    assert_eq!(found.hits[0].text_rank, None);
    assert_eq!(
        found.hits[0].record.embedding, None,
        "hits come without vectors"
    );
}

/// What both rankings have first is first.
pub async fn words_and_meaning_together_rank_first(factory: &dyn MemoryFactory) {
    let bench = Bench::new(factory).await;
    bench
        .facts(&[
            "A latte in the morning.",
            "Coffee is bought by Grace.",
            "Grace is bought out.",
            "The espresso machine is broken.",
        ])
        .await;
    let found = bench.search(&MemoryQuery::new("coffee for Grace")).await;
    let first = &found.hits[0];
    assert_eq!(first.record.content, "Coffee is bought by Grace.");
    assert!(first.text_rank.is_some() && first.vector_rank.is_some());
    assert!(first.score > found.hits[1].score);
    assert!(contents(&found.hits).contains(&"A latte in the morning.".to_owned()));
}

/// Full text alone, and nothing to complain about.
pub async fn without_a_model_words_do(factory: &dyn MemoryFactory) {
    let bench = Bench::without_model(factory).await;
    let stored = bench.remember(MemoryType::Fact, "The kitten sleeps.").await;
    assert_eq!(stored.embedding_missing, None);
    let found = bench.search(&MemoryQuery::new("kitten")).await;
    assert_eq!(contents(&found.hits), ["The kitten sleeps."]);
    assert!(!found.used_vectors && found.note.is_none());
    assert_eq!(bench.found("feline").await, Vec::<String>::new());
}

/// Records are kept, searches go by words and say so, and later everything has its vector.
pub async fn a_model_that_is_away_stops_nothing(factory: &dyn MemoryFactory) {
    let bench = Bench::new(factory).await;
    bench.facts(&["The kitten sleeps."]).await;
    bench.model.set_away(true);
    let stored = bench.remember(MemoryType::Fact, "A feline hunts.").await;
    assert!(stored.is_new);
    assert!(
        stored
            .embedding_missing
            .is_some_and(|why| why.contains("sent away"))
    );
    let found = bench.search(&MemoryQuery::new("feline")).await;
    assert_eq!(contents(&found.hits), ["A feline hunts."]);
    assert!(!found.used_vectors);
    assert!(found.note.is_some_and(|note| note.contains("words alone")));

    bench.model.set_away(false);
    // It was left alone for a while; then it is asked again.
    bench.clock.advance(60_000);
    let found = bench.search(&MemoryQuery::new("cat")).await;
    assert_eq!(contents(&found.hits), ["The kitten sleeps."]);
    assert!(found.note.is_some_and(|note| note.contains("1 of 2")));
    let done = bench.memory.reindex(Scope::Missing, |_| ()).await;
    assert_eq!(done.expect("reindexed").embedded, 1);
    let found = bench.search(&MemoryQuery::new("cat")).await;
    assert_eq!(found.hits.len(), 2);
    assert_eq!(found.note, None);
    let done = bench.memory.reindex(Scope::Missing, |_| ()).await;
    assert_eq!(done.expect("reindexed").embedded, 0);
    let done = bench.memory.reindex(Scope::All, |_| ()).await;
    assert_eq!(done.expect("reindexed").embedded, 2);
    assert_eq!(bench.found("cat").await.len(), 2);
}

/// Another model has another space; a reindex moves everything over.
pub async fn vectors_of_another_model_are_not_compared(factory: &dyn MemoryFactory) {
    let bench = Bench::new(factory).await;
    bench
        .facts(&["The kitten sleeps.", "The clinic is closed."])
        .await;
    let other = Memory::new(bench.backend.clone()).with_embedder(Meaning::new("meaning-2"));
    let found = other
        .search(&MemoryQuery::new("feline"))
        .await
        .expect("a search");
    assert_eq!(found.hits, []);
    assert!(found.note.is_some_and(|note| note.contains("2 of 2")));
    let done = other
        .reindex(Scope::Missing, |_| ())
        .await
        .expect("reindexed");
    assert_eq!(done.embedded, 2);
    let found = other
        .search(&MemoryQuery::new("feline"))
        .await
        .expect("a search");
    assert_eq!(found.hits[0].record.content, "The kitten sleeps.");
    let found = bench.search(&MemoryQuery::new("feline")).await;
    assert_eq!(found.hits, []);
}

/// A server that has another model under the old name. Until the reindex, what has a vector of the
/// old size is found by its words, and the search says so; no two sizes are ever compared.
pub async fn a_model_whose_vectors_change_in_size_is_reindexed(factory: &dyn MemoryFactory) {
    let bench = Bench::new(factory).await;
    let kitten = bench.remember(MemoryType::Fact, "The kitten sleeps.").await;
    // More than the model takes at once.
    for number in 0..20 {
        let content = format!("The clinic is closed on day {number}.");
        bench.remember(MemoryType::Fact, &content).await;
    }
    let longer = Memory::new(bench.backend.clone()).with_embedder(Meaning::of_size("meaning-1", 3));
    let search = async |text: &str| {
        let found = longer.search(&MemoryQuery::new(text)).await;
        found.expect("a search")
    };
    let size_of = async |id: &str| {
        let record = longer.get(id).await.expect("a look").expect("it is there");
        record.embedding.map(|embedding| embedding.vector.len())
    };

    let found = search("feline").await;
    assert_eq!(found.hits, []);
    assert!(!found.used_vectors);
    let note = found.note.expect("a note");
    assert!(
        note.contains("21 of 21") && note.contains("words alone"),
        "{note}"
    );
    assert_eq!(
        contents(&search("kitten").await.hits),
        ["The kitten sleeps."]
    );
    let new = new(MemoryType::Fact, "A feline hunts.");
    let new = longer.remember(new).await.expect("it is remembered");
    assert_eq!(new.embedding_missing, None);
    let found = search("cat").await;
    assert_eq!(contents(&found.hits), ["A feline hunts."]);
    assert!(found.used_vectors);
    let note = found.note.expect("a note");
    assert!(note.contains("21 of 22"), "{note}");

    assert_eq!(size_of(&kitten.id).await, Some(8));
    let done = longer.reindex(Scope::Missing, |_| ()).await;
    assert_eq!(done.expect("reindexed").embedded, 21);
    assert_eq!(size_of(&kitten.id).await, Some(24));
    let found = search("cat").await;
    assert_eq!(found.note, None);
    let mut nearest = contents(&found.hits[..2]);
    nearest.sort();
    assert_eq!(nearest, ["A feline hunts.", "The kitten sleeps."]);
    let done = longer.reindex(Scope::Missing, |_| ()).await;
    assert_eq!(done.expect("reindexed").embedded, 0);
    // The old size has nothing left to be compared with.
    let found = bench.search(&MemoryQuery::new("cat")).await;
    assert_eq!(found.hits, []);
}

/// No index has to be built first, and a second user of the store sees it as well.
pub async fn what_is_written_is_found_at_once(factory: &dyn MemoryFactory) {
    let bench = Bench::new(factory).await;
    let second = Memory::new(bench.backend.clone()).with_embedder(bench.model.clone());
    let second = Arc::new(second);
    for number in 0..20 {
        let content = format!("Number {number}: a kitten.");
        let stored = bench.remember(MemoryType::Fact, &content).await;
        let found = second
            .search(&MemoryQuery::new("feline"))
            .await
            .expect("a search");
        assert_eq!(contents(&found.hits), [content]);
        bench.memory.delete(&stored.id).await.expect("deleted");
        let found = second
            .search(&MemoryQuery::new("feline"))
            .await
            .expect("a search");
        assert_eq!(found.hits, []);
    }
}

/// What is read from memory is trusted as it was when it was stored.
pub async fn trust_stays_with_what_was_stored(factory: &dyn MemoryFactory) {
    let bench = Bench::new(factory).await;
    for trust in Trust::ALL {
        let content = format!("The cat, according to {}.", trust.as_str());
        let said = NewMemory {
            trust,
            ..new(MemoryType::Fact, &content)
        };
        bench.memory.remember(said).await.expect("stored");
    }
    let found = bench.search(&MemoryQuery::new("cat")).await.hits;
    assert_eq!(found.len(), 4);
    for hit in found {
        assert!(hit.record.content.contains(hit.record.trust.as_str()));
    }
}
